"""What goes to people and comes back from them: rows to label, accepted rows to check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Integers, Mask
from pcs_annotator.core.gold import UNLABELLED, gold_codes, refuse_contradictions
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.task import Item, label_lookup, unknown_label
from pcs_annotator.core.votes import Votes
from pcs_annotator.errors import GoldError, TableError
from pcs_annotator.files.human_files import (
    SampleKind,
    read_gold,
    read_verdicts,
    write_audit,
    write_gold,
    write_to_label,
)
from pcs_annotator.files.runs import RunFolder
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promising.certificate import audit, draw_rows
from pcs_annotator.judging.promising.informative import review_order, rows_to_label

ROWS_TO_LABEL = 30
MOST_ROWS_TO_LABEL = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class FromPeople:
    """What comes from people and goes to them.

    Attributes:
        gold: A file with gold labels, such as `to_label.csv` filled in.
        verdicts: A file with verdicts on accepted rows, `audit.csv` filled in.
        audit: How many accepted rows to draw for a person to check.
        to_label: How many rows to write for a person to label.
    """

    gold: Path | None = None
    verdicts: Path | None = None
    audit: int = 0
    to_label: int = ROWS_TO_LABEL


class Gold(NamedTuple):
    """Gold labels of a run, those that people gave afterwards included.

    Attributes:
        labels: For every item its label, or None.
        random_sample: Which rows were not chosen because they teach most, so that they can carry a promise.
    """

    labels: tuple[str | None, ...]
    random_sample: Mask


def gold_of(folder: RunFolder, items: Sequence[Item], given: Sequence[str | None]) -> Gold:
    """Return the gold of a run: that of its data, under what people gave afterwards."""
    labels: list[str | None] = list(given) if given else [None] * len(items)
    random_sample = np.ones(len(items), dtype=np.bool_)
    if folder.gold.exists():
        places = {item.id: place for place, item in enumerate(items)}
        for one in read_gold(folder.gold):
            if one.id in places:  # a folder may have been run again over fewer rows
                labels[places[one.id]] = one.label
                random_sample[places[one.id]] = one.kind == "at random"
    refuse_contradictions([item.text for item in items], labels, folder.items.name)
    return Gold(tuple(labels), random_sample)


def take_gold(path: Path, folder: RunFolder, items: Sequence[Item], labels: Sequence[str]) -> int:
    """Add the labels of a person's file to those of a run, and return how many there are; later ones win."""
    known = {item.id for item in items}
    lookup = label_lookup(labels)
    given = read_gold(path)
    for one in given:
        if one.id not in known:
            raise TableError(f"{path.name}, row {one.row}: no text of this run has the id {one.id!r}")
        if one.label.casefold() not in lookup:
            raise unknown_label(one.label, labels, f"{path.name}, row {one.row}, column gold")
    before = read_gold(folder.gold) if folder.gold.exists() else []
    merged = {one.id: one for one in (*before, *given)}
    write_gold(folder.gold, merged.values())
    return len(given)


class HandedOut(NamedTuple):
    """Rows written for a person to label, and why these."""

    rows: int
    kind: SampleKind


def hand_out(folder: RunFolder, items: Sequence[Item], votes: Votes, model: Model, gold: Gold, rows: int) -> HandedOut:
    """Write the rows that a person should label next, and say which they are.

    Without a confidence, those that teach most. With one but without a promise, rows drawn at random, because only
    those can carry it. With a promise, all that it leaves for review, the least certain first.
    """
    codes = gold_codes(votes, gold.labels)
    unlabelled = codes == UNLABELLED
    # rows handed out before are labelled by now, so that others are drawn; those left empty may come again
    seed = int((~unlabelled).sum())
    certificate = model.certificate
    kind: SampleKind
    if model.calibrator is None:
        kind, chosen = "informative", rows_to_label(votes, rows, gold=codes, seed=seed)
    elif certificate is None or not certificate.holds:
        missing = 0 if certificate is None else (certificate.rows_needed or 0) - certificate.gold_rows
        wanted = min(max(rows, missing), MOST_ROWS_TO_LABEL)
        kind, chosen = "at random", draw_rows(unlabelled, wanted, seed)
    else:
        kind, chosen = "for review", _review_queue(votes, model, unlabelled)
    if len(chosen):
        write_to_label(folder.to_label, ((items[row].id, items[row].text, kind) for row in chosen))
    else:
        folder.to_label.unlink(missing_ok=True)
    return HandedOut(len(chosen), kind)


def _review_queue(votes: Votes, model: Model, unlabelled: Mask) -> Integers:
    verdicts = model.judged(votes)
    assert verdicts.probabilities is not None
    assert verdicts.accepted is not None
    confidence = verdicts.probabilities[np.arange(len(votes)), verdicts.best]
    order = review_order(votes, confidence)
    return order[(unlabelled & ~verdicts.accepted)[order]]


def hand_out_audit(folder: RunFolder, items: Sequence[Item], outcomes: Sequence[Outcome], gold: Gold, rows: int) -> int:
    """Write accepted rows, drawn at random, for a person to check, and return how many.

    Rows with gold are left out: the promise was made from them, so they could only confirm it.
    """
    pairs = zip(outcomes, gold.labels, strict=True)
    open_rows = np.array([one.decision == "accept" and not label for one, label in pairs], dtype=np.bool_)
    if not open_rows.any():
        raise GoldError("no row without gold is accepted, so there is nothing to audit")
    drawn = draw_rows(open_rows, rows, seed=len(items))
    write_audit(folder.audit, ((items[row].id, items[row].text, outcomes[row].label or "") for row in drawn))
    return len(drawn)


def with_verdicts(model: Model, path: Path, outcomes: Sequence[Outcome]) -> Model:
    """Return the model with its certificate confirmed, revoked or left open by what a person found."""
    certificate = model.certificate
    if certificate is None or not certificate.thresholds:
        raise GoldError(f"{path.name}: there is no promise that these verdicts could confirm or revoke")
    now = {outcome.id: outcome for outcome in outcomes}
    checked = read_verdicts(path)
    for one in checked:
        outcome = now.get(one.id)
        if outcome is None or outcome.decision != "accept" or outcome.label != one.label:
            raise GoldError(
                f"{path.name}, row {one.row}: {one.id!r} is not, or no longer, accepted as {one.label!r}: "
                "the labels have changed since these rows were drawn, so draw them anew with --audit"
            )
    wrong = sum(not one.right for one in checked)
    found = audit(certificate.promise, certificate.accepted_share, len(checked), wrong)
    return replace(model, certificate=replace(certificate, audit=found))
