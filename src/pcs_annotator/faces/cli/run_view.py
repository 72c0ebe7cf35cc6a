"""What `pcs run` shows, as blocks and as JSON; of a codebook, as `pcs label` does, a line for each variable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import Any

from pcs_annotator.base.text import counted
from pcs_annotator.core.bill import Bill
from pcs_annotator.core.result_names import FINAL_LABEL, LABEL, VERDICT
from pcs_annotator.faces.cli import exit_codes, learned_view, options
from pcs_annotator.runs.certificate_text import what_is_promised
from pcs_annotator.runs.default_panel import DefaultPanel
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.run_result import SILENCES, RunResult
from pcs_annotator.runs.settings import Saving
from pcs_annotator.showing import answer, to_terminal
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.findings import what_to_look_at
from pcs_annotator.showing.formats import count, percent, percent_interval, total_cost
from pcs_annotator.showing.report.sections.questions import reasons
from pcs_annotator.tables.table_files import STDIO
from pcs_annotator.verbs import codebook
from pcs_annotator.verbs.label import Labelled

REASONS_SHOWN = 3


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


def show_run(result: RunResult, notes: Sequence[str]) -> None:
    """Print what came out of a run or a fit: the answer, and with `--details` what it is based on."""
    options.show(run_json, lambda *found: [answer.of_run(*found)], result, notes, details=run_details)


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


def print_panel(panel: DefaultPanel) -> None:
    """Print which questions were chosen, and why."""
    to_terminal.show(*panel.reasons, "")


INTERVAL = "95\xa0% interval"
LabelledJson = Callable[[Labelled, Sequence[str]], dict[str, Any]]
Variables = Mapping[str, RunResult] | Mapping[str, Labelled]


def run_and_show(request: RunRequest) -> int:
    """Run every variable of a codebook, print what came out, and return the exit code."""
    with options.gathered_warnings() as notes:
        result = codebook.run_codebook(request)
    found, first = result.results, next(iter(result.results.values())).folder
    figures = {name: one.learned.figures[0].accuracy for name, one in found.items() if one.learned.figures}
    right = {
        name: (percent(one.value, 1), percent_interval(one.interval)[len(INTERVAL) + 1 :])
        for name, one in figures.items()
    }
    written: list[answer.Line] = [
        ("labels", str(result.labels)),
        ("reports", f"{first.report}, and one in the folder of every other variable"),
        ("next", b.strong(f"pcs review {quote(str(first.path))}")),
    ]
    parts = {name: run_json(one, ()) for name, one in found.items()}
    files = {"folder": str(result.folder), "labels": str(result.labels)}
    options.show(
        lambda: {**files, "variables": parts, "warnings": notes},
        lambda: _variables_shown(found, right, f", {counted(len(result.variables), 'variable')}", notes, written),
    )
    return _exit_code(found)


def label_and_show(request: RunRequest, out: Path | str, saving: Saving, as_json: LabelledJson) -> int:
    """Label new texts with every variable of a codebook, print what came out, and return the exit code."""
    with options.gathered_warnings() as notes:
        found = codebook.label_codebook(request, out, saving)
    parts = {name: as_json(one, ()) for name, one in found.items()}
    options.show(
        lambda: {"out": str(out), "variables": parts, "warnings": notes},
        lambda: _variables_shown(found, {}, "", notes, [] if out == STDIO else [("labels", str(out))]),
        stderr=out == STDIO,
    )
    return _exit_code(found)


def _exit_code(found: Variables) -> int:
    return max(exit_codes.exit_code(one.counts.unanswered, one.tally.failed) for one in found.values())


def _variables_shown(
    found: Variables,
    right: Mapping[str, tuple[str, str]],
    variables: str,
    notes: Sequence[str],
    written: Sequence[answer.Line],
) -> Iterator[b.Block]:
    """Yield a row per variable, then what is promised, what it cost and where it is; `right` is how good labels are."""
    calls, known = (sum(getattr(one.tally, name) for one in found.values()) for name in ("calls", "from_ledger"))
    columns = b.numbers(*(("right", INTERVAL) if right else ()), "accepted", "to review")
    rows: list[b.Row] = []
    for name, one in found.items():
        figures = right.get(name, ("unknown", "")) if right else ()
        rows.append([name, *figures, *(count(one.counts.decisions.get(what, 0)) for what in ("accept", "review"))])
    yield b.Table(columns=[b.Column("variable"), *columns], rows=rows)
    said = f"{counted(max(one.counts.rows for one in found.values()), 'row')}{variables}"
    yield b.Answer([("labelled", said), _use(found), *answer.look_at(notes), answer.cost(calls, known, ()), *written])


def _use(found: Variables) -> answer.Line:
    """Return what is promised about accepted labels, and of which variables nothing is."""
    certificates = {name: one.model.certificate for name, one in found.items()}
    holding = [one for one in certificates.values() if one is not None and one.holds]
    without = [name for name, one in certificates.items() if one is None or not one.holds]
    said = what_is_promised(holding[0]) if holding else "nothing is promised"
    return "use", f"{said}; no promise for {', '.join(without)}" if holding and without else said
