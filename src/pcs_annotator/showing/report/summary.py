"""The top and the end of the page: main numbers, promise and what to look at; cost, settings, seeds and version."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pcs_annotator.base.text import capital, counted
from pcs_annotator.core.outcome import Counts
from pcs_annotator.core.task import MANY_LABELS
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promise.certificate import Certificate
from pcs_annotator.judging.promise.drift import Drift
from pcs_annotator.runs import certificate_text
from pcs_annotator.runs.certificate_text import about_confidence, promised, what_is_promised, without_gold
from pcs_annotator.runs.run_result import Facts, RunResult
from pcs_annotator.runs.toml import config_to_dict
from pcs_annotator.showing import answer
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.findings import what_to_look_at
from pcs_annotator.showing.formats import DASH, count, percent, percent_interval, total_cost
from pcs_annotator.showing.report.view import View

MOST_LABELS = 6
SHOWN = 3  # findings that are not folded
HELD_OUT = "held\N{NO-BREAK SPACE}out"
DECISIONS = (
    ("accept", "accepted", "yes"),
    ("agree", "answers agree", "same"),
    ("people", "labelled by people", "same"),
    ("review", "to review", "maybe"),
    ("none", "no label", "no"),
)
NOT_ASKED = (
    "No label is accepted or sent to review. To get a promise, run pcs fit FOLDER --max-error 0.05; no model is called."
)
LONGEST = 400
MOST_TABLES = 8
_PASSWORD = re.compile(r"(?<=//)[^/\s@#]+@")


def overline(view: View) -> b.Words:
    """Return what stands above the title of the page."""
    return (f"perceived-confidence {view.origin.version} · run report · ", b.name(view.data_name))


def first_screen(view: View) -> tuple[str, list[b.Block]]:
    """Return the verdict, and what stands below it; beside other variables, without what is said of all of them."""
    result, alone = view.result, not view.prefix
    verdict, why = verdict_of(result)
    certificate = result.learned.model.certificate
    stamp = None if certificate is None else b.STAMPS[certificate_text.standing(certificate)]
    return verdict, [
        b.Group([stamp, b.text(why)], kind="why"),
        _next(result) if alone else None,
        b.Group([*_figures(view)], kind="tiles"),
        b.text(b.name(view.task.instruction), " ", *_given(result.counts), kind="asked-for"),
        _all_labels(result.counts),
        b.note(_sample(view)) if result.whole is not None else None,
        look_at(result, SHOWN) if alone or what_to_look_at(result) else None,
    ]


def _given(counts: Counts) -> Iterator[str | b.Styled]:
    """Yield how often each label was given, each in its own writing direction; rare ones are counted together."""
    label_counts = Counter(counts.labels).most_common()
    for label, rows in label_counts[:MOST_LABELS]:
        yield b.Styled(label, "chip", own=True)
        yield f" {count(rows)} "
    if rest := label_counts[MOST_LABELS:]:
        yield f"and {count(sum(rows for _, rows in rest))} with {counted(len(rest), 'other label')} "
    if counts.unlabelled:
        yield b.Styled("no label", "warn")
        yield f" {count(counts.unlabelled)}"


def _all_labels(counts: Counts) -> b.Folded | None:
    """Return a chart of how often each label was given; None if all stand in a line, or there are very many."""
    if not MOST_LABELS < len(counts.labels) <= MANY_LABELS:
        return None
    most = Counter(counts.labels).most_common()
    rows: list[b.Row] = [
        [b.name(label), times, b.Spot(times, None, 0, most[0][1], kind="level")] for label, times in most
    ]
    columns = [b.Column("Label"), *b.numbers("rows", digits=0), b.Column("", "chart")]
    table = b.Table(columns=columns, rows=rows, label="Rows of every label")
    return b.Folded(f"All {counted(len(most), 'label')}", [table])


def verdict_of(result: RunResult) -> tuple[str, str]:
    """Return how many labels can be used, and with which promise; or that none can, and why."""
    model, counts = result.learned.model, result.counts
    certificate, rows = model.certificate, counted(counts.rows, "label")
    why = capital(f"{b.plain(answer.usable(model, counts)[1])}.")
    if certificate is not None and certificate.holds:
        accepted, levels = counts.decisions.get("accept", 0), answer.leaves_and_parents(model, counts)
        groups = f"; {missing}" if (missing := certificate_text.without_promise(certificate)) else ""
        return f"{count(accepted)} of {rows} can be used", f"{capital(what_is_promised(certificate))}{levels}{groups}."
    if certificate is None and not model.by_agreement:
        return f"{rows}, without a promise", why
    return f"0 of {rows} can be used without review", why


def _next(result: RunResult) -> b.Paragraph:
    review, step, certificate = result.counts.to_review, answer.next_step(result), result.learned.model.certificate
    todo = "Next"
    if review and step.startswith("pcs review"):
        todo = "Label more rows" if result.learned.figures else "Label rows at random, to know how good this is"
        todo = f"{count(review)} to review" if certificate is not None and certificate.holds else todo
    return b.text(f"{todo} → ", b.Styled(step, "command" if step.startswith("pcs ") else "plain"), kind="next")


def _sample(view: View) -> str:
    rows, sample = view.result.counts.rows, len(view.result.outcomes)
    return (
        f"All {count(rows)} rows are labelled, and labels and decisions are counted exactly. Weights, quality, answers "
        f"and the rows below come from a sample of {count(sample)} rows: those with gold labels, and others at random."
    )


def _figures(view: View) -> Iterator[b.KeyFigure]:
    result = view.result
    rows, bills, reviewed = result.counts.rows, result.bills, result.verdicts.counts
    yield _accuracy(view)
    if result.learned.model.decided_by:
        unlabelled = f", {count(result.unlabelled)} without a label" if result.unlabelled else ""
        settled = f", {count(result.counts.settled)} labelled by people" if result.counts.settled else ""
        of_rows = f"of {counted(rows, 'row')}{unlabelled}{settled}"
        yield b.KeyFigure(count(result.counts.to_review), "to review", of_rows)
    else:
        yield b.KeyFigure(count(rows - result.unlabelled), "rows labelled", f"of {count(rows)}")
    used = "for learning and testing" if view.gold_rows else "to learn from and to test with"
    learned = f"{counted(reviewed['rows'], 'row')} reviewed" if reviewed["rows"] else used
    figures = result.learned.figures
    if figures and (left_out := view.gold_rows - figures[0].accuracy.n):
        learned = f"{learned}; {count(left_out)} not used: copies, or without an answer"
    yield b.KeyFigure(count(view.gold_rows), "gold rows" if view.gold_rows != 1 else "gold row", learned)
    if view.prefix:
        return
    calls = sum(bill.calls for bill in bills)
    price = total_cost([bill.usd for bill in bills])
    yield b.KeyFigure(count(calls), "model calls" if calls != 1 else "model call", price)


def _accuracy(view: View) -> b.KeyFigure:
    if not view.result.learned.figures:
        gold = counted(view.gold_rows, "gold row") if view.gold_rows else "no gold rows"
        return b.KeyFigure("unknown", "share of right labels", gold)
    accuracy = view.result.learned.figures[0].accuracy
    interval = percent_interval(accuracy.interval).replace(" %", "\N{NO-BREAK SPACE}%")
    return b.KeyFigure(percent(accuracy.value, 1), "of labels are right", f"{interval}, {HELD_OUT}")


def promise(model: Model, drift: Drift | None, counts: Counts) -> b.Section:
    """Return the promise, what it means for these rows, and what it is based on; or why there is none."""
    rough, none = about_confidence(model), min(counts.unlabelled, counts.to_review)  # without a label is for review
    rows = {**counts.decisions, "review": counts.to_review - none, "people": counts.settled, "none": none}
    parts = [(title, kind, rows.get(decision, 0)) for decision, title, kind in DECISIONS]
    return b.section(
        "promise",
        "Promise",
        _stamped(model, counts),
        b.Shares(parts, counts.rows) if counts.rows and model.decided_by else None,
        b.text(capital(f"{rough}.")) if rough else None,
        drift and b.text(capital(f"{drift.sentence}; {drift.unseen}.")),
        model.certificate and _basis(model.certificate),
    )


def _stamped(model: Model, counts: Counts) -> b.Group:
    if model.certificate is None and not model.by_agreement:
        stamp, what, more = b.Stamp("no promise", "quiet"), "No promise was requested", b.text(NOT_ASKED)
        return b.Group([stamp, b.Paragraph(what, "promise"), more], kind="cert")
    certificate = None if model.by_agreement else model.certificate
    promise_text = without_gold(counts) if certificate is None else promised(certificate)
    stamp = b.STAMPS["none" if certificate is None else certificate_text.standing(certificate)]
    what, _, why = promise_text.headline.removeprefix("promise: ").partition(": ")
    details = b.Bullets([f"{capital(detail)}." for detail in (why, *promise_text.details) if detail])
    return b.Group([stamp, b.Paragraph(capital(what), "promise"), details], kind="cert")


def _basis(certificate: Certificate) -> b.KeyValues:
    facts: list[tuple[str, b.Words]] = [("gold rows used", count(certificate.gold_rows))]
    if certificate.rows_needed is not None:
        even, likely = map(count, certificate.rows_needed)
        facts.append(("gold rows needed", f"{even} for a 50 % chance, {likely} for 80 %"))
    if certificate.fingerprint is not None:
        votes, gold, version = certificate.fingerprint
        facts.append(("fingerprint", f"votes {votes} · gold {gold} · version {version}"))
    return b.KeyValues(facts, "basis")


def look_at(facts: Facts, most: int | None = None) -> b.Section:
    """Return what is or may be wrong with the run, the most important first; those after the first `most` folded."""
    # These are our sentences: one that begins with an Arabic label must not be read from the right.
    findings: list[b.Words] = [
        (b.Styled(flag.kind.replace("annotator", "model"), "warn"), " ", b.Styled(f"{flag.detail}.", "plain"))
        for flag in what_to_look_at(facts)
    ]
    shown = b.Bullets(findings[:most], "notices") if findings else b.text("Nothing stood out.")
    rest = [] if most is None else findings[most:]
    more = b.Folded(counted(len(rest), "more finding"), [b.Bullets(rest, "notices")]) if rest else None
    return b.section("look-at", "What to look at", shown, more)


def cost(result: RunResult) -> b.Folded | None:
    """Return calls, tokens and cost per model; None if no call is known."""
    bills, tally = result.bills, result.tally
    rows = [*b.bill_rows(bills), *([b.bill_total("total", bills)] if len(bills) > 1 else [])]
    shown: list[b.Block] = [b.Table(columns=b.bill_columns(), rows=rows)] if bills else []
    if tally.calls or tally.from_ledger:
        reused = counted(tally.from_ledger, "answer") if tally.from_ledger else ""
        parts = [
            f"Last run: {counted(tally.calls, 'call')}",
            reused and f"{reused} reused from the ledger at no cost",
            tally.retries_by_cause() if tally.retries else "",
        ]
        shown.append(b.note(f"{'; '.join(filter(None, parts))}."))
    return b.Folded("Cost, by model", shown) if shown else None


def variable_settings(view: View) -> b.Folded:
    """Return what was asked about a variable."""
    return b.Folded("Question and labels", [_settings({"task": config_to_dict(view.result.config)["task"]})])


def settings(view: View, *, task: bool = True) -> b.Folded:
    """Return the settings of the run, one list per part, with the question or without it."""
    config = config_to_dict(view.result.config)
    parts = {"run": {"version": view.origin.version, "data": view.data_name, "rows": len(view.result.votes)}}
    if (answers := view.graded_answers) is not None:
        graded = [f"{model} ({count(times)} with log-probabilities)" for model, times in answers.items() if times]
        parts["answers"] = {"graded": graded, "hard": [model for model, times in answers.items() if not times]}
    parts |= config if task else {part: values for part, values in config.items() if part != "task"}
    rebuilt = b.note("pcs report FOLDER rebuilds this page from the run folder.")
    return b.Folded("Settings, versions and seeds", [_settings(parts), rebuilt])


def _settings(parts: Mapping[str, Mapping[str, Any]]) -> b.Group:
    groups = []
    for title, values in parts.items():
        pairs = [(key.replace("_", " "), b.name(setting_text(value))) for key, value in flat_settings(values)]
        groups.append(b.Group([b.KeyValues(pairs)], title, kind=""))
    return b.Group(groups, kind="settings")


def flat_settings(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the name and the value of every setting, those of nested tables included."""
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from flat_settings(value, f"{prefix}{key} · ")
        else:
            yield f"{prefix}{key}", value


def setting_text(value: Any) -> str:
    """Return a setting as it is shown, without passwords; a dash if it is not set."""
    if value is None or value == "" or (isinstance(value, Mapping | Sequence) and not value):
        return DASH
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple) and len(value) > MOST_TABLES and isinstance(value[0], Mapping):
        return f"{count(len(value))}, such as {setting_text(value[0])}"
    if isinstance(value, list | tuple):
        return ", ".join(map(setting_text, value))
    text = _PASSWORD.sub("", str(value))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
