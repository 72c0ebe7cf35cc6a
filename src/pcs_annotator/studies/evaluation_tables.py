"""An evaluation as tables: figures, tests and notes."""

from __future__ import annotations

from pcs_annotator.core.result_table import Content, ResultTable
from pcs_annotator.judging.evaluation.evaluate import Evaluation
from pcs_annotator.judging.evaluation.figures import cell_of
from pcs_annotator.judging.evaluation.scored import FIGURES
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
            one.calls and one.calls.total,
            *([yes_or_no(one.graded)] if graded else []),
            *(cell_of(one.figures.get(name)) for name in FIGURES),
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
    rows: list[list[Content]] = [
        [
            one.method,
            cell_of(one.behind),
            *map(_p_cell, [one.behind and one.behind.p_value, one.holm]),
            None if one.holm is None else stars(one.holm),
            *map(_p_cell, [one.delong and one.delong.p_value, one.holm_delong]),
            cell_of(one.accuracy_behind),
            _p_cell(one.holm_accuracy),
        ]
        for one in evaluation.methods[1:]
    ]
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


def _p_cell(p_value: float | None) -> str | None:
    return None if p_value is None else p_value_text(p_value)
