"""`audit.csv`: accepted rows for a person to check, and what their verdicts mean for the promise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pcs_annotator.base.errors import GoldError
from pcs_annotator.core.gold import as_known, same_text, text_hash
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.task import Item
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promising.certificate import audit, draw_rows
from pcs_annotator.runs.files import human_files
from pcs_annotator.runs.files.runs import RunFolder
from pcs_annotator.runs.human_review import FromPeople, Gold, drawn_row, keep_filled, kinds_by_row, remember_drawn


def hand_out_audit(folder: RunFolder, items: Sequence[Item], outcomes: Sequence[Outcome], gold: Gold, rows: int) -> int:
    """Write accepted rows, drawn at random, for a person to check, and return how many.

    Rows with gold are left out: the promise was made from them, so they could only confirm it.
    """
    pairs = zip(outcomes, gold.labels, strict=True)
    open_rows = np.array([one.decision == "accept" and not label for one, label in pairs], dtype=np.bool_)
    if not open_rows.any():
        raise GoldError("no row without gold is accepted, so there is nothing to audit: label more rows until some are")
    drawn = draw_rows(open_rows, rows, seed=len(items))
    keep_filled(folder.audit, "verdict")
    remember_drawn(folder, [drawn_row(items[row], "for audit") for row in drawn])
    rows_to_check = ((items[row].id, items[row].text, outcomes[row].label or "") for row in drawn)
    human_files.write_audit(folder.audit, rows_to_check)
    return len(drawn)


def with_verdicts(
    model: Model, people: FromPeople, folder: RunFolder, items: Sequence[Item], outcomes: Sequence[Outcome]
) -> Model:
    """Return the model with its certificate confirmed, revoked or left open by a person's verdicts."""
    assert people.verdicts is not None
    path, certificate = people.verdicts, model.certificate
    if certificate is None or not certificate.thresholds:
        raise GoldError(f"{path.name}: there is no promise for these verdicts to confirm or revoke")
    now = {outcome.id: (outcome, item.text) for outcome, item in zip(outcomes, items, strict=True)}
    drawn = kinds_by_row(folder) if folder.drawn.exists() else None
    checked: dict[str, human_files.AuditedLabel] = {}
    known_id, known_label = as_known(now), as_known(one.label for one in outcomes if one.label)
    for cells in human_files.read_verdicts(path, people.reading):
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
    wrong = sum(not one.right for one in checked.values())
    found = audit(certificate.promise, certificate.accepted_share, len(checked), wrong)
    return replace(model, certificate=replace(certificate, audit=found))
