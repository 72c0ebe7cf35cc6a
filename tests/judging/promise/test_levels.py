"""Certificates of labels that are steps of a scale, or paths of a tree."""

from dataclasses import replace

import numpy as np
import pytest

from pcs_annotator import Votes
from pcs_annotator.base.plain import from_plain, to_plain
from pcs_annotator.core.arrays import Codes
from pcs_annotator.judging.early_stop import exact_stop, learn_frugal, spending_of
from pcs_annotator.judging.fit_model import Learning, fit_model
from pcs_annotator.judging.heldout import Judged
from pcs_annotator.judging.label_shape import LabelShape
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promise.certificate import Certificate, certify
from pcs_annotator.judging.promise.promise import Promise
from tests.builders import the

PROMISE = Promise(max_error=0.1)
PATHS = ("a/x", "a/y", "b/x", "b/y")


def judged(right: list[bool], confidence: list[float]) -> Judged:
    return Judged(np.array(confidence), np.zeros(len(right), dtype=np.int8), np.array(right))


def parts(sure: int, unsure: int) -> tuple[Judged, Judged]:
    """Leaves that are right where they are sure, and parents that are always right."""
    leaves = judged([True] * sure + [False] * unsure, [0.95] * sure + [0.4] * unsure)
    return leaves, judged([True] * (sure + unsure), [0.99] * (sure + unsure))


def test_rows_that_no_leaf_is_accepted_for_are_tested_one_level_above() -> None:
    leaves, above = parts(100, 100)
    found = certify(leaves, PATHS, PROMISE, upper=[(above, ("a", "b"))])
    assert (found.thresholds, found.upper) == ({"": 0.95}, ({"": 0.99},))
    assert found.holds
    assert found.used == pytest.approx(found.level / 2)  # that of leaves: parents passed to the end
    assert from_plain(Certificate, to_plain(found)) == found


def test_a_parent_is_not_promised_on_the_rows_of_accepted_leaves() -> None:
    # parents are wrong on a tenth of all rows, but on a fifth of those that no leaf is accepted for
    leaves, _ = parts(100, 100)
    above = judged([True] * 100 + [row % 5 > 0 for row in range(100)], [0.99] * 200)
    found = certify(leaves, PATHS, PROMISE, upper=[(above, ("a", "b"))])
    assert found.upper == ({},)
    assert found.used == pytest.approx(found.level)


def test_a_promise_about_parents_alone_holds() -> None:
    leaves, above = parts(5, 195)
    found = certify(leaves, PATHS, PROMISE, upper=[(above, ("a", "b"))])
    assert (found.thresholds, found.upper, found.holds) == ({}, ({"": 0.99},), True)


def votes_on(labels: tuple[str, ...], wrong: float, step: int, rows: int = 600) -> tuple[Votes, Codes]:
    """Votes of three models; a wrong one is the label a step further, within blocks of labels."""
    rng = np.random.default_rng(0)
    truth = rng.integers(len(labels), size=rows).astype(np.int8)
    off = rng.random((rows, 3, 2, 1)) < wrong
    other = truth // step * step + (truth + 1) % step
    codes = np.where(off, other[:, np.newaxis, np.newaxis, np.newaxis], truth[:, np.newaxis, np.newaxis, np.newaxis])
    return Votes(
        codes=codes.astype(np.int8),
        ids=[f"{row:03}" for row in range(rows)],
        annotators=["m", "n", "o"],
        relations=["original", "frame"],
        labels=labels,
    ), truth


def fitted(
    labels: tuple[str, ...], kind: str, promise: Promise | None = PROMISE, *, step: int = 2
) -> tuple[Model, Votes]:
    votes, truth = votes_on(labels, 0.32, step)
    shape = LabelShape.of(kind, labels)  # type: ignore[arg-type]
    return fit_model(votes, truth, Learning(promise=promise, shape=shape)).model, votes


def test_a_row_gets_the_deepest_level_that_is_accepted() -> None:
    model, votes = fitted(PATHS, "tree")
    found = model.judged(votes)
    assert set(the(found.level)[the(found.accepted)].tolist()) == {1, 2}
    parents = the(found.accepted) & (the(found.level) == 1)
    given = np.array(model.given(votes, found))
    assert set(given[parents].tolist()) <= {"a", "b"}
    below = [votes.labels.index(path) for path in PATHS if path.startswith("a/")]
    rows = parents & (given == "a")
    assert the(found.confidence)[rows] == pytest.approx(found.deciding[rows][:, below].sum(axis=1))
    again = from_plain(Model, model.to_dict())
    assert [one.label for one in again.judge(votes)] == given.tolist()


def test_without_a_promise_or_far_from_the_gold_rows_every_row_has_its_leaf() -> None:
    model, votes = fitted(PATHS, "tree", None)
    assert {one.label for one in model.judge(votes)} <= set(PATHS)
    model, votes = fitted(PATHS, "tree")
    found = replace(model, unlike_gold=True).judged(votes)
    assert (set(the(found.level).tolist()), found.accepted is not None and found.accepted.any()) == ({2}, False)


def test_what_a_person_says_counts_down_to_the_level_that_is_given() -> None:
    model, votes = fitted(PATHS, "tree")
    found = model.judged(votes)
    rows = [int(np.flatnonzero(the(found.level) == level)[0]) for level in (1, 2)]
    neighbour = (found.best[rows] ^ 1).astype(np.int8)  # the other leaf of the parent
    assert model.right(votes.labels, found, rows, neighbour).tolist() == [True, False]


def test_a_scale_promises_labels_within_one_step_and_asks_everything() -> None:
    steps = ("1", "2", "3", "4")
    promise = Promise(max_error=0.1, kind="off-by-more-than-one")
    model, votes = fitted(steps, "scale", promise)
    found = model.judged(votes)
    assert the(found.accepted).all()
    said = ((found.best + 1) % 4).astype(np.int8)
    assert model.right(votes.labels, found, range(len(votes)), said).tolist() == (found.best < 3).tolist()
    assert spending_of(votes, exact_stop(votes, model)).questions == 1.0
    frugal = learn_frugal(votes, votes_on(steps, 0.32, 2)[1], Learning(promise=promise, shape=model.shape))
    assert frugal.spending.questions == 1.0
