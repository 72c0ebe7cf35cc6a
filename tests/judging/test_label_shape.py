from dataclasses import replace

import numpy as np
import pytest

from pcs_annotator.base.errors import LabelError
from pcs_annotator.base.plain import from_plain, to_plain
from pcs_annotator.core.arrays import Codes
from pcs_annotator.judging.label_shape import ONE, LabelShape, check_kind
from tests.builders import the, votes_of

STEPS = ("low", "middle", "high")  # votes sort labels by name, so these are not in order there
SORTED = ("high", "low", "middle")
SCALE = LabelShape("scale", STEPS)
TREE = LabelShape("tree", ("a/x", "a/y", "b/x/1", "b/x/2", "b/z"))


def codes(*names: str, labels: tuple[str, ...] = SORTED) -> Codes:
    return np.array([labels.index(name) for name in names], dtype=np.int8)


def test_the_label_of_a_scale_is_the_median_and_of_others_the_mode() -> None:
    chances = np.array([[0.4, 0.35, 0.25], [0.2, 0.5, 0.3], [0.5, 0.0, 0.5]])  # high, low, middle
    assert SCALE.choose(chances, SORTED).tolist() == codes("middle", "low", "middle").tolist()
    assert ONE.choose(chances, SORTED).tolist() == codes("high", "low", "high").tolist()


def test_a_neighbour_is_near_enough() -> None:
    best, gold = codes("low", "low", "middle"), codes("middle", "high", "high")
    assert SCALE.right(best, gold, SORTED, near=True).tolist() == [True, False, True]
    assert not SCALE.right(best, gold, SORTED, near=False).any()
    chances = np.array([[0.1, 0.7, 0.2]] * 3)  # high, low, middle
    assert SCALE.confidence(chances, best, SORTED, near=True) == pytest.approx([0.9, 0.9, 1.0])


def test_plausible_labels_of_a_scale_are_an_interval_around_the_median() -> None:
    chances = np.random.default_rng(1).dirichlet(np.full(3, 0.5), 200)
    tails = SCALE.tails(chances, SORTED)
    assert tails.argmax(axis=1).tolist() == SCALE.choose(chances, SORTED).tolist()
    assert SCALE.tails(np.array([[0.5, 0.2, 0.3]]), SORTED)[0] == pytest.approx([0.5, 0.2, 0.5])
    plausible = np.array([[True, False, True], [False, True, False], [True, True, True]])
    assert SCALE.ends(plausible, SORTED) == (["middle", "low", "low"], ["high", "low", "high"])


def test_the_mean_place_of_votes_is_read_beside_the_texts() -> None:
    votes = votes_of([[[0], [2]], [[1], [1]]], SORTED)  # high and middle; low twice
    read = the(SCALE.placed(votes).text_log_probs)
    assert read.argmax(axis=1).tolist() == [0, 1]
    assert read[0, 0] == pytest.approx(read[0, 2])  # between the two
    assert ONE.placed(votes) is votes
    again = SCALE.placed(replace(votes, text_log_probs=np.ones((2, 3)))).text_log_probs
    assert again == pytest.approx(read + 1)


def test_texts_and_places_count_as_much_as_gold_says() -> None:
    rng = np.random.default_rng(0)
    gold = rng.integers(3, size=200).astype(np.int8)
    noise = rng.integers(3, size=(200, 2, 1))
    sure = np.log(np.where(np.eye(3)[gold] > 0, 0.9, 0.05))
    texts_know = SCALE.mixing(replace(votes_of(noise, SORTED), text_log_probs=sure), gold)
    assert texts_know.mix[0] == 1.0
    assert texts_know.mix[1] < 0.05
    answers = np.repeat(gold[:, np.newaxis, np.newaxis], 2, axis=1)
    guesses = np.log(rng.dirichlet(np.ones(3), 200))
    answers_know = SCALE.mixing(replace(votes_of(answers, SORTED), text_log_probs=guesses), gold)
    assert answers_know.mix[1] == 1.0
    assert answers_know.mix[0] < 0.5
    assert from_plain(LabelShape, to_plain(answers_know)) == answers_know
    assert SCALE.mixing(votes_of(answers, SORTED), gold) is SCALE


def test_paths_of_a_tree_at_every_level() -> None:
    assert TREE.levels == 3
    assert TREE.at(1, TREE.labels)[0] == ("a", "b")
    assert TREE.at(2, TREE.labels)[1].tolist() == [0, 1, 2, 2, 3]
    assert TREE.parents == ("a", "b", "b/x")
    assert (ONE.parents, ONE.levels, SCALE.parents) == ((), 1, ())
    best = np.array([0, 2, 4], dtype=np.int8)
    gold = np.array([1, 3, 2], dtype=np.int8)
    assert [TREE.right(best, gold, TREE.labels, near=False, level=level).tolist() for level in (1, 2, 3)] == [
        [True, True, True],
        [False, True, False],
        [False, False, False],
    ]
    chances = np.array([[0.1, 0.2, 0.3, 0.3, 0.1]] * 3)
    assert TREE.confidence(chances, best, TREE.labels, near=False, level=1) == pytest.approx([0.3, 0.7, 0.7])


def test_labels_must_fit_their_kind() -> None:
    check_kind("one", ("a", "b/c"))
    check_kind("scale", STEPS)
    check_kind("tree", TREE.labels)
    with pytest.raises(LabelError, match="is not a path"):
        check_kind("tree", ("a/", "b/c"))
