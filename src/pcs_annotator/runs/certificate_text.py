"""What was promised and measured as text, the same on the command line and in the report."""

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from pcs_annotator.base.text import counted, listed
from pcs_annotator.core.outcome import Counts
from pcs_annotator.core.weights import Flag
from pcs_annotator.judging.calibrate import ROWS_TO_CALL_CALIBRATED
from pcs_annotator.judging.evaluate.passage_figures import PassageFigures
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promise.certificate import Audit, Certificate
from pcs_annotator.judging.promise.promise import Promise
from pcs_annotator.judging.promise.thresholds import EVERY_LABEL

AGREEMENT_MEASURED = (
    "on nine sets of recorded and simulated answers, 25 to 91 % of the labels were right where both answers of a model "
    "agreed"
)


class Promised(NamedTuple):
    """What is promised as text: one sentence, and the facts behind it."""

    headline: str
    details: tuple[str, ...]


def promised(certificate: Certificate) -> Promised:
    """Return a certificate as text."""
    what = what_is_promised(certificate)
    if not certificate.holds:
        why = certificate.why_not if certificate.audit is None else _audited(certificate.audit)
        return Promised(f"no promise that {what}: {why}", ())
    details = [*_guarantee(certificate), _threshold(certificate), f"based on {certificate.split}"]
    if number := certificate.undecided_rows:
        rows = counted(number, "row that was drawn at random has", "rows that were drawn at random have")
        details.append(f"{rows} no decision of people, and every label there counts as wrong until somebody decides")
    if certificate.audit is not None:
        details.append(_audited(certificate.audit))
    return Promised(f"promise: {what}", tuple(details))


def _guarantee(certificate: Certificate) -> Iterator[str]:
    promise = certificate.promise
    if not promise.tested:
        yield "this promise holds on average over samples of gold rows; error-among-accepted is stricter"
        yield (
            "it covers the rows without gold at this fit, and nearly holds for later texts at the same confidence; "
            "fitting again until something is accepted brings more errors"
        )
        if certificate.tried:
            every = _percent(min(certificate.tried + promise.max_error, 1.0))
            yield f"earlier fits accepted nothing: over all of them together, at most {every} are wrong on average"
        return
    yield (
        f"guaranteed: of all fits with other gold rows of these texts, at most {_percent(promise.delta)} make a "
        "promise that fails; not guaranteed: that this one holds, or anything about other kinds of texts"
    )
    if certificate.spent:
        yield (
            f"tested at {_percent(certificate.level)}, because earlier tests without a promise used "
            f"{_percent(certificate.spent)} of the {_percent(promise.delta)}"
        )


Standing = Literal["none", "given", "open", "confirmed", "revoked"]
WORST_FIRST: tuple[Standing, ...] = ("revoked", "none", "open", "given", "confirmed")


def standing(certificate: Certificate) -> Standing:
    """Return whether something is promised, and what an audit found about it."""
    finding = certificate.audit and certificate.audit.finding
    if finding == "revoked":
        return "revoked"
    return (finding or "given") if certificate.holds else "none"


def without_gold(counts: Counts) -> Promised:
    """Return that nothing is promised without gold labels, and on how many rows answers agree."""
    headline = "no label is accepted, because there are no gold labels"
    agreeing = counts.decisions.get("agree", 0)
    if not agreeing:
        return Promised(headline, ("all rows are for review",))
    rows = f"{agreeing:,} of {counts.rows:,} rows"
    sentence = f"answers agree on {rows}, which promises nothing: models can agree and be wrong together"
    return Promised(headline, (sentence, AGREEMENT_MEASURED))


def fallen_away(earlier: Model, now: Model) -> Model:
    """Return the model, with a flag if a promise that the earlier one made does not hold any more."""
    before, after = earlier.certificate, now.certificate
    if after is not None and (after.holds or after.revoked):
        return now
    flags = [flag for flag in earlier.weights.diagnostics.flags if flag.kind == "promise fell away" and after]
    if before is not None and before.holds:
        why = after.why_not if after else "--max-error requests it"
        detail = f"an earlier fit promised that {what_is_promised(before)}; now nothing is promised: {why}"
        flags = [Flag("promise fell away", detail)]
    return now.flagged(*flags)


