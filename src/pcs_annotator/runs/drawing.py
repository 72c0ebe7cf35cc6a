"""Rows that are drawn and written out for people to label, and what an audit means for the promise.

The queues of `pcs review` draw one row at a time, see `reviewing/draws.py`.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pcs_annotator.base.errors import TableError, warn_user
from pcs_annotator.core.arrays import CODE, Integers, Mask
from pcs_annotator.core.events import Picked, SampleKind
from pcs_annotator.core.gold_codes import UNLABELLED, cell_key, gold_codes, settled
from pcs_annotator.core.identity import same_texts, text_hash
from pcs_annotator.core.task import Item, label_lookup
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promise.certificate import Audit, audit, audit_in_order, fingerprint
from pcs_annotator.judging.promise.drift import profiles
from pcs_annotator.runs.draw_registry import append_events, events_of, walk
from pcs_annotator.runs.gold_labels import Gold
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.review_state import ReviewVerdicts
from pcs_annotator.tables import people
from pcs_annotator.tables.chunks import Dataset
from pcs_annotator.tables.files import set_aside
from pcs_annotator.version import __version__

MOST_ROWS_TO_LABEL = 300


class HandedOut(NamedTuple):
    """The number of rows written for a person to label, and how they were chosen."""

    rows: int
    kind: SampleKind


def hand_out(folder: RunFolder, dataset: Dataset, votes: Votes, model: Model, gold: Gold, rows: int) -> HandedOut:
    """Write the rows to label next: at random without a promise, else all for review, the least certain first."""
    certificate, items = model.certificate, dataset.items
    if certificate is None or not certificate.holds:
        needed = certificate and certificate.rows_needed
        missing = needed.likely - certificate.gold_rows if certificate and needed else 0
        drawn_rows = draw_at_random(folder, dataset, gold, max(rows, min(missing, MOST_ROWS_TO_LABEL)))
        return HandedOut(drawn_rows, "at random")
    done = settled(same_texts([item.text for item in items]), gold_codes(votes, gold.all_labels))
    chosen = _review_queue(votes, model, ~done).tolist()
    drawn = [Picked(id=items[row].id, text_hash=text_hash(items[row].text), chosen="for review") for row in chosen]
    return HandedOut(write_to_label(folder, items, gold, drawn), "for review")


def draw_at_random(folder: RunFolder, dataset: Dataset, gold: Gold, texts: int) -> int:
    """Write so many texts without a label for a person, and return how many there were; see `draw_registry`."""
    items, run_rows = dataset.items, len(dataset.items) - len(dataset.streamed)
    in_data = dataset.gold or (None,) * len(items)
    outside = np.array([row >= run_rows or label is not None for row, label in enumerate(in_data)])
    return write_to_label(folder, items, gold, walk(items, gold.labels, outside, texts))


def _review_queue(votes: Votes, model: Model, unlabelled: Mask) -> Integers:
    judged = model.judged(votes)
    assert judged.probabilities is not None
    assert judged.accepted is not None
    confidence = judged.probabilities[np.arange(len(votes)), judged.best]
    order = np.lexsort((confidence, ~votes.silent))  # rows without a vote first
    return order[(unlabelled & ~judged.accepted)[order]]


def write_to_label(folder: RunFolder, items: Sequence[Item], gold: Gold, rows: Sequence[Picked]) -> int:
    """Note how rows were drawn, and write those for a person to label, each text once, and none whose text has gold."""
    if unread(folder.to_label, items, gold):
        kept = set_aside(folder.to_label)
        warn_user(f"{folder.to_label.name} was filled in but not read: it is kept as {kept.name}; pass it to pcs fit")
    before = {*events_of(folder, Picked)}
    if new := [event for event in rows if event not in before]:
        append_events(folder.draws, new, folder.part)
    texts = {item.id: item.text for item in items}
    same = dict(zip(texts, same_texts(list(texts.values())).tolist(), strict=True))
    seen = {same[item.id] for item, label in zip(items, gold.labels, strict=True) if label}
    first = {same[draw.id]: draw for draw in reversed(rows) if same[draw.id] not in seen}
    shown = [draw for draw in rows if first.get(same[draw.id]) is draw]
    if shown:
        people.write_to_label(folder.to_label, ((draw.id, texts[draw.id], draw.chosen) for draw in shown))
    else:
        folder.to_label.unlink(missing_ok=True)
    return len(shown)


def unread(path: Path, items: Sequence[Item], gold: Gold) -> bool:
    """Return whether a person filled in something in a table to label that is not known yet."""
    recorded = {(cell_key(item.id), cell_key(label)) for item, label in zip(items, gold.labels, strict=True) if label}
    try:
        return any(
            (cell_key(name), cell_key(label)) not in recorded for name, label in people.filled_rows(path, "gold")
        )
    except TableError:  # then a person changed it
        return True


def with_reviewed_audit(model: Model, votes: Votes, verdicts: ReviewVerdicts, gold: Sequence[str | None]) -> Model:
    """Return the model with the audit of a review, if there is one and no earlier one of more rows."""
    certificate = model.certificate
    if certificate is None or not certificate.found or not verdicts.audited:
        return model
    unaudited = replace(model, certificate=replace(certificate, audit=None)).judged(votes)
    assert unaudited.accepted is not None
    open_rows = np.flatnonzero(unaudited.accepted & (gold_codes(votes, gold) == UNLABELLED)).tolist()
    checked, lookup = verdicts.audit_labels(votes.ids, open_rows), label_lookup(votes.labels)
    if len(checked) < max(certificate.audit.rows if certificate.audit else 0, 1):
        return model
    verdict_codes = np.array([lookup[label.casefold()] for label in checked.values()], dtype=CODE)
    right = model.right(votes.labels, unaudited, list(checked), verdict_codes)
    outcome = audit(certificate.promise, len(checked), int((~right).sum()))
    audited = replace(model, certificate=replace(certificate, audit=outcome))
    return audited.with_coverage(votes) if outcome.finding == "revoked" else audited


def with_earlier_audit(model: Model, before: Model) -> Model:
    """Return the model with the audit of an earlier one, if both make the same promise from the same rows."""
    earlier = before.certificate
    if model.certificate is None or earlier is None or earlier.audit is None:
        return model
    audited = replace(model.certificate, audit=earlier.audit)
    about_rows = {name: getattr(earlier, name) for name in ("accepted_share", "review_rows", "assumed_rows")}
    same = replace(audited, **about_rows) == earlier
    return replace(model, certificate=audited) if same else model


def of_stream(model: Model, votes: Votes, gold: Gold, run_rows: int) -> Model:
    """Return a model whose last rows came as a stream: its certificate is about the run's `run_rows` votes and gold."""
    codes = gold_codes(votes, gold.labels)
    if gold.since:
        recent = votes.take(np.flatnonzero(gold.random_sample & (codes != UNLABELLED)))
        judged = model.judged(recent)
        new_profiles = profiles(recent, judged.scores, judged.best, ["", *model.profiles], model.familiar(recent))
        anew = {name: profile for name, profile in new_profiles.items() if "" in gold.since or name in gold.since}
        groups = {name: anew.get(name, profile) for name, profile in model.profiles.items()}
        model = replace(model, profile=anew.get("", model.profile), profiles=groups)
    if model.certificate is None:
        return model
    run_print = fingerprint(votes.take(np.arange(run_rows)), codes[:run_rows], __version__)
    return replace(model, certificate=replace(model.certificate, fingerprint=run_print))


