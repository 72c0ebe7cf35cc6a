"""From the log-probabilities of tokens to the probability of each label."""

from math import exp, inf, log, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator.asking.annotators import grading
from pcs_annotator.asking.annotators.grading import Graded, grade
from pcs_annotator.asking.annotators.reply import read_label
from pcs_annotator.core.chat import TokenPosition

MOOD = ("positive", "neutral", "negative")
DEGREES = ("rather positive", "rather negative", "neutral")


def at(token: str, **shares: float) -> TokenPosition:
    """A position whose alternatives are given as keywords."""
    return among(token, shares)


def among(token: str, shares: dict[str, float]) -> TokenPosition:
    return TokenPosition(token, tuple((other, log(share)) for other, share in shares.items()))


def cut(raw: bytes) -> str:
    """A token that holds part of a character."""
    return raw.decode("utf-8", "surrogateescape")


def grades(positions: list[TokenPosition], labels: tuple[str, ...], chosen: str) -> tuple[float, ...]:
    found = grade(tuple(positions), labels, chosen)
    assert found.grades is not None, found.remark
    return found.grades


@pytest.mark.parametrize(
    ("positions", "labels", "chosen", "expected"),
    [
        pytest.param([at("positive", positive=0.7, neutral=0.2, negative=0.1)], MOOD, "positive", (0.7, 0.2, 0.1)),
        pytest.param(
            [among("positive", {"positive": 0.5, " positive": 0.1, "Positive": 0.05, '"pos': 0.05, "**neg": 0.2})],
            ("positive", "negative"),
            "positive",
            (0.7, 0.2),
            id="several tokens for one label add up",
        ),
        pytest.param(
            [at("positive", positive=0.5, negative=0.1, mixed=0.3, positively=0.1)],
            ("positive", "negative"),
            "positive",
            (0.5, 0.1),
            id="other words go to no label",
        ),
        pytest.param(
            [at("rather", rather=0.9, neutral=0.1), among(" positive", {" positive": 0.8, " negative": 0.2})],
            DEGREES,
            "rather positive",
            (0.72, 0.18, 0.1),
            id="labels that share their first token",
        ),
        pytest.param(
            [at("n", n=0.6, pos=0.4), at("eg", eg=0.7, eut=0.3), at("ative", ative=1.0)],
            MOOD,
            "negative",
            (0.4, 0.18, 0.42),
            id="tokens that cut a label",
        ),
        pytest.param(
            [at("good", good=0.9, bad=0.1), among("</", {"</": 0.7, " news": 0.3})],
            ("good", "good news", "bad"),
            "good",
            (0.63, 0.27, 0.1),
            id="a label that starts another",
        ),
        pytest.param(
            [at("good", good=0.9, bad=0.1), among(" news", {"<|im_end|>": 0.6, "": 0.1, " news": 0.3})],
            ("good", "good news", "bad"),
            "good news",
            (0.63, 0.27, 0.1),
            id="the end of an answer is a token too",
        ),
        pytest.param(
            [among(">pos", {">pos": 0.6, ">neg": 0.3, ">neut": 0.1})],
            MOOD,
            "positive",
            (0.6, 0.1, 0.3),
            id="a token that starts before the label",
        ),
        pytest.param(
            [among(' "', {' "': 0.99}), at("negative", negative=0.8, positive=0.2)],
            ("positive", "negative"),
            "negative",
            (0.198, 0.792),
            id="quotes before a label decide nothing",
        ),
        pytest.param([at("B", A=0.3, B=0.6, C=0.1)], ("A", "B", "C"), "B", (0.3, 0.6, 0.1), id="letters"),
        pytest.param(
            [at("A", A=0.6, Answer=0.3, B=0.1)], ("A", "B"), "A", (0.6, 0.1), id="a word is not its first letter"
        ),
        pytest.param(
            [among("not", {"not": 0.6, "toxic": 0.4})], ("toxic", "not toxic"), "not toxic", (0.4, 0.6), id="not toxic"
        ),
        pytest.param(
            [at("non", non=0.6, toxic=0.4), among("-", {"-": 0.7, "_": 0.3})],
            ("toxic", "non-toxic"),
            "non-toxic",
            (0.4, 0.6),
            id="a hyphen may be another separator",
        ),
        pytest.param(
            [among("-", {"-": 0.6, "1": 0.3, "0": 0.1})], ("-1", "0", "1"), "-1", (0.6, 0.1, 0.3), id="a minus sign"
        ),
        pytest.param(
            [among("C", {"C": 0.9, "Java": 0.1}), among("++", {"++": 0.6, "<": 0.4})],
            ("C", "C++", "Java"),
            "C++",
            (0.36, 0.54, 0.1),
            id="C++",
        ),
        pytest.param(
            [among("正", {"正": 0.6, "负": 0.3, "中": 0.1})], ("正面", "中性", "负面"), "正面", (0.6, 0.1, 0.3)
        ),
        pytest.param(
            [among("1", {"1": 0.6, "2": 0.3, "1.5": 0.1})], ("1", "2"), "1", (0.6, 0.3), id="1.5 is not 1 with a stop"
        ),
    ],
)
def test_probability_goes_to_the_label_that_a_token_leads_to(
    positions: list[TokenPosition], labels: tuple[str, ...], chosen: str, expected: tuple[float, ...]
) -> None:
    assert grades(positions, labels, chosen) == pytest.approx(expected)


