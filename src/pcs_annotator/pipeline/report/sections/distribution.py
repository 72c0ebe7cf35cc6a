"""How often each label was given."""

from __future__ import annotations

from collections import Counter

from pcs_annotator.pipeline.report.bars import bar
from pcs_annotator.pipeline.report.formats import count, percent
from pcs_annotator.pipeline.report.markup import Child, ColumnHead, Markup, section, sentence, table, user_text
from pcs_annotator.pipeline.report.view import View

MOST_BARS = 20


def distribution(view: View) -> Markup:
    """Return a bar per label, with the share among gold rows marked."""
    given = Counter(outcome.label for outcome in view.result.outcomes)
    gold = Counter(label for label in view.gold if label is not None)
    labels = sorted(view.task.labels, key=lambda label: (-given[label], view.task.labels.index(label)))
    names: list[str | None] = [*labels[:MOST_BARS], *([None] if given[None] else [])]
    rows = [_row(name, given, gold, len(view.result.outcomes)) for name in names]
    columns = [
        ColumnHead("Label"),
        ColumnHead("", "chart"),
        ColumnHead("rows", "number"),
        ColumnHead("share", "number"),
    ]
    if gold:
        columns.append(ColumnHead("among gold", "number quiet"))
    else:
        rows = [row[:-1] for row in rows]
    hidden = len(labels) - MOST_BARS
    return section(
        "labels",
        "Labels",
        table(columns, rows, kind="bars counts"),
        sentence(f"{hidden} rarer labels are not shown.", kind="note") if hidden > 0 else None,
        sentence(
            f"The upright mark is the share among the {count(gold.total())} gold rows: a bar far from it means that "
            "the label is given too often or too seldom, or that the gold rows are another mixture.",
            kind="note",
        )
        if gold
        else None,
    )


def _row(name: str | None, given: Counter[str | None], gold: Counter[str], rows: int) -> list[Child]:
    total = gold.total()
    share = given[name] / max(rows, 1)
    mark = gold[name] / total if total and name is not None else None
    return [
        "no label" if name is None else user_text(name),
        bar(share, mark=mark, kind="bar" if name is not None else "bar bad"),
        count(given[name]),
        percent(given[name], rows),
        percent(gold[name], total) if name is not None else "",
    ]
