"""The top of the page: the question, the main numbers, the promise; and what to look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pcs_annotator.base.text import capital, counted
from pcs_annotator.core.outcome import Counts
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promising.certificate import Certificate
from pcs_annotator.judging.promising.drift import Drift
from pcs_annotator.runs.certificate_text import Promised, about_confidence, promised, without_gold
from pcs_annotator.runs.run_result import Facts
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.findings.look_at import what_to_look_at
from pcs_annotator.showing.formats import count, interval, number, percent, total_cost
from pcs_annotator.showing.markup import Markup
from pcs_annotator.showing.report.document import header

if TYPE_CHECKING:  # it imports the code that asks models, which a promise about a table of votes does not need
    from pcs_annotator.showing.report.view import View

MOST_LABELS = 12
HELD_OUT = "held\N{NO-BREAK SPACE}out"
DECISIONS = (
    ("accept", "accepted", "yes"),
    ("agree", "answers agree", "same"),
    ("review", "to review", "maybe"),
    ("none", "no label", "no"),
)
NOT_ASKED = (
    "No label is accepted or sent to review. To get a promise, run pcs fit FOLDER --max-error 0.05; no model is called."
)


def headline(view: View) -> Markup:
    """Return the header: question, labels, models, relations, and the main numbers."""
    votes = view.result.votes
    facts: list[tuple[str, b.Words]] = [
        ("Question", b.name(view.task.instruction)),
        ("Labels", tuple(_labels(view))),
        ("Models", _names(votes.annotators)),
        ("Relations", _names(votes.relations)),
    ]
    if view.result.whole is not None:
        facts.append(("Rows", _sample(view)))
    kind = f"perceived-confidence {view.origin.version} · run report"
    return header(b.name(view.data_name), b.KeyValues(facts, "facts"), b.KeyFigures([*_figures(view)]), overline=kind)


def _sample(view: View) -> str:
    rows, sample = view.result.counts.rows, len(view.result.outcomes)
    return (
        f"All {count(rows)} rows are labelled, and labels and decisions are counted exactly. Weights, quality, answers "
        f"and the rows below come from a sample of {count(sample)} rows: those with gold labels, and others at random."
    )


def _labels(view: View) -> Iterator[str | b.Styled]:
    for label in view.task.labels[:MOST_LABELS]:
        yield b.Styled(label, "chip", own=True)
        if meaning := view.task.meanings.get(label):
            yield b.Styled(meaning, "meaning", own=True)
        yield " "
    if more := len(view.task.labels[MOST_LABELS:]):
        yield b.Styled(f"and {more} more", "quiet")


def _names(names: Sequence[str]) -> b.Words:
    return tuple(part for one in names for part in (b.Styled(one, "listed", own=True), " "))


def _figures(view: View) -> Iterator[b.KeyFigure]:
    result = view.result
    rows, bills, reviewed = result.counts.rows, result.bills, result.verdicts.counts
    yield b.KeyFigure(count(rows - result.unlabelled), "rows labelled", f"of {count(rows)}")
    if reviewed["rows"]:
        learned_from = f"{count(reviewed['learned_from'])} of them learned from"
        yield b.KeyFigure(count(reviewed["rows"]), "rows reviewed", learned_from)
    if result.learned.model.decided_by and rows:
        accepted = _decisions(result.counts)["accept"]
        review = f"{counted(rows - accepted, 'row')} for review"
        why = "for lack of gold labels" if result.learned.model.by_agreement else review
        yield b.KeyFigure(percent(accepted, rows), "accepted", why)
    yield from _quality(view)
    calls = sum(bill.calls for bill in bills)
    yield b.KeyFigure(count(calls), "model calls" if calls != 1 else "model call", total_cost([b.usd for b in bills]))


def _quality(view: View) -> Iterator[b.KeyFigure]:
    if not view.result.learned.figures:
        gold = counted(view.gold_rows, "gold row") if view.gold_rows else "no gold rows"
        yield b.KeyFigure("unknown", "quality", f"{gold}: see below")
        return
    first = view.result.learned.figures[0]
    measured = (
        (first.auroc, "class AUROC"),
        (first.figures.get("auroc_confidence"), "confidence AUROC"),
        (first.accuracy, "accuracy"),
    )
    for found, title in measured:
        if found is not None:
            yield b.KeyFigure(number(found.value), title, f"{interval(found.interval)} {HELD_OUT}")
    title = "gold rows" if view.gold_rows != 1 else "gold row"
    yield b.KeyFigure(count(view.gold_rows), title, "for learning and testing")


def promise(model: Model, drift: Drift | None, counts: Counts) -> b.Section:
    """Return the promise, what it means for these rows, and what it is based on; or why there is none."""
    rough, found = about_confidence(model), _decisions(counts)
    parts = [(title, kind, found[decision]) for decision, title, kind in DECISIONS]
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
    if model.by_agreement:
        return _said(b.Stamp("no promise", "warn"), without_gold(counts))
    if model.certificate is None:
        return _cert(b.Stamp("no promise", "quiet"), "No promise was requested", b.text(NOT_ASKED))
    return _said(_stamp(model.certificate), promised(model.certificate))


def _said(stamp: b.Stamp, said: Promised) -> b.Group:
    what, _, why = said.headline.removeprefix("promise: ").partition(": ")
    details = (why, *said.details) if why else said.details
    return _cert(stamp, capital(what), b.Bullets([f"{capital(one)}." for one in details]))


def _cert(stamp: b.Stamp, said: str, more: b.Block) -> b.Group:
    return b.Group([stamp, b.Paragraph(said, "promise"), more], kind="cert")


def _stamp(certificate: Certificate) -> b.Stamp:
    finding = certificate.audit and certificate.audit.finding
    if finding == "revoked":
        return b.Stamp("revoked by audit", "bad")
    if not certificate.holds:
        return b.Stamp("no promise", "warn")
    # only a check by people is evidence about these rows; a promise is about the method, so it is not green
    if finding == "confirmed":
        return b.Stamp("confirmed by audit", "good")
    return b.Stamp("promise, audit open" if finding == "open" else "promise, not audited", "given")


def _basis(certificate: Certificate) -> b.KeyValues:
    facts: list[tuple[str, b.Words]] = [("gold rows used", count(certificate.gold_rows))]
    if certificate.rows_needed is not None:
        even, likely = map(count, certificate.rows_needed)
        facts.append(("gold rows needed", f"{even} for even odds, {likely} for four to one"))
    if certificate.fingerprint is not None:
        votes, gold, version = certificate.fingerprint
        facts.append(("fingerprint", f"votes {votes} · gold {gold} · version {version}"))
    return b.KeyValues(facts, "basis")


def _decisions(counts: Counts) -> Counter[str]:
    """Return how many rows are accepted, agree, are sent to review, or have no label (`none`)."""
    # a row without a label is always for review
    return Counter(counts.decisions) - Counter(review=counts.unlabelled) + Counter(none=counts.unlabelled)


def look_at(facts: Facts) -> b.Section:
    """Return what is or may be wrong with the run, the most important first."""
    # These are our sentences: one that begins with an Arabic label must not be read from the right.
    found: list[b.Words] = [
        (b.Styled(flag.kind.replace("annotator", "model"), "warn"), " ", b.Styled(f"{flag.detail}.", "plain"))
        for flag in what_to_look_at(facts)
    ]
    none = b.text("Nothing stood out. How good the labels are is below, under Promise and Quality.")
    return b.section("look-at", "What to look at", b.Bullets(found, "notices") if found else none)