DRESSES = [
    *"\u00ad\u061c\u200b\u200e\u200f\u202b\u2060\u2067\ufe0f\ufeff",
    '"',
    "**",
    "«",
    "- ",
    "• ",
    "## ",
    "> **",
    "\u200f- ",
]


@pytest.mark.parametrize("dress", DRESSES)
def test_whatever_reading_accepts_around_a_label_grading_accepts_too(dress: str) -> None:
    labels = ("إيجابي", "سلبي")
    whole = {f"{dress}{label}": share for label, share in zip(labels, (0.6, 0.3), strict=True)}
    assert [read_label(text, labels).how for text in whole] == ["bare", "bare"]
    assert grades([among(next(iter(whole)), whole)], labels, labels[0]) == pytest.approx((0.6, 0.3))
    gap = " " if dress.endswith(" ") else ""
    following = among(f"{gap}{labels[0]}", {f"{gap}{labels[0]}": 0.6, f"{gap}{labels[1]}": 0.3})
    apart = [among(dress.rstrip(), {dress.rstrip(): 1.0}), following]
    assert grades(apart, labels, labels[0]) == pytest.approx((0.6, 0.3))
    if not gap:
        closed = among(f"{labels[0]}{dress}", {f"{labels[0]}{dress}": 0.6, labels[1]: 0.3})
        assert grades([closed], labels, labels[0]) == pytest.approx((0.6, 0.3))


def test_half_characters_are_put_together() -> None:
    smile, rage = "😀".encode(), "😡".encode()
    assert smile[:3] == rage[:3]
    first = among(cut(smile[:3]), {cut(smile[:3]): 0.9, "ok": 0.1})
    second = among(cut(smile[3:]), {cut(smile[3:]): 0.75, cut(rage[3:]): 0.25})
    assert grades([first, second], ("😀", "😡", "ok"), "😀") == pytest.approx((0.675, 0.225, 0.1))


def test_a_cut_character_may_be_a_capital() -> None:
    capital, small = "É".encode()[:1], "n"
    found = grades([among(cut(capital), {cut(capital): 0.7, small: 0.3})], ("écrit", "non"), "écrit")
    assert found == pytest.approx((0.7, 0.3))


