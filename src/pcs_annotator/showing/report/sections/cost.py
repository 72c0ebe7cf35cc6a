"""What the calls cost, and how many of them new texts need."""

from __future__ import annotations

from collections.abc import Mapping

from pcs_annotator.base.text import counted
from pcs_annotator.showing.report.formats import bar, count, dollars, percent, total_cost
from pcs_annotator.showing.report.markup import Child, Markup, figure, joined, section, sentence, table, tag, user_text
from pcs_annotator.showing.report.view import View


def cost(view: View) -> Markup:
    """Return calls, tokens and cost per model."""
    bills = view.result.bills
    elsewhere = _elsewhere(view)
    if not bills:
        return section("cost", "Cost", sentence("No calls are recorded."), elsewhere)
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
        rows.append([tag("b", "total"), "", *map(count, sums), total_cost([bill.usd for bill in bills])])
    numbers = ((name, "number") for name in ("calls", "tokens in", "tokens out", "cost"))
    columns = [("Model", ""), ("purpose", ""), *numbers]
    return section("cost", "Cost", table(columns, rows), elsewhere, _last_run(view))


def _elsewhere(view: View) -> Markup | None:
    """Return what was taken from a shared ledger that others had paid for; None if nothing was."""
    bills = view.result.paid_elsewhere
    if not bills:
        return None
    paid, all_ = (counted(sum(bill.calls for bill in some), "answer") for some in (bills, view.result.used))
    price = total_cost([bill.usd for bill in bills])
    return sentence(
        f"The ledger is shared: {paid} of the {all_} behind these labels had been paid for in other folders ({price}).",
        kind="note",
    )


def _last_run(view: View) -> Markup | None:
    tally = view.result.tally
    if not tally.calls and not tally.from_ledger:
        return None
    parts = [f"Last run: {counted(tally.calls, 'call')}"]
    if tally.from_ledger:
        parts.append(f"{counted(tally.from_ledger, 'answer')} reused from the ledger at no cost")
    if tally.retries:
        parts.append(tally.retries_by_cause())
    return sentence("; ".join(parts) + ".", kind="note")


def saved(view: View) -> Markup:
    """Return the share of questions that a new text needs, per model and per relation."""
    spending = view.result.learned.spending
    if spending is None:
        why = sentence(
            "Not known: stopping early needs a confidence, which takes at least 10 gold rows of two classes."
        )
        return section("saved", "Calls saved on new texts", why)
    return section(
        "saved",
        "Calls saved on new texts",
        sentence(
            joined(
                "A new text needs ",
                tag("strong", percent(spending.questions, 1)),
                " of all questions: pcs label asks for the votes with the most weight first and stops when no "
                "remaining vote can change the label. The label is the same as if every question had been asked.",
            )
        ),
        tag(
            "div",
            figure("Questions per model", _chart("Model", spending.by_annotator)),
            figure("Texts that need each relation", _chart("Relation", spending.by_relation)),
            class_="pair",
        ),
        sentence("Measured on the recorded votes of all rows in this run.", kind="note"),
    )


def _chart(title: str, shares: Mapping[str, float]) -> Markup:
    rows: list[list[Child]] = [
        [user_text(name), bar(share), percent(share, 1)]
        for name, share in sorted(shares.items(), key=lambda pair: -pair[1])
    ]
    return table([(title, ""), ("", "chart"), ("asked", "number")], rows, kind="bars")
