"""Which of very many labels a text is asked about."""

from __future__ import annotations

import pytest

from pcs_annotator import Example, Task
from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.ngrams import CandidateLabels, candidates_of, recall_of
from pcs_annotator.core.task import usual_instruction

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