def test_a_replaced_half_character_decides_nothing() -> None:
    shares = {"正面": 0.96, "\ufffd": 0.04}
    found = grades([among("正面", shares)], ("正面", "负面"), "正面")
    assert found == pytest.approx((1.0, 0.0), abs=0.02)
    assert sum(found) <= 1
    assert grade((among("正面", {"正面": 0.6, "\ufffd": 0.4}),), ("正面", "负面"), "正面").remark == grading.UNDECIDED


def test_a_little_that_is_left_open_is_split_like_the_rest() -> None:
    positions = [at("positive", positive=0.9, n=0.06, neg=0.03, neut=0.01)]
    assert grades(positions, MOOD, "positive") == pytest.approx((0.9, 0.025, 0.075))
    assert grades([at("positive", positive=0.94, n=0.06)], MOOD, "positive") == pytest.approx((0.94, 0.03, 0.03))


def test_a_word_that_begins_a_sentence_is_not_half_a_label() -> None:
    found = grades([at("fraud", fraud=0.6, theft=0.35, The=0.05)], ("theft", "fraud"), "fraud")
    assert found == pytest.approx((0.35, 0.6))
    assert grades([at("In", In=0.7, Against=0.3)], ("In favour", "Against"), "In favour") == pytest.approx((0.7, 0.3))


@pytest.mark.parametrize(
    ("positions", "reason"),
    [
        pytest.param(None, grading.NOT_GIVEN),
        pytest.param("in an unknown form", "in an unknown form"),
        pytest.param((), grading.UNDECIDED, id="no tokens"),
        pytest.param((TokenPosition("positive", ()),), grading.NO_ALTERNATIVES, id="no alternatives"),
        pytest.param(
            (TokenPosition("positive", (("positive", -0.1),)),), grading.NO_ALTERNATIVES, id="one alternative"
        ),
        pytest.param((TokenPosition("positive", (("positive", 0.2), ("n", -2.0))),), grading.IMPOSSIBLE, id="above 0"),
        pytest.param((TokenPosition("positive", (("positive", nan), ("n", -2.0))),), grading.IMPOSSIBLE, id="nan"),
        pytest.param(
            (TokenPosition("positive", (("positive", -0.1), ("n", nan))),), grading.IMPOSSIBLE, id="other nan"
        ),
        pytest.param((TokenPosition("positive", (("positive", inf), ("n", -2.0))),), grading.IMPOSSIBLE, id="inf"),
        pytest.param((at("positive", positive=0.9, neutral=0.4, negative=0.4),), grading.IMPOSSIBLE, id="sum of 1.7"),
        pytest.param(
            (TokenPosition("positive", (("positive", 0.0), ("neutral", -9999.0), ("negative", -9999.0))),),
            grading.AFTER_SAMPLING,
            id="0 and -9999",
        ),
        pytest.param(
            (TokenPosition("positive", (("positive", 0.0), ("neutral", -inf))),),
            grading.AFTER_SAMPLING,
            id="0 and -inf",
        ),
        pytest.param(
            (TokenPosition("positive", (("positive", -9999.0), ("neutral", -0.1), ("negative", -3.0))),),
            grading.NO_OWN,
            id="a token that a constraint forced",
        ),
        pytest.param((at("neutral", neutral=0.8, positive=0.2),), grading.OTHER_ANSWER, id="another label"),
        pytest.param((at("maybe", maybe=0.8, positive=0.2),), grading.OTHER_ANSWER, id="no label"),
        pytest.param((at("positive", positive=0.8, n=0.2),), grading.UNDECIDED, id="cut before it is clear"),
        pytest.param((among('"', {'"': 0.9, "neg": 0.1}),), grading.UNDECIDED, id="ends before the label"),
        pytest.param(
            (at("positive", The=0.5, This=0.2, positive=0.001),), grading.UNLISTED, id="labels far down the list"
        ),
    ],
)
def test_a_vote_stays_hard_if_log_probabilities_do_not_tell(
    positions: tuple[TokenPosition, ...] | str | None, reason: str
) -> None:
    assert grade(positions, MOOD, "positive") == Graded(None, reason)


