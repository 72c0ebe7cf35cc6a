"""What has happened in a review: its log on disk, and what follows for every row, as arrays."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from pcs_annotator.asking.ledger.lock import lock_or_refuse
from pcs_annotator.base.errors import ConfigError, PcsError, TableError
from pcs_annotator.base.text import listed
from pcs_annotator.core.arrays import Array, Codes, Integers, Mask
from pcs_annotator.core.review import Draw, Event, Reviewed, Undo, Verdict
from pcs_annotator.core.task import label_lookup
from pcs_annotator.runs.files.review_log import append_events, read_review
from pcs_annotator.runs.review.rows import NO_LABEL, Rows


def now() -> str:
    """Return the time as it is stored."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def lock_review(path: Path) -> AbstractContextManager[None]:
    """Return a context in which nobody else adds to the review in a run folder; an error if somebody else may."""

    def refuse(holder: str) -> PcsError:
        return ConfigError(f"{path} is being reviewed already, by {holder}: use that page, or stop it first")

    return lock_or_refuse(path / "review", refuse)


@dataclass(kw_only=True)
class Record:
    """The events of a review, and what they mean for every row.

    Attributes:
        path: The log.
        last: Number of the last event.
        draws: All draws of rows that the run has.
        verdicts: Row → verdicts that were not taken back, oldest first.
        given_by: Reviewer → number → their verdicts that were not taken back, oldest first.
        changes: Row → number of the last verdict on it, or undo; row and reviewer → of this reviewer.
        decided: Position of the label that people gave; `NO_LABEL` where there is none.
        conflict: Where people differ.
        coders: How many people gave a label.
        judged_by: Reviewer → where they gave a verdict, skipped rows included.
        notes: What was left out of the log, in sentences.
    """

    path: Path
    rows: Rows
    last: int = 0
    draws: list[Draw] = field(default_factory=list)
    verdicts: dict[int, list[Verdict]] = field(default_factory=dict)
    given_by: dict[str, dict[int, Verdict]] = field(default_factory=dict)
    changes: dict[int | tuple[int, str], int] = field(default_factory=dict)
    judged_by: dict[str, Mask] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        size = len(self.rows)
        self.decided: Codes = np.full(size, NO_LABEL, dtype=np.int8)
        self.conflict: Mask = np.zeros(size, dtype=np.bool_)
        self.coders: Array = np.zeros(size, dtype=np.int16)
        self._codes = label_lookup(self.rows.labels)

    @classmethod
    def read(cls, rows: Rows) -> Record:
        """Read the log of a run; verdicts on other texts, rows or labels than the run has are left out, with a note."""
        record = cls(path=rows.folder.review, rows=rows)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            events = read_review(record.path)
        record.notes += [str(one.message) for one in caught]
        record.last = max((event.number for event in events), default=0)
        record._take(events)
        return record

    def _take(self, events: Sequence[Event]) -> None:
        other: dict[str, list[str]] = {}
        for event in events:
            why = "" if isinstance(event, Undo) else self._unusable(event)
            if why and not isinstance(event, Undo):
                other.setdefault(why, []).append(event.id)
            else:
                self._note(event)
        self._update(self.verdicts)
        for why, ids in other.items():
            names = listed(map(repr, dict.fromkeys(ids)), len(set(ids)))
            self.notes.append(f"{self.path.name}: {len(ids)} {why} are not used ({names})")

    def _unusable(self, event: Draw | Verdict) -> str:
        if event.id not in self.rows.places:
            return "draws and verdicts on rows that the run does not have"
        if isinstance(event, Draw):
            return ""
        if event.label is not None and event.label.casefold() not in self._codes:
            return "verdicts with other labels than those of the run"
        if event.text_hash != self.rows.text_hash(self.rows.places[event.id]):
            return "verdicts on rows whose text has changed since"
        return ""

    def add(self, events: Sequence[Event]) -> None:
        """Store events; when this returns, they are on disk.

        Raises:
            TableError: They cannot be written. Part of them may be in the file, so their numbers are not used again.
        """
        self.last = events[-1].number
        try:
            append_events(self.path, events)
        except OSError as error:
            why = f"{self.path} cannot be written ({error.strerror or error}), so nothing was saved"
            raise TableError(f"{why}: make room, or check the permissions of the folder, then try again") from error
        self._update({place for event in events for place in self._note(event)})

    def _note(self, event: Event) -> Iterable[int]:
        """Take an event into account, and return the rows about which people say something else now."""
        if isinstance(event, Draw):
            self.draws.append(event)
            return ()
        own = self.given_by.setdefault(event.reviewer, {})
        if isinstance(event, Verdict):
            own[event.number] = event
            self.verdicts.setdefault(self.rows.places[event.id], []).append(event)
            taken_back = [event]
        else:
            taken_back = [own.pop(number) for number in event.verdicts if number in own]
            for one in taken_back:
                self.verdicts[self.rows.places[one.id]].remove(one)
        places = [self.rows.places[one.id] for one in taken_back]
        for place in places:
            self.changes[place] = self.changes[place, event.reviewer] = event.number
        return places

    def since(self, number: int) -> int:
        """Return how many rows people have changed since an event."""
        return sum(last > number for row, last in self.changes.items() if isinstance(row, int))

    def _update(self, places: Collection[int]) -> None:
        for place in places:
            reviewed = self.reviewed(place)
            label = None if reviewed is None else reviewed.label
            self.decided[place] = NO_LABEL if label is None else self._codes[label.casefold()]
            self.conflict[place] = reviewed is not None and reviewed.in_conflict
            given = reviewed.by_reviewer if reviewed else {}
            self.coders[place] = sum(one.label is not None for one in given.values())
            for mask in self.judged_by.values():
                mask[place] = False
            for reviewer in given:
                self.by(reviewer)[place] = True

    def by(self, reviewer: str) -> Mask:
        """Return where a person gave a verdict."""
        return self.judged_by.setdefault(reviewer, np.zeros(len(self.rows), dtype=np.bool_))

    def reviewed(self, place: int) -> Reviewed | None:
        """Return what people say about a row; None if nobody has said anything."""
        given = self.verdicts.get(place)
        return Reviewed.of(given) if given else None

    def latest_of(self, reviewer: str) -> list[Verdict]:
        """Return a person's last verdict that was not taken back, or all of its group; empty if there is none."""
        own = self.given_by.get(reviewer, {})
        if not own:
            return []
        latest = own[next(reversed(own))]
        return [one for one in own.values() if one.group == latest.group] if latest.group else [latest]

    def labels_of(self, places: Integers) -> dict[str, Codes]:
        """Return reviewer → the label that they gave to each of these rows by themselves, `NO_LABEL` where none.

        Verdicts that settle a conflict are left out: whoever gives one has seen the others.
        """
        found = {name: np.full(len(places), NO_LABEL, dtype=np.int8) for name in self.given_by}
        for position, place in enumerate(places.tolist()):
            for one in self.verdicts[place]:
                if one.queue != "conflicts" and one.label is not None:
                    found[one.reviewer][position] = self._codes[one.label.casefold()]
        return {name: codes for name, codes in found.items() if (codes >= 0).any()}
