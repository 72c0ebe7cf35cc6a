"""What was promised and measured as text, the same on the command line and in the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pcs_annotator.core.outcome import Counts
from pcs_annotator.core.weights import Flag, Weights
from pcs_annotator.judging.evaluation.evaluate import FIRST_QUESTION
from pcs_annotator.judging.evaluation.figures import ABOUT_AUROC, ABOUT_ECE, NO_CONFIDENCE_AUROC, MethodFigures
from pcs_annotator.judging.metrics.significance import BootstrapTest
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promising.acceptance import EVERY_LABEL
from pcs_annotator.judging.promising.certificate import Audit, Certificate
from pcs_annotator.judging.weighing.calibration import ROWS_TO_CALL_CALIBRATED

SHOWN = 0.05
"""A difference counts as shown where its adjusted p-value is below this."""
LEARN_NOTHING = ("uniform", "majority")
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
    if certificate.assumed_rows:
        rows = f"{certificate.assumed_rows:,} gold labels that came with the data"
        details.append(f"assuming that the {rows} are of rows drawn at random")
    if certificate.audit is not None:
        details.append(_audited(certificate.audit))
    return Promised(f"promise: {what}", tuple(details))


def _guarantee(certificate: Certificate) -> Iterator[str]:
    """Yield what is guaranteed and what is not."""
    promise = certificate.promise
    if promise.kind == "accepted-and-wrong":
        yield "this promise holds on average over samples of gold rows; error-among-accepted is stricter"
        return
    yield (
        f"guaranteed: over all fits with other gold rows of these texts, at most {_percent(promise.delta)} end in a "
        "promise that is broken; not guaranteed: that this one is kept, nor anything for other kinds of texts"
    )
    if certificate.spent:
        yield (
            f"tested at {_percent(certificate.level)}, because earlier looks at the gold labels without a promise have "
            f"used {_percent(certificate.spent)} of the {_percent(promise.delta)}"
        )


def without_gold(counts: Counts) -> Promised:
    """Return that nothing is promised without gold labels, and on how many rows answers agree."""
    headline = "no label is accepted, because there are no gold labels"
    agreeing = counts.decisions.get("agree", 0)
    if not agreeing:
        return Promised(headline, ("all rows are for review",))
    rows = f"{agreeing:,} of {counts.rows:,} rows"
    said = f"answers agree on {rows}, which promises nothing: models can agree and be wrong together"
    return Promised(headline, (said, AGREEMENT_MEASURED))


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
    """Return the promise itself, as a clause."""
    promise = certificate.promise
    each = ", per label" if promise.per_label else ""
    if promise.kind == "accepted-and-wrong":
        return f"at most {_percent(promise.max_error)} of all rows are accepted and wrong{each}"
    return (
        f"at most {_percent(promise.max_error)} of the accepted labels are wrong, "
        f"with {_percent(promise.certainty)} certainty{each}"
    )


def _threshold(certificate: Certificate) -> str:
    if EVERY_LABEL in certificate.thresholds:
        return f"accepted at confidence ≥ {certificate.thresholds[EVERY_LABEL]:.3f}"
    listed = ", ".join(f"{label} ≥ {value:.3f}" for label, value in certificate.thresholds.items())
    return f"accepted at confidence: {listed}; other labels are never accepted"


def _audited(audit: Audit) -> str:
    found = {
        "confirmed": "an audit confirms it",
        "revoked": "an audit revokes it",
        "open": "an audit neither confirms nor revokes it yet",
    }[audit.finding]
    low, high = (_percent(end) for end in audit.error)
    rate = f"{audit.wrong} of {audit.rows} accepted rows were wrong, an error rate of {low} to {high}"
    if audit.level is None:  # by an earlier version
        return f"{found}: {rate}"
    return f"{found}: {rate} ({_percent(audit.level)} interval, valid at every look while the audit grows)"


def about_auroc(figures: Sequence[MethodFigures]) -> str:
    """Return what the two AUROCs among these figures are, and why the second is missing where it is."""
    found = [one.auroc_confidence is not None for one in figures]
    older = "" if any(found) else " Runs fitted by an earlier version have none: pcs fit FOLDER adds it."
    return ABOUT_AUROC if all(found) else f"{ABOUT_AUROC} {NO_CONFIDENCE_AUROC}{older}"


def about_confidence(model: Model) -> str:
    """Return how rough the confidence is; empty if it is calibrated, or if there is none."""
    if model.calibrator is None or model.calibrated:
        return ""
    off = "" if model.margin is None else f", ± {100 * model.margin:.0f} points on average"
    return (
        f"confidence is rough: from {model.gold_rows} gold rows{off}; it is shrunk towards chance, and called "
        f"calibrated from {ROWS_TO_CALL_CALIBRATED} gold rows on"
    )


def about_weights(weights: Weights) -> str:
    """Return how weights came about: learned, and from what, or why not."""
    found = weights.diagnostics
    if not found.gold_rows:
        return "there are no gold labels, so all votes count the same"
    if found.nothing_learned:
        return f"nothing was learned: {found.nothing_learned}"
    if found.optimiser in LEARN_NOTHING:
        return f"the weights are fixed, because {found.optimiser} learns nothing"
    rows = f"{found.gold_rows:,} gold row{'s' if found.gold_rows > 1 else ''}"
    text = f"weights learned from {rows} by {found.optimiser or 'a custom optimiser'}"
    if not found.candidates:
        return text
    by_loss = sorted(found.candidates.items(), key=lambda pair: (pair[1], pair[0]))
    losses = ", ".join(f"{name} {loss:.3f}" for name, loss in by_loss)
    return f"{text}, which had the lowest log-loss in cross-validation ({losses})"


def about_evidence(weights: Weights) -> str:
    """Return what the weights are a summary of; empty if they are all that was learned."""
    if weights.evidence is None:
        return ""
    if weights.evidence.reads != "mean log-odds":
        return "This optimiser also learns which labels each model confuses; the weights are a summary of that."
    averaged = "The log-odds of a model's answers are averaged, so its questions count the same."
    found = weights.diagnostics
    if not found.gold_rows or found.nothing_learned or found.optimiser in LEARN_NOTHING:
        return averaged
    return (
        f"{averaged} The optimiser learns a scale per model and label, and an offset per label, which corrects for "
        "favourite labels; the weights are a summary of that."
    )


def about_ece(figures: Sequence[MethodFigures]) -> str:
    """Return what the calibration errors among these figures are; an earlier version counted noise among them."""
    if any(one.questions is None for one in figures):
        return "ECE was measured by an earlier version and includes noise: pcs fit FOLDER measures it again."
    return ABOUT_ECE


def what_more_questions_bought(figures: Sequence[MethodFigures], unit: str = "questions") -> str:
    """Return in one sentence what all questions bought over the first one alone; empty if that was not measured.

    `unit` is what the price is counted in.
    """
    first = next((one for one in figures if one.method == FIRST_QUESTION), None)
    if first is None or first.behind is None or first.accuracy_behind is None:
        return ""
    times = (figures[0].questions or 0) / (first.questions or 1)
    asking = "Asking twice" if round(times, 1) == 2 else "Asking every question, not just the first,"
    gains = f"{_points(first.behind, 'class AUROC')} and {_points(first.accuracy_behind, 'accuracy')}"
    shown = first.holm is not None and first.holm < SHOWN and first.behind.difference > 0
    found = "" if shown else "; a gain in class AUROC cannot be shown on these rows"
    return f"{asking} bought {gains} for {times:.2g} × the {unit}{found}."


def _points(test: BootstrapTest, metric: str) -> str:
    value, low, high = (f"{100 * one:+.1f}".replace("-", "−") for one in (test.difference, *test.interval.rounded(3)))
    return f"{value} points of {metric} [{low.lstrip('+')}, {high.lstrip('+')}]"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
