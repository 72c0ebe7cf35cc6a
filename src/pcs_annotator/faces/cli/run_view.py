"""What `pcs run`, `fit` and `label` show, as blocks and as JSON; of several variables, a line for each."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pcs_annotator.base.plain import to_plain
from pcs_annotator.base.text import counted
from pcs_annotator.core.outcome import DECISION, FINAL_LABEL, VERDICT
from pcs_annotator.core.weights import Share
from pcs_annotator.faces.cli import ending, options
from pcs_annotator.faces.cli.ending import complain
from pcs_annotator.runs.book_result import BookResult, SetResult
from pcs_annotator.runs.passage_run import PassageResult
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.run_result import SILENCES, RunResult
from pcs_annotator.runs.settings import Saving
from pcs_annotator.showing import answer
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.findings import texts_cut, what_to_look_at
from pcs_annotator.showing.formats import count, percent, total_cost
from pcs_annotator.showing.report.page import Judged, in_words, right_of, variables_table
from pcs_annotator.showing.report.quality import METRICS, quality
from pcs_annotator.showing.report.questions import reasons, weights
from pcs_annotator.showing.report.summary import look_at, promise
from pcs_annotator.tables.source_files import STDIO
from pcs_annotator.verbs.label import Labelled, label

REASONS_SHOWN = 3


def run_json(result: RunResult, notes: Sequence[str]) -> dict[str, Any]:
    """Return everything that `show_run` shows, and the calibration error of the raw score, as plain values."""
    learned, weights = result.learned, result.learned.model.weights
    annotators, relations = weights.shares(result.votes)
    return {
        "folder": str(result.folder.home),
        **_judged_json(result, learned.drift, notes),
        **({} if result.whole is None else {"sample_rows": len(result.outcomes)}),
        "labels": list(result.votes.labels),
        "silences": {kind: dict(Counter(reasons).most_common()) for kind, reasons in result.silences.items()},
        "unanswered": dict(result.tally.failed.most_common()),
        "answers_without_probabilities": dict(Counter(result.hard).most_common()),
        "answers_with_bounded_probabilities": result.bounded,
        "bills": [asdict(bill) for bill in result.bills],
        "seconds": {step: round(seconds, 3) for step, seconds in result.seconds.items()},
        "gold_rows": weights.diagnostics.gold_rows,
        "optimiser": weights.diagnostics.optimiser,
        "weights": {
            "by_annotator": {name: share and share.weight for name, share in annotators.items()},
            "by_relation": {name: share and share.weight for name, share in relations.items()},
            "annotator_intervals": _intervals(annotators),
            "relation_intervals": _intervals(relations),
        },
        "cross_validation": [_figures_json(figures) for figures in learned.figures],
        "no_cross_validation": learned.no_figures,
        "flags": [flag._asdict() for flag in weights.diagnostics.flags],
        "look_at": [flag._asdict() for flag in what_to_look_at(result)],
        "files": {name: str(getattr(result.folder, name)) for name in ("labels", "report", "model", "votes")},
        "to_label": result.to_label and {**result.to_label._asdict(), "file": str(result.folder.to_label)},
        "verdicts": result.verdicts.counts,
    }


def _judged_json(result: RunResult | Labelled, drift: Any, notes: Sequence[str]) -> dict[str, Any]:
    """Return what is said of the rows of a run and of new texts alike."""
    counts, model = result.counts, result.model
    return {
        "rows": counts.rows,
        "rows_without_label": result.unlabelled,
        "label_counts": dict(counts.labels),
        "to_review": counts.to_review,
        "decisions": dict(counts.decisions),
        "calls": result.tally.calls,
        "known_already": result.tally.from_ledger,
        "warnings": list(notes),
        "label_column": result.label_column,
        **_certificate_json(model),
        "calibrated": model.calibrated,
        "confidence_margin": model.margin,
        "decided_by": model.decided_by,
        "drift": drift and {**to_plain(drift), "unseen": drift.unseen},
    }


def show_run(result: RunResult, notes: Sequence[str]) -> None:
    """Print what came out of a run or a fit: the answer, and with `--details` what it is based on."""
    options.show(run_json, lambda *results: [answer.of_run(*results)], result, notes, details=run_details)


def run_details(result: RunResult, notes: Sequence[str]) -> Iterator[b.Block]:
    """Yield what was learned, what was asked, and what a person can do next."""
    counts, learned, votes, config = result.counts, result.learned, result.votes, result.config
    size = f"{count(len(votes))} items × {len(votes.annotators)} models × {len(votes.relations)} relations"
    yield f"{size}; {count(learned.model.weights.diagnostics.gold_rows)} items have gold labels"
    yield f"labels: {', '.join(votes.labels)}"
    yield weights(learned, votes)
    yield quality(learned, config.learn.folds, "questions" if config.relations.rewriter else "calls")
    yield promise(learned.model, learned.drift, counts)
    if result.whole is not None:
        sample = count(len(result.outcomes))
        yield f"{count(counts.rows)} rows are labelled; all that is said above describes a sample of {sample}"
    if result.verdicts.by_row:
        yield f"{result.verdicts.sentence}; labels.csv has them in {VERDICT} and {FINAL_LABEL}"
    if result.to_label and result.to_label.rows:
        yield f"{counted(result.to_label.rows, 'row')} {result.to_label.kind} in {result.folder.to_label}"
    yield from _asked(result)
    details = {flag.detail for flag in what_to_look_at(result)}
    yield from b.warnings(note for note in notes if note not in details)  # a fit has also warned about some of it
    yield look_at(result) if details else None


def _certificate_json(model: Any) -> dict[str, Any]:
    return {"certificate": None if model.certificate is None else model.certificate.as_json()}


def _intervals(shares: Mapping[str, Share | None]) -> dict[str, list[float]]:
    return {name: list(share.interval) for name, share in shares.items() if share and share.interval}


def _figures_json(figures: Any) -> dict[str, Any]:
    result: dict[str, Any] = {"method": figures.method}
    for name in (*(name for name, _ in METRICS), "ece_score"):
        estimate = figures.figures.get(name)
        result[name] = estimate and {"value": estimate.value, **estimate.interval._asdict(), "n": estimate.n}
    result |= {"questions": figures.calls.questions, "uses_log_probabilities": figures.graded}
    for name, metric, adjusted in (("behind", "auroc", "holm"), ("accuracy_behind", "accuracy", "holm_accuracy")):
        if test := getattr(figures, name):
            p_values = {"p_value": test.p_value, "p_holm": getattr(figures, adjusted)}
            result[name] = {metric: test.difference, **test.interval._asdict(), **p_values}
    return result


def _asked(result: RunResult) -> Iterator[b.Block]:
    tally = result.tally
    reused = f", {counted(tally.from_ledger, 'answer')} from the ledger" if tally.from_ledger else ""
    cost = total_cost([bill.usd for bill in result.bills])
    yield f"{counted(tally.calls, 'call')}{reused}; cost of this folder so far: {cost}"
    for kind, what in SILENCES.items():
        yield reasons(f"{count(sum(result.silences[kind].values()))} {what}:", result.silences[kind], REASONS_SHOWN)


def _labelled_json(labelled: Labelled, notes: Sequence[str]) -> dict[str, Any]:
    return {
        **_judged_json(labelled, labelled.drift, notes),
        "questions": labelled.tally.questions,
        "questions_spared": labelled.tally.spared,
        "look_at": [flag._asdict() for flag in texts_cut(labelled.tally.cut, labelled.counts.rows)],
        "out": str(labelled.out),
    }


def _labelled_shown(labelled: Labelled, notes: Sequence[str]) -> list[b.Block]:
    counts, tally, drift = labelled.counts, labelled.tally, labelled.drift
    differ = [note for note in notes if drift is not None and drift.found and drift.sentence in note]
    cut = [flag.detail for flag in texts_cut(tally.cut, counts.rows)]
    asked, calls = answer.cost(tally.calls, tally.from_ledger, ())
    if labelled.bills:
        calls = f"{calls}; {total_cost([bill.usd for bill in labelled.bills])}"
    if labelled.frugal is not None and tally.spared:
        share = percent(tally.spared, tally.spared + tally.questions)
        calls = f"{calls}; {share} of the questions were not needed: the label was settled"
    lines: list[answer.Line] = [
        *(("warning", b.Styled(note, "caution")) for note in differ),
        answer.labelled(counts),
        answer.usable(labelled.model, counts),
        *answer.promise(labelled.model),
        *answer.look_at([*(note for note in notes if note not in differ), *cut]),
        (asked, calls),
    ]
    if labelled.out != STDIO:
        lines.append(("labels", f"{labelled.out} (column {labelled.label_column})"))
    if review := counts.to_review:
        lines.append(("next", f"review {counted(review, 'row')}: those with {DECISION} = review"))
    return [b.Answer(lines)]


Variables = Mapping[str, RunResult] | Mapping[str, Labelled]


def show_result(work: Callable[[], BookResult], *, known: bool = False) -> int:
    """Do some work, print what came out for each variable, and return the exit code.

    Of a run that is `known`, what was not answered is not said again.
    """
    with options.gathered_warnings() as notes:
        result = work()
    runs, failed = result.results, _failed(result.results)
    if not result.book.named:
        show_run(result.only, notes)
        return ending.exit_code(result.only.counts.unanswered) if known else ended(runs)
    written: list[answer.Line] = [
        ("labels", str(result.labels)),
        ("report", str(result.report)),
        ("next", b.strong(answer.again(failed) if failed else answer.next_of_all(result))),
    ]
    files = {name: str(getattr(result, name)) for name in ("folder", "labels", "report")}
    parts = {name: run_json(run, ()) for name, run in runs.items()}
    values = {**files, "variables": parts, "warnings": notes}
    judged: dict[str, Judged] = {**runs, **result.sets}
    table = variables_table(result.variables, judged, right_of(judged))
    return _show_variables(runs, result.sets, values, table, written, counted(len(result.variables), "variable"))


def label_and_show(request: RunRequest, out: Path, saving: Saving) -> int:
    """Label new texts with every variable of a run, print what came out, and return the exit code."""
    with options.gathered_warnings() as notes:
        labelled = label(request, out, saving)
    results, book = labelled.results, labelled.book
    differ = saving.on_drift != "accept" and any(result.drift and result.drift.found for result in results.values())
    if not book.named:
        only = labelled.only
        promised = promise(only.model, only.drift, only.counts)
        details, piped = lambda *_: [promised], out == STDIO
        options.show(_labelled_json, _labelled_shown, only, notes, details=details, stderr=piped)
        return ended(results, differ=differ)
    parts = {name: _labelled_json(result, ()) for name, result in results.items()}
    table = variables_table(book.variables, {**results, **labelled.sets}, {})
    written = [("labels", str(out))][out == STDIO :]
    values = {"out": str(out), "variables": parts, "warnings": notes}
    code = _show_variables(results, labelled.sets, values, table, written)
    return ending.ExitCode.DRIFT if differ and code != ending.ExitCode.BUDGET else code


def ended(results: Variables, *, differ: bool = False) -> int:
    """Return the exit code; with `--quiet`, say on stderr for how many rows there is no label, why, and what to do."""
    every = [(result.counts, result.tally) for result in results.values()]
    code = max(ending.exit_code(counts.unanswered, tally.failed, differ=differ) for counts, tally in every)
    rows, why = max(counts.unanswered for counts, _ in every), [*answer.unanswered(_failed(results))]
    if rows and not why:
        reasons = sum((tally.not_applicable + tally.unreadable for _, tally in every), Counter[str]())
        common = next(iter(reasons.most_common(1)), ("none", 0))[0]
        why = [f"no usable answer ({common}); answers are kept: try other models or wording"]
    if why and options.wanted("quiet"):
        missing = f"no label for {count(rows)} of {counted(every[0][0].rows, 'row')}: " if rows else ""
        retries = "".join(dict.fromkeys(f" ({tally.retries_by_cause()})" for _, tally in every if tally.retries))
        complain(f"{'error' if code else 'warning'}: {missing}{'; '.join(why)}{retries}")
    return code


def _failed(results: Variables) -> Counter[str]:
    """Return reason → questions without an answer; the labels of a variable share its questions."""
    failed = defaultdict[str, Counter[str]](Counter)
    for part, result in results.items():
        failed[part.partition("=")[0]] |= result.tally.failed
    return sum(failed.values(), Counter[str]())


def _show_variables(  # what is shown, one argument each
    results: Variables,
    sets: Mapping[str, SetResult],
    values: Mapping[str, Any],
    table: b.Table,
    written: Sequence[answer.Line],
    variables: str = "",
) -> int:
    """Print a row per variable, then what is promised, what it cost and where it is; return the exit code."""
    whole = {
        name: {**to_plain(each.model), **_certificate_json(each.model), "decisions": each.counts.decisions}
        for name, each in sets.items()
    }
    calls = sum(result.tally.calls for result in results.values())
    reused = sum(result.tally.from_ledger for result in results.values())
    texts = (len(each.marked) if isinstance(each, PassageResult) else each.counts.rows for each in results.values())
    labelled = counted(max(texts), "row") + (variables and f", {variables}")
    cost = [answer.cost(calls, reused, ())] if calls or reused else []
    look = answer.look_at([*answer.unanswered(_failed(results)), *values["warnings"]])
    lines = [("labelled", labelled), ("use", in_words({**results, **sets})), *look, *cost, *written]
    options.show(lambda: {**values, "sets": whole}, lambda: [table, b.Answer(lines)], stderr=not written)
    return ended(results)
