"""The top of the page: what was asked, the first numbers, the promise, and warnings."""

from __future__ import annotations

from collections.abc import Sequence

from pcs_annotator.judging.promising.certificate import Certificate
from pcs_annotator.pipeline.certificate_text import promised
from pcs_annotator.pipeline.report.formats import (
    capital,
    count,
    counted,
    interval,
    number,
    percent,
    stack,
    total_dollars,
)
from pcs_annotator.pipeline.report.markup import Child, Markup, joined, section, sentence, tag, user_text
from pcs_annotator.pipeline.report.view import View

MOST_LABELS = 12


def headline(view: View) -> Markup:
    """Return the top of the page."""
    votes = view.result.votes
    facts = [
        ("Question", user_text(view.task.instruction)),
        ("Labels", _labels(view)),
        ("Models", _names(votes.annotators)),
        ("Shown as", _names(votes.relations)),
    ]
    return tag(
        "header",
        tag("p", f"pcs-annotator {view.origin.version} · report of a run", class_="overline"),
        tag("h1", user_text(view.data_name)),
        tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in facts), class_="facts"),
        _tiles(view),
    )


def _labels(view: View) -> Markup:
    shown = [_label(label, view.task.meanings.get(label)) for label in view.task.labels[:MOST_LABELS]]
    more = len(view.task.labels) - len(shown)
    return joined(*shown, tag("span", f"and {more} more", class_="quiet") if more > 0 else None)


def _label(label: str, meaning: str | None) -> Markup:
    chip = tag("span", label, class_="chip", dir="auto")
    return joined(chip, tag("span", meaning, class_="quiet meaning", dir="auto") if meaning else None, " ")


def _names(names: Sequence[str]) -> Markup:
    return joined(*(joined(tag("span", name, class_="name", dir="auto"), " ") for name in names))


def _tiles(view: View) -> Markup:
    result = view.result
    rows = len(result.outcomes)
    labelled = rows - result.unlabelled
    bills = result.bills
    calls = sum(bill.calls for bill in bills)
    tiles = [
        _tile(count(labelled), "rows labelled", f"of {count(rows)}"),
        *_accepted_tile(view),
        *_quality_tiles(view),
        _tile(count(calls), "calls paid for" if calls != 1 else "call paid for", total_dollars([b.usd for b in bills])),
    ]
    return tag("div", *tiles, class_="tiles")


def _accepted_tile(view: View) -> list[Markup]:
    rows = len(view.result.outcomes)
    if not view.decided or not rows:
        return []
    accepted = view.decisions["accept"]
    left = counted(rows - accepted, "row")
    detail = "by agreement, no promise" if view.result.learned.model.by_agreement else f"{left} left to a person"
    return [_tile(percent(accepted, rows), "accepted", detail)]


def _quality_tiles(view: View) -> list[Markup]:
    if not view.result.learned.figures:
        gold = counted(view.gold_rows, "gold row") if view.gold_rows else "no gold rows"
        return [_tile("not known", "how good it is", f"{gold}: see below")]
    first = view.result.learned.figures[0]
    return [
        _tile(number(first.auroc.value), "AUROC", f"{interval(first.auroc.interval)} held out"),
        _tile(number(first.accuracy.value), "accuracy", f"{interval(first.accuracy.interval)} held out"),
        _tile(count(view.gold_rows), "gold rows" if view.gold_rows != 1 else "gold row", "to learn and to test"),
    ]


def _tile(value: str, title: str, detail: Child) -> Markup:
    return tag("div", tag("b", value), tag("span", title), tag("small", detail), class_="tile")


def notices(view: View) -> Markup:
    """Return the flags of the fit, or that there are none."""
    told = view.result.learned.model.weights.diagnostics
    entries = [
        tag("li", tag("span", flag.kind, class_="chip warn"), " ", user_text(flag.detail, "span"))
        for flag in told.flags
    ]
    unlabelled = view.result.unlabelled
    if unlabelled:
        text = f"{counted(unlabelled, 'row has', 'rows have')} no label, because nobody gave a usable answer."
        entries.append(tag("li", tag("span", "no label", class_="chip warn"), " ", text))
    calm = sentence("Nothing to report: no model is silent or always says the same, and every row has a label.")
    return section("notices", "What to look at", tag("ul", *entries, class_="notices") if entries else calm)


DECISIONS = (("accept", "accepted", "yes"), ("review", "to review", "maybe"), ("none", "no label", "no"))
NOT_ASKED = (
    "No promise was asked for, so no label is accepted or refused. pcs fit FOLDER --max-error 0.05 asks for one, free "
    "of charge."
)
BY_AGREEMENT = (
    "Without gold labels nothing can be promised. Labels are accepted where every answer agrees, and that is no "
    "measure of how often they are right: models can agree and be wrong together."
)


def certificate(view: View) -> Markup:
    """Return the promise in words, what it means for these rows, and everything it rests on."""
    model = view.result.learned.model
    if model.by_agreement:
        told = _stamped("uncalibrated", "warn", "Accepted by agreement only, with no promise", sentence(BY_AGREEMENT))
    elif model.certificate is None:
        told = _stamped("no promise", "quiet", "Nothing is promised", sentence(NOT_ASKED))
    else:
        told = _certified(model.certificate)
    deed = None if model.certificate is None else _deed(model.certificate)
    return section("certificate", "Certificate", told, _decisions(view), deed)


def _certified(certificate: Certificate) -> Markup:
    stamp, kind = _stamp(certificate)
    headline, details = promised(certificate)
    what, _, why = headline.removeprefix("promise: ").partition(": ")
    details = (why, *details) if why else details
    return _stamped(stamp, kind, capital(what), tag("ul", *(tag("li", f"{capital(one)}.") for one in details)))


def _stamp(certificate: Certificate) -> tuple[str, str]:
    finding = certificate.audit and certificate.audit.finding
    if finding == "revoked":
        return "revoked by audit", "bad"
    if not certificate.holds:
        return "no promise", "warn"
    return ("confirmed by audit" if finding == "confirmed" else "promise holds"), "good"


def _stamped(stamp: str, kind: str, headline: str, *more: Child) -> Markup:
    return tag(
        "div", tag("span", stamp, class_=f"stamp {kind}"), tag("p", headline, class_="promise"), *more, class_="cert"
    )


def _deed(certificate: Certificate) -> Markup:
    facts = [("gold rows behind it", count(certificate.gold_rows))]
    if certificate.rows_needed is not None:
        facts.append(("gold rows it would take", f"about {count(certificate.rows_needed)}"))
    if certificate.fingerprint is not None:
        votes, gold, version = certificate.fingerprint
        facts.append(("fingerprint", f"votes {votes} · gold {gold} · version {version}"))
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in facts), class_="deed")


def _decisions(view: View) -> Markup | None:
    """Return how many rows are accepted, left to a person, or without label, as one bar with its key."""
    rows = len(view.result.outcomes)
    if not rows or not view.decided:
        return None
    counts = view.decisions
    bar = stack([(counts[name] / rows, kind) for name, _, kind in DECISIONS])
    keys = [
        tag(
            "li",
            tag("span", class_=f"swatch {kind}", aria_hidden="true"),
            tag("b", percent(counts[name], rows)),
            f" {title} ",
            tag("span", f"({count(counts[name])})", class_="quiet"),
        )
        for name, title, kind in DECISIONS
        if counts[name]
    ]
    return tag("div", bar, tag("ul", *keys, class_="keys"), class_="decisions")
