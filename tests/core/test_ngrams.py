"""The examples nearest to a text: never the text itself, the same ones every time."""

import pytest

from pcs_annotator import Example, Task
from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.ngrams import CandidateLabels, NearestExamples, candidates_of, nearest_among, recall_of
from pcs_annotator.core.task import usual_instruction

BANK = (
    Example("The striker scored a late goal.", "sport"),
    Example("The bank raised its interest rates.", "money"),
    Example("The keeper let in a goal.", "sport"),
    Example("Interest on bank loans fell.", "money"),
    Example("A goal by the striker decided the cup.", "sport"),
)


def test_the_most_similar_come_first_and_a_second_set_has_the_next_ones() -> None:
    bank = NearestExamples(BANK)
    first, second = bank.of("The striker scored a goal.", 2), bank.of("The striker scored a goal.", 2, skipped=2)
    assert first[0] == BANK[0]
    assert {one.label for one in first} == {"sport"}
    assert not {*first} & {*second}
    assert len(bank.of("The bank.", 9)) == len(BANK)


@pytest.mark.parametrize(
    "copy", [BANK[0].text, "the  STRIKER scored a late goal. ", "\nThe striker scored\ta late goal."]
)
def test_a_text_is_never_shown_itself_or_a_copy(copy: str) -> None:
    found = NearestExamples([*BANK, Example(BANK[0].text.upper(), "sport")]).of(copy, 9)
    assert len(found) == len(BANK) - 1
    assert BANK[0] not in found


def test_equally_similar_ones_come_in_their_order_and_a_bank_is_read_once() -> None:
    twins = tuple(Example(text, "a") for text in ("xx one", "xx two", "xx six"))
    assert NearestExamples(twins).of("qqqq", 3) == twins
    assert nearest_among(BANK) is nearest_among(tuple(BANK))


def test_a_number_of_examples_below_zero_is_refused() -> None:
    with pytest.raises(ConfigError, match="nearest is -1, must be 0"):
        Task("About?", ["sport", "money"], examples=BANK, nearest=-1)


LABELS = [f"area {number}/topic number {number}" for number in range(60)]


def test_more_than_fifty_labels_are_asked_about_in_part() -> None:
    assert Task("Which?", LABELS[:50]).asked == 0
    assert Task("Which?", LABELS).asked == 30
    assert Task("Which?", LABELS, candidates=60).asked == 0
    assert Task("Which?", LABELS[:4], candidates=2).asked == 2
    assert usual_instruction(LABELS) == "Which label fits the text best?"


@pytest.mark.parametrize("count", [-1, 1])
def test_fewer_than_two_candidates_are_refused(count: int) -> None:
    with pytest.raises(ConfigError, match="at least two labels"):
        Task("Which?", LABELS, candidates=count)


def test_words_of_name_path_and_meaning_find_a_label() -> None:
    labels = ["sport/ball_games", "sport/swimming", "money/taxes", "health/vaccines"]
    finder = CandidateLabels(labels, {"money/taxes": "what citizens owe the treasury"}, ())

    assert finder.of("The swimmers won.", 1) == ("sport/swimming",)
    assert finder.of("Citizens pay the treasury.", 1) == ("money/taxes",)
    assert finder.of("A ball in the pool for swimming", 2) == ("sport/ball_games", "sport/swimming")


def test_a_known_text_finds_its_label_but_never_its_own() -> None:
    known = [Example("Quarks and gluons", "b"), Example("Bread and butter", "c")]
    finder = CandidateLabels(["a", "b", "c", "d"], {}, [*known, Example("Bread again", "d")])

    assert finder.of("More quarks and gluons", 3)[0] == "b"
    assert "b" not in CandidateLabels(["a", "b", "c", "d"], {}, known).of(" quarks and GLUONS", 1)


def test_a_common_label_is_asked_about_whatever_the_text_says() -> None:
    known = [Example(f"Something {number}", "other") for number in range(5)]

    assert "other" in CandidateLabels([*LABELS, "other"], {}, known).of("Topic number 7", 10)


def test_recall_counts_gold_labels_among_the_candidates() -> None:
    task = Task("Which?", LABELS, candidates=2)

    assert recall_of(task, ["topic number 7", "topic number 8"], [LABELS[7], LABELS[40]]) == 0.5
    assert recall_of(Task("Which?", LABELS[:3]), ["topic"], [LABELS[0]]) == 1
    assert candidates_of(Task("Which?", LABELS[:3])) is None
