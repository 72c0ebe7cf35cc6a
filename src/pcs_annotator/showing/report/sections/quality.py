"""Quality on rows that the fit did not see, and the weights that it learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pcs_annotator.base.text import capital, counted
from pcs_annotator.core.weights import Share
from pcs_annotator.judging.evaluation.evaluate import FIRST_QUESTION, LOGPROB
from pcs_annotator.judging.evaluation.methods import SCALED_LOGPROB, ZERO_SHOT
from pcs_annotator.judging.metrics.significance import p_text
from pcs_annotator.runs.certificate_text import (
    SHOWN,
    about_auroc,
    about_ece,
    about_evidence,
    about_weights,
    what_more_questions_bought,
)
from pcs_annotator.showing.report.formats import DASH, estimate, interval, number, signed, span
from pcs_annotator.showing.report.markup import Child, Markup, figure, joined, section, sentence, table, tag, user_text
from pcs_annotator.showing.report.view import View

METRICS = (
    ("auroc", "class AUROC"),
    ("auroc_confidence", "confidence AUROC"),
    ("accuracy", "accuracy"),
    ("ece_confidence", "ECE of confidence"),
)
NAMES = {
    "uniform": "PCS, equal weights",
    "majority": "majority vote",
    FIRST_QUESTION: f"PCS, {FIRST_QUESTION}",
}
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
STABILITY = (
    "Solid lines are stability ranges: where 95 % of fits on resampled gold rows put the weight. Weights are drawn "
    "towards equal ones when there is little gold, so a range need not contain what endless gold would give."
)


def quality(view: View) -> Markup:
    """Return cross-validated figures of PCS and the simpler methods; or why there are none."""
    learned = view.result.learned
    if not learned.figures:
        why = learned.no_figures or "there are too few gold rows"
        return section(
            "quality",
            "Quality",
            tag(
                "div",
                sentence(tag("strong", "Not known yet.")),
                sentence(f"{capital(why.rstrip('.'))}."),
                class_="callout",
            ),
        )
    first = learned.figures[0]
    folds = view.result.config.learn.folds
    return section(
        "quality",
        "Quality",
        sentence(
            f"Cross-validated on {counted(first.auroc.n, 'gold row')} in {folds} folds: each row is scored with "
            "weights learned without it. Brackets show 95 % intervals for this way of learning from as many gold "
            "rows, on new rows like these."
        ),
        _table(learned.figures, view),
        _bought(view),
        *(_verdict(other) for other in learned.figures[1:] if other.behind is not None and _is_rival(other)),
        sentence(
            about_auroc(learned.figures),
            GLOSSARY,
            about_ece(learned.figures),
            f" {ABOUT_P}",
            _zero_shot(learned.figures[1:]),
            _log_probs(learned.figures),
            kind="note",
        ),
    )


def _bought(view: View) -> Markup | None:
    """Return what more than the first question bought; questions are calls unless a model also rewrites texts."""
    unit = "questions" if view.result.config.relations.rewriter else "calls"
    found = what_more_questions_bought(view.result.learned.figures, unit)
    return sentence(tag("strong", found), kind="verdict") if found else None


def _is_rival(one: Any) -> bool:
    return bool(one.method != FIRST_QUESTION)


def _log_probs(figures: Sequence[Any]) -> str:
    return ABOUT_LOG_PROBS if any(one.graded for one in figures) else ""


def _zero_shot(rivals: Sequence[Any]) -> str:
    if not any(rival.method.startswith(ZERO_SHOT) for rival in rivals):
        return ""
    return " Zero-shot is one question to one model, for every fold the one that does best on the others."


def _table(figures: Sequence[Any], view: View) -> Markup:
    spans = [figure.auroc for figure in figures]
    low = max(0.0, min(estimate.interval.low for estimate in spans) - 0.02)
    high = min(1.0, max(estimate.interval.high for estimate in spans) + 0.02)
    graded = any(one.graded for one in figures)
    columns = [
        ("Method", ""),
        (METRICS[0][1], "number"),
        (f"{number(low)} to {number(high)}", "chart axis"),
        *((title, "number") for _, title in METRICS[1:]),
        ("questions", "number"),
        *([("log-probs", "number")] if graded else []),
        ("n", "number"),
    ]
    rows = []
    for one in figures:
        needs: list[Child] = ["yes" if one.graded else "no"] if graded else []
        cells = [_cell(getattr(one, name)) for name, _ in METRICS]
        drawing = span(one.auroc.value, one.auroc.interval, low=low, high=high)
        rows.append([_name(one, view), cells[0], drawing, *cells[1:], _questions(one), *needs, str(one.auroc.n)])
    return table(columns, rows, kind="figures")


def _questions(one: Any) -> str:
    """Return the questions per text, with a decimal only if some texts were asked fewer."""
    if one.questions is None:
        return number(None)
    return number(one.questions, 0 if round(one.questions, 1).is_integer() else 1)


def _cell(estimate: Any) -> Child:
    if estimate is None:
        return DASH
    return joined(number(estimate.value), " ", tag("small", interval(estimate.interval)))


def _name(one: Any, view: View) -> Markup:
    if one.behind is not None or one.method in NAMES:
        return user_text(NAMES.get(one.method, one.method))
    chosen = view.result.learned.model.weights.diagnostics.optimiser
    return user_text(f"PCS, {one.method}" if one.method == chosen or not chosen else f"PCS, {one.method}: {chosen}")


def _verdict(other: Any) -> Markup:
    rival = RIVALS.get(other.method, other.method)
    tests = [("class AUROC", other.behind, other.holm)]
    if other.accuracy_behind:
        tests.append(("accuracy", other.accuracy_behind, other.holm_accuracy))
    shown = [VERDICTS[metric][test.difference > 0] for metric, test, p_value in tests if p_value < SHOWN]
    found = f"PCS {' and '.join(shown)} than {rival}." if shown else NO_DIFFERENCE.format(rival)
    differences = [f"in {metric} {_difference(test, p_value)}" for metric, test, p_value in tests]
    return sentence(tag("strong", found, dir="auto"), f" Difference {'; '.join(differences)}.", kind="verdict")


def _difference(test: Any, p_value: float) -> str:
    return f"{signed(test.difference)} {interval(test.interval, 3)}, {_p_value(p_value)}"


def _p_value(value: float) -> str:
    return p_text(value).replace(" ", "\N{NO-BREAK SPACE}")


def weights(view: View) -> Markup:
    """Return the learned weights with their stability ranges."""
    learned = view.result.learned.model.weights
    annotators, relations = learned.shares(view.result.votes)
    shown = [share for share in (*annotators.values(), *relations.values()) if share is not None]
    return section(
        "weights",
        "Weights of models and relations",
        sentence(capital(f"{about_weights(learned)}.")),
        tag(
            "div",
            figure("Models", _chart("Model", annotators)),
            figure("Relations", _chart("Relation", relations)),
            class_="pair",
        ),
        sentence(_legend(any(share.interval for share in shown)), kind="note"),
        sentence(about_evidence(learned), kind="note") if learned.evidence else None,
    )


def _legend(has_ranges: bool) -> str:
    bars = "Bars are weights, which sum to 1 in each chart; the dashed line is an equal weight for all."
    return f"{bars} {STABILITY}" if has_ranges else bars


def _chart(title: str, shares: Mapping[str, Share | None]) -> Markup:
    """Return a bar per weight; without votes there is no weight, and the reason stands in place of the bar."""
    given = {name: share for name, share in shares.items() if share is not None}
    ends = [share.interval.high for share in given.values() if share.interval]
    top = min(1.0, max([*(share.weight for share in given.values()), *ends], default=1.0) * 1.06) or 1.0
    equal = 1 / max(len(given), 1)
    rows: list[list[Child]] = [
        [
            user_text(name),
            estimate(share.weight, share.interval, top=max(top, equal), reference=equal),
            number(share.weight),
            interval(share.interval),
        ]
        for name, share in sorted(given.items(), key=lambda pair: -pair[1].weight)
    ]
    rows += [[user_text(name), tag("small", "cast no votes"), DASH, ""] for name in shares if name not in given]
    columns = [(title, ""), ("", "chart"), ("weight", "number"), ("range", "number quiet")]
    if not ends:
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    return table(columns, rows, kind="bars")
