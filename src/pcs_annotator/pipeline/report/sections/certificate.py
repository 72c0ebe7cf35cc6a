"""What is promised about the accepted labels, and what that rests on; or why nothing is promised."""

from __future__ import annotations

from pcs_annotator.judging.promising.certificate import Certificate
from pcs_annotator.pipeline.certificate_text import promised
from pcs_annotator.pipeline.report.bars import stack
from pcs_annotator.pipeline.report.formats import capital, count, percent
from pcs_annotator.pipeline.report.markup import Child, Markup, section, sentence, tag
from pcs_annotator.pipeline.report.view import View

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
