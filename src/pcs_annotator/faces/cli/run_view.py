"""What `pcs run` and `pcs plan` show, as blocks and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pcs_annotator.base.text import counted
from pcs_annotator.core.bill import Bill, Plan, WayToAsk
from pcs_annotator.core.result_names import FINAL_LABEL, LABEL, VERDICT
from pcs_annotator.faces.cli import learned_view, options
from pcs_annotator.runs.default_panel import DefaultPanel
from pcs_annotator.runs.run_result import SILENCES, RunResult
from pcs_annotator.showing import answer, to_terminal
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.findings.look_at import what_to_look_at
from pcs_annotator.showing.formats import count, dollars, total_cost
from pcs_annotator.showing.report.sections.answers import reasons
from pcs_annotator.showing.report.sections.cost import bill_columns, bill_rows
from pcs_annotator.verbs.plan import RunPlan

REASONS_SHOWN = 3
NOT_CALLED = "No model was called. Answers in the ledger are reused; rejected rewrites are tried once more."
PRICE_MISSING = "The cost is unknown: give the missing price with --price MODEL=IN,OUT or in [ask.prices]."


def run_json(result: RunResult, notes: Sequence[str]) -> dict[str, Any]:
    """Return everything that `show_run` shows as plain values."""
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
        "silences": {kind: dict(_most_first(reasons)) for kind, reasons in result.silences.items()},
        "unanswered": dict(tally.failed.most_common()),
        "answers_without_probabilities": dict(_most_first(result.hard)),
        "answers_with_bounded_probabilities": result.bounded,
        "bills": [asdict(bill) for bill in result.bills],
        "paid_elsewhere": [asdict(bill) for bill in result.paid_elsewhere],
        "seconds": {step: round(seconds, 3) for step, seconds in result.seconds.items()},
        **learned_view.learned_json(result.learned, result.votes),
        "look_at": [flag._asdict() for flag in what_to_look_at(result.facts)],
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
    }


def _most_first(found: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(found.items(), key=lambda pair: -pair[1])


def show_run(result: RunResult, notes: Sequence[str], *, to_json: bool, quiet: bool) -> None:
    """Print what came out of a run or a fit: the answer, and with `--details` what it is based on."""
    options.show(
        run_json,
        lambda *found: [answer.of_run(*found)],
        result,
        notes,
        details=run_details,
        to_json=to_json,
        quiet=quiet,
    )


def run_details(result: RunResult, notes: Sequence[str]) -> Iterator[b.Block]:
    """Yield what was learned, what was asked, and what a person can do next."""
    counts, settings = result.counts, result.config
    unit = "questions" if settings.relations.rewriter else "calls"
    folds = settings.learn.folds
    yield from learned_view.learned_shown(result.learned, result.votes, counts, folds=folds, unit=unit)
    if result.whole is not None:
        sample = count(len(result.outcomes))
        yield f"{count(counts.rows)} rows are labelled; what is said above about items is about a sample of {sample}"
    if result.verdicts.by_row:
        yield f"{result.verdicts.sentence}; labels.csv has them in {VERDICT} and {FINAL_LABEL}"
    yield from _asked(result)
    yield from learned_view.look_at_shown(result.facts, notes)


def _asked(result: RunResult) -> Iterator[b.Block]:
    tally = result.tally
    reused = f", {counted(tally.from_ledger, 'answer')} from the ledger" if tally.from_ledger else ""
    yield f"{counted(tally.calls, 'call')}{reused}; cost of this folder so far: {_cost(result.bills)}"
    if elsewhere := result.paid_elsewhere:
        paid = counted(sum(bill.calls for bill in elsewhere), "answer was", "answers were")
        yield f"{paid} paid for in other folders that share the ledger: {_cost(elsewhere)}"
    if result.config.task.written_wording:
        yield f"the question under llm:wording: {result.config.task.written_wording}"
    for kind, what in SILENCES.items():
        yield reasons(f"{count(sum(result.silences[kind].values()))} {what}:", result.silences[kind], REASONS_SHOWN)


def _cost(bills: Sequence[Bill]) -> str:
    return total_cost([bill.usd for bill in bills])


def plan_json(planned: RunPlan) -> dict[str, Any]:
    """Return a plan as plain values."""
    panel = planned.panel
    return {
        **calls_json(planned.plan),
        "panel": panel and {"relations": panel.relations, "questions": panel.questions, "reasons": panel.reasons},
        "alternatives": {option: calls_json(other) for option, other in planned.alternatives.items()},
        "ways": [way._asdict() for way in planned.ways],
        "languages": languages_json(planned),
        "without_logprobs": planned.without_logprobs and calls_json(planned.without_logprobs),
    }


def languages_json(planned: RunPlan) -> dict[str, Any]:
    """Return the languages of the texts, and what relations can do with them, as plain values."""
    languages = planned.languages
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


def plan_shown(planned: RunPlan) -> Iterator[b.Block]:
    """Yield the questions of a run, the calls that it would make and their cost, and what else could be asked."""
    languages = planned.languages
    yield from planned.panel.reasons if planned.panel is not None else ()
    if languages is not None and not languages.english:
        yield f"languages of {len(languages.sample):,} texts: {languages.shares}"
        yield b.text(languages.warning, kind="warning") if languages.warning else None
    yield from calls_shown(planned.plan)
    if planned.without_logprobs is not None:
        calls = calls_and_cost(planned.without_logprobs)
        yield b.text(f"without log-probabilities: {calls}", kind="warning")
    if planned.alternatives:
        rows: list[b.Row] = [[option, one.calls, _usd(one.usd)] for option, one in planned.alternatives.items()]
        yield b.Table(columns=[b.Column("instead"), *b.numbers("calls", "max. cost")], rows=rows)
    yield from ways_shown(planned.ways)
    yield from not_called(planned.plan)


def print_panel(panel: DefaultPanel) -> None:
    """Print which questions were chosen, and why."""
    to_terminal.show(*panel.reasons, "")


def calls_shown(plan: Plan) -> Iterator[b.Block]:
    """Yield the calls of a plan per model and in total."""
    yield b.text(b.strong(f"{count(plan.rows)} rows, {calls_and_cost(plan)}"))
    yield b.Table(columns=bill_columns("max. "), rows=bill_rows(plan.models))
    if known := plan.calls - plan.left.calls:
        left = f"{counted(plan.left.calls, 'call is', 'calls are')} left, {_usd(plan.left.usd)}"
        yield f"the ledger already has the answers to {count(known)} of them: {left}"


def not_called(plan: Plan) -> Iterator[b.Block]:
    """Yield what is missing for a price, and that a plan costs nothing."""
    yield PRICE_MISSING if plan.usd is None else None
    yield NOT_CALLED


def ways_shown(ways: Sequence[WayToAsk]) -> Iterator[b.Block]:
    """Yield cost and time of asking live and in batches; nothing if no model has a batch API."""
    if any(way.waves for way in ways):
        rows: list[b.Row] = [[way.name, way.calls, _usd(way.usd), *_hours(way)] for way in ways]
        yield b.Table(columns=[b.Column("ways to ask"), *b.numbers("calls", "max. cost", "waves", "hours")], rows=rows)


def _hours(way: WayToAsk) -> tuple[str, str]:
    """Return how many waves a way takes, if it takes any, and how many hours."""
    return (str(way.waves), f"≤ {way.hours:.0f}") if way.waves else ("", f"about {way.hours:.2g}")


def _usd(usd: float | None) -> str:
    return "cost unknown" if usd is None else dollars(usd)


def calls_and_cost(plan: Plan) -> str:
    """Return how many calls a plan has, and what they cost."""
    return f"{counted(plan.calls, 'call')}, {'cost unknown' if plan.usd is None else f'at most {dollars(plan.usd)}'}"
