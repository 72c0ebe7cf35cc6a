"""How many passages are found and right, and from which confidence on candidates are chosen."""

import numpy as np
import pytest

from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.evaluate.passage_figures import GoldPassages, best_cut, passage_figures
from pcs_annotator.judging.heldout import Judged
from pcs_annotator.judging.label_shape import LabelShape

# text 0 has two gold passages, of which both candidates 0 and 1 mean the first; text 1 has one that nobody quotes
SURE = np.array([0.9, 0.8, 0.3, 0.6])
RIGHT = np.array([True, True, False, False])
UNITS = np.array([0, 0, 0, 1])
GOLD = GoldPassages(np.array([2, 1, -1]), [True, True, True], [[0], [0], [], []])
EVERY = np.ones(4, dtype=np.bool_)
JUDGED = Judged(SURE, np.zeros(4, dtype=np.int16), RIGHT, UNITS)


def votes() -> Votes:
    codes = np.array([[0, 0], [0, 1], [1, 0], [0, 1]])[:, :, np.newaxis]
    return Votes(
        codes=codes,
        ids=list("abcd"),
        annotators=["m", "n"],
        relations=["original"],
        labels=("yes", "no"),
        units=["s", "s", "s", "t"],
    )


def test_a_gold_passage_counts_once_however_many_candidates_mean_it() -> None:
    figures = passage_figures(votes(), JUDGED, EVERY, GOLD, None, cut=0.5)
    assert figures.quoted[1:] == (4, 2, 1, 3)
    assert figures.weighed[1:] == (3, 2, 1, 3)
    assert figures.weighed.precision == pytest.approx(2 / 3)
    assert figures.weighed.recall == pytest.approx(1 / 3)
    assert figures.weighed.f1 == pytest.approx(4 / 9)
    assert [question.name for question in figures.questions] == ["m, original", "n, original"]
    assert figures.questions[0][1:] == (3, 2, 1, 3)
    assert figures.texts == 2
    assert figures.auroc == 1.0


def test_the_cut_is_halfway_below_the_last_candidate_that_is_worth_it() -> None:
    assert best_cut(JUDGED, EVERY, GOLD) == pytest.approx((0.9 + 0.8) / 2)  # a second one for the same adds nothing
    everything = GoldPassages(np.array([3, 1, -1]), [True] * 3, [[0], [1], [2], [0]])
    assert best_cut(JUDGED._replace(right=EVERY), EVERY, everything) == pytest.approx(0.15)
    nothing = Judged(SURE[:0], np.zeros(0, dtype=np.int16), RIGHT[:0], UNITS[:0])
    assert best_cut(nothing, EVERY[:0], GOLD) == 0.5


def test_of_the_values_of_a_text_only_the_surest_can_be_accepted() -> None:
    value, passages = LabelShape.of("value", ("yes", "no")), LabelShape.of("passages", ("yes", "no"))
    assert value.eligible(SURE, UNITS).tolist() == [True, False, False, True]
    assert passages.eligible(SURE, UNITS).all()


def test_a_candidate_has_the_first_label_whatever_its_probability() -> None:
    shape = LabelShape.of("passages", ("yes", "no"))
    assert shape.choose(np.array([[0.9, 0.1], [0.1, 0.9]]), ("no", "yes")).tolist() == [1, 1]


def test_where_all_candidates_are_right_nothing_tells_right_from_wrong() -> None:
    assert passage_figures(votes(), JUDGED._replace(right=EVERY), EVERY, GOLD, None).auroc is None
