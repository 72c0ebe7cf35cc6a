"""How much each model and each relation is worth."""

from __future__ import annotations

from collections.abc import Mapping

from pcs_annotator.core.weights import Interval
from pcs_annotator.pipeline.report.bars import estimate
from pcs_annotator.pipeline.report.formats import counted, interval, number
from pcs_annotator.pipeline.report.markup import (
    Child,
    ColumnHead,
    Markup,
    figure,
    section,
    sentence,
    table,
    tag,
    user_text,
)
from pcs_annotator.pipeline.report.view import View


def weights(view: View) -> Markup:
    """Return the learned weights with their intervals."""
    learned = view.result.learned.model.weights
    told = learned.diagnostics
    return section(
        "weights",
        "What each vote is worth",
        sentence(_how(view)),
        tag(
            "div",
            figure("Models", _chart("Model", learned.by_annotator, told.annotator_intervals)),
            figure("Relations", _chart("Relation", learned.by_relation, told.relation_intervals)),
            class_="pair",
        ),
        sentence(_legend(bool(told.annotator_intervals)), kind="note"),
        _class_aware() if learned.evidence is not None else None,
    )


def _how(view: View) -> str:
    told = view.result.learned.model.weights.diagnostics
    if not told.gold_rows:
        return "There is no gold, so all votes count the same."
    method = told.optimiser or "an optimiser of your own"
    text = f"Learned from {counted(told.gold_rows, 'gold row')} by {method}"
    if not told.candidates:
        return f"{text}."
    losses = ", ".join(f"{name} {number(loss, 3)}" for name, loss in sorted(told.candidates.items(), key=_by_loss))
    return f"{text}, which had the lowest log-loss in cross-validation ({losses})."


def _by_loss(pair: tuple[str, float]) -> tuple[float, str]:
    return pair[1], pair[0]


def _legend(has_intervals: bool) -> str:
    ends = ", the line its 95 % bootstrap interval" if has_intervals else ""
    return f"Bars are weights, which sum to 1 in each chart{ends}; dashed is an equal weight for everybody."


def _class_aware() -> Markup:
    return sentence(
        "This optimiser also knows which labels each model confuses; the weights are a summary of that.", kind="note"
    )


def _chart(title: str, by_name: Mapping[str, float], ends: Mapping[str, Interval]) -> Markup:
    highest = max([*by_name.values(), *(span.high for span in ends.values())], default=1.0)
    top = min(1.0, highest * 1.06) or 1.0
    equal = 1 / max(len(by_name), 1)
    rows: list[list[Child]] = [
        [
            user_text(name),
            estimate(weight, ends.get(name), top=max(top, equal), reference=equal),
            number(weight),
            interval(ends.get(name)),
        ]
        for name, weight in sorted(by_name.items(), key=lambda pair: -pair[1])
    ]
    columns = [
        ColumnHead(title),
        ColumnHead("", "chart"),
        ColumnHead("weight", "number"),
        ColumnHead("95 %", "number quiet"),
    ]
    if not ends:
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    return table(columns, rows, kind="bars")
