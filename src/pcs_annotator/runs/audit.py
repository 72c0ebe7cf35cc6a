"""Audits: what people's verdicts on accepted rows, in `audit.csv` or in a review, mean for the promise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pcs_annotator.base.errors import GoldError
from pcs_annotator.core.gold import UNLABELLED, as_known, gold_codes, same_text, text_hash
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.task import Item, label_lookup
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promising.certificate import audit
from pcs_annotator.runs.files.human_files import AuditedLabel, read_audit
from pcs_annotator.runs.files.runs import RunFolder
from pcs_annotator.runs.gold import FromPeople, kinds_by_row
from pcs_annotator.runs.review_state import ReviewVerdicts


def _audited(model: Model, rows: int, wrong: int) -> Model:
    certificate = model.certificate
    assert certificate is not None
    found = audit(certificate.promise, certificate.accepted_share, rows, wrong)
    return replace(model, certificate=replace(certificate, audit=found))


def with_verdicts(
    model: Model, people: FromPeople, folder: RunFolder, items: Sequence[Item], outcomes: Sequence[Outcome]
) -> Model:
    """Return the model with its certificate confirmed, revoked or left open by the verdicts in a person's file."""
    assert people.verdicts is not None
    path, certificate = people.verdicts, model.certificate
    if certificate is None or not certificate.thresholds:
        raise GoldError(f"{path.name}: there is no promise for these verdicts to confirm or revoke")
    now = {outcome.id: (outcome, item.text) for outcome, item in zip(outcomes, items, strict=True)}
    drawn = kinds_by_row(folder) if folder.drawn.exists() else None
    checked: dict[str, AuditedLabel] = {}
    known_id, known_label = as_known(now), as_known(one.label for one in outcomes if one.label)
    for cells in read_audit(path, people.reading):
        one = cells._replace(id=known_id(cells.id), label=known_label(cells.label))
        outcome, text = now.get(one.id, (None, ""))
        if outcome is None or outcome.decision != "accept" or outcome.label != one.label:
            why = f"is not accepted as {one.label!r}: the labels have changed since these rows were drawn"
        elif one.text and not same_text(one.text, text):
            why = "has another text in the run"
        elif drawn is not None and "for audit" not in drawn.get((one.id, text_hash(text)), ()):
            why = "was not drawn for an audit"
        elif checked.setdefault(one.id, one).right != one.right:
            why = f"has another verdict in row {checked[one.id].row}"
        else:
            continue
        raise GoldError(
            f"{path.name}, row {one.row}: {one.id!r} {why}: correct the file, or draw new rows with --audit"
        )
    if certificate.audit is not None and certificate.audit.rows > len(checked):
        raise GoldError(
            f"{path.name}: an earlier audit checked {certificate.audit.rows} rows and this file has verdicts on "
            f"{len(checked)}: give all of them, because leaving some out would change what the audit finds"
        )
    return _audited(model, len(checked), sum(not one.right for one in checked.values()))


def with_reviewed_audit(model: Model, votes: Votes, verdicts: ReviewVerdicts, gold: Sequence[str | None]) -> Model:
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
    audited = _audited(model, len(checked), int(wrong))
    return audited.with_coverage(votes) if audited.certificate and audited.certificate.revoked else audited


def with_earlier_audit(model: Model, before: Model) -> Model:
    """Return the model with the audit of an earlier one, if both make the same promise from the same rows."""
    earlier = before.certificate
    if model.certificate is None or earlier is None or earlier.audit is None:
        return model
    audited = replace(model.certificate, audit=earlier.audit)
    about_rows = {name: getattr(earlier, name) for name in ("accepted_share", "review_rows", "assumed_rows")}
    same = replace(audited, **about_rows) == earlier
    return replace(model, certificate=audited) if same else model
