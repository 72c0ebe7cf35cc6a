"""How far numbers are off, and how often their intervals contain gold: PCS, single models and their median."""

from collections.abc import Mapping, Sequence

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats, Mask
from pcs_annotator.core.numbers import values_of
from pcs_annotator.core.result_table import ResultTable
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Interval, Weights
from pcs_annotator.judging.evaluate.agreement import AgainstGold, Resampling
from pcs_annotator.judging.evaluate.scored import cell_of, measure
from pcs_annotator.judging.heldout import HeldOut, Splits
from pcs_annotator.judging.metrics.bootstrap import WIDENING
from pcs_annotator.judging.metrics.figures import Estimate
from pcs_annotator.judging.promise.sets import fit_prediction_sets
from pcs_annotator.judging.score import score

MEDIAN = "median of all answers"
COVERED = 0.9  # how often intervals should contain gold
SHOWN = ("correlation", "covered", "width")


def numbers_against_gold(given: Codes, gold: Codes, labels: Sequence[str], how: Resampling) -> AgainstGold:
    """Return how far numbers are off, on average, and their correlation with gold; rows without one are left out."""
    rows, values = given >= 0, values_of(tuple(labels))
    return AgainstGold(
        labels=("number",),
        table=np.array([[int(rows.sum())], [int((~rows).sum())]]),
        figures=_figures(values[given[rows]], values[gold[rows]], how),
        by_label={},
    )


def compare_numbers(
    rows: Votes, trial: HeldOut, splits: Splits, how: Resampling, first: str
) -> dict[str, Mapping[str, Estimate]]:
    """Return the figures of numbers from fits that did not see a row, of the median answer and of each model's own.

    Intervals are learned from other folds: those of plain answers are as wide as 90 % of rows need.
    """
    shape, labels, values = trial.shape, trial.labels, values_of(tuple(trial.labels))
    truth, tails, folds = values[trial.gold], shape.tails(trial.probabilities, labels), splits.fold_of(trial.gold, 0)
    plausible, panels = np.zeros(tails.shape, dtype=np.bool_), {MEDIAN: rows}
    panels |= {one: rows.select(annotators=[one], relations=[rows.original]) for one in rows.annotators}
    said = {one: values[shape.choose(score(some, Weights.uniform(some)), labels)] for one, some in panels.items()}
    wide = {one: np.zeros(len(rows)) for one in panels}
    for fold in np.unique(folds):
        own = folds == fold
        plausible[own] = fit_prediction_sets(tails[~own], trial.gold[~own], 1 - COVERED).of(tails[own])
        for one, some in panels.items():
            off = np.abs(said[one] - truth)[~own & ~some.silent]
            if len(off):
                wide[one][own] = np.quantile(off, min(1.0, COVERED * (1 + 1 / len(off))), method="higher")
    ends = [np.array(one, dtype=np.float64) for one in shape.ends(plausible, labels)]
    found = {first: _figures(values[trial.judged.best], truth, how, ends, ~rows.silent)}
    for one, some in panels.items():
        ends = [said[one] - wide[one], said[one] + wide[one]]
        found[one] = _figures(said[one], truth, how._replace(widening=1.0), ends, ~some.silent)  # nothing is learned
    known = [name for name, one in found.items() if one]
    return {name: found[name] for name in sorted(known, key=lambda name: (name != first, found[name]["error"].value))}


def numbers_table(found: Mapping[str, Mapping[str, Estimate]]) -> ResultTable:
    """Return the figures of all methods side by side."""
    rows = [
        [name, cell_of(one["error"]), *(one[key].value for key in SHOWN), one["error"].n] for name, one in found.items()
    ]
    return ResultTable(
        name="numbers",
        title="How far numbers are off, on gold rows that no fit has seen",
        columns=["method", "mean error", "correlation", "90 % interval covers", "its width", "n"],
        rows=rows,
        notes=[f"Mean error: absolute, 95 % interval from resampled rows; of fits, {WIDENING:g} times as wide."],
    )


def _figures(
    ours: Floats, gold: Floats, how: Resampling, ends: Sequence[Floats] = (), rows: Mask | None = None
) -> dict[str, Estimate]:
    """Return figures with their 95 % intervals; none where they are undefined, because all gold is the same."""
    kept = np.ones(len(gold), dtype=np.bool_) if rows is None else rows
    ours, truth, *ends = (one[kept][:, np.newaxis] for one in (ours, gold, *ends))

    def figures(counts: Floats) -> dict[str, Floats]:
        total = counts.sum(axis=0)
        means = [(counts * one).sum(axis=0) / total for one in (ours, truth)]
        apart = [one - mean for one, mean in zip((ours, truth), means, strict=True)]
        both, first, second = ((counts * a * b).sum(axis=0) for a, b in (apart, apart[:1] * 2, apart[1:] * 2))
        found = {"error": (counts * np.abs(ours - truth)).sum(axis=0) / total, "mean_error": means[0] - means[1]}
        found["correlation"] = both / np.sqrt(np.maximum(first * second, 1e-300))
        if ends:
            found["covered"] = (counts * ((ends[0] <= truth) & (truth <= ends[1]))).sum(axis=0) / total
            found["width"] = (counts * (ends[1] - ends[0])).sum(axis=0) / total
        return found

    found = measure(figures, truth[:, 0], how.resamples, how.seed) if len(np.unique(truth)) > 1 else {}
    limits = {"error": (0.0, np.inf), "width": (0.0, np.inf), "correlation": (-1.0, 1.0), "covered": (0.0, 1.0)}
    estimates = {}
    for name, one in found.items():
        ends_of = one.value + how.widening * (np.quantile(one.resampled, [0.025, 0.975]) - one.resampled.mean())
        low, high = np.clip(ends_of, *limits.get(name, (-np.inf, np.inf))).tolist()
        estimates[name] = Estimate(one.value, Interval(min(low, one.value), max(high, one.value)), len(truth))
    return estimates
