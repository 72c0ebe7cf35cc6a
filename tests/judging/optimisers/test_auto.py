from dataclasses import replace

import numpy as np
import pytest

from pcs_annotator import fit_weights
from pcs_annotator.judging.fit_weights import optimisers
from pcs_annotator.judging.heldout import Splits, cross_fits
from pcs_annotator.judging.optimisers.auto import FOR_GRADED_VOTES, FOR_HARD_VOTES, Auto
from tests.builders import simulated_votes, the
from tests.judging.evaluate.graded import graded_votes
from tests.judging.strategies import biased_votes, coded


def test_picks_naive_bayes_where_models_confuse_labels() -> None:
    votes, gold = biased_votes()
    diagnostics = fit_weights(votes, gold, "auto").diagnostics
    assert diagnostics.optimiser == "naive-bayes"
    assert diagnostics.candidates["naive-bayes"] == min(diagnostics.candidates.values())


def test_reports_the_loss_of_every_candidate() -> None:
    votes, gold = simulated_votes([0.8, 0.6], items=40)
    diagnostics = fit_weights(votes, gold, "auto").diagnostics
    assert list(diagnostics.candidates) == ["lr", "logit", "naive-bayes"]
    assert diagnostics.candidates[diagnostics.optimiser] == min(diagnostics.candidates.values())
    assert diagnostics.gold_rows == 40


@pytest.mark.parametrize("candidates", [("uniform", "majority"), ("majority", "uniform")])
def test_ties_go_to_the_first_candidate(candidates: tuple[str, ...]) -> None:
    # with originals alone both candidates are the same
    votes, gold = simulated_votes([0.8, 0.6], items=40, relations=1)
    diagnostics = fit_weights(votes, gold, Auto(candidates=candidates)).diagnostics
    assert diagnostics.candidates["uniform"] == diagnostics.candidates["majority"]
    assert diagnostics.optimiser == candidates[0]


def test_intervals_belong_to_the_winner() -> None:
    votes, gold = biased_votes(items=60)
    auto, alone = (fit_weights(votes, gold, name, resamples=20).diagnostics for name in ("auto", "naive-bayes"))
    assert auto.annotator_intervals == alone.annotator_intervals
    assert auto.relation_intervals == alone.relation_intervals


def test_every_fold_takes_the_candidate_that_predicts_the_other_folds_best() -> None:
    votes, names = simulated_votes([0.85, 0.7, 0.4], items=60)
    gold, splits = coded(votes, names), Splits(repeats=2)
    rows = np.arange(len(gold))
    own = {name: cross_fits(optimisers.create(name), votes, gold, splits) for name in FOR_HARD_VOTES}
    losses = {
        name: np.mean([-np.log(fit.probabilities[rows, gold]) for fit in fits], axis=0) for name, fits in own.items()
    }
    for turn, found in enumerate(cross_fits(Auto(), votes, gold, splits)):
        fold = splits.fold_of(gold, turn)
        for number in range(5):
            inside = fold == number
            means = {name: float(values[~inside].mean()) for name, values in losses.items()}
            best = min(means, key=means.__getitem__)
            np.testing.assert_array_equal(found.scores[inside], own[best][turn].scores[inside])
            np.testing.assert_array_equal(found.probabilities[inside], own[best][turn].probabilities[inside])


@pytest.mark.parametrize(("hard", "candidates"), [(0, FOR_GRADED_VOTES), (1, FOR_GRADED_VOTES), (2, FOR_HARD_VOTES)])
def test_one_graded_vote_brings_in_what_reads_log_odds(hard: int, candidates: tuple[str, ...]) -> None:
    votes, gold = graded_votes([2.0, 1.0], items=40)
    grades = the(votes.grades).copy()
    grades[:, :hard] = np.nan
    weights = fit_weights(replace(votes, grades=grades), [votes.labels[code] for code in gold], "auto")
    assert tuple(weights.diagnostics.candidates) == candidates
    assert weights.diagnostics.optimiser in candidates
