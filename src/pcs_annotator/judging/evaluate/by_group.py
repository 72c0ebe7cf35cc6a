"""Accuracy, confidence and acceptance of groups of texts, such as languages, on rows that the fit did not see."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Mask
from pcs_annotator.core.result_table import Figure, ResultTable
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.heldout import HeldOut
from pcs_annotator.judging.metrics.figures import exact_interval
from pcs_annotator.judging.model import Model

LEVEL = 0.95
COLUMNS = ("rows", "gold rows", "right", "mean confidence", "accepted", "wrong of accepted")
ABOUT = "All intervals together hold with 95 %. Accepted is a share of all rows; all else is about gold rows."


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
