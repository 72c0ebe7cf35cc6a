"""The top of the page: the question, the main numbers, the promise; and what to look at."""

from __future__ import annotations

from collections.abc import Sequence

from pcs_annotator.base.text import capital, counted
from pcs_annotator.judging.promising.certificate import Certificate
from pcs_annotator.runs.certificate_text import Promised, about_confidence, promised, without_gold
from pcs_annotator.showing.findings.look_at import what_to_look_at
from pcs_annotator.showing.report.formats import count, interval, number, percent, stack, total_cost
from pcs_annotator.showing.report.markup import Child, Markup, joined, section, sentence, tag, tile, user_text
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
    """Return the header: question, labels, models, relations, and a tile per main number."""
    votes = view.result.votes
    facts = [
        ("Question", user_text(view.task.instruction)),
        ("Labels", _labels(view)),
        ("Models", _names(votes.annotators)),
        ("Relations", _names(votes.relations)),
        *([] if view.result.whole is None else [("Rows", _sample(view))]),
    ]
    return tag(
        "header",
        tag("p", f"perceived-confidence {view.origin.version} · run report", class_="overline"),
        tag("h1", user_text(view.data_name)),
        tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in facts), class_="facts"),
        _tiles(view),
    )


def _sample(view: View) -> str:
    rows, sample = view.result.counts.rows, len(view.result.outcomes)
    return (
        f"All {count(rows)} rows are labelled, and labels and decisions are counted exactly. Weights, quality, answers "
        f"and the rows below come from a sample of {count(sample)} rows: those with gold labels, and others at random."
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
    rows = result.counts.rows
    labelled = rows - result.unlabelled
    bills = result.bills
    calls = sum(bill.calls for bill in bills)
    tiles = [
        tile(count(labelled), "rows labelled", f"of {count(rows)}"),
        *_reviewed_tile(view),
        *_accepted_tile(view),
        *_quality_tiles(view),
        tile(count(calls), "model calls" if calls != 1 else "model call", total_cost([b.usd for b in bills])),
    ]
    return tag("div", *tiles, class_="tiles")


def _reviewed_tile(view: View) -> list[Markup]:
    counts = view.result.verdicts.counts
    if not counts["rows"]:
        return []
    return [tile(count(counts["rows"]), "rows reviewed", f"{count(counts['learned_from'])} of them learned from")]


def _accepted_tile(view: View) -> list[Markup]:
    rows = view.result.counts.rows
    if not view.decided or not rows:
        return []
    accepted = view.decisions["accept"]
    review = f"{counted(rows - accepted, 'row')} for review"
    detail = "for lack of gold labels" if view.result.learned.model.by_agreement else review
    return [tile(percent(accepted, rows), "accepted", detail)]


def _quality_tiles(view: View) -> list[Markup]:
    if not view.result.learned.figures:
        gold = counted(view.gold_rows, "gold row") if view.gold_rows else "no gold rows"
        return [tile("unknown", "quality", f"{gold}: see below")]
    first = view.result.learned.figures[0]
    return [
        *(
            tile(number(found.value), title, f"{interval(found.interval)} {HELD_OUT}")
            for found, title in (
                (first.auroc, "class AUROC"),
                (first.auroc_confidence, "confidence AUROC"),
                (first.accuracy, "accuracy"),
            )
            if found is not None
        ),
        tile(count(view.gold_rows), "gold rows" if view.gold_rows != 1 else "gold row", "for learning and testing"),
    ]


def promise(view: View) -> Markup:
    """Return the promise, what it means for these rows, and what it is based on; or why there is none."""
    model = view.result.learned.model
    if model.by_agreement:
        shown = _said("no promise", "warn", without_gold(view.result.counts))
    elif model.certificate is None:
        shown = _stamped("no promise", "quiet", "No promise was requested", sentence(NOT_ASKED))
    else:
        shown = _said(*_stamp(model.certificate), promised(model.certificate))
    basis = None if model.certificate is None else _basis(model.certificate)
    drift = view.result.learned.drift
    compared = drift and sentence(capital(f"{drift.sentence}; {drift.unseen}."))
    rough = about_confidence(model)
    return section(
        "promise",
        "Promise",
        shown,
        _decisions(view),
        sentence(capital(f"{rough}.")) if rough else None,
        compared,
        basis,
    )


def _said(stamp: str, kind: str, said: Promised) -> Markup:
    what, _, why = said.headline.removeprefix("promise: ").partition(": ")
    details = (why, *said.details) if why else said.details
    return _stamped(stamp, kind, capital(what), tag("ul", *(tag("li", f"{capital(one)}.") for one in details)))


def _stamp(certificate: Certificate) -> tuple[str, str]:
    finding = certificate.audit and certificate.audit.finding
    if finding == "revoked":
        return "revoked by audit", "bad"
    if not certificate.holds:
        return "no promise", "warn"
    # only a check by people is evidence about these rows; a promise is about the method, so it is not green
    if finding == "confirmed":
        return "confirmed by audit", "good"
    return ("promise, audit open" if finding == "open" else "promise, not audited"), "given"


def _stamped(stamp: str, kind: str, text: str, *more: Child) -> Markup:
    return tag(
        "div", tag("span", stamp, class_=f"stamp {kind}"), tag("p", text, class_="promise"), *more, class_="cert"
    )


def _basis(certificate: Certificate) -> Markup:
    facts = [("gold rows used", count(certificate.gold_rows))]
    if certificate.rows_needed is not None:
        even, likely = map(count, certificate.rows_needed)
        facts.append(("gold rows needed", f"{even} for even odds, {likely} for four to one"))
    if certificate.fingerprint is not None:
        votes, gold, version = certificate.fingerprint
        facts.append(("fingerprint", f"votes {votes} · gold {gold} · version {version}"))
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in facts), class_="basis")


def _decisions(view: View) -> Markup | None:
    """Return a bar of how many rows are accepted, agree, are sent to review, or have no label, with its key."""
    rows = view.result.counts.rows
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


def look_at(view: View) -> Markup:
    """Return what is or may be wrong with the run, the most important first."""
    # These are our sentences: one that begins with an Arabic label must not be read from the right.
    entries = [
        tag("li", tag("span", flag.kind, class_="chip warn"), " ", tag("span", f"{flag.detail}."))
        for flag in what_to_look_at(view.result.facts)
    ]
    none = sentence("Nothing stood out. How good the labels are is below, under Promise and Quality.")
    return section("look-at", "What to look at", tag("ul", *entries, class_="notices") if entries else none)
