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


def numbers_against_gold(assigned: Codes, gold: Codes, labels: Sequence[str], how: Resampling) -> AgainstGold:
    """Return how far numbers are off, on average, and their correlation with gold; rows without one are left out."""
    rows, values = assigned >= 0, values_of(tuple(labels))
    return AgainstGold(
        labels=("number",),
        table=np.array([[int(rows.sum())], [int((~rows).sum())]]),
        figures=_figures(values[assigned[rows]], values[gold[rows]], how),
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
    panels |= {panel: rows.select(annotators=[panel], relations=[rows.original]) for panel in rows.annotators}
    assigned = {
        panel: values[shape.choose(score(some, Weights.uniform(some)), labels)] for panel, some in panels.items()
    }
    wide = {panel: np.zeros(len(rows)) for panel in panels}
    for fold in np.unique(folds):
        in_fold = folds == fold
        plausible[in_fold] = fit_prediction_sets(tails[~in_fold], trial.gold[~in_fold], 1 - COVERED).of(tails[in_fold])
        for panel, some in panels.items():
            off = np.abs(assigned[panel] - truth)[~in_fold & ~some.silent]
            if len(off):
                wide[panel][in_fold] = np.quantile(off, min(1.0, COVERED * (1 + 1 / len(off))), method="higher")
    ends = [np.array(panel, dtype=np.float64) for panel in shape.ends(plausible, labels)]
    figures_of = {first: _figures(values[trial.judged.best], truth, how, ends, ~rows.silent)}
    for panel, some in panels.items():
        ends = [assigned[panel] - wide[panel], assigned[panel] + wide[panel]]
        figures_of[panel] = _figures(
            assigned[panel], truth, how._replace(widening=1.0), ends, ~some.silent
        )  # nothing is learned
    names_with = [name for name, panel in figures_of.items() if panel]
    return {
        name: figures_of[name]
        for name in sorted(names_with, key=lambda name: (name != first, figures_of[name]["error"].value))
    }


def numbers_table(figures: Mapping[str, Mapping[str, Estimate]]) -> ResultTable:
    """Return the figures of all methods side by side."""
    rows = [
        [name, cell_of(estimates["error"]), *(estimates[key].value for key in SHOWN), estimates["error"].n]
        for name, estimates in figures.items()
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
    ours, truth, *ends = (panel[kept][:, np.newaxis] for panel in (ours, gold, *ends))

    def figures(counts: Floats) -> dict[str, Floats]:
        total = counts.sum(axis=0)
        means = [(counts * panel).sum(axis=0) / total for panel in (ours, truth)]
        apart = [panel - mean for panel, mean in zip((ours, truth), means, strict=True)]
        both, first, second = ((counts * a * b).sum(axis=0) for a, b in (apart, apart[:1] * 2, apart[1:] * 2))
        measured = {"error": (counts * np.abs(ours - truth)).sum(axis=0) / total, "mean_error": means[0] - means[1]}
        measured["correlation"] = both / np.sqrt(np.maximum(first * second, 1e-300))
        if ends:
            measured["covered"] = (counts * ((ends[0] <= truth) & (truth <= ends[1]))).sum(axis=0) / total
            measured["width"] = (counts * (ends[1] - ends[0])).sum(axis=0) / total
        return measured

    measured = measure(figures, truth[:, 0], how.resamples, how.seed) if len(np.unique(truth)) > 1 else {}
    limits = {"error": (0.0, np.inf), "width": (0.0, np.inf), "correlation": (-1.0, 1.0), "covered": (0.0, 1.0)}
    estimates = {}
    for name, panel in measured.items():
        ends_of = panel.value + how.widening * (np.quantile(panel.resampled, [0.025, 0.975]) - panel.resampled.mean())
        low, high = np.clip(ends_of, *limits.get(name, (-np.inf, np.inf))).tolist()
        estimates[name] = Estimate(panel.value, Interval(min(low, panel.value), max(high, panel.value)), len(truth))
    return estimates
