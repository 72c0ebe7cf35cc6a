"""A run as the page sees it: looked up once, shown by many sections."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.task import Task, label_lookup
from pcs_annotator.pipeline.resolve_config import task_of
from pcs_annotator.pipeline.run_folder import Origin, RunResult, VariantCount, count_variants, read_origin


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What the sections show.

    Attributes:
        result: The run.
        task: What was asked.
        origin: Version and data file of the run.
        gold: The gold label of every row, spelt as in the task; None where unknown.
        rewrites: How the rewrites ended.
    """

    result: RunResult
    task: Task
    origin: Origin
    gold: tuple[str | None, ...]
    rewrites: tuple[VariantCount, ...]

    @property
    def data_name(self) -> str:
        """Name of the user's file."""
        return self.origin.data or self.result.dataset.name

    @property
    def gold_rows(self) -> int:
        """Number of rows with gold."""
        return sum(label is not None for label in self.gold)

    @property
    def decided(self) -> bool:
        """Whether anything decides about labels."""
        return bool(self.result.learned.model.decided_by)

    @property
    def decisions(self) -> Counter[str]:
        """How many rows are accepted (`accept`), left to a person (`review`), or without a label (`none`)."""
        return Counter(decision_on(outcome) for outcome in self.result.outcomes)

    @property
    def calibrated(self) -> bool:
        """Whether labels come with a probability of being right, rather than with their score only."""
        return any(outcome.confidence is not None for outcome in self.result.outcomes)


def decision_on(outcome: Outcome) -> str:
    """Return `accept`, `review` or, for a row without label, `none`; empty when nobody asked for decisions."""
    return "none" if outcome.label is None else outcome.decision or ""


def view_of(result: RunResult) -> View:
    """Return everything that the sections need to know of a run."""
    labels = tuple(result.votes.labels)
    lookup = label_lookup(labels)
    given = result.dataset.gold or (None,) * len(result.outcomes)
    return View(
        result=result,
        task=task_of(result.config),
        origin=read_origin(result.folder),
        gold=tuple(None if label is None else labels[lookup[label.casefold()]] for label in given),
        rewrites=tuple(count_variants(result.folder)),
    )