def test_an_answer_of_one_word_that_starts_another_label_stays_hard_without_its_end() -> None:
    found = grade((at("good", good=0.9, bad=0.1),), ("good", "good news", "bad"), "good")
    assert found == Graded(None, grading.UNDECIDED)


def test_confident_answers_are_not_taken_for_choices_already_made() -> None:
    sure = TokenPosition("positive", (("positive", 0.0), ("neutral", -17.5), ("negative", -18.25)))
    assert grades([sure], MOOD, "positive") == pytest.approx((1.0, exp(-17.5), exp(-18.25)))


@pytest.mark.parametrize("listed", [5, 20])
def test_labels_that_no_token_shows_get_the_most_they_can_have(listed: int) -> None:
    labels = tuple(f"topic {number:02d}" for number in range(60))
    tokens = {f"topic {number:02d}": 0.5 * 0.5**number for number in range(listed)}
    found = grade((among("topic 00", tokens),), labels, "topic 00")
    assert found.grades is not None
    lowest, left = min(tokens.values()), 1 - sum(tokens.values())
    assert found.grades[:listed] == pytest.approx(tuple(tokens.values()))
    assert found.grades[listed:] == pytest.approx((min(lowest, left / (60 - listed)),) * (60 - listed))
    assert sum(found.grades) <= 1 + 1e-9
    assert found.remark == (grading.BOUNDED if listed == 5 else "")


PARTS = ("good", "bad", "very", "news", "not", "neutral", "A", "B", "rather", "ни", "хорошо", "😀", "non", "toxic")


@st.composite
def label_sets(draw: st.DrawFn) -> tuple[str, ...]:
    words = st.lists(st.sampled_from(PARTS), min_size=1, max_size=3).map(" ".join)
    return tuple(draw(st.lists(words, min_size=2, max_size=6, unique_by=str.casefold)))


def tokens_of(label: str, size: int) -> list[str]:
    """The label cut into tokens of a few bytes, so that characters are cut as well."""
    raw = label.encode()
    return [cut(raw[start : start + size]) for start in range(0, len(raw), size)]


@given(
    labels=label_sets(),
    weights=st.lists(st.floats(0.01, 1), min_size=6, max_size=6),
    size=st.integers(1, 8),
    listed=st.integers(2, 8),
    other=st.floats(0, 0.3),
)
def test_grades_are_never_far_from_the_probability_of_a_label(
    labels: tuple[str, ...], weights: list[float], size: int, listed: int, other: float
) -> None:
    total = sum(weights[: len(labels)]) / (1 - other)
    truth = {label: weight / total for label, weight in zip(labels, weights, strict=False)}
    paths = {label: [*tokens_of(label, size), "</"] for label in labels}
    chosen = max(truth, key=truth.__getitem__)
    positions: list[TokenPosition] = []
    said: list[str] = []
    unlisted = 0.0
    for token in paths[chosen]:
        shares = {"Hm": other} if other and not said else {}
        for label, path in paths.items():
            if path[: len(said)] == said:
                shares[path[len(said)]] = shares.get(path[len(said)], 0.0) + truth[label]
        whole = sum(shares.values())
        likely = sorted(shares, key=shares.__getitem__, reverse=True)[:listed]
        shown = {one: shares[one] / whole for one in {*likely, token}}
        positions.append(among(token, shown))
        unlisted = max(unlisted, 1 - sum(shown.values()))
        said.append(token)
    found = grade(tuple(positions), labels, chosen)
    if found.grades is None:
        return
    assert sum(found.grades) <= 1 + 1e-9
    assert min(found.grades) >= 0
    # what was left open is at most a tenth; what was not listed may belong to any label
    for label, value in zip(labels, found.grades, strict=True):
        assert abs(value - truth[label]) <= 0.112 + unlisted
