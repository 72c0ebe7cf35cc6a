"""What the verdicts of a review may be used for: learning, a promise, or an audit."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pcs_annotator.base.errors import PcsWarning
from pcs_annotator.base.text import listed
from pcs_annotator.core.gold import UNLABELLED, gold_codes, text_hash
from pcs_annotator.core.review import (
    SEQUENCE,
    Draw,
    Event,
    Reviewed,
    Verdict,
    audit_order,
    fixed_order,
    frame_hash,
    standing,
)
from pcs_annotator.core.task import Item, label_lookup
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promising.certificate import audit
from pcs_annotator.runs.files.review_log import read_review
from pcs_annotator.runs.files.runs import RunFolder
from pcs_annotator.tables.tables import Dataset


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """What people said about the rows of a run.

    Attributes:
        by_row: Row → what people say about it.
        at_random: Rows that the fixed random order has reached, so that they can support a promise.
        audited: Rows drawn for an audit alone, which are not learned from.
        sequence: Row → its draw in the sequence of the queues that learn and draw at random, in the order of draws.
        last: Number of the last event.
    """

    by_row: Mapping[int, Reviewed] = field(default_factory=dict)
    at_random: frozenset[int] = frozenset()
    audited: frozenset[int] = frozenset()
    sequence: Mapping[int, Draw] = field(default_factory=dict)
    last: int = 0

    @property
    def gold(self) -> dict[int, str]:
        """Row → label, of the rows to learn from."""
        labels = {row: one.label for row, one in self.by_row.items() if row not in self.audited}
        return {row: label for row, label in labels.items() if label is not None}

    @property
    def in_conflict(self) -> list[int]:
        """Rows on which people differ, until somebody settles it."""
        return [row for row, one in self.by_row.items() if one.in_conflict]

    @property
    def counts(self) -> dict[str, int]:
        """How many rows people have seen, and what their verdicts are used for."""
        labelled = sum(one.label is not None for one in self.by_row.values())
        return {
            "rows": len(self.by_row),
            "learned_from": len(self.gold),
            "at_random": len(self.gold.keys() & self.at_random),
            "audited": labelled - len(self.gold),
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
        found: dict[int, str] = {}
        for name in audit_order(places):
            row = places[name]
            seen = self.by_row.get(row) if row in self.audited else None
            if seen is None or seen.in_conflict:
                break
            if seen.label is not None:
                found[row] = seen.label
        return found


def read_verdicts(folder: RunFolder | None, dataset: Dataset, until: int | None = None) -> Verdicts:
    """Return what people said about the texts of a run, or had said until an event; those on other texts are left out.

    Without a folder, nobody has said anything.
    """
    events = [one for one in read_review(folder.review) if until is None or one.number <= until] if folder else []
    if not events:
        return Verdicts()
    places = {item.id: row for row, item in enumerate(dataset.items)}
    given = _of_these_texts(events, dataset.items, places)
    draws = [event for event in events if isinstance(event, Draw) and event.id in places]
    frame = _frame(dataset)
    sequence = _sequence(frame, draws)
    reached = max((draw.reached for draw in sequence), default=0)
    return Verdicts(
        by_row={row: Reviewed.of(verdicts) for row, verdicts in given.items()},
        at_random=frozenset(places[name] for name in fixed_order(frame)[:reached]),
        audited=frozenset(_audited(draws, given, places)),
        sequence={places[draw.id]: draw for draw in sequence},
        last=max(event.number for event in events),
    )


def _of_these_texts(
    events: Sequence[Event], items: Sequence[Item], places: Mapping[str, int]
) -> dict[int, list[Verdict]]:
    """Return row → the verdicts on its text, in the order in which they were given."""
    found, other = dict[int, list[Verdict]](), list[str]()
    for name, verdicts in standing(events).items():
        if name in places:
            hashed = text_hash(items[places[name]].text)
            current = [one for one in verdicts if one.text_hash == hashed]
            if current:
                found[places[name]] = current
            else:
                other.append(name)
    if other:
        names = listed(map(repr, other), len(other))
        message = f"review.jsonl: verdicts on texts that have changed are not used: {len(other)} ({names})"
        warnings.warn(message, PcsWarning, stacklevel=4)
    return found


def _frame(dataset: Dataset) -> list[str]:
    """Return the IDs of the rows without gold in the data, from which a review draws."""
    gold = dataset.gold or (None,) * len(dataset.items)
    return [item.id for item, label in zip(dataset.items, gold, strict=True) if label is None]


def _sequence(frame: Sequence[str], draws: Sequence[Draw]) -> list[Draw]:
    """Return the draws that make one sequence, those from this frame."""
    drawn = [draw for draw in draws if draw.queue in SEQUENCE]
    hashed = frame_hash(frame) if drawn else ""
    return [draw for draw in drawn if draw.frame == hashed]


def _audited(draws: Sequence[Draw], given: Mapping[int, Sequence[Verdict]], places: Mapping[str, int]) -> Iterator[int]:
    """Yield rows drawn for an audit that had no label before, and that were not also drawn to learn from."""
    to_learn = {draw.id for draw in draws if draw.queue in SEQUENCE}
    for draw in draws:
        row = places[draw.id]
        known = any(one.number < draw.number and one.label is not None for one in given.get(row, ()))
        if draw.queue == "audit" and draw.id not in to_learn and not known:
            yield row


def with_reviewed_audit(model: Model, votes: Votes, verdicts: Verdicts, gold: Sequence[str | None]) -> Model:
    """Return the model with its certificate confirmed, revoked or left open by the audit in a review, if there is one.

    An earlier audit of more rows stays.
    """
    certificate = model.certificate
    if certificate is None or not certificate.thresholds or not verdicts.audited:
        return model
    unaudited = replace(model, certificate=replace(certificate, audit=None)).judged(votes)
    assert unaudited.accepted is not None
    open_rows = np.flatnonzero(unaudited.accepted & (gold_codes(votes, gold) == UNLABELLED)).tolist()
    checked = verdicts.audit_labels(votes.ids, open_rows)
    before = 0 if certificate.audit is None else certificate.audit.rows
    if len(checked) < max(before, 1):
        return model
    lookup = label_lookup(votes.labels)
    wrong = sum(lookup[label.casefold()] != unaudited.best[row] for row, label in checked.items())
    found = audit(certificate.promise, certificate.accepted_share, len(checked), int(wrong))
    audited = replace(model, certificate=replace(certificate, audit=found))
    return audited.with_coverage(votes) if audited.certificate and audited.certificate.revoked else audited
