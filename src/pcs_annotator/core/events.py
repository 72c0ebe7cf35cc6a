"""A review: which rows were drawn for people and how, what they decided, and what follows for each row."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

import numpy as np

from pcs_annotator.core.arrays import Integers

Queue = Literal["stream", "random", "learn", "audit", "doubtful", "finish", "conflicts", "chosen"]
"""How a row came to a person; `chosen` is by the person: searched for, gone to, or accepted with others."""
SEQUENCE: tuple[Queue, ...] = ("random", "learn")
"""Queues that draw from one frame, one row after the other, so that estimates can use both together."""
BLIND: tuple[Queue, ...] = ("stream", "random", "audit")
"""Queues whose verdicts prove something about the models, so that whoever gives one has not seen what models say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """A row that was drawn for people."""

    number: int  # its place among all events of the review
    id: str  # the row
    text_hash: str  # hash of its text
    queue: Queue  # the queue that drew it
    at: str  # when, in UTC, ISO 8601
    # how probable this row was for this draw, given all earlier ones; None if the order is deterministic, so that
    # nothing may be estimated from it
    probability: float | None = None
    pool: int = 0  # how many rows could have been drawn
    frame: str = ""  # hash of the IDs of all rows that the queue draws from; another frame is another sequence
    reached: int = 0  # rows of the frame's random order that have been reached; they are a simple random sample


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a person decided about a row."""

    number: int  # its place among all events of the review
    id: str  # the row
    text_hash: str  # hash of the text that they saw
    label: str | None  # the label; None if they skipped the row
    reviewer: str  # who decided
    at: str  # when, in UTC, ISO 8601
    queue: Queue  # the queue that showed the row
    seconds: float | None = None  # how long it took
    proposed: str | None = None  # the label that the models gave
    confidence: float | None = None  # its confidence, if there was one
    note: str = ""  # what the person wrote down
    blind: bool = False  # whether they judged before they saw what models and others say


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """Verdicts that a person took back; the ones before them count again."""

    number: int
    verdicts: tuple[int, ...]
    reviewer: str
    at: str


Event = Draw | Verdict | Undo


@dataclass(frozen=True, slots=True)
class Reviewed:
    """What people say about a row."""

    by_reviewer: Mapping[str, Verdict]  # reviewer → the verdict that counts, skipped rows included
    deciding: Verdict | None  # the verdict that decides the row; None if people differ, or all skipped it
    in_conflict: bool  # whether people gave different labels and nobody has settled it

    @property
    def label(self) -> str | None:
        """The label that people gave; None if they differ, or all skipped the row."""
        return None if self.deciding is None else self.deciding.label

    @classmethod
    def of(cls, verdicts: Iterable[Verdict]) -> "Reviewed":
        """Return what the verdicts on one row say, in the order in which they were given."""
        latest = {verdict.reviewer: verdict for verdict in verdicts}
        labelled = [verdict for verdict in latest.values() if verdict.label is not None]
        settling = [verdict for verdict in labelled if verdict.queue == "conflicts"]
        in_conflict = not settling and len({verdict.label for verdict in labelled}) > 1
        candidates = [] if in_conflict else settling or labelled
        return cls(latest, max(candidates, key=lambda verdict: verdict.number, default=None), in_conflict)


def reviewer_name(name: str) -> str:
    r"""Return a person's name without what nobody can see: control characters, changes of direction, extra spaces.

    >>> reviewer_name(" Ana\x1b  Lee\u202e ")
    'Ana Lee'
    """
    return " ".join("".join(letter if letter.isprintable() else " " for letter in name).split())


def fixed_order(ids: Iterable[str]) -> list[str]:
    """Return IDs in an order that is random and always the same: sorted by their hashes."""
    names = list(ids)
    return [names[position] for position in fixed_places(names).tolist()]


def fixed_places(ids: Iterable[str]) -> Integers:
    """Return the positions of IDs in that order; of 100,000, two have the same hash once in three billion cases."""
    hashes = b"".join(blake2b(name.encode("utf-8", "replace"), digest_size=8).digest() for name in ids)
    return np.argsort(np.frombuffer(hashes, dtype=">u8"), kind="stable")


def audit_order(ids: Iterable[str]) -> list[str]:
    """Return IDs in the order of audits: the other way round, so that they rarely meet rows drawn for learning."""
    return fixed_order(ids)[::-1]


def frame_hash(ids: Iterable[str]) -> str:
    """Return a hash of the IDs of a frame, in whatever order."""
    names = "".join(f"{name}\0" for name in sorted(ids))
    return blake2b(names.encode("utf-8", "replace"), digest_size=8).hexdigest()
