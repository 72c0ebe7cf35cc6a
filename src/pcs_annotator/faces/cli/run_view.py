"""What `pcs run` and `pcs plan` show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.text import Text

from pcs_annotator.core.bill import Plan
from pcs_annotator.core.result_names import FINAL_LABEL, LABEL, VERDICT
from pcs_annotator.core.result_table import Content, ResultTable
from pcs_annotator.faces.cli import learned_view, result_view
from pcs_annotator.faces.cli.result_view import print_rows
from pcs_annotator.runs.batch.waves import WayToAsk
from pcs_annotator.runs.default_panel import DefaultPanel
from pcs_annotator.runs.languages import Languages
from pcs_annotator.runs.run_result import SILENCES, RunResult
from pcs_annotator.verbs.plan import RunPlan

REASONS_SHOWN = 3
NOT_CALLED = "No model was called. Answers in the ledger are reused; rejected rewrites are tried once more."
PRICE_MISSING = "The cost is unknown: give the missing price with --price MODEL=IN,OUT or in [ask.prices]."
RAISE_LIMIT = "to ask them, run again with a higher --budget, --budget-per-day, --max-calls or --max-tokens"
TO_LABEL = {
    "informative": "the {rows} most informative rows to label",
    "at random": "{rows} random rows to label, which a promise can be based on",
    "for review": "{rows} rows for review, the least certain first",
}


def run_json(result: RunResult, notes: Sequence[str]) -> dict[str, Any]:
    """Return everything that `print_run` shows as plain values."""
    tally = result.tally
    return {
        "folder": str(result.folder.path),
        "rows": result.counts.rows,
        "rows_without_label": result.unlabelled,
        **({} if result.whole is None else {"sample_rows": len(result.outcomes)}),
        "labels": list(result.votes.labels),
        "label_counts": dict(result.counts.labels),
        "calls": tally.calls,
        "known_already": tally.from_ledger,
        "written_wording": result.config.task.written_wording or None,
        "silences": {kind: dict(_sorted(reasons)) for kind, reasons in result.silences.items()},
        "unanswered": dict(tally.failed.most_common()),
        "answers_without_probabilities": dict(_sorted(result.hard)),
        "answers_with_bounded_probabilities": result.bounded,
        "bills": [asdict(bill) for bill in result.bills],
        "paid_elsewhere": [asdict(bill) for bill in result.paid_elsewhere],
        "seconds": {step: round(seconds, 3) for step, seconds in result.seconds.items()},
        **learned_view.learned_json(result.learned, result.votes),
        "look_at": learned_view.look_at_json(result.facts),
        "warnings": list(notes),
        "label_column": LABEL,
        "files": {
            "labels": str(result.folder.labels),
            "report": str(result.folder.report),
            "model": str(result.folder.model),
            "votes": str(result.folder.votes),
        },
        "decisions": dict(result.counts.decisions),
        "to_label": result.to_label and {**result.to_label._asdict(), "file": str(result.folder.to_label)},
        "verdicts": result.verdicts.counts,
        "to_audit": {"rows": result.to_audit, "file": str(result.folder.audit)} if result.to_audit else None,
    }


def print_run(result: RunResult, notes: Sequence[str]) -> None:
    """Print what was learned, what was asked, what a person should do next, and the files."""
    console = Console(highlight=False)
    learned_view.print_learned(result.learned, result.votes, result.counts, console)
    console.print()
    if result.whole is not None:
        console.print(
            f"{result.counts.rows:,} rows are labelled; what is said above about items is about a sample of "
            f"{len(result.outcomes):,}"
        )
    if result.verdicts.by_row:
        console.print(f"{result.verdicts.sentence}; labels.csv has them in {VERDICT} and {FINAL_LABEL}")
    _print_asked(result, console)
    learned_view.print_look_at(result.facts, notes, console)
    _print_to_label(result, console)
    labels = f"{result.folder.labels} (column {LABEL})"
    console.print(Text(f"\nlabels  {labels}\nreport  {result.folder.report}", style="bold"))


def _print_to_label(result: RunResult, console: Console) -> None:
    """Print which rows a person should look at, and what to do with the results."""
    folder, sample = result.folder, result.to_label
    if sample is not None and sample.rows:
        rows = TO_LABEL[sample.kind].format(rows=f"{sample.rows:,}")
        file = folder.to_label
        console.print(f"\n{rows}: [bold]{file}[/]")
        console.print(f"[dim]fill in the column gold, then run: pcs fit {folder.path} --gold {file}[/]")
    if result.to_audit:
        file = folder.audit
        console.print(f"\n{result.to_audit:,} accepted rows to check: [bold]{file}[/]")
        console.print(
            f"[dim]write right or wrong into the column verdict, then run: pcs fit {folder.path} --verdicts {file}[/]"
        )


def _print_asked(result: RunResult, console: Console) -> None:
    tally = result.tally
    reused = f", {tally.from_ledger:,} answers from the ledger" if tally.from_ledger else ""
    console.print(f"{tally.calls:,} calls{reused}; cost of this folder so far: {result_view.money(result.bills)}")
    if result.paid_elsewhere:
        paid = sum(bill.calls for bill in result.paid_elsewhere)
        price = result_view.money(result.paid_elsewhere)
        console.print(f"{paid:,} answers were paid for in other folders that share the ledger: {price}")
    if result.config.task.written_wording:
        console.print(Text(f"the question under llm:wording: {result.config.task.written_wording}"))
    for kind, what in SILENCES.items():
        _print_silences(what, result.silences[kind], console)
    if tally.failed:
        rows, without = result.counts.rows, result.unlabelled
        console.print(f"{rows - without:,} of {rows:,} rows have a label, {without:,} have none")
    print_unanswered(dict(tally.failed.most_common()), console)


def _sorted(reasons: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(reasons.items(), key=lambda pair: -pair[1])


def _print_silences(what: str, reasons: Mapping[str, int], console: Console) -> None:
    """Print how many rewrites or answers are missing, and the most common reasons."""
    if reasons:
        console.print(f"{sum(reasons.values()):,} {what}:")
    for reason, count in _sorted(reasons)[:REASONS_SHOWN]:
        console.print(Text(f"  {count:>6,}  {reason}", style="dim"))


def print_unanswered(unanswered: Mapping[str, int], console: Console) -> None:
    """Print how many questions no model answered, and why."""
    for reason, count in unanswered.items():
        again = RAISE_LIMIT if reason == "budget reached" else "the same command asks them again"
        console.print(Text(f"{count:,} questions unanswered: {reason}; {again}", "yellow"))


def plan_json(planned: RunPlan) -> dict[str, Any]:
    """Return a plan as plain values."""
    panel = planned.panel
    return {
        **calls_json(planned.plan),
        "panel": panel
        and {
            "relations": panel.relations,
            "questions": panel.questions,
            "reasons": panel.reasons,
        },
        "alternatives": {option: calls_json(other) for option, other in planned.alternatives.items()},
        "ways": [way._asdict() for way in planned.ways],
        "languages": planned.languages and languages_json(planned.languages),
        "without_logprobs": planned.without_logprobs and calls_json(planned.without_logprobs),
    }


def languages_json(languages: Languages) -> dict[str, Any]:
    """Return languages, and what relations can do with them, as plain values."""
    return {
        "texts_looked_at": len(languages.sample),
        "texts": languages.counts,
        "relations_that_do_not_apply": dict(languages.limits),
        "warning": languages.warning or None,
    }


def calls_json(plan: Plan) -> dict[str, Any]:
    """Return the calls of a plan as plain values."""
    return {
        "rows": plan.rows,
        "calls": plan.calls,
        "usd": plan.usd,
        "models": [asdict(bill) for bill in plan.models],
        "known_already": plan.calls - plan.left.calls,
        "left": {"calls": plan.left.calls, "usd": plan.left.usd},
    }


def print_plan(planned: RunPlan) -> None:
    """Print the questions of a run, the calls that it would make and their cost, and what else could be asked."""
    console = Console(highlight=False)
    if planned.panel is not None:
        print_panel(planned.panel, console)
    _print_languages(planned.languages, console)
    print_calls(planned.plan, console)
    if planned.without_logprobs is not None:
        console.print(Text(f"without log-probabilities: {_calls_and_cost(planned.without_logprobs)}", "yellow"))
    if planned.alternatives:
        rows: list[list[Content]] = [
            [option, other.calls, _usd(other.usd)] for option, other in planned.alternatives.items()
        ]
        console.print()
        print_rows(ResultTable(name="", title="", columns=("instead", "calls", "max. cost"), rows=rows), console)
    print_ways(planned.ways, console)
    print_not_called(planned.plan, console)


def _print_languages(languages: Languages | None, console: Console) -> None:
    """Print the languages of the texts unless they are English, and relations that can do nothing with them."""
    if languages is None or languages.english:
        return
    console.print(Text(f"languages of {len(languages.sample):,} texts: {languages.shares}"))
    if languages.warning:
        console.print(Text(languages.warning, "yellow"))
    console.print()


def print_panel(panel: DefaultPanel, console: Console | None = None) -> None:
    """Print which questions were chosen, and why."""
    console = console or Console(highlight=False)
    for reason in panel.reasons:
        console.print(Text(reason))
    console.print()


def print_calls(plan: Plan, console: Console, *, explain: bool = True) -> None:
    """Print the calls of a plan per model and in total; `explain` shortened names."""
    result_view.print_bills(plan.models, console, limit="max. ", explain=explain)
    console.print(Text(f"\n{plan.rows:,} rows, {_calls_and_cost(plan)}"))
    if known := plan.calls - plan.left.calls:
        left = f"{plan.left.calls:,} calls are left, {_cost(plan.left)}"
        console.print(Text(f"the ledger already has the answers to {known:,} of them: {left}"))


def print_not_called(plan: Plan, console: Console) -> None:
    """Print what is missing for a price, and that a plan costs nothing."""
    console.print()
    if plan.usd is None:
        console.print(Text(PRICE_MISSING))
    console.print(NOT_CALLED)


def print_ways(ways: Sequence[WayToAsk], console: Console) -> None:
    """Print cost and time of asking live and in batches; nothing if no model has a batch API."""
    if not any(way.waves for way in ways):
        return
    rows: list[list[Content]] = [[way.name, way.calls, _usd(way.usd), *_hours(way)] for way in ways]
    columns = ("ways to ask", "calls", "max. cost", "waves", "hours")
    console.print()
    print_rows(ResultTable(name="", title="", columns=columns, rows=rows), console)


def _usd(usd: float | None) -> str:
    return "unknown" if usd is None else f"${usd:.4f}"


def _hours(way: WayToAsk) -> tuple[str, str]:
    """Return how many waves a way takes, if it takes any, and how many hours."""
    return (str(way.waves), f"≤ {way.hours:.0f}") if way.waves else ("", f"about {way.hours:.2g}")


def _calls_and_cost(plan: Plan) -> str:
    return f"{plan.calls:,} calls, {_cost(plan)}"


def _cost(plan: Plan) -> str:
    if plan.usd is None:
        return "cost unknown"
    return f"at most ${plan.usd:.4f}" if plan.usd else "free"
