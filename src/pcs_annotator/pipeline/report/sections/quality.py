"""How good it is, on rows that the fit did not see; or why nobody knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pcs_annotator.pipeline.report.bars import span
from pcs_annotator.pipeline.report.formats import counted, interval, number, signed
from pcs_annotator.pipeline.report.markup import (
    Child,
    ColumnHead,
    Markup,
    joined,
    section,
    sentence,
    table,
    tag,
    user_text,
)
from pcs_annotator.pipeline.report.view import View

METRICS = (
    ("auroc", "AUROC"),
    ("accuracy", "accuracy"),
    ("ece_score", "ECE of PCS"),
    ("ece_confidence", "ECE calibrated"),
)
NAMES = {"uniform": "PCS, all votes equal", "majority": "majority vote"}
RIVALS = {"uniform": "equal weights", "majority": "a majority vote"}
GLOSSARY = (
    "AUROC: how well the score ranks right labels above wrong ones (0.5 is chance, 1 is perfect). Accuracy: share of "
    "right labels. ECE: how far stated confidence is from the share that is right (0 is perfect)."
)


def quality(view: View) -> Markup:
    """Return cross-validated figures of the method and its simple rivals."""
    learned = view.result.learned
    if not learned.figures:
        why = learned.no_figures or "there is too little gold"
        return section(
            "quality",
            "How good it is",
            tag(
                "div",
                sentence(tag("strong", "Nobody knows yet.")),
                sentence(f"{why[:1].upper()}{why[1:].rstrip('.')}."),
                class_="callout",
            ),
        )
    first = learned.figures[0]
    folds = view.result.config.learn.folds
    return section(
        "quality",
        "How good it is",
        sentence(
            f"Cross-validated on {counted(first.auroc.n, 'gold row')} in {folds} folds: every row is judged by weights "
            "that did not see it. In brackets 95 % intervals."
        ),
        _table(learned.figures, view),
        *(_verdict(other) for other in learned.figures[1:] if other.behind is not None),
        sentence(GLOSSARY, _zero_shot(learned.figures[1:]), kind="note"),
    )


def _zero_shot(rivals: Sequence[Any]) -> str:
    if all(rival.method in NAMES for rival in rivals):
        return ""
    return " Zero-shot is one question to the model that does best on these very rows, which favours it."


def _table(figures: Sequence[Any], view: View) -> Markup:
    spans = [figure.auroc for figure in figures]
    low = max(0.0, min(estimate.interval.low for estimate in spans) - 0.02)
    high = min(1.0, max(estimate.interval.high for estimate in spans) + 0.02)
    columns = [
        ColumnHead("Method"),
        ColumnHead("AUROC", "number"),
        ColumnHead(f"{number(low)} to {number(high)}", "chart axis"),
        *(ColumnHead(title, "number") for _, title in METRICS[1:]),
        ColumnHead("n", "number"),
    ]
    return table(columns, (_row(one, view, low, high) for one in figures), kind="figures")


def _row(one: Any, view: View, low: float, high: float) -> list[Child]:
    cells = [_cell(getattr(one, name)) for name, _ in METRICS]
    drawing = span(one.auroc.value, one.auroc.interval, low=low, high=high)
    return [_name(one, view), cells[0], drawing, *cells[1:], str(one.auroc.n)]


def _cell(estimate: Any) -> Markup:
    return joined(number(estimate.value), " ", tag("small", interval(estimate.interval)))


def _name(one: Any, view: View) -> Markup:
    if one.behind is not None or one.method in NAMES:
        return user_text(NAMES.get(one.method, one.method))
    chosen = view.result.learned.model.weights.diagnostics.optimiser
    return user_text(f"PCS, {one.method}" if one.method == chosen or not chosen else f"PCS, {one.method}: {chosen}")


def _verdict(other: Any) -> Markup:
    test = other.behind
    rival = RIVALS.get(other.method, other.method)
    if test.interval.low > 0:
        found = f"PCS ranks better than {rival}."
    elif test.interval.high < 0:
        found = f"PCS ranks worse than {rival}."
    else:
        found = f"No difference between PCS and {rival} can be shown on these rows."
    told = [f"in AUROC {_difference(test)}"]
    if other.accuracy_behind is not None:
        told.append(f"in accuracy {_difference(other.accuracy_behind)}")
    return sentence(tag("strong", found, dir="auto"), f" Difference {'; '.join(told)}.", kind="verdict")


def _difference(test: Any) -> str:
    return f"{signed(test.difference)} {interval(test.interval, 3)}, {_chance(test.p_value)}"


def _chance(p_value: float) -> str:
    told = "p < 0.001" if p_value < 0.001 else f"p = {number(p_value, 3)}"
    return told.replace(" ", "\N{NO-BREAK SPACE}")
