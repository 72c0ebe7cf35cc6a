"""What the calls cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pcs_annotator.base.text import counted
from pcs_annotator.core.bill import Bill
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.formats import dollars, total_cost

if TYPE_CHECKING:  # it imports the code that learns, and `pcs plan` shows bills too
    from pcs_annotator.runs.run_result import RunResult


def bill_columns(limit: str = "") -> list[b.Column]:
    """Return the columns of bills; `limit` precedes the headings of figures that are upper limits."""
    figures = b.numbers("calls", "tokens in", f"{limit}tokens out", f"{limit}cost")
    return [b.Column("Model"), b.Column("purpose"), *figures]


def bill_rows(bills: Sequence[Bill]) -> list[b.Row]:
    """Return a row per model and purpose."""
    return [
        [b.name(bill.model), bill.purpose, bill.calls, bill.input_tokens, bill.output_tokens, dollars(bill.usd)]
        for bill in bills
    ]


def bill_total(title: str, bills: Sequence[Bill]) -> b.Row:
    """Return the row that sums up bills."""
    sums = [sum(getattr(bill, what) for bill in bills) for what in ("calls", "input_tokens", "output_tokens")]
    return [b.Styled(title, "bold"), "", *sums, total_cost([bill.usd for bill in bills])]


def cost(result: RunResult) -> b.Folded | None:
    """Return calls, tokens and cost per model; None if no call is known."""
    bills = result.bills
    rows = [*bill_rows(bills), *([bill_total("total", bills)] if len(bills) > 1 else [])]
    table = b.Table(columns=bill_columns(), rows=rows) if bills else None
    shown = [table, _elsewhere(result), _last_run(result)]
    return b.Folded("Cost, by model", shown) if any(shown) else None


def _elsewhere(result: RunResult) -> b.Paragraph | None:
    """Return what was taken from a shared ledger that others had paid for; None if nothing was."""
    bills = result.paid_elsewhere
    if not bills:
        return None
    paid, all_ = (counted(sum(bill.calls for bill in some), "answer") for some in (bills, result.used))
    price = total_cost([bill.usd for bill in bills])
    return b.note(
        f"The ledger is shared: {paid} of the {all_} behind these labels had been paid for in other folders ({price})."
    )


def _last_run(result: RunResult) -> b.Paragraph | None:
    tally = result.tally
    if not tally.calls and not tally.from_ledger:
        return None
    parts = [f"Last run: {counted(tally.calls, 'call')}"]
    if tally.from_ledger:
        parts.append(f"{counted(tally.from_ledger, 'answer')} reused from the ledger at no cost")
    if tally.retries:
        parts.append(tally.retries_by_cause())
    return b.note("; ".join(parts) + ".")
