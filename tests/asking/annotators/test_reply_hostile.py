"""Replies made to break reading, or to slow it down."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator.asking.annotators.reply import read_label
from pcs_annotator.asking.annotators.vocabulary import vocabulary

NEWS = ("Fake", "Real")
SIZE = 250_000

PIECES = st.sampled_from(
    [
        *"<>/{}[]\"'\\:,.-_* \n\t\x00\ud800\u202e👍éİßſ01",
        *("<label>", "</label>", "<think>", "</think>", '"label":', "e\u0301"),
        *("Fake", "real", "not ", "or ", "cannot ", "say ", "answer is "),
    ]
)
REPLIES = st.one_of(st.text(), st.lists(PIECES, max_size=30).map("".join))
LABELS = st.lists(st.one_of(st.text(max_size=8), PIECES), max_size=6)


@given(reply=REPLIES, labels=LABELS, asked=REPLIES)
def test_reading_never_raises_and_returns_a_label_or_a_reason(reply: str, labels: list[str], asked: str) -> None:
    reading = read_label(reply, labels, asked)
    assert reading.label is None or reading.label in labels
    assert (reading.label is None) == bool(reading.reason)
    assert (reading.label is None) == (reading.how == "")


@given(reply=REPLIES, asked=REPLIES)
def test_label_is_a_whole_word_of_the_reply(reply: str, asked: str) -> None:
    label = read_label(reply, NEWS, asked).label
    assert label is None or re.search(rf"(?<![^\W_]){label}(?![^\W_])", reply, re.IGNORECASE)


@given(label=st.text(min_size=1, max_size=12).filter(str.strip), other=st.text(max_size=12))
def test_every_label_is_read_from_itself(label: str, other: str) -> None:
    labels = (label,) if other.strip().casefold() == label.strip().casefold() else (label, other)
    known = vocabulary(labels).match(label)
    assert read_label(label, labels, label).label == known
    assert known in (label, None)


@given(label=st.from_regex(r"[^\W_][\w+#.-]{0,8}[^\W_]", fullmatch=True))
def test_ordinary_label_is_read_bare_and_in_a_tag(label: str) -> None:
    labels = (label, "something else")
    assert read_label(label, labels).label == label
    assert read_label(f"<label>{label}</label>", labels).label == label


@pytest.mark.parametrize(
    "piece",
    [
        *("<label>", "</label>", "<label>Fake", "<think>", "</think>", "<label>Fake</label> or ", "<", "< ", "</ "),
        *("{", "[", '"', '"label":', '"label": "Fake" ', "\\", "fake ", "not fake ", "cannot ", "cannot say", "\n"),
        *("answer is ", "the final answer of the ", "x", " ", "e\u0301\u0323", "-", "n't", "unclear a ", "real, "),
    ],
)
@pytest.mark.parametrize("asked", ["", "echo", "<label>Fake</label> or a story "])
def test_repeated_pieces_are_read_in_linear_time(piece: str, asked: str) -> None:
    # No time is measured: a reader that takes quadratic time would run for many minutes.
    reply = (piece * (SIZE // 5 // len(piece) + 1))[: SIZE // 5]
    text = f"{reply}z" if asked == "echo" else asked * (SIZE // 250)
    assert read_label(f"a {reply} z", NEWS, text).label in (*NEWS, None)


@pytest.mark.parametrize("piece", ["<label>", "< ", "fake ", '"'])
def test_a_quarter_of_a_million_characters_are_read(piece: str) -> None:
    assert read_label("a" + piece * (SIZE // len(piece)), NEWS).label in (*NEWS, None)


def test_deeply_nested_json_is_no_trouble() -> None:
    assert read_label('{"a":' * 100_000 + '{"label": "Fake"}', NEWS).label == "Fake"


def test_answer_behind_a_quarter_of_a_million_characters_is_found() -> None:
    assert read_label("x " * (SIZE // 2) + "<label>Fake</label>", NEWS).label == "Fake"


def test_answer_at_either_end_of_four_million_characters_is_found() -> None:
    text, filler = "A headline about <label>Real</label> things", "<label>Real</label> things " * 160_000
    assert read_label(f"{filler}\n<label>Fake</label>", NEWS, text).label == "Fake"
    assert read_label(f"Answer: Fake\n{' .' * 2_000_000}", NEWS, text).label == "Fake"
