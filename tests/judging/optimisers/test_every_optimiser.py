"""What holds for every built-in optimiser."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pcs_annotator import Votes, Weights, score
from pcs_annotator.core.arrays import Floats
from pcs_annotator.judging.fit_weights import optimisers
from tests.builders import simulated_votes, the
from tests.judging.panels import KINDS, Kind, graded_votes, random_grades
from tests.judging.strategies import BUILT_IN, LEARNERS, Labelled, labelled_votes, quick, quiet_fit

every_optimiser = pytest.mark.parametrize("name", BUILT_IN)
every_kind = pytest.mark.parametrize("kind", KINDS)


def test_every_built_in_optimiser_is_tested_here() -> None:
    ours = {
        name for name in optimisers.names() if type(optimisers.create(name)).__module__.startswith("pcs_annotator.")
    }
    assert ours == set(BUILT_IN)


def permuted(given_rows: Labelled, rng: np.random.Generator) -> Labelled:
    """The same votes with every axis, and the labels, in another order."""
    votes, gold = given_rows
    items, annotators, relations = (rng.permutation(size) for size in votes.codes.shape[:3])
    labels = rng.permutation(len(votes.labels))
    recode = np.append(np.argsort(labels), [-2, -1]).astype(np.int8)
    turned = Votes(
        codes=recode[votes.codes[np.ix_(items, annotators, relations)]],
        ids=[votes.ids[row] for row in items],
        annotators=[votes.annotators[row] for row in annotators],
        relations=[votes.relations[row] for row in relations],
        labels=[votes.labels[row] for row in labels],
        grades=None if votes.grades is None else votes.grades[np.ix_(items, annotators, relations)][..., labels],
    )
    return Labelled(turned, [gold[row] for row in items])


def scores_by_name(votes: Votes, weights: Weights) -> Floats:
    """Scores with items and labels in alphabetical order."""
    return score(votes, weights)[np.ix_(np.argsort(votes.ids), np.argsort(votes.labels))]


@every_optimiser
@settings(deadline=None, max_examples=8)
@given(given_rows=labelled_votes(), seed=st.integers(0, 1000))
def test_order_of_annotators_relations_items_and_labels_changes_nothing(
    name: str, given_rows: Labelled, seed: int
) -> None:
    turned = permuted(given_rows, np.random.default_rng(seed))
    ours = quiet_fit(*given_rows, quick(name), seed)
    theirs = quiet_fit(*turned, quick(name), seed)
    assert theirs.annotators == turned.votes.annotators
    assert ours.by_annotator == pytest.approx(theirs.by_annotator, abs=1e-9)
    assert ours.by_relation == pytest.approx(theirs.by_relation, abs=1e-9)
    np.testing.assert_allclose(
        scores_by_name(given_rows.votes, ours), scores_by_name(turned.votes, theirs), atol=1e-9, rtol=0
    )


@every_optimiser
@every_kind
@settings(deadline=None, max_examples=8)
@given(given_rows=labelled_votes(), seed=st.integers(0, 1000))
def test_weights_are_a_share_of_one_on_each_axis(kind: Kind, name: str, given_rows: Labelled, seed: int) -> None:
    votes = extreme_votes(given_rows.votes, kind, seed)
    weights = quiet_fit(votes, given_rows.gold, quick(name))
    for values in (weights.annotator_weights, weights.relation_weights):
        assert (values >= 0).all()
        assert values.sum() == pytest.approx(1, abs=1e-9)
    scores = score(votes, weights)
    assert (scores >= 0).all()
    np.testing.assert_allclose(scores.sum(axis=1), 1, atol=1e-9)


def extreme_votes(votes: Votes, kind: Kind, seed: int) -> Votes:
    """Votes with grades of any kind: all on one label, on none, or next to nothing."""
    if kind == "hard":
        return votes
    graded = votes.annotators if kind == "graded" else votes.annotators[::2]
    return replace(votes, grades=random_grades(np.random.default_rng(seed), votes, tuple(graded), kind))


@pytest.mark.parametrize("name", LEARNERS)
@every_kind
def test_a_good_annotator_gets_more_than_a_guessing_one(kind: Kind, name: str) -> None:
    votes, gold = simulated_votes([0.34, 0.9, 0.34], items=120)
    weights = quiet_fit(graded_votes(votes, kind), [*gold], quick(name))
    assert weights.by_annotator["model-1"] == max(weights.by_annotator.values())


@every_optimiser
@pytest.mark.parametrize("mass", [0.5, 1e-3])
def test_what_goes_to_no_label_does_not_matter(name: str, mass: float) -> None:
    votes, gold = simulated_votes([0.8, 0.6], items=60)
    given = graded_votes(votes, "graded")
    whole = replace(given, grades=the(given.grades) / the(given.grades).sum(axis=-1, keepdims=True))
    part = replace(whole, grades=the(whole.grades) * np.float32(mass))
    ours, theirs = (score(each, quiet_fit(each, [*gold], quick(name))) for each in (whole, part))
    np.testing.assert_allclose(ours, theirs, atol=1e-3)


@pytest.mark.parametrize("name", [name for name in BUILT_IN if name not in ("auto", "uniform")])
def test_a_vote_with_all_the_probability_on_its_label_is_a_hard_vote(name: str) -> None:
    votes, gold = simulated_votes([0.8, 0.6], items=60)
    sure = replace(votes, grades=np.eye(3, dtype=np.float32)[votes.codes])
    hard, graded = (quiet_fit(one, [*gold], quick(name)) for one in (votes, sure))
    np.testing.assert_array_equal(score(sure, graded), score(votes, hard))
    assert graded.to_dict() == hard.to_dict()
