from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from pcs_annotator import Votes, fit_weights
from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.gold import gold_codes
from pcs_annotator.core.votes import read_vote_table
from pcs_annotator.judging.weighing.optimisers.regression import AuthorsLinearRegression
from tests.builders import simulated_votes
from tests.judging.strategies import coded

MODELS = ("llama-3-8b", "mistral-7b", "gemma-2-9b")
RELATIONS = ("original", "voice", "double-negation", "synonym")


def authors_weights(votes: Votes, gold: Codes) -> tuple[Floats, Floats]:
    """What the authors' library computes, with the solver that it uses."""
    cells = votes.shares().reshape(len(votes), -1)
    coefficients = LinearRegression(positive=True).fit(cells, np.eye(len(votes.labels))[gold]).coef_.sum(axis=0)
    table = coefficients.reshape(len(votes.annotators), len(votes.relations), len(votes.labels))
    annotators, relations = table.sum(axis=1).mean(axis=1), table.sum(axis=0).mean(axis=1)
    return annotators / annotators.sum(), relations / relations.sum()


@pytest.mark.parametrize("labels", [2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_equals_the_authors_arithmetic_on_complete_votes(labels: int, seed: int) -> None:
    votes, names = simulated_votes([0.8, 0.6, 0.4], items=90, labels=labels, seed=seed)
    gold = coded(votes, names)
    weights = AuthorsLinearRegression().fit(votes, gold, 0)
    annotators, relations = authors_weights(votes, gold)
    np.testing.assert_allclose(weights.annotator_weights, annotators, atol=1e-8, rtol=0)
    np.testing.assert_allclose(weights.relation_weights, relations, atol=1e-8, rtol=0)


@pytest.mark.parametrize(
    ("name", "annotators", "relations"),
    [
        ("sentiment", (0.25573186, 0.18705642, 0.55721172), (0.48209292, 0.14013685, 0.15336192, 0.22440830)),
        ("gossipcop", (0.18524287, 0.26176187, 0.55299526), (0.27685303, 0.26360508, 0.15802487, 0.30151703)),
    ],
)
def test_equals_what_the_authors_library_gave_on_the_development_data(
    shared_data: Path, name: str, annotators: tuple[float, ...], relations: tuple[float, ...]
) -> None:
    votes, names = read_vote_table(shared_data / "simulated" / f"{name}.csv.gz")
    complete = np.flatnonzero((votes.codes >= 0).all(axis=(1, 2, 3)))[:200]
    gold = gold_codes(votes, names)[complete]
    weights = fit_weights(votes.take(complete), [votes.labels[code] for code in gold], "lr-authors")
    assert weights.by_annotator == pytest.approx(dict(zip(MODELS, annotators, strict=True)), abs=1e-7)
    assert weights.by_relation == pytest.approx(dict(zip(RELATIONS, relations, strict=True)), abs=1e-7)


def test_an_always_wrong_annotator_can_get_all_the_weight() -> None:
    # the flaw that `lr` fixes; kept, because without it the comparison would be meaningless
    votes, names = simulated_votes([0.7, 0.0], items=100, labels=2)
    weights = AuthorsLinearRegression().fit(votes, coded(votes, names), 0)
    assert weights.by_annotator["model-1"] > 0.99


def test_objective_is_the_squared_error_left() -> None:
    votes, names = simulated_votes([0.7, 0.6], items=60, labels=2)
    gold = coded(votes, names)
    target = np.eye(2)[gold]
    cells = votes.shares().reshape(len(votes), -1)
    left = target - LinearRegression(positive=True).fit(cells, target).predict(cells)
    objective = AuthorsLinearRegression().fit(votes, gold, 0).diagnostics.objective
    assert objective == pytest.approx(float(np.sum(left**2)), abs=1e-8)
