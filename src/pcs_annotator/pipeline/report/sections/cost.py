"""What the calls cost."""

from __future__ import annotations

from collections.abc import Mapping

from pcs_annotator.pipeline.report.formats import bar, count, counted, dollars, percent, total_dollars
from pcs_annotator.pipeline.report.markup import Child, Markup, figure, joined, section, sentence, table, tag, user_text
from pcs_annotator.pipeline.report.view import View


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
    numbers = ((name, "number") for name in ("calls", "tokens in", "tokens out", "cost"))
    columns = [("Model", ""), ("to", ""), *numbers]
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


def saved(view: View) -> Markup:
    """Return the share of questions that new texts will take, by model and by relation."""
    spending = view.result.learned.spending
    if spending is None:
        told = sentence(
            "Not known: it takes a calibrated confidence, and so at least 10 gold rows of two classes, to tell when "
            "enough has been asked."
        )
        return section("saved", "Calls saved on new texts", told)
    return section(
        "saved",
        "Calls saved on new texts",
        sentence(
            joined(
                "Of all questions, a new text takes ",
                tag("strong", percent(spending.questions, 1)),
                ": pcs label asks the votes that weigh most first, and stops when no open one can change the label. "
                "The label is the same as if everybody had been asked.",
            )
        ),
        tag(
            "div",
            figure("Questions asked of each model", _chart("Model", spending.by_annotator)),
            figure("Texts that must be seen through each relation", _chart("Relation", spending.by_relation)),
            class_="pair",
        ),
        sentence("Measured on the recorded votes of all rows of this run.", kind="note"),
    )


def _chart(title: str, shares: Mapping[str, float]) -> Markup:
    rows: list[list[Child]] = [
        [user_text(name), bar(share), percent(share, 1)]
        for name, share in sorted(shares.items(), key=lambda pair: -pair[1])
    ]
    return table([(title, ""), ("", "chart"), ("asked", "number")], rows, kind="bars")
