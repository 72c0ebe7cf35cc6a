"""What the calls cost."""

from __future__ import annotations

from pcs_annotator.faces.report.formats import count, counted, dollars, total_dollars
from pcs_annotator.faces.report.markup import Child, Column, Markup, section, sentence, table, tag, user_text
from pcs_annotator.faces.report.view import View


def cost(view: View) -> Markup:
    """Return calls, tokens and dollars per model."""
    bills = view.result.bills
    if not bills:
        return section("cost", "What it cost", sentence("No call was paid for."))
    rows: list[list[Child]] = [
        [
            user_text(bill.model),
            bill.purpose,
            count(bill.calls),
            count(bill.input_tokens),
            count(bill.output_tokens),
            dollars(bill.usd),
        ]
        for bill in bills
    ]
    if len(rows) > 1:
        sums = (sum(getattr(bill, name) for bill in bills) for name in ("calls", "input_tokens", "output_tokens"))
        rows.append([tag("b", "all"), "", *map(count, sums), total_dollars([bill.usd for bill in bills])])
    numbers = (Column(name, "number") for name in ("calls", "tokens in", "tokens out", "cost"))
    columns = [Column("Model"), Column("to"), *numbers]
    return section("cost", "What it cost", table(columns, rows), _this_time(view))


def _this_time(view: View) -> Markup | None:
    tally = view.result.tally
    if not tally.calls and not tally.from_ledger:
        return None
    parts = [f"{counted(tally.calls, 'call')} asked in the last run"]
    if tally.from_ledger:
        parts.append(f"{counted(tally.from_ledger, 'answer')} taken from the ledger, free of charge")
    if tally.retries:
        parts.append(f"{counted(tally.retries.total(), 'attempt')} repeated")
    if tally.cut:
        parts.append(f"{counted(tally.cut, 'text')} too long for a model and cut")
    return sentence("; ".join(parts) + ".", kind="note")
