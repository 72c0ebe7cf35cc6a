"""Gold rows judged by fits that did not see them: figures by group of texts, curves for the report, and of numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pcs_annotator.base.display import brief
from pcs_annotator.core.arrays import CODE, Codes, Floats, Integers, Mask
from pcs_annotator.core.numbers import values_of
from pcs_annotator.core.result_table import Figure, ResultTable
from pcs_annotator.core.task import MANY_LABELS
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Interval, Weights
from pcs_annotator.judging.evaluate.agreement import AgainstGold, Resampling
from pcs_annotator.judging.evaluate.scored import cell_of, measure
from pcs_annotator.judging.heldout import HeldOut, Splits
from pcs_annotator.judging.metrics import figures as metrics
from pcs_annotator.judging.metrics.figures import Estimate, exact_interval
from pcs_annotator.judging.metrics.significance import WIDENING, interval_around, least_auroc, resample_counts
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promise.sets import fit_prediction_sets
from pcs_annotator.judging.promise.thresholds import steps_of
from pcs_annotator.judging.score import score

LEVEL = 0.95
COLUMNS = ("rows", "gold rows", "right", "mean confidence", "accepted", "wrong of accepted")
ABOUT = (
    "All intervals together hold with 95 %. Accepted is a share of all rows; everything else is measured on gold rows."
)


class GroupFigures(NamedTuple):
    """What is known about a group of texts."""

    group: str
    rows: int  # all its rows
    gold_rows: int  # those with gold, each judged by a fit that did not see it
    # share of right labels; all groups' intervals together hold with 95 %; None without gold
    right: Figure | None
    confidence: float | None  # mean confidence on the gold rows; None without gold, or if nothing is calibrated
    accepted: float | None  # share of all its rows that is accepted; None if nothing is decided
    accepted_gold: int  # gold rows that are accepted
    wrong: int  # how many of these are wrong, as the promise counts it

    @property
    def miscalibrated(self) -> bool:
        """Whether the mean confidence is outside the interval of the share of right labels."""
        ends, sure = self.right and self.right.interval, self.confidence
        return ends is not None and sure is not None and not ends.low <= sure <= ends.high


class FiguresByGroup(NamedTuple):
    """The figures of all groups."""

    by: str  # what they are, such as `language`
    groups: Sequence[GroupFigures]

    def table(self) -> ResultTable:
        """Return them as a table."""
        off = [group.group for group in self.groups if group.miscalibrated]
        return ResultTable(
            name="groups",
            title=f"By {self.by}, on gold rows that the fit did not see",
            columns=[self.by, *COLUMNS],
            rows=[[*group[:-2], f"{group.wrong} of {group.accepted_gold}"] for group in self.groups],
            notes=[ABOUT, *([f"Confidence is outside the interval for {', '.join(off)}."] if off else [])],
        )


def figures_by_group(  # noqa: PLR0913  # what is known about the rows, one argument each
    by: str, groups: Sequence[str], votes: Votes, gold: Votes, model: Model, trial: HeldOut, *, right: Mask
) -> FiguresByGroup:
    """Return the figures of every group; `groups` has that of every row of `votes`, `gold` are the trial's rows.

    `right` says which of these have the right label, by fits that did not see them.
    """
    group_of, everything = dict(zip(votes.ids, groups, strict=True)), np.array(groups, dtype=object)
    group_names = np.array([group_of[name] for name in gold.ids], dtype=object)
    judged, accepted, certificate = trial.judged, model.judged(votes).accepted, model.certificate
    taken = np.zeros(len(group_names), dtype=np.bool_)
    if certificate is not None:
        names, codes = gold.coded_groups(certificate.groups) if model.by else (gold.labels, judged.best)
        taken = certificate.accepts(judged.confidence, codes, names)
    tested, figures = len({*group_names.tolist()}), []
    for name in sorted({*groups}):
        rows, all_rows = group_names == name, everything == name
        count, correct = int(rows.sum()), int(right[rows].sum())
        ends = exact_interval(correct, count, 1 - (1 - LEVEL) / tested) if count else None
        figures.append(
            GroupFigures(
                group=name,
                rows=int(all_rows.sum()),
                gold_rows=count,
                right=Figure(correct / count, ends) if count else None,
                confidence=float(judged.confidence[rows].mean()) if count and model.calibrator else None,
                accepted=None if accepted is None else float(accepted[all_rows].mean()),
                accepted_gold=int((taken & rows).sum()),
                wrong=int((taken & rows & ~judged.right).sum()),
            )
        )
    return FiguresByGroup(by, figures)


MOST_POINTS, MOST_ROC, MOST_BINS, ROWS_PER_BIN, DIGITS = 200, 6, 10, 12, 5


class Roc(NamedTuple):
    """One label against all others."""

    label: str  # its name
    auroc: metrics.Estimate  # area under the curve; `n` counts the rows of this label
    # share of other rows that score at or above each threshold, rising; empty for rarer labels
    false_alarms: Sequence[float]
    hits: Sequence[float]  # share of this label's rows that do


class Risk(NamedTuple):
    """The error among the most confident rows, with its exact 95 % interval at every coverage."""

    coverage: Sequence[float]
    risk: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]

    def __repr__(self) -> str:
        return brief(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """The curves of a report."""

    rows: int  # number of gold rows behind them
    raw: Sequence[metrics.ReliabilityBin]  # the reliability diagram of the Perceived Confidence Score
    # the same of the calibrated confidence; empty when nothing is calibrated
    calibrated: Sequence[metrics.ReliabilityBin]
    # every label that some but not all rows have, most frequent first; the first few with their curve
    roc: Sequence[Roc]
    risk: Risk  # error against coverage

    __repr__ = brief


def curves_of(trial: HeldOut, *, calibrated: bool = True, resamples: int = 200, seed: int = 0) -> Curves:
    """Return the curves of gold rows that were judged by fits that did not see them, with resampled intervals."""
    rows = len(trial.gold)
    bins = int(np.clip(rows // ROWS_PER_BIN, 3, MOST_BINS))
    counts = np.bincount(trial.gold, minlength=len(trial.labels))
    present = [int(label) for label in np.argsort(-counts, kind="stable") if 0 < counts[label] < rows][:MANY_LABELS]
    steps = steps_of(trial.judged)
    kept = _kept(len(steps.rows))
    seen, wrong = steps.rows[kept], steps.wrong[kept]
    low, high = np.array([metrics.exact_interval(*pair) for pair in zip(wrong.tolist(), seen.tolist(), strict=True)]).T
    return Curves(
        rows=rows,
        raw=_rounded(metrics.reliability(trial.scores, trial.gold, bins)),
        calibrated=_rounded(metrics.reliability(trial.probabilities, trial.gold, bins)) if calibrated else [],
        roc=[_roc_of(trial, label, position < MOST_ROC, resamples, seed) for position, label in enumerate(present)],
        risk=Risk(*(_rounded(values) for values in (seen / rows, wrong / seen, low, high))),
    )


def _roc_of(trial: HeldOut, label: int, drawn: bool, resamples: int, seed: int) -> Roc:
    scores, positive = trial.scores[:, label], trial.gold == label
    codes: Codes = positive.astype(CODE)
    both = np.stack([-scores, scores], axis=1)  # either side of a binary question ranks the same
    value = metrics.auroc(both, codes)
    aurocs = np.concatenate([metrics.auroc_on(both, codes, times) for times in resample_counts(codes, resamples, seed)])
    interval = interval_around(value, aurocs, least_auroc(codes), WIDENING)
    roc = Roc(trial.labels[label], _rounded(metrics.Estimate(value, interval, int(positive.sum()))), [], [])
    if not drawn:
        return roc
    order = np.argsort(-scores, kind="stable")
    ends = metrics.ends_of_runs(scores[order])
    hits = np.append(0.0, np.cumsum(positive[order])[ends] / positive.sum())
    false_alarms = np.append(0.0, np.cumsum(~positive[order])[ends] / (~positive).sum())
    kept = _kept(len(hits))
    return roc._replace(false_alarms=_rounded(false_alarms[kept]), hits=_rounded(hits[kept]))


def _kept(points: int) -> Integers:
    """Return which points to keep, the first and the last among them."""
    return np.unique(np.linspace(0, points - 1, min(points, MOST_POINTS)).round()).astype(np.intp)


def _rounded(values: Any) -> Any:
    """Return all numbers of arrays, or of nested tuples, with few digits."""
    if isinstance(values, np.ndarray):
        return np.round(values, DIGITS).tolist()
    if isinstance(values, float):
        return round(values, DIGITS)
    if isinstance(values, tuple):
        parts = map(_rounded, values)
        return type(values)(*parts) if hasattr(values, "_fields") else tuple(parts)
    return [_rounded(part) for part in values] if isinstance(values, list) else values


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
