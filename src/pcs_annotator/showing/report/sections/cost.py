"""What the calls cost, and how many of them new texts need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pcs_annotator.base.text import counted
from pcs_annotator.core.bill import Bill
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.formats import dollars, percent, total_cost

if TYPE_CHECKING:  # these import the code that learns, and `pcs plan` shows bills too
    from pcs_annotator.judging.spending.frugal import Spending
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


def cost(result: RunResult) -> b.Section:
    """Return calls, tokens and cost per model."""
    bills, elsewhere = result.bills, _elsewhere(result)
    if not bills:
        return b.section("cost", "Cost", b.text("No calls are recorded."), elsewhere)
    rows = [*bill_rows(bills), *([bill_total("total", bills)] if len(bills) > 1 else [])]
    return b.section("cost", "Cost", b.Table(columns=bill_columns(), rows=rows), elsewhere, _last_run(result))


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


def saved(spending: Spending | None) -> b.Section:
    """Return the share of questions that a new text needs, per model and per relation."""
    title = "Calls saved on new texts"
    if spending is None:
        why = "Not known: stopping early needs a confidence, which takes at least 10 gold rows of two classes."
        return b.section("saved", title, b.text(why), menu="Calls saved")
    charts = [
        b.titled("Questions per model", _chart("Model", spending.by_annotator)),
        b.titled("Texts that need each relation", _chart("Relation", spending.by_relation)),
    ]
    return b.section(
        "saved",
        title,
        b.text(
            "A new text needs ",
            b.strong(percent(spending.questions, 1)),
            " of all questions: pcs label asks for the votes with the most weight first and stops when no "
            "remaining vote can change the label. The label is the same as if every question had been asked.",
        ),
        b.Group(charts, kind="pair"),
        b.note("Measured on the recorded votes of all rows in this run."),
        menu="Calls saved",
    )


def _chart(title: str, shares: Mapping[str, float]) -> b.Table:
    most_first = sorted(shares.items(), key=lambda pair: -pair[1])
    rows: list[b.Row] = [[b.name(one), b.Bar(share), percent(share, 1)] for one, share in most_first]
    return b.Table(columns=[b.Column(title), b.Column("", "chart"), *b.numbers("asked")], rows=rows, kind="bars")
