"""What a review shows, is given and gives back: frozen values, the same for every page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.base.fields import setting
from pcs_annotator.core.events import Draw, Queue, Reviewed
from pcs_annotator.core.outcome import Decision, Outcome
from pcs_annotator.core.passages import VALUE, Passage
from pcs_annotator.core.task import Task
from pcs_annotator.core.variant import Variant
from pcs_annotator.judging.text_model import TellingWord
from pcs_annotator.runs.certificate_text import Standing
from pcs_annotator.runs.settings import TaskSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewOptions:
    """How to review.

    Attributes:
        blind: Hide what models and others say until your verdict, in every queue or in none; default: Random and Audit.
        double: Share of rows that two people judge, each without seeing the other's verdict.
        refit_every: Learn again in the background after K verdicts, 0 for never.
        lease_seconds: How long a shown row is kept for the person who sees it.
        guidelines: Markdown file shown beside every row; default: the task.
        seed: Makes draws repeatable, for tests; None for real randomness.
    """

    blind: bool | None = setting(None, "--blind/--no-blind")
    double: float = setting(0.0, "--double SHARE", least=0, most=1)
    refit_every: int = setting(10, "--refit-every K", least=0)
    lease_seconds: float = 300.0
    guidelines: Path | None = setting(None, "--guidelines FILE")
    seed: int | None = None


class ShownVote(NamedTuple):
    """One answer: its label, None if it had none, and how probable the model found each label, if that is known."""

    annotator: str
    relation: str
    draw: int
    label: str | None
    grades: Mapping[str, float] | None


class Candidate(NamedTuple):
    """What models quoted from a text; without confidence and decision if it is judged blind."""

    passage: Passage
    confidence: float | None
    decision: Decision | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownVariable:
    """One variable of a codebook, for a person to decide about a row."""

    name: str
    task: TaskSettings
    asked: bool  # whether a verdict on it is wanted
    proposed: Sequence[str] | None  # the labels that the models give; None if there are none, or they are hidden
    decision: Decision | None
    probabilities: Mapping[str, float]  # as in `Shown`
    said: Mapping[str, Sequence[str]]  # reviewer → the labels that they gave; those who skipped it are left out
    reason: str  # why people should look; empty if they need not, or must judge first
    parts: Mapping[str, "Shown"]  # the variable, or one part per label → the row as it is shown for it


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One row for a person to decide; of a codebook, what is about labels is that of its first variable."""

    id: str
    text: str
    outcome: Outcome | None  # what the models say; None if it is judged blind: then nobody's answer is in this value
    probabilities: Mapping[str, float]  # label → its probability, or score where there is no confidence
    variants: Sequence[Variant]  # what relations made of it
    question: str  # what was asked about the original text
    questions: Mapping[str, str]  # relation → what was asked instead, if it changes the question
    votes: Sequence[ShownVote]  # all answers; questions that were not asked are left out
    gold: str | None  # the gold label of the data or of an earlier file; verdicts are in `reviewed`
    # what people said; None if nobody did, or if this person is to judge first (blind, or double coding)
    reviewed: Reviewed | None
    columns: Mapping[str, str]  # the user's other columns
    queue: Queue  # the queue that shows it
    lease: str  # proves that it is in this person's hands, empty if it is not; give it back with the verdict
    version: int  # give it back with the verdict: it tells whether the row was judged meanwhile
    unread: str = ""  # why variants cannot be shown; empty if they can
    held_by: str = ""  # who is looking at it, if that is somebody else
    draw: Draw | None = None  # how it was drawn; None if the person chose it
    variables: Sequence[ShownVariable] = ()  # those of a codebook
    steps: Sequence[str] = ()  # of a number, the steps of its range; empty if it is chosen from labels
    candidates: Sequence[Candidate] = ()  # of a variable that is quoted from texts
    words: Sequence[TellingWord] = ()  # what in the text speaks for the proposed label, or against it

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
    lease: str  # as it was shown
    version: int
    seconds: float | None = None
    note: str = ""


class ListedRow(NamedTuple):
    """One row of a list; `reviewed` is None as in `Shown`."""

    id: str
    text: str
    label: str | None
    confidence: float | None
    decision: str
    gold: str | None
    reviewed: Reviewed | None


class QueueProgress(NamedTuple):
    """How many rows of a queue are done, and how many are left."""

    done: int
    left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FitNews:
    """What the last fit in the background found."""

    running: bool = False  # whether a fit is under way
    fits: int = 0  # how many have ended
    waiting: int = 0  # rows whose verdicts the model in force has not learned from
    changed: Sequence[str] = ()  # what the last fit changed, in sentences
    failed: str = ""  # why the last fit failed, in a sentence; empty if it did not
    standing: Standing = "none"  # whether there is a promise, and what an audit found
    promise: str = ""  # the promise, or why there is none, in a sentence
    # about how many more random rows the promise needs; None if it holds, or that is unknown
    rows_to_go: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a review is."""

    rows: int  # rows of the run
    reviewed: int  # rows with a verdict of anybody
    verdicts: int  # verdicts of this person that count
    seconds: float | None  # median seconds per row of this person's latest verdicts; None before the first
    per_hour: float | None  # their pace while they worked; None before the first
    queues: Mapping[Queue, QueueProgress]  # queue → progress
    reviewers: Mapping[str, int]  # who has reviewed, and how many rows each
    fit: FitNews  # what was learned meanwhile
    goal: str = ""  # what is promised about the whole table when the queue *finish* is done


class ReviewerPair(NamedTuple):
    """Two reviewers: rows that both judged, how many alike, and κ; None where it is not defined."""

    first: str
    second: str
    rows: int
    alike: int
    kappa: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerAgreement:
    """How well reviewers agree."""

    pairs: Sequence[ReviewerPair]  # every two who have judged the same rows
    alpha: float | None  # krippendorff's α over all; None where it is not defined
    rows: int  # rows with verdicts of two or more


def guidelines_of(tasks: Mapping[str, Task | TaskSettings], path: Path | None) -> str:
    """Return the guidelines in a file, or made of tasks: instruction → its task with labels and meanings."""
    if path is not None:
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise ConfigError(f"the guidelines {path} cannot be read ({error}): give a text file in UTF-8") from error
    lines = []
    for instruction, task in tasks.items():
        meanings = {**task.definitions, **task.meanings}
        listed = (f"- **{label}**" + (f": {meanings[label]}" if label in meanings else "") for label in task.labels)
        lines += [instruction.strip(), "", *([] if task.labels == (VALUE,) else listed), ""]
    return "\n".join(lines)
