"""Very many labels, most of which have no gold row."""

import numpy as np
import pytest

from pcs_annotator import Votes
from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.gold_codes import UNLABELLED
from pcs_annotator.judging.calibrate import Calibrator
from pcs_annotator.judging.fit_model import Learning, fit_model
from pcs_annotator.judging.optimisers.regression import _from_codes, normal_equations
from pcs_annotator.judging.promise.promise import Promise
from pcs_annotator.judging.score import row_parts
from tests.builders import the

LABELS, ROWS, GOLD = 120, 1_200, 300


def simulated(recall: float, draws: int = 1, seed: int = 0) -> tuple[Votes, Codes, Codes]:
    """Return votes of three models, gold and truth; a label that is not asked about cannot be the answer."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(LABELS, size=ROWS).astype(np.int16)
    asked, near = rng.random(ROWS) < recall, (truth + 1) % LABELS
    shape = (ROWS, 3, 3, draws)
    wrong = np.where(rng.random(shape) < 0.6, near[:, None, None, None], rng.integers(LABELS, size=shape))
    right = (rng.random(shape) < np.array([0.9, 0.8, 0.7])[:, None, None]) & asked[:, None, None, None]
    votes = Votes(
        codes=np.where(right, truth[:, None, None, None], wrong),
        ids=[str(row) for row in range(ROWS)],
        annotators=["a", "b", "c"],
        relations=["original", "order", "wording"],
        labels=[f"label {number}" for number in range(LABELS)],
    )
    return votes, np.where(np.arange(ROWS) < GOLD, truth, UNLABELLED), truth


@pytest.mark.filterwarnings("ignore:no gold row says")
def test_labels_that_were_no_candidates_count_as_wrong() -> None:
    votes, gold, truth = simulated(recall=0.7)
    model = fit_model(votes, gold, Learning(optimiser="auto", promise=Promise(max_error=0.1))).model
    judged, new = model.judged(votes), slice(GOLD, None)
    right = judged.best == truth

    assert right[new].mean() < 0.72
    assert the(judged.confidence)[new].mean() == pytest.approx(right[new].mean(), abs=0.04)
    assert the(judged.accepted)[new].mean() > 0.1
    assert right[new][the(judged.accepted)[new]].mean() > 0.9


@pytest.mark.filterwarnings("ignore:no gold row says")
def test_nothing_is_learned_about_single_labels() -> None:
    votes, gold, _ = simulated(recall=1.0)
    model = fit_model(votes, gold, Learning(optimiser="auto", text=True)).model
    assert model.calibrator is not None

    assert model.weights.diagnostics.optimiser == "lr"
    assert not model.calibrator.offsets.any()
    assert Calibrator.from_dict(model.calibrator.to_dict()).named == model.calibrator.named
    assert model.calibrator.raised_to(2).named == 2 * (model.calibrator.named or 0)
    outcome = next(iter(model.judge(votes)))
    assert outcome.label in outcome.scores
    assert len(outcome.scores) == len(outcome.probabilities) <= 9


def test_a_row_without_votes_has_one_score() -> None:
    votes, gold, _ = simulated(recall=1.0)
    codes = votes.codes.copy()
    codes[0] = -1
    silent = Votes(codes=codes, ids=votes.ids, annotators="abc", relations=votes.relations, labels=votes.labels)
    with pytest.warns(match="no gold row says"):
        model = fit_model(silent, gold, Learning(optimiser="lr")).model

    assert len(next(iter(model.judge(silent))).scores) == 1


@pytest.mark.parametrize("draws", [1, 2])
def test_least_squares_needs_only_which_answers_are_equal(draws: int) -> None:
    votes, _, truth = simulated(recall=0.9, draws=draws)
    few = votes.take(slice(40))
    fewer = Votes(
        codes=few.codes % 50, ids=few.ids, annotators=few.annotators, relations=few.relations, labels=votes.labels[:50]
    )
    for one, other in zip(_from_codes(fewer, truth[:40] % 50), normal_equations(fewer, truth[:40] % 50), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


def test_fewer_rows_are_scored_at_a_time() -> None:
    votes = simulated(recall=0.9)[0]
    wide = Votes(
        codes=votes.codes, ids=votes.ids, annotators="abc", relations=votes.relations, labels=[*map(str, range(4_000))]
    )

    assert len([*row_parts(votes)]) == 1
    assert [*row_parts(wide)][:2] == [slice(0, 233), slice(233, 466)]
