"""The state of a review: the log of draws replayed, and what follows for every row of the run."""

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from pcs_annotator.base.errors import TableError, warn_user
from pcs_annotator.base.text import listed
from pcs_annotator.core.arrays import CODE, Array, Codes, Integers, Mask
from pcs_annotator.core.events import (
    SEQUENCE,
    Draw,
    Reviewed,
    ReviewEvent,
    Undo,
    Verdict,
    audit_order,
    fixed_order,
    frame_hash,
)
from pcs_annotator.core.gold_codes import UNLABELLED, OpenLabels
from pcs_annotator.core.identity import text_hash
from pcs_annotator.core.task import Item, label_lookup
from pcs_annotator.runs.draw_registry import append_events, review_events
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.tables.chunks import Dataset

OTHER_ROWS = "draws and verdicts on rows that the run does not have"
OTHER_LABELS = "verdicts with other labels than those of the run"
OTHER_TEXTS = "verdicts on texts that have changed"


def now() -> str:
    """Return the time as it is stored."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class ReviewState:
    """What has happened in a review of a part of a run, whose log is at `path`."""

    def __init__(self, path: Path, items: Sequence[Item], labels: Sequence[str] = (), part: str = "") -> None:
        self.path, self.part, self.items, self._codes = path, part, items, label_lookup(labels)
        self._others = OpenLabels()  # what people said, where labels are not listed
        self.last = 0  # number of the last event
        self.places = {item.id: row for row, item in enumerate(items)}
        self.draws: list[Draw] = []  # all draws of rows that the run has
        self.verdicts: dict[int, list[Verdict]] = {}  # row → those that were not taken back, oldest first
        self.given_by: dict[str, dict[int, Verdict]] = {}  # reviewer → the same by number
        self.standing: dict[int, Verdict] = {}  # the same by number
        self.latest: dict[tuple[str, str], Verdict] = {}  # ID and reviewer → last verdict, even if it was taken back
        # row → number of the last verdict on it, or undo; row and reviewer → of this reviewer
        self.changes: dict[int | tuple[int, str], int] = {}
        self._taken_back: list[tuple[Verdict, int]] = []  # verdicts, and the number of the undo that took each back
        self.judged_by: dict[str, Mask] = {}  # reviewer → where they gave a verdict, skipped rows included
        self.notes: list[str] = []  # what was left out of the log, in sentences
        self.decided: Codes = np.full(len(items), UNLABELLED, dtype=CODE)  # position of the label that people gave
        self.conflict: Mask = np.zeros(len(items), dtype=np.bool_)  # where people differ
        self.coders: Array = np.zeros(len(items), dtype=np.int16)  # how many people gave a label

    @classmethod
    def read(
        cls, path: Path, items: Sequence[Item], labels: Sequence[str] = (), until: int | None = None, part: str = ""
    ) -> "ReviewState":
        """Replay the log of a review, perhaps until an event; verdicts on other texts or labels are left out."""
        state = cls(path, items, labels, part)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            events = review_events(path, part)
        state.notes += [str(warning.message) for warning in caught]
        unused: dict[str, dict[str, None]] = {}
        for event in events:
            if until is None or event.number <= until:
                state.last = max(state.last, event.number)
                if isinstance(event, Undo) or not (why := state._unusable(event)):
                    state._note(event)
                else:
                    unused.setdefault(why, {})[event.id] = None
        state._update(state.verdicts)
        for why, ids in unused.items():
            state.notes.append(f"{path.name}: {why} are not used: {len(ids)} ({listed(map(repr, ids), len(ids))})")
        return state

    def _unusable(self, event: Draw | Verdict) -> str:
        if event.id not in self.places:
            return OTHER_ROWS
        if isinstance(event, Draw):
            return ""
        if self._codes and event.label is not None and event.label.casefold() not in self._codes:
            return OTHER_LABELS
        return "" if event.text_hash == text_hash(self.items[self.places[event.id]].text) else OTHER_TEXTS

    def add(self, events: Sequence[ReviewEvent]) -> None:
        """Store events; when this returns, they are on disk."""
        self.last = events[-1].number  # part of them may be in the file after an error, so none is used again
        try:
            append_events(self.path, events, self.part)
        except OSError as error:
            why = f"{self.path} cannot be written ({error.strerror or error}), so nothing was saved"
            raise TableError(f"{why}: make room, or check the permissions of the folder, then try again") from error
        self._update({row for event in events for row in self._note(event)})

    def _note(self, event: ReviewEvent) -> Iterable[int]:
        """Take an event into account, and return the rows about which people say something else now."""
        if isinstance(event, Draw):
            self.draws.append(event)
            return ()
        if isinstance(event, Verdict):
            self.given_by.setdefault(event.reviewer, {})[event.number] = event
            self.standing[event.number] = self.latest[event.id, event.reviewer] = event
            self.verdicts.setdefault(self.places[event.id], []).append(event)
            about = [event]
        else:
            about = [self.standing.pop(number) for number in event.verdicts if number in self.standing]
            for verdict in about:
                del self.given_by[verdict.reviewer][verdict.number]
                self.verdicts[self.places[verdict.id]].remove(verdict)
            self._taken_back += [(verdict, event.number) for verdict in about]
        places = [self.places[verdict.id] for verdict in about]
        for row in places:
            self.changes[row] = self.changes[row, event.reviewer] = event.number
        return places

    def _update(self, places: Collection[int]) -> None:
        for row in places:
            reviewed = self.reviewed(row)
            label = None if reviewed is None else reviewed.label
            self.decided[row] = UNLABELLED if label is None else self._code(label)
            self.conflict[row] = reviewed is not None and reviewed.in_conflict
            by_reviewer = reviewed.by_reviewer if reviewed else {}
            self.coders[row] = sum(verdict.label is not None for verdict in by_reviewer.values())
            for mask in self.judged_by.values():
                mask[row] = False
            for reviewer in by_reviewer:
                self.by(reviewer)[row] = True

    def _code(self, label: str) -> int:
        return self._codes[label.casefold()] if self._codes else self._others.code(label)

    def since(self, number: int) -> int:
        """Return about how many rows people say something else than they did at an event."""
        judged = {row for row, verdicts in self.verdicts.items() if verdicts and verdicts[-1].number > number}
        undone = {self.places[verdict.id] for verdict, undo in self._taken_back if verdict.number <= number < undo}
        return len(judged | undone)

    def by(self, reviewer: str) -> Mask:
        """Return where a person gave a verdict."""
        return self.judged_by.setdefault(reviewer, np.zeros(len(self.items), dtype=np.bool_))

    def reviewed(self, row: int) -> Reviewed | None:
        """Return what people say about a row; None if nobody has said anything."""
        verdicts = self.verdicts.get(row)
        return Reviewed.of(verdicts) if verdicts else None

    def latest_of(self, reviewer: str) -> list[Verdict]:
        """Return a person's last verdict that was not taken back, as a list; empty if there is none."""
        verdicts = self.given_by.get(reviewer)
        return [verdicts[next(reversed(verdicts))]] if verdicts else []

    def labels_of(self, places: Integers) -> dict[str, Codes]:
        """Return reviewer → the label of each row that they gave without having seen others', else `UNLABELLED`."""
        codes_of = {name: np.full(len(places), UNLABELLED, dtype=CODE) for name in self.given_by}
        for position, row in enumerate(places.tolist()):
            for verdict in self.verdicts[row]:
                if verdict.queue != "conflicts" and verdict.label is not None:
                    codes_of[verdict.reviewer][position] = self._code(verdict.label)
        return {name: codes for name, codes in codes_of.items() if (codes >= 0).any()}

    def audited(self) -> Iterator[int]:
        """Yield rows drawn for an audit that had no label before, and that were not also drawn to learn from."""
        to_learn = {draw.id for draw in self.draws if draw.queue in SEQUENCE}
        for draw in self.draws:
            row = self.places[draw.id]
            before = any(event.number < draw.number and event.label is not None for event in self.verdicts.get(row, ()))
            if draw.queue == "audit" and draw.id not in to_learn and not before:
                yield row

    def sequence(self, frame: Sequence[str]) -> list[Draw]:
        """Return the draws that make one sequence, those from this frame of IDs."""
        drawn = [draw for draw in self.draws if draw.queue in SEQUENCE]
        hashed = frame_hash(frame) if drawn else ""
        return [draw for draw in drawn if draw.frame == hashed]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewVerdicts:
    """What people said about the rows of a run in a review, and what it may be used for."""

    by_row: Mapping[int, Reviewed] = field(default_factory=dict)  # row → what people say about it
    at_random: frozenset[int] = frozenset()  # drawn at random, not accepted in bulk: they can support a promise
    audited: frozenset[int] = frozenset()  # rows drawn for an audit alone, which are not learned from
    sequence: Mapping[int, Draw] = field(default_factory=dict)  # row → its draw, of the queues random and learn
    last: int = 0  # number of the last event

    @property
    def gold(self) -> dict[int, str]:
        """Row → label, of the rows to learn from."""
        labels = {row: reviewed.label for row, reviewed in self.by_row.items() if row not in self.audited}
        return {row: label for row, label in labels.items() if label is not None}

    @property
    def in_conflict(self) -> list[int]:
        """Rows on which people differ, until somebody settles it."""
        return [row for row, reviewed in self.by_row.items() if reviewed.in_conflict]

    @property
    def counts(self) -> dict[str, int]:
        """How many rows people have seen, and what their verdicts are used for."""
        labelled, gold = sum(reviewed.label is not None for reviewed in self.by_row.values()), self.gold
        return {
            "rows": len(self.by_row),
            "learned_from": len(gold),
            "at_random": len(gold.keys() & self.at_random),
            "audited": labelled - len(gold),
            "in_conflict": len(self.in_conflict),
            "skipped": len(self.by_row) - labelled - len(self.in_conflict),
        }

    @property
    def sentence(self) -> str:
        """The counts as text; empty if nobody has reviewed anything."""
        if not self.by_row:
            return ""
        counts = self.counts
        rows = "1 row was" if counts["rows"] == 1 else f"{counts['rows']:,} rows were"
        parts = [f"{counts['learned_from']:,} to learn from, {counts['at_random']:,} of them drawn at random"]
        names = {"audited": "for the audit", "in_conflict": "on which people differ", "skipped": "skipped"}
        parts += [f"{counts[name]:,} {what}" for name, what in names.items() if counts[name]]
        return f"{rows} reviewed by people: {'; '.join(parts)}"

    def by_place(self, rows: int) -> list[Reviewed | None]:
        """Return what people say about every row; empty if nobody has reviewed anything."""
        return [self.by_row.get(row) for row in range(rows)] if self.by_row else []

    def audit_labels(self, ids: Sequence[str], accepted: Iterable[int]) -> dict[int, str]:
        """Return row → the label that people gave, of a random sample of accepted rows.

        These are the rows from the beginning of the order of audits on, up to the first that nobody has checked. Rows
        that people could not label are passed over.
        """
        places = {ids[row]: row for row in accepted} if self.audited else {}
        labels: dict[int, str] = {}
        for name in audit_order(places):
            row = places[name]
            seen = self.by_row.get(row) if row in self.audited else None
            if seen is None or seen.in_conflict:
                break
            if seen.label is not None:
                labels[row] = seen.label
        return labels


