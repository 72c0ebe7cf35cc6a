"""What files of annotation tools have in common: rows that go out, answers that come back, and careful reading."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from pcs_annotator.base.errors import TableError
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.result_names import CONFIDENCE, DECISION, LABEL, input_names
from pcs_annotator.core.review import Queue
from pcs_annotator.tables.files import atomic_path

MOST_BYTES = 1_000_000_000
QUESTION = "label"
"""The name of what people answer, in every tool."""
TEXT = "text"
"""The name of what they read."""
ID, QUEUE = "pcs_id", "pcs_queue"
"""Names of values that travel with a row, so that what comes back says what the person saw."""
OURS = (TEXT, QUESTION, ID, LABEL, CONFIDENCE, DECISION, QUEUE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowToAnswer:
    """A row for people to answer in another tool.

    Attributes:
        text: Its text.
        outcome: What the run says about it.
        columns: The user's columns that go with it.
        queue: How it was chosen.
    """

    text: str
    outcome: Outcome
    columns: Mapping[str, object] = field(default_factory=dict)
    queue: Queue = "chosen"

    def values(self, taken: Collection[str] = ()) -> dict[str, object]:
        """Return what travels with the row: our values, then the user's columns.

        A column with a name that we or the tool (`taken`) need gets `input_` in front.
        """
        found: dict[str, object] = {ID: self.outcome.id, DECISION: self.outcome.decision, QUEUE: self.queue}
        if self.outcome.label is not None:
            found |= {LABEL: self.outcome.label, CONFIDENCE: self.outcome.confidence}
        names = input_names(self.columns, {*OURS, *taken})
        found |= {names[name]: _plain(value) for name, value in self.columns.items()}
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a person answered in another tool.

    Attributes:
        where: File and task, for messages.
        id: The row.
        text: The text that they read.
        label: The label; None if they skipped the row.
        reviewer: Who answered.
        at: When, in UTC, ISO 8601; None if the file does not say.
        seconds: How long it took, if known.
        proposed: The label that they were shown, if any.
        confidence: Its confidence, if there was one.
        queue: How the row was chosen.
    """

    where: str
    id: str
    text: str
    label: str | None
    reviewer: str
    at: str | None = None
    seconds: float | None = None
    proposed: str | None = None
    confidence: float | None = None
    queue: Queue = "chosen"


def score_of(outcome: Outcome) -> float | None:
    """Return the confidence of a label, or its score in a run without confidences; None without a label."""
    if outcome.label is None or outcome.confidence is not None:
        return outcome.confidence
    return outcome.scores[outcome.label]


def read_list(path: Path, remedy: str) -> list[Any]:
    """Return the list in a JSON file."""
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise TableError(f"{path} has {size / 1e9:.1f} GB, at most {MOST_BYTES / 1e9:.0f} GB are read: split it")
        found = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise TableError(f"{path} cannot be read ({error.strerror}): check its name and permissions") from error
    except (ValueError, RecursionError) as error:
        raise TableError(f"{path} is not valid JSON ({error}): {remedy}") from error
    if not isinstance(found, list):
        raise TableError(f"{path} has no list of tasks or records, but {_kind(found)}: {remedy}")
    return found


def mapping(value: object, where: str, remedy: str) -> Mapping[str, Any]:
    """Return a value that must be a JSON object."""
    if not isinstance(value, dict):
        raise TableError(f"{where} must be an object, not {_kind(value)}: {remedy}")
    return value


def sequence(value: object, where: str, remedy: str) -> list[Any]:
    """Return a value that must be a list; nothing given is an empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise TableError(f"{where} must be a list, not {_kind(value)}: {remedy}")
    return value


def write_values(path: Path, values: object) -> None:
    """Write JSON, whole or not at all, in ASCII: some tools read files in the encoding of their machine."""
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(values, indent=1, allow_nan=False) + "\n", encoding="ascii")


def queue_of(value: object) -> Queue:
    """Return a queue; `chosen` for what is none."""
    return next((queue for queue in get_args(Queue) if queue == value), "chosen")


def text_of(value: object) -> str | None:
    """Return a text without what cannot be written as UTF-8; None for what is no text."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else None


def number_of(value: object) -> float | None:
    """Return a number that is not negative; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e18:
        return None
    return float(value)


def moment_of(value: object) -> str | None:
    """Return a time in UTC, ISO 8601; None for what is no time."""
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        return None


def _plain(value: object) -> object:
    """Return a cell as JSON can hold it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
