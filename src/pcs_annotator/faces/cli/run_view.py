"""What `pcs run` and `pcs plan` show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pcs_annotator.core.bill import Plan
from pcs_annotator.faces.cli.learned_view import learned_json, print_learned, print_notes
from pcs_annotator.pipeline.run_folder import RunResult

TROUBLES_SHOWN = 5
HANDED = {
    "informative": "the {rows} rows that teach most when you label them",
    "at random": "{rows} rows drawn at random; their labels can carry the promise",
    "for review": "{rows} rows for review, the least certain first",
}


def run_json(result: RunResult, notes: Sequence[str]) -> dict[str, Any]:
    """Return everything that `print_run` shows as plain values."""
    tally = result.tally
    return {
        "folder": str(result.folder.path),
        "rows": len(result.outcomes),
        "rows_without_label": result.unlabelled,
        "labels": list(result.votes.labels),
        "label_counts": dict(Counter(outcome.label for outcome in result.outcomes if outcome.label is not None)),
        "calls": tally.calls,
        "known_already": tally.from_ledger,
        "silences": dict(tally.silences.most_common()),
        "unanswered": dict(tally.failed.most_common()),
        "bills": [asdict(bill) for bill in result.bills],
        "seconds": {step: round(seconds, 3) for step, seconds in result.seconds.items()},
        **learned_json(result.learned),
        "warnings": list(notes),
        "files": {
            "labels": str(result.folder.labels),
            "report": str(result.folder.report),
            "model": str(result.folder.model),
            "votes": str(result.folder.votes),
        },
        "decisions": dict(Counter(outcome.decision for outcome in result.outcomes if outcome.decision is not None)),
        "to_label": result.to_label and {**result.to_label._asdict(), "file": str(result.folder.to_label)},
        "to_audit": {"rows": result.to_audit, "file": str(result.folder.audit)} if result.to_audit else None,
    }


def print_run(result: RunResult, notes: Sequence[str], console: Console | None = None) -> None:
    """Print a run for a person."""
    console = console or Console(highlight=False)
    print_learned(result.learned, result.votes, console)
    console.print()
    _print_asked(result, console)
    print_notes(notes, result.unlabelled, console)
    for flag in result.learned.model.weights.diagnostics.flags:
        if flag.detail not in notes:  # those of this very fit were warned of already
            console.print(Text(f"{flag.kind}: {flag.detail}", style="yellow"))
    print_handed_out(result, console)
    console.print(Text(f"\nlabels  {result.folder.labels}\nreport  {result.folder.report}", style="bold"))


def print_handed_out(result: RunResult, console: Console) -> None:
    """Print which rows a person should look at, and how they come back."""
    handed = result.to_label
    if handed is not None and handed.rows:
        what = HANDED[handed.kind].format(rows=f"{handed.rows:,}")
        console.print(f"\n{what}: [bold]{result.folder.to_label}[/]")
        console.print(f"[dim]fill in gold, then: pcs fit {result.folder.path} --gold {result.folder.to_label}[/]")
    if result.to_audit:
        console.print(f"\n{result.to_audit:,} accepted rows to check: [bold]{result.folder.audit}[/]")
        console.print(
            f"[dim]write right or wrong as verdict, then: pcs fit {result.folder.path} "
            f"--verdicts {result.folder.audit}[/]"
        )


def _print_asked(result: RunResult, console: Console) -> None:
    tally = result.tally
    asked = f"{tally.calls:,} calls" + (f", {tally.from_ledger:,} from the ledger" if tally.from_ledger else "")
    console.print(f"{asked}; {_money([bill.usd for bill in result.bills])} for all of this folder")
    for reason, count in tally.silences.most_common(TROUBLES_SHOWN):
        console.print(Text(f"  {count:>6,}  {reason}", style="dim"))
    for reason, count in tally.failed.most_common():
        console.print(Text(f"{count:,} questions unanswered: {reason}; the same command asks them again", "yellow"))


def _money(prices: Sequence[float | None]) -> str:
    known = sum(price for price in prices if price is not None)
    if None in prices:
        return f"${known:.4f} and calls of unknown price"
    return f"${known:.4f}" if known else "free"


def plan_json(plan: Plan) -> dict[str, Any]:
    """Return a plan as plain values."""
    return {
        "rows": plan.rows,
        "calls": plan.calls,
        "usd": plan.usd,
        "models": [asdict(bill) for bill in plan.models],
    }


def print_plan(plan: Plan, console: Console | None = None) -> None:
    """Print what a run would ask."""
    console = console or Console(highlight=False)
    table = Table(box=None, padding=(0, 1), show_edge=False)
    for heading, justify in (("model", "left"), ("for", "left"), ("calls", "right"), ("tokens in", "right")):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]  # rich names four words
    table.add_column("tokens out, at most", justify="right")
    table.add_column("at most", justify="right")
    for bill in plan.models:
        price = "price unknown" if bill.usd is None else _money([bill.usd])
        table.add_row(
            Text(bill.model),
            bill.purpose,
            f"{bill.calls:,}",
            f"{bill.input_tokens:,}",
            f"{bill.output_tokens:,}",
            price,
        )
    console.print(table)
    total = (
        "the price of a model is unknown: put it into [ask.prices]" if plan.usd is None else f"at most ${plan.usd:.4f}"
    )
    console.print(Text(f"\n{plan.rows:,} rows, {plan.calls:,} calls, {total}"))
    console.print("Nobody was asked. What the ledger holds is not asked again; rejected rewrites are tried once more.")
