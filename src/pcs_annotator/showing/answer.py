"""The answer that a command ends with: a few lines, in the order in which people ask.

What happened, how good it is, what may be used, what to look at, what it cost, where it is, what to do next.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote

from pcs_annotator.base.text import counted
from pcs_annotator.core.bill import Bill
from pcs_annotator.core.outcome import Counts
from pcs_annotator.judging.model import Model
from pcs_annotator.runs.book_result import BookResult
from pcs_annotator.runs.certificate_text import promised, risk_used, what_is_promised, without_promise
from pcs_annotator.runs.learn import Learned
from pcs_annotator.runs.passage_run import PassageResult
from pcs_annotator.runs.run_result import RunResult
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.diff import clipped
from pcs_annotator.showing.findings import what_to_look_at
from pcs_annotator.showing.formats import PRICE_UNKNOWN, count, label_name, percent, percent_interval, total_cost

RAISE_LIMIT = "to ask them, run again with a higher --budget, --budget-per-day, --max-calls or --max-tokens"
LABELS_SHOWN, LONG_LABELS_SHOWN, LONGEST_LABEL = 6, 4, 28
FINDINGS_SHOWN = 2
LATER = ("pcs review", "pcs fit", "pcs evaluate", "pcs label", "pcs estimate")  # the first helps most
LONGEST_FINDING = 190  # characters of a finding, about three lines; `--details` and the report have all of it
Line = tuple[str, b.Words]


def of_run(result: RunResult, notes: Sequence[str] = ()) -> b.Answer:
    """Return what came out of a run or a fit."""
    counts, learned, folder, to_label = result.counts, result.learned, result.folder, result.to_label
    certificate = learned.model.certificate
    shown_elsewhere = {"no gold labels"}  # with how good labels are; why nothing is promised, with what may be used
    if certificate is not None and not certificate.holds:
        shown_elsewhere.add("nothing accepted")
    details = [flag.detail for flag in what_to_look_at(result) if flag.kind not in shown_elsewhere]
    what, file = [labelled(counts), quality(learned, counts)], f"{folder.labels} (column {result.label_column})"
    if isinstance(result, PassageResult):  # its rows are candidates, not texts
        what, details, file = [quoted(result), quality_of_passages(result)], [], str(folder.passages)
    lines = [
        *what,
        usable(learned.model, counts),
        *promise(learned.model),
        *label_sets(result),
        *look_at([*unanswered(result.tally.failed), *details, *notes], most=1),
    ]
    if result.config.ask.models:
        lines.append(cost(result.tally.calls, result.tally.from_ledger, result.bills))
    lines += [("labels", file), ("report", str(folder.report))]
    if to_label and to_label.rows and to_label.kind == "at random":
        lines.append(("gold", f"{counted(to_label.rows, 'random row')} to label: {folder.to_label}"))
    return b.Answer([*lines, ("next", b.strong(next_step(result)))])


def quoted(result: PassageResult) -> Line:
    """Return how many passages, or values, there are in how many texts."""
    kind = result.run.extraction
    final = [passage for row in range(len(result.marked)) for passage in result.final(row)]
    by_type = Counter(passage.type for passage in final).most_common(LABELS_SHOWN)
    named = "" if kind.is_value else f": {', '.join(f'{count(times)} {name}' for name, times in by_type)}"
    quotations = counted(len(final), kind.noun.removesuffix("s"))
    return "quoted", f"{quotations} in {counted(len(result.marked), 'text')}{named}"


def quality_of_passages(result: PassageResult) -> Line:
    """Return how many of the gold passages are found, and how many of those chosen are right."""
    figures, what = result.learned.passages, result.run.extraction.noun
    if figures is None:
        return "quality", "unknown: there are too few gold texts"
    share = f"{percent(figures.weighed.recall, 1)} of the {what} are found"
    right = f"{percent(figures.weighed.precision, 1)} of those chosen are right"
    return "quality", f"{share}, and {right} ({counted(figures.texts, 'gold text')})"


def unanswered(failed: Mapping[str, int]) -> Iterator[str]:
    """Yield how many questions no model answered, why, and what to do."""
    for reason, times in sorted(failed.items(), key=lambda pair: -pair[1]):
        again = RAISE_LIMIT if reason == "budget reached" else "the same command asks again"
        yield f"{counted(times, 'question')} unanswered: {reason}; {again}"


def again(failed: Mapping[str, int]) -> str:
    """Return how to ask what was left unasked."""
    limited = set(failed) == {"budget reached"}
    return f"the same command {'with a higher limit' if limited else 'again'}: it asks only what is missing"


def labelled(counts: Counts) -> Line:
    """Return how many rows got which label, and how many got none."""
    most = Counter(counts.labels).most_common()
    shown = LABELS_SHOWN if all(len(label) <= LONGEST_LABEL for label in counts.labels) else LONG_LABELS_SHOWN
    named = [
        f"{count(rows)} {'× ' if label[:1].isdigit() else ''}{label_name(label, LONGEST_LABEL)}"
        for label, rows in most[:shown]
    ]
    if rest := most[shown:]:
        named.append(f"{count(sum(rows for _, rows in rest))} with {counted(len(rest), 'other label')}")
    sentences = [f"{counted(counts.rows, 'row')}: {', '.join(named) or 'none has a label'}"]
    for rows, why in ((counts.unanswered, "no usable answer"), (counts.empty, "the text is empty")):
        if rows:
            sentences.append(f"{counted(rows, 'row has', 'rows have')} no label ({why})")
    return "labelled", "; ".join(sentences)


def quality(learned: Learned, counts: Counts) -> Line:
    """Return the accuracy with its interval, of numbers how far they are off, or why that is unknown."""
    if learned.against_gold is not None and (off := learned.against_gold.figures.get("error")):
        ends = f"95 % interval {off.interval.low:.3g} to {off.interval.high:.3g}; {counted(off.n, 'gold row')}"
        return "quality", f"numbers are off by {off.value:.3g} on average ({ends})"
    if not counts.labels:  # the texts of gold rows may tell their labels, but no row has one
        return "quality", "unknown: no row has a label"
    if not learned.figures:
        return "quality", f"unknown: {learned.no_figures.rstrip('.') or 'there are too few gold rows'}"
    accuracy = learned.figures[0].accuracy
    ends, rows = percent_interval(accuracy.interval), counted(accuracy.n, "gold row")
    return "quality", f"{percent(accuracy.value, 1)} of labels are right ({ends}; {rows})"


def usable(model: Model, counts: Counts) -> Line:
    """Return how many labels may be used, or why none may."""
    certificate, rows = model.certificate, count(counts.rows)
    if certificate is not None and not certificate.holds:
        return "use", promised(certificate).headline
    if certificate is not None:
        rest = leaves_and_parents(model, counts)
        rest += f"; {count(counts.to_review)} to review" if counts.to_review else ""
        rest += f"; {count(counts.settled)} labelled by people" if counts.settled else ""
        return "use", f"{count(counts.decisions.get('accept', 0))} of {rows} accepted{rest}"
    if model.by_agreement:
        agreeing = count(counts.decisions.get("agree", 0))
        return "use", f"no promise without gold labels; all answers agree on {agreeing} of {rows} rows"
    return "use", "no promise was requested; --max-error 0.1 asks for at most 10 % wrong"


def promise(model: Model) -> Iterator[Line]:
    """Yield what is promised, for whom not, and what it cost; nothing if nothing is promised."""
    certificate = model.certificate
    if certificate is not None and certificate.holds:
        clauses = (what_is_promised(certificate), without_promise(certificate), risk_used(certificate))
        yield "promise", "; ".join(filter(None, clauses))


def label_sets(result: RunResult) -> Iterator[Line]:
    """Yield how many labels of a row cannot be ruled out, if sets of them were requested."""
    sets, sizes = result.learned.model.sets, [len(row.label_set) for row in result.outcomes if row.label_set]
    if sets is not None and sizes:
        right = percent(1 - sets.miss_rate, 1)
        yield "sets", f"{right} contain the right label, with {sum(sizes) / len(sizes):.1f} labels on average"


def leaves_and_parents(model: Model, counts: Counts) -> str:
    """Return how many accepted rows of a tree have a leaf, and how many only a parent; empty for other labels."""
    if model.shape.kind != "tree":
        return ""
    parents = sum(rows for label, rows in counts.labels.items() if label not in model.shape.labels)
    leaves = counts.decisions.get("accept", 0) - parents
    return f"; {counted(leaves, 'row has', 'rows have')} a leaf, {count(parents)} only a parent"


def look_at(details: Sequence[str], most: int = FINDINGS_SHOWN) -> Iterator[Line]:
    """Yield what is or may be wrong: the most important findings, and how many more there are."""
    sentences = [*dict.fromkeys(details)]
    left = len(sentences) - most
    for index, finding in enumerate(sentences[:most]):
        more = f" (and {counted(left, 'more finding')}: --details)" if left > 0 and index == most - 1 else ""
        yield "" if index else "look at", b.Styled(clipped(finding, LONGEST_FINDING) + more, "caution")


def cost(calls: int, reused_answers: int, bills: Sequence[Bill]) -> Line:
    """Return the calls of a command, and what its folder has cost so far."""
    reused = f", {counted(reused_answers, 'answer')} from the ledger" if reused_answers else ""
    cost = total_cost([bill.usd for bill in bills])
    spent = f"; {cost}{'' if cost == PRICE_UNKNOWN else ' so far'}" if bills else ""
    if not calls and not reused_answers:  # nothing was asked now
        calls = sum(bill.calls for bill in bills)
    return "cost", f"{counted(calls, 'call')}{reused}{spent}"


def next_of_all(result: BookResult) -> str:
    """Return the command about all variables of a run that helps most now."""
    steps = [next_step(each, result.folder) for each in result.results.values()]
    return min(steps, key=lambda step: next((at for at, start in enumerate(LATER) if step.startswith(start)), -1))


def next_step(result: RunResult, folder_shown: Path | None = None) -> str:
    """Return the command that helps most now."""
    folder, model = quote(str(folder_shown or result.folder.home)), result.learned.model
    if result.tally.failed:
        return again(result.tally.failed)
    unpromised = not result.learned.figures or (model.certificate is not None and not model.certificate.holds)
    if unpromised:  # people can label more rows only if some are left
        return f"pcs {'review' if result.texts and not all(result.dataset.gold or [None]) else 'evaluate'} {folder}"
    if model.certificate is None:
        return f"pcs fit {folder} --max-error 0.1"
    if result.counts.to_review and result.texts:
        return f"pcs review {folder}"
    return f"pcs label NEW.csv --run {folder}" if result.config.ask.models else f"pcs estimate {folder}"
