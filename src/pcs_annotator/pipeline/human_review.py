"""Files for and from people: rows to label, accepted rows to check, gold labels and verdicts."""

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
from pcs_annotator.files import human_files
from pcs_annotator.files.runs import RunFolder
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promising.certificate import audit, draw_rows
from pcs_annotator.judging.promising.informative import review_order, rows_to_label

ROWS_TO_LABEL = 30
MOST_ROWS_TO_LABEL = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class FromPeople:
    """Files that people filled in, and how many rows to write for them next.

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
    """Gold labels of a run, including those that people added after the run.

    Attributes:
        labels: For every item its label, or None.
        random_sample: Which rows can support a promise: those not chosen to be informative or for review.
    """

    labels: tuple[str | None, ...]
    random_sample: Mask


def gold_of(folder: RunFolder, items: Sequence[Item], given: Sequence[str | None]) -> Gold:
    """Return the gold labels of a run: those of its data, overridden by those that people added."""
    labels: list[str | None] = list(given) if given else [None] * len(items)
    random_sample = np.ones(len(items), dtype=np.bool_)
    if folder.gold.exists():
        places = {item.id: place for place, item in enumerate(items)}
        for one in human_files.read_gold(folder.gold):
            if one.id in places:  # a folder may have been run again over fewer rows
                labels[places[one.id]] = one.label
                random_sample[places[one.id]] = one.kind == "at random"
        # the gold of the data was checked when the run was set up
        refuse_contradictions([item.text for item in items], labels, folder.items.name)
    return Gold(tuple(labels), random_sample)


def take_gold(path: Path, folder: RunFolder, items: Sequence[Item], labels: Sequence[str]) -> int:
    """Add the labels of a person's file to those of a run, and return how many it has; later labels win."""
    known = {item.id for item in items}
    lookup = label_lookup(labels)
    given = human_files.read_gold(path)
    for one in given:
        if one.id not in known:
            raise TableError(f"{path.name}, row {one.row}: the run has no text with the id {one.id!r}")
        if one.label.casefold() not in lookup:
            raise unknown_label(one.label, labels, f"{path.name}, row {one.row}, column gold")
    before = human_files.read_gold(folder.gold) if folder.gold.exists() else []
    merged = {one.id: one for one in (*before, *given)}
    human_files.write_gold(folder.gold, merged.values())
    return len(given)


class HandedOut(NamedTuple):
    """The number of rows written for a person to label, and how they were chosen."""

    rows: int
    kind: human_files.SampleKind


def hand_out(folder: RunFolder, items: Sequence[Item], votes: Votes, model: Model, gold: Gold, rows: int) -> HandedOut:
    """Write the rows that a person should label next.

    Without a confidence, these are the most informative rows. With a confidence but no promise, they are drawn at
    random, because only random rows can support a promise. With a promise, they are all rows left for review, the
    least certain first.
    """
    codes = gold_codes(votes, gold.labels)
    unlabelled = codes == UNLABELLED
    # The seed changes when rows get labels, so that other rows are drawn; rows left empty may be drawn again.
    seed = int((~unlabelled).sum())
    certificate = model.certificate
    kind: human_files.SampleKind
    if model.calibrator is None:
        kind, chosen = "informative", rows_to_label(votes, rows, gold=codes, seed=seed)
    elif certificate is None or not certificate.holds:
        missing = 0 if certificate is None else (certificate.rows_needed or 0) - certificate.gold_rows
        wanted = min(max(rows, missing), MOST_ROWS_TO_LABEL)
        kind, chosen = "at random", draw_rows(unlabelled, wanted, seed)
    else:
        kind, chosen = "for review", _review_queue(votes, model, unlabelled)
    if len(chosen):
        human_files.write_to_label(folder.to_label, ((items[row].id, items[row].text, kind) for row in chosen))
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
    rows_to_check = ((items[row].id, items[row].text, outcomes[row].label or "") for row in drawn)
    human_files.write_audit(folder.audit, rows_to_check)
    return len(drawn)


def with_verdicts(model: Model, path: Path, outcomes: Sequence[Outcome]) -> Model:
    """Return the model with its certificate confirmed, revoked or left open by a person's verdicts."""
    certificate = model.certificate
    if certificate is None or not certificate.thresholds:
        raise GoldError(f"{path.name}: there is no promise for these verdicts to confirm or revoke")
    now = {outcome.id: outcome for outcome in outcomes}
    checked = human_files.read_verdicts(path)
    for one in checked:
        outcome = now.get(one.id)
        if outcome is None or outcome.decision != "accept" or outcome.label != one.label:
            raise GoldError(
                f"{path.name}, row {one.row}: {one.id!r} is not accepted as {one.label!r}: "
                "the labels have changed since these rows were drawn, so draw new rows with --audit"
            )
    wrong = sum(not one.right for one in checked)
    found = audit(certificate.promise, certificate.accepted_share, len(checked), wrong)
    return replace(model, certificate=replace(certificate, audit=found))