def read_verdicts(folder: RunFolder | None, dataset: Dataset, until: int | None = None) -> ReviewVerdicts:
    """Return what people said about the texts of a run, or had said until an event; without a folder, nothing."""
    if folder is None or not folder.draws.exists():
        return ReviewVerdicts()
    state = ReviewState.read(folder.draws, dataset.items, until=until, part=folder.part)
    for note in state.notes:
        if OTHER_ROWS not in note:  # a run of fewer rows is nothing to worry about
            warn_user(note)
    gold = dataset.gold or (None,) * len(dataset.items)
    # a review draws from the rows without gold in the data; those of a stream have been drawn
    run_rows = len(dataset.items) - len(dataset.streamed)
    frame = [item.id for item, label in zip(dataset.items[:run_rows], gold, strict=False) if label is None]
    sequence = {state.places[draw.id]: draw for draw in state.sequence(frame)}
    reached = max((draw.reached for draw in sequence.values()), default=0)
    by_row = {row: Reviewed.of(verdicts) for row, verdicts in state.verdicts.items() if verdicts}
    at_random = {state.places[name] for name in fixed_order(frame)[:reached]}
    for row, (drawn, _) in enumerate(dataset.streamed, run_rows):
        if drawn and row in by_row and any(verdict.queue == "stream" for verdict in by_row[row].by_reviewer.values()):
            at_random.add(row)
    audited = frozenset(state.audited())
    return ReviewVerdicts(
        by_row=by_row, at_random=frozenset(at_random), audited=audited, sequence=sequence, last=state.last
    )