def what_is_promised(certificate: Certificate) -> str:
    """Return the promise itself, as a clause, with what it assumes."""
    levels = ", at every level of the tree" if certificate.upper else ""
    unit = "row" if certificate.promise.of == "labels" else "text"
    rows = counted(certificate.assumed_rows, f"gold {unit} in the data was", f"gold {unit}s in the data were")
    assumed = f", if the {rows} drawn at random" if certificate.assumed_rows and certificate.found else ""
    return f"{words_of(certificate.promise)}{levels}{assumed}"


def at_least_found(figures: PassageFigures, certificate: Certificate) -> str:
    """Return how many of the passages are accepted at least; empty if that is not known."""
    if figures.accepted is None or figures.at_least is None:
        return ""
    sure = f"with {_percent(certificate.promise.certainty)} certainty"
    share = f"{_percent(round(figures.accepted.recall, 2))} of those in gold texts"
    least = _percent(round(figures.at_least, 2))
    return f"at least {least} of all {certificate.promise.of} are accepted, {sure} ({share})"


def risk_used(certificate: Certificate) -> str:
    """Return how much of the risk that a promise is broken looks at gold have used; empty if they have no level."""
    used, promise = certificate.spent + certificate.used, certificate.promise
    return f"tests so far used {_percent(used)} of the {_percent(promise.delta)} risk" if promise.tested else ""


def words_of(promise: Promise, what: str = "") -> str:
    """Return what a promise says, as a clause."""
    each = ", per label" if promise.per_label else f", for each {promise.by} separately" if promise.by else ""
    most = f"at most {_percent(promise.max_error)} of"
    how = f"with {_percent(promise.certainty)} certainty" if promise.tested else "on average"
    return f"{most} the accepted {what or promise.of} are {promise.far}, {how}{each}"


def _threshold(certificate: Certificate) -> str:
    scale = certificate.promise.near and not certificate.promise.tolerance
    sure = "probability within one step" if scale else "confidence"
    if certificate.upper:
        parents = ", the one above it at ".join(map(_least, certificate.upper))
        return f"accepted at {sure} {_least(certificate.thresholds)}; otherwise its parent at {parents}"
    if EVERY_LABEL in certificate.thresholds:
        return f"accepted at {sure} {_least(certificate.thresholds)}"
    if certificate.promise.by:
        missing = without_promise(certificate)
        return f"accepted at {sure}: {_least(certificate.thresholds)}{missing and f'; {missing}'}"
    return f"accepted at {sure}: {_least(certificate.thresholds)}; other labels are never accepted"


def without_promise(certificate: Certificate) -> str:
    """Return the groups of texts for which nothing is promised, in a clause; empty if there are none."""
    rows = {name: number for name, number in certificate.groups.items() if name not in certificate.thresholds}
    if not rows:
        return ""
    few = listed((f"{name} ({counted(number, 'gold row')})" for name, number in rows.items()), len(rows))
    return f"nothing is promised for {certificate.promise.by} {few}, and all their rows are for review"


def _least(thresholds: Mapping[str, float]) -> str:
    if not thresholds:
        return "no confidence"
    return ", ".join(f"{label} ≥ {value:.3f}".strip() for label, value in thresholds.items())


def _audited(audit: Audit) -> str:
    finding = {
        "confirmed": "an audit confirms it",
        "revoked": "an audit revokes it",
        "open": "an audit neither confirms nor revokes it yet",
    }[audit.finding]
    low, high = map(_percent, audit.error)
    rate = f"{audit.wrong} of {audit.rows} accepted rows were wrong, an error rate of {low} to {high}"
    return f"{finding}: {rate} ({_percent(audit.level)} interval, valid at every look while the audit grows)"


def about_confidence(model: Model) -> str:
    """Return how rough the confidence is; empty if it is calibrated, or if there is none."""
    if model.calibrator is None or model.calibrated:
        return ""
    off = "" if model.margin is None else f", ± {100 * model.margin:.0f} points on average"
    return (
        f"confidence is rough: from {model.gold_rows} gold rows{off}; it is shrunk towards chance, and called "
        f"calibrated from {ROWS_TO_CALL_CALIBRATED} gold rows on"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
