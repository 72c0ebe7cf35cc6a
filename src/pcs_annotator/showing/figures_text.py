"""What was learned and measured as text: where weights come from, what figures mean, what more questions bought."""

from __future__ import annotations

from collections.abc import Sequence

from pcs_annotator.core.weights import Weights
from pcs_annotator.judging.evaluation.evaluate import FIRST_QUESTION, VOTES_ALONE
from pcs_annotator.judging.evaluation.figures import ABOUT_AUROC, NO_CONFIDENCE_AUROC, MethodFigures
from pcs_annotator.judging.metrics.significance import BootstrapTest

SHOWN = 0.05
"""A difference counts as shown where its adjusted p-value is below this."""
LEARN_NOTHING = ("uniform", "majority")


def about_auroc(figures: Sequence[MethodFigures]) -> str:
    """Return what the two AUROCs among these figures are, and why the second is missing where it is."""
    found = ["auroc_confidence" in one.figures for one in figures]
    older = "" if any(found) else " Runs fitted by an earlier version have none: pcs fit FOLDER adds it."
    return ABOUT_AUROC if all(found) else f"{ABOUT_AUROC} {NO_CONFIDENCE_AUROC}{older}"


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


def what_texts_add(figures: Sequence[MethodFigures]) -> str:
    """Return in one sentence what the model of the texts adds to the votes; empty if it has no say."""
    alone = next((one for one in figures if one.method == VOTES_ALONE), None)
    if alone is None or alone.accuracy_behind is None:
        return ""
    return f"Reading the texts adds {_points(alone.accuracy_behind, 'accuracy')} to the votes, without a call."


def _points(test: BootstrapTest, metric: str) -> str:
    value, low, high = (f"{100 * one:+.1f}".replace("-", "−") for one in (test.difference, *test.interval.rounded(3)))
    return f"{value} points of {metric} [{low.lstrip('+')}, {high.lstrip('+')}]"