def stream_audit(model: Model, votes: Votes, people: ReviewVerdicts, accepted: Sequence[int]) -> dict[str, Audit]:
    """Return what people found among rows that were accepted and, drawn at random, shown to them: `""` → of all texts.

    Empty if nothing is promised, or nobody has checked any. If a promise is made for groups, there is an audit of each:
    they share half of the promise's δ. The other half is for all texts but those of groups whose promise is broken.
    """
    certificate = model.certificate
    labels = {row: people.by_row[row].label for row in accepted if row in people.at_random}
    rows = [row for row, label in labels.items() if label is not None]
    if certificate is None or not certificate.found or not rows:
        return {}
    checked = votes.take(np.array(rows))
    judged = replace(model, certificate=replace(certificate, audit=None)).judged(checked)
    verdict_codes = gold_codes(checked, [labels[row] for row in rows])
    wrong, promise = ~model.right(votes.labels, judged, range(len(rows)), verdict_codes), certificate.promise
    tested = certificate.thresholds if promise.by else {}
    audits, group = dict[str, Audit](), np.array(checked.groups or [""] * len(rows))
    for name in (*tested, ""):
        broken = [group_name for group_name, audit in audits.items() if audit.finding == "revoked"]
        errors = wrong[group == name if name else ~np.isin(group, broken)]
        part = 0.5 / len(tested) if name else 0.5
        split = replace(promise, certainty=1 - part * promise.delta) if tested else promise
        audits |= {name: audit_in_order(split, errors)} if len(errors) else {}
    return audits
