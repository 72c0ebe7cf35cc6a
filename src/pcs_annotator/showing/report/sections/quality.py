"""Quality on rows that the fit did not see, and the weights that it learned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pcs_annotator.base.text import capital, counted
from pcs_annotator.judging.evaluation.evaluate import FIRST_QUESTION, LOGPROB, VOTES_ALONE
from pcs_annotator.judging.evaluation.methods import SCALED_LOGPROB, ZERO_SHOT
from pcs_annotator.judging.metrics.significance import BootstrapTest
from pcs_annotator.runs.learn import Learned
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.figures_text import (
    SHOWN,
    about_auroc,
    about_ece,
    what_more_questions_bought,
    what_texts_add,
)
from pcs_annotator.showing.formats import DASH, interval, number, signed
from pcs_annotator.showing.report.sections.agreement import against_gold, beyond_chance, coders, per_label
from pcs_annotator.showing.report.sections.curves import calibration, risk, separation
from pcs_annotator.showing.report.view import View

METRICS = (
    ("auroc", "class AUROC"),
    ("auroc_confidence", "confidence AUROC"),
    ("accuracy", "accuracy"),
    ("ece_confidence", "ECE of confidence"),
)
HELD_OUT = "each judged by a fit that did not see it"
NO_CURVES = "This run was fitted by an earlier version or on too few rows; pcs fit FOLDER adds them if it can."
PARTS = (FIRST_QUESTION, VOTES_ALONE)
NAMES = {"uniform": "PCS, equal weights", "majority": "majority vote"} | {name: f"PCS, {name}" for name in PARTS}
RIVALS = {
    "uniform": "equal weights",
    "majority": "a majority vote",
    LOGPROB: "one graded question (logprob)",
    SCALED_LOGPROB: "one graded question scaled on gold (scaled logprob)",
}
GLOSSARY = (
    " Accuracy: share of correct labels. ECE: how far the stated confidence is from the share of correct labels (0 is "
    "perfect). "
)
ABOUT_LOG_PROBS = (
    " Log-probs: methods that use the log-probabilities of answers, which not every provider gives; the others use "
    "labels only. Logprob is one graded question to each model that gives them, without learning; scaled logprob "
    "learns a scale and an offset per label from gold."
)
VERDICTS = {
    "class AUROC": ("separates the labels worse", "separates the labels better"),
    "accuracy": ("is right less often", "is right more often"),
}
ABOUT_P = (
    "Each interval of a difference is for one comparison by itself; p is adjusted for the number of methods compared "
    "(Holm), and the words in bold follow p below .05."
)
NO_DIFFERENCE = "No difference between PCS and {} can be shown on these rows."
ABOUT_ZERO_SHOT = " Zero-shot is one question to one model, for every fold the one that does best on the others."


def how_good(view: View) -> b.Section:
    """Return how good the labels are: the charts and tables that most people need, the others folded; or why not."""
    learned, config = view.result.learned, view.result.config
    found, curves, people = learned.against_gold, learned.curves, learned.among_coders
    unit = "questions" if config.relations.rewriter else "calls"
    shown: list[b.Block] = [b.text(f"From {counted(curves.rows, 'gold row')}, {HELD_OUT}.")] if curves else []
    beside: list[b.Block] = [] if curves is None else [calibration(curves)]
    if curves is not None:
        shown.append(risk(curves, learned.model.certificate))
    if learned.figures and (curves is None or found is None):
        shown.append(b.not_known(NO_CURVES, "Some charts and tables are missing."))
    if found is not None:
        beside.append(against_gold(found))
    shown.append(b.Group(beside, kind="pair") if beside else None)
    if found is not None:
        shown += [per_label(found), beyond_chance(found)]
    if people is not None:
        shown.append(b.Folded(f"Agreement of {counted(len(people.names), 'coder')}", [coders(people)]))
    compared = quality(learned, config.learn.folds, unit).blocks
    shown += [b.Folded("Compared with simpler methods", compared)] if learned.figures else compared
    shown.append(None if curves is None else separation(curves))
    return b.section("quality", "How good", *shown)


def quality(learned: Learned, folds: int, unit: str = "questions") -> b.Section:
    """Return cross-validated figures of PCS and the simpler methods; or why there are none.

    `unit` is what is paid for: questions are calls unless a model also rewrites texts.
    """
    figures = learned.figures
    if not figures:
        why = learned.no_figures or "there are too few gold rows"
        return b.section("quality", "Quality", b.not_known(f"{capital(why.rstrip('.'))}."))
    bought = " ".join(filter(None, [what_texts_add(figures), what_more_questions_bought(figures, unit)]))
    return b.section(
        "quality",
        "Quality",
        b.text(
            f"Cross-validated on {counted(figures[0].auroc.n, 'gold row')} in {folds} folds: each row is scored with "
            "weights learned without it. Brackets show 95 % intervals for this way of learning from as many gold "
            "rows, on new rows like these."
        ),
        _table(figures, learned.model.weights.diagnostics.optimiser),
        b.text(b.strong(bought), kind="verdict") if bought else None,
        *(_verdict(one) for one in figures[1:] if one.behind is not None and one.method not in PARTS),
        b.note(
            about_auroc(figures),
            GLOSSARY,
            about_ece(figures),
            f" {ABOUT_P}",
            ABOUT_ZERO_SHOT if any(one.method.startswith(ZERO_SHOT) for one in figures[1:]) else "",
            ABOUT_LOG_PROBS if any(one.graded for one in figures) else "",
        ),
    )


def _table(figures: Sequence[Any], optimiser: str) -> b.Table:
    ends = [one.auroc.interval for one in figures]
    low = max(0.0, min(one.low for one in ends) - 0.02)
    high = min(1.0, max(one.high for one in ends) + 0.02)
    graded = any(one.graded for one in figures)
    auroc, *others = b.numbers(*(title for _, title in METRICS))
    more = b.numbers("questions", *(["log-probs"] if graded else []), "n")
    rows: list[b.Row] = []
    for one in figures:
        first, *rest = [b.figure(one.figures.get(metric)) for metric, _ in METRICS]
        needs = ["yes" if one.graded else "no"] if graded else []
        spot = b.Spot(one.auroc.value, one.auroc.interval, low, high)
        rows.append([_name(one, optimiser), first, spot, *rest, _questions(one), *needs, one.auroc.n])
    axis = b.Column(f"{number(low)} to {number(high)}", "chart axis")
    return b.Table(columns=[b.Column("Method"), auroc, axis, *others, *more], rows=rows, kind="figures")


def _questions(one: Any) -> str:
    """Return the questions per text, with a decimal only if some texts were asked fewer."""
    if one.questions is None:
        return DASH
    return number(one.questions, 0 if round(one.questions, 1).is_integer() else 1)


def _name(one: Any, optimiser: str) -> b.Styled:
    if one.behind is not None or one.method in NAMES:
        return b.name(NAMES.get(one.method, one.method))
    return b.name(f"PCS, {one.method}" if optimiser in ("", one.method) else f"PCS, {one.method}: {optimiser}")


def _verdict(other: Any) -> b.Paragraph:
    rival = RIVALS.get(other.method, other.method)
    tests = [("class AUROC", other.behind, other.holm)]
    if other.accuracy_behind:
        tests.append(("accuracy", other.accuracy_behind, other.holm_accuracy))
    shown = [VERDICTS[metric][test.difference > 0] for metric, test, p_value in tests if p_value < SHOWN]
    found = f"PCS {' and '.join(shown)} than {rival}." if shown else NO_DIFFERENCE.format(rival)
    differences = [f"in {metric} {_difference(test, p_value)}" for metric, test, p_value in tests]
    return b.text(b.strong(found, own=True), f" Difference {'; '.join(differences)}.", kind="verdict")


def _difference(test: BootstrapTest, p_value: float) -> str:
    p_text = "p < 0.001" if p_value < 0.001 else f"p = {number(p_value, 3)}"
    p_text = p_text.replace(" ", "\N{NO-BREAK SPACE}")
    return f"{signed(test.difference)} {interval(test.interval, 3)}, {p_text}"
