"""What a review shows, is given and gives back: frozen values, the same for every page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from pcs_annotator.core.outcome import Decision, Outcome
from pcs_annotator.core.review import Draw, Queue, Reviewed
from pcs_annotator.core.variant import Status

Sort = Literal["row", "doubtful", "certain", "recent"]
"""The order of found rows: as in the data, least certain first, most certain first, latest verdict first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewOptions:
    """How to review.

    Attributes:
        double: Share of rows that a second reviewer sees too, without the first one's verdict.
        refit_every: Verdicts between two fits in the background; 0 for no fits.
        lease_seconds: How long a shown row is kept for the person who sees it.
        guidelines: A Markdown file for the people who review; None for the task's instruction and meanings.
        seed: Makes draws repeatable, for tests; None for real randomness.
    """

    double: float = 0.0
    refit_every: int = 10
    lease_seconds: float = 300.0
    guidelines: Path | None = None
    seed: int | None = None


class ShownVariant(NamedTuple):
    """What a relation made of the text or of the question.

    Attributes:
        relation: The relation.
        status: What became of it; `original` if it changes the question only.
        text: The rewritten text, or the rejected one; None if there is none.
        question: What was asked instead of `Shown.question`; None if the relation leaves the question as it is.
        reason: Why there is no rewrite, or why it was rejected.
    """

    relation: str
    status: Status
    text: str | None
    question: str | None
    reason: str


class ShownVote(NamedTuple):
    """One answer: its label, None if it had none, and how probable the model found each label, if that is known."""

    annotator: str
    relation: str
    draw: int
    label: str | None
    grades: Mapping[str, float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One row for a person to decide.

    Attributes:
        id: The row.
        text: Its text.
        outcome: What the models say: label, confidence, decision and reason.
        probabilities: Label and probability, the most probable first; scores where there is no confidence.
        variants: What relations made of it.
        unread: Why variants cannot be shown; empty if they can.
        question: What was asked about the original text.
        votes: All answers; questions that were not asked are left out.
        gold: The gold label of the data or of an earlier file; verdicts are in `reviewed`.
        reviewed: What people said; None if nobody did, or if this person is to judge first (double coding).
        columns: The user's other columns.
        queue: The queue that shows it.
        lease: Give it back with the verdict; empty if the row is in somebody else's hands.
        held_by: Who has it in hands, if that is somebody else.
        version: Give it back with the verdict: it tells whether the row was judged meanwhile.
        draw: How it was drawn; None if the person chose it.
    """

    id: str
    text: str
    outcome: Outcome
    probabilities: Sequence[tuple[str, float]]
    variants: Sequence[ShownVariant]
    question: str
    votes: Sequence[ShownVote]
    gold: str | None
    reviewed: Reviewed | None
    columns: Mapping[str, str]
    queue: Queue
    lease: str
    version: int
    unread: str = ""
    held_by: str = ""
    draw: Draw | None = None

    @property
    def for_estimates(self) -> bool:
        """Whether a verdict on this row may be used in estimates: whether its probability is known."""
        return self.draw is not None and self.draw.probability is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A person's verdict as a page sends it; `label` is None for a skipped row."""

    id: str
    label: str | None
    reviewer: str
    queue: Queue
    lease: str
    version: int
    seconds: float | None = None
    note: str = ""


class Saved(NamedTuple):
    """What is on disk now.

    Attributes:
        ids: Rows with a new verdict.
        numbers: The events' numbers.
        left_out: Rows of a list that were left out, because they are in somebody else's hands.
    """

    ids: Sequence[str]
    numbers: Sequence[int]
    left_out: int = 0


class Undone(NamedTuple):
    """Rows whose last verdict was taken back, and the queue that had shown them."""

    ids: Sequence[str]
    queue: Queue


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Which rows to list; None, empty texts and empty mappings leave a filter out.

    Attributes:
        label: The models' label; `""` for no filter.
        decision: The decision; `none` for rows without one.
        least: Least confidence, or score where there is no confidence.
        most: Most confidence.
        disagreement: Whether models disagree about the original text.
        reviewer: Who has given a verdict.
        reviewed: Whether anybody has given a verdict.
        conflict: Whether reviewers differ.
        verdict: The label that people gave.
        text: What the text contains, whatever the case.
        columns: Column → value that a row has there, whatever the case.
        sort: The order.
        page: Which page, from 0 on.
        size: Rows on a page.
    """

    label: str = ""
    decision: Decision | Literal["none", ""] = ""
    least: float | None = None
    most: float | None = None
    disagreement: bool | None = None
    reviewer: str = ""
    reviewed: bool | None = None
    conflict: bool | None = None
    verdict: str = ""
    text: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    sort: Sort = "row"
    page: int = 0
    size: int = 50


class FoundRow(NamedTuple):
    """One row of a list; `reviewed` is None as in `Shown`."""

    id: str
    text: str
    label: str | None
    confidence: float | None
    decision: str
    gold: str | None
    reviewed: Reviewed | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The rows of a query.

    Attributes:
        total: How many rows it has in all.
        rows: Those of the page.
        acceptable: How many of all have a label that `accept_all` would accept for the person who asked.
        counts: `label`, `decision` and `reviewed` → value → how many of all.
        fits: Which model gave the labels, as a number; give it to `accept_all`.
    """

    total: int
    rows: Sequence[FoundRow]
    acceptable: int
    fits: int
    counts: Mapping[str, Mapping[str, int]]


class QueueProgress(NamedTuple):
    """How many rows of a queue are done, and how many are left."""

    done: int
    left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FitNews:
    """What the last fit in the background found.

    Attributes:
        running: Whether a fit is under way.
        fits: How many have ended.
        waiting: Verdicts that the model in force has not learned from.
        changed: What the last fit changed, in sentences.
        failed: Why the last fit failed, in a sentence; empty if it did not.
        holds: Whether there is a promise.
        promise: The promise, or why there is none, in a sentence.
        rows_to_go: About how many more random rows the promise needs; None if it holds, or that is unknown.
    """

    running: bool = False
    fits: int = 0
    waiting: int = 0
    changed: Sequence[str] = ()
    failed: str = ""
    holds: bool = False
    promise: str = ""
    rows_to_go: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a review is.

    Attributes:
        rows: Rows of the run.
        reviewed: Rows with a verdict of anybody.
        verdicts: Verdicts of this person that count.
        skipped: Rows that this person skipped.
        seconds: Median seconds per row of this person's latest verdicts; None before the first.
        per_hour: Their pace while they worked; None before the first.
        queues: Queue → progress.
        reviewers: Who has reviewed, and how many rows each.
        fit: What was learned meanwhile.
    """

    rows: int
    reviewed: int
    verdicts: int
    skipped: int
    seconds: float | None
    per_hour: float | None
    queues: Mapping[Queue, QueueProgress]
    reviewers: Mapping[str, int]
    fit: FitNews


class Pair(NamedTuple):
    """Two reviewers: rows that both judged, how many alike, and κ; None where it is not defined."""

    first: str
    second: str
    rows: int
    alike: int
    kappa: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How well reviewers agree.

    Attributes:
        pairs: Every two who have judged the same rows.
        alpha: Krippendorff's α over all; None where it is not defined.
        rows: Rows with verdicts of two or more.
        conflicts: Rows on which they differ and nobody has settled it.
    """

    pairs: Sequence[Pair]
    alpha: float | None
    rows: int
    conflicts: int
