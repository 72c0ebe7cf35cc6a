"""An evaluation as tables: figures, tests and notes."""

from __future__ import annotations

from pcs_annotator.core.result_table import Content, Figure, ResultTable
from pcs_annotator.judging.evaluation.evaluate import Evaluation, MethodFigures
from pcs_annotator.judging.evaluation.methods import FIGURES
from pcs_annotator.judging.metrics.bootstrap import WIDENING
from pcs_annotator.judging.metrics.significance import p_value_text, stars

TITLES = dict(
    zip(
        FIGURES,
        [
            "Class AUROC", "Class AUROC hard", "Confidence AUROC", "Accuracy", "Macro F1", "ECE score",
            "ECE calibrated", "Brier", "AURC", "Accuracy at 50 %", "Accuracy at 80 %",
            "Review for 90 %", "Review for 95 %",
        ],
        strict=True,
    )
)  # fmt: skip
LOG_PROBS = "Log-probs"
ABOUT_LOG_PROBS = (
    f"{LOG_PROBS}: whether a method uses the log-probabilities of answers, which not every provider gives; the others "
    "need labels only."
)
LOWER_IS_BETTER = {"ece_score", "ece_confidence", "brier", "aurc", "review_share_90", "review_share_95"}


def evaluation_tables(evaluation: Evaluation) -> list[ResultTable]:
    """Return a table of figures and one of tests against the first method."""
    absent = [f"{name} is not shown: {reason}." for name, reason in evaluation.missing.items()]
    graded = any(one.graded for one in evaluation.methods)
    leading = ("Method", "Calls per item", *([LOG_PROBS] if graded else []))
    columns = (*leading, *TITLES.values())
    rows: list[list[Content]] = [
        [
            one.method,
            one.calls.total,
            *([yes_or_no(one.graded)] if graded else []),
            *(figure_of(one, name) for name in FIGURES),
        ]
        for one in evaluation.methods
    ]
    rows += [[name, *[None] * (len(columns) - 1)] for name in evaluation.missing]
    figures = ResultTable(
        name="evaluation",
        title=f"Methods on the same {evaluation.n} gold rows and the same splits",
        columns=columns,
        rows=rows,
        notes=[*evaluation.notes, *([ABOUT_LOG_PROBS] if graded else []), *absent],
        best=_best(evaluation, len(leading)),
        digits={**dict.fromkeys(TITLES.values(), 3), "Calls per item": 1},
    )
    return [figures, _tests(evaluation)] if len(evaluation.methods) > 1 else [figures]


def figure_of(one: MethodFigures, name: str) -> Figure | None:
    """Return a figure of a method as the content of a cell; None where it is undefined."""
    found = one.figures.get(name)
    return None if found is None else Figure(found.value, found.interval)


def yes_or_no(value: bool) -> str:
    """Return the content of a cell."""
    return "yes" if value else "no"


def _best(evaluation: Evaluation, first: int) -> frozenset[tuple[int, int]]:
    marked = set()
    for column, name in enumerate(FIGURES, first):
        sign = -1 if name in LOWER_IS_BETTER else 1
        found = {row: one.figures[name].value for row, one in enumerate(evaluation.methods) if name in one.figures}
        values = {row: round(sign * value, 3) for row, value in found.items()}
        marked |= {(row, column) for row, value in values.items() if value == max(values.values())}
    return frozenset(marked)


def _tests(evaluation: Evaluation) -> ResultTable:
    first = evaluation.methods[0].method
    rows: list[list[Content]] = []
    for one in evaluation.methods:
        if one.against is None:
            continue
        against = one.against
        auroc, accuracy, delong = against.auroc, against.accuracy, against.delong
        rows.append(
            [
                one.method,
                Figure(auroc.difference, auroc.interval),
                p_value_text(auroc.p_value),
                p_value_text(against.holm),
                stars(against.holm),
                None if delong is None else p_value_text(delong.p_value),
                None if against.holm_delong is None else p_value_text(against.holm_delong),
                Figure(accuracy.difference, accuracy.interval),
                p_value_text(against.holm_accuracy),
            ]
        )
    columns = (
        f"{first} against", "Class AUROC difference", "p", "p (Holm)", "Significance", "p DeLong", "p DeLong (Holm)",
        "Accuracy difference", "p accuracy (Holm)",
    )  # fmt: skip
    notes = [
        f"Positive differences favour {first}. p: paired t-test with the standard error of {evaluation.how.resamples} "
        f"resamples of the same rows, {WIDENING:g} times as large because other gold rows would also have learned "
        "other weights; DeLong's test is on the first split, with the same factor. Each interval is for one comparison "
        "by itself; p (Holm) is adjusted for all methods compared, and stars are of p (Holm).",
    ]
    if any(row[5] is None for row in rows):
        notes.append("DeLong's test needs two rows of every class.")
    digits = dict.fromkeys(columns[1:], 3)
    return ResultTable(
        name="evaluation-tests",
        title=f"{first} against the others",
        columns=columns,
        rows=rows,
        notes=notes,
        digits=digits,
    )
