"""What each relation adds beside the original question, and what to keep."""

from __future__ import annotations

import numpy as np

from pcs_annotator.base.errors import UserError
from pcs_annotator.base.text import counted
from pcs_annotator.core.gold import UNLABELLED, gold_codes
from pcs_annotator.judging.evaluation.relation_value import (
    ADVICE,
    RelationValue,
    RelationValues,
    points,
    relation_values,
)
from pcs_annotator.judging.evaluation.scored import EvaluationOptions
from pcs_annotator.runs.learn import counted_once
from pcs_annotator.runs.recorded_votes import written_by_model
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.formats import percent
from pcs_annotator.showing.report.view import View

TITLE = "What each relation adds"
RESAMPLES = 300
MORE = "pcs relations value FOLDER uses more splits and resamples."


def relations(view: View) -> b.Section:
    """Return what each relation adds on gold rows, and what to keep; or why that is not known."""
    try:
        found = _valued(view)
    except UserError as error:
        return b.section("relations", TITLE, b.text(f"Not known: {str(error).rstrip('.')}."), menu="Relations")
    columns = b.numbers("applies to", "calls per text", "per question", "over all texts", "advice")
    rows = [_row(one, found.n) for one in found.relations]
    return b.section(
        "relations",
        TITLE,
        b.text(
            f"One more question beside the original, in points of class AUROC on {counted(found.n, 'gold row')} "
            "that the fit did not see, with 95 % intervals."
        ),
        b.Table(columns=[b.Column("Relation"), *columns], rows=rows, kind="figures"),
        *(b.text(b.strong(said, own=True), kind="verdict") for said in found.conclusions),
        b.note(" ".join([*found.table.notes[:2], MORE])),
        menu="Relations",
    )


def _valued(view: View) -> RelationValues:
    result = view.result
    codes = gold_codes(result.votes, view.gold)
    distinct = counted_once(result.votes, codes, [item.text for item in result.dataset.items]).distinct
    gold = np.where(distinct, codes, UNLABELLED).astype(np.int8)
    written = written_by_model(result.votes.relations, result.config.relations)
    learn = result.config.learn
    # one split and few resamples, because every report is written with them; the command takes more time
    quick = EvaluationOptions(folds=learn.folds, seed=learn.seed, repeats=1, resamples=RESAMPLES, rewritten=written)
    return relation_values(result.votes, gold, quick, name=view.data_name)


def _row(one: RelationValue, rows: int) -> b.Row:
    gains = points(one.per_question) or None, points(one.gain)
    return [b.name(one.relation), percent(one.covered, rows), one.calls, *gains, ADVICE[one.advice]]
