"""An evaluation as tables: methods side by side, labels against gold, and people against each other."""

from pcs_annotator.core.result_table import Content, ResultTable
from pcs_annotator.judging.evaluate.agreement import AgainstGold, AmongCoders
from pcs_annotator.judging.evaluate.harness import Evaluation
from pcs_annotator.judging.evaluate.scored import FIGURES, cell_of
from pcs_annotator.judging.metrics.figures import Estimate
from pcs_annotator.judging.metrics.significance import WIDENING, p_value_text, stars

TITLES = {
    "accuracy": "Accuracy",
    "mae": "Mean absolute error, in steps",
    "error": "Mean absolute error",
    "mean_error": "Mean error",
    "correlation": "Correlation with gold",
    "kappa": "Cohen's κ",
    "kappa_linear": "Cohen's κ, linear weights",
    "kappa_quadratic": "Cohen's κ, quadratic weights",
    "alpha": "Krippendorff's α, nominal",
    "alpha_ordinal": "Krippendorff's α, ordinal",
    "precision": "Precision, macro mean",
    "recall": "Recall, macro mean",
    "f1": "F1, macro mean",
    "precision_weighted": "Precision, weighted mean",
    "recall_weighted": "Recall, weighted mean",
    "f1_weighted": "F1, weighted mean",
    "agreement": "Equal labels",
}
NO_LABEL = "(no label)"
MOST_NAMED = 6  # from more labels on, the columns of a confusion matrix are numbered, so that it fits on a page
HELD_OUT = (
    "Every row is labelled by fits that did not see its gold label; where several splits differ, by the mean of their "
    "probabilities."
)


ABOUT_INTERVALS = (
    f"Brackets: 95 % intervals from resampled rows, {WIDENING:g} times as wide because other gold rows would also have "
    "learned other weights; those of a label's precision and recall are exact (Clopper–Pearson), "
    "and accuracy's is never narrower."
)
ABOUT_PAIRS = (
    f"Brackets: 95 % intervals from resampled rows; those of the model are {WIDENING:g} times as wide, because other "
    "gold rows would also have learned other weights."
)
ABOUT_KAPPA = "κ and α are 1 for full agreement and 0 for agreement by chance."
ABOUT_F1 = "F1 is missing for labels of so few rows that resamples often lack them."
LOG_PROBS = "Log-probs"
ABOUT_LOG_PROBS = (
    f"{LOG_PROBS}: whether a method uses the log-probabilities of answers, which not every provider gives; the others "
    "need labels only."
)
LOWER_IS_BETTER = {"ece_score", "ece_confidence", "brier", "aurc", "review_share_90", "review_share_95"}


def agreement_tables(agreement: AgainstGold) -> list[ResultTable]:
    """Return figures over all labels, figures per label, and the confusion matrix; of numbers only the first."""
    figures = [[TITLES[name], cell_of(estimate), estimate.n] for name, estimate in agreement.figures.items()]
    missing, numbers = int(agreement.table[-1].sum()), not agreement.by_label
    left_out = f"{missing:,} rows without a label count as wrong; κ and α leave them out."
    left_out = f"Rows without a number, which are left out: {missing:,}." if numbers else left_out
    overall = ResultTable(
        name="agreement",
        title=f"Labels against gold on {agreement.n - (missing if numbers else 0):,} held-out rows",
        columns=("Figure", "Value", "n"),
        rows=figures,
        notes=[HELD_OUT, ABOUT_INTERVALS, *([] if numbers else [ABOUT_KAPPA]), *([left_out] if missing else [])],
    )
    return [overall] if numbers else [overall, _by_label(agreement), _confusion(agreement)]


def _by_label(agreement: AgainstGold) -> ResultTable:
    rows: list[list[Content]] = []
    for code, (label, figures) in enumerate(agreement.by_label.items()):
        cells = [cell_of(figures.get(name)) for name in ("precision", "recall", "f1")]
        rows.append([label, *cells, int(agreement.table[code].sum()), int(agreement.table[:, code].sum())])
    missing = [ABOUT_F1] if any(row[3] is None and row[5] for row in rows) else []
    return ResultTable(
        name="labels",
        title=f"Precision, recall and F1 per label on {agreement.n:,} held-out rows",
        columns=("Label", "Precision", "Recall", "F1", "n labelled", "n gold"),
        rows=rows,
        notes=[ABOUT_INTERVALS, *missing],
    )


def _confusion(agreement: AgainstGold) -> ResultTable:
    """Return the confusion matrix: counts and, if there is room, their share of the gold label."""
    numbered = len(agreement.labels) > MOST_NAMED

    names = [f"{number} {label}" if numbered else label for number, label in enumerate(agreement.labels, 1)]
    # a label named as another column gets a prefix, because headings decide how numbers look
    heads = [f"gold {label}" if label in ("Label", "all") else label for label in agreement.labels]
    gold = agreement.table.sum(axis=0)
    lines = [*zip(names, agreement.table, strict=False)]
    if agreement.table[-1].any():
        lines.append((NO_LABEL, agreement.table[-1]))
    rows: list[list[Content]] = [
        [name, *(line.tolist() if numbered else map(_share, line.tolist(), gold.tolist())), int(line.sum())]
        for name, line in lines
    ]
    rows.append(["all", *map(int, gold), agreement.n])
    return ResultTable(
        name="confusion",
        title=f"Labels (lines) against gold (columns) on {agreement.n:,} held-out rows",
        columns=("Label", *(map(str, range(1, len(heads) + 1)) if numbered else heads), "all"),
        rows=rows,
        notes=["Counts of rows." if numbered else "Counts, and in brackets their share of the gold label's rows."],
    )


def _share(count: int, whole: int) -> str:
    return f"{count:,} ({100 * count / whole:.0f} %)" if whole else f"{count:,}"


def coders_table(agreement: AmongCoders) -> ResultTable:
    """Return how far people agree, two by two and all together, and the model with each of them."""
    names = list(dict.fromkeys(name for pair in agreement.pairs for name in pair.figures))
    rows: list[list[Content]] = [
        [
            pair.first,
            pair.second,
            *(cell_of(pair.figures.get(name)) for name in names),
            max((agreement.n for agreement in pair.figures.values()), default=0),
        ]
        for pair in agreement.pairs
    ]
    notes = [
        ABOUT_PAIRS,
        f"{agreement.rows:,} rows have labels of two coders or more; {agreement.tied:,} of them have no majority.",
        *(
            f"{TITLES[name]}, of all coders: {shown(pair)} on {pair.n:,} rows."
            for name, pair in agreement.alpha.items()
        ),
        about_replacing(agreement),
    ]
    return ResultTable(
        name="coders",
        title=f"Agreement among {len(agreement.names)} coders, and of the model with them",
        columns=("First", "Second", *(TITLES[name] for name in names), "n"),
        rows=rows,
        notes=notes,
    )


def about_replacing(agreement: AmongCoders) -> str:
    """Return whether the model may replace a coder, or why that was not tested."""
    if agreement.replacing is None:
        return f"Whether the model may replace a coder was not tested: {agreement.not_tested}."
    return agreement.replacing.sentence(agreement.names)


def tidy_table(agreement: AgainstGold, coders: AmongCoders | None) -> ResultTable:
    """Return one row per figure, for other programs."""
    rows: list[list[Content]] = [_tidy(name, "", "", estimate) for name, estimate in agreement.figures.items()]
    for label, figures in agreement.by_label.items():
        rows += [_tidy(name, label, "", estimate) for name, estimate in figures.items()]
    assigned, gold = agreement.table.sum(axis=1).tolist(), agreement.table.sum(axis=0).tolist()
    for line, label in enumerate((*agreement.labels, NO_LABEL)):
        for column, true in enumerate(agreement.labels):
            count = int(agreement.table[line, column])
            if assigned[line]:
                rows.append(["count", label, true, count, None, None, agreement.n])
                rows.append(["share_of_label", label, true, count / assigned[line], None, None, assigned[line]])
            if assigned[line] and gold[column]:
                rows.append(["share_of_gold", label, true, count / gold[column], None, None, gold[column]])
    if coders is not None:
        rows += [_tidy(f"coders_{name}", "", "", estimate) for name, estimate in coders.alpha.items()]
        for pair in coders.pairs:
            rows += [
                _tidy(f"pair_{name}", pair.first, pair.second, estimate) for name, estimate in pair.figures.items()
            ]
    columns = ("quantity", "label", "other", "value", "low", "high", "n")
    return ResultTable(name="figures", title="All figures", columns=columns, rows=rows)


def _tidy(name: str, label: str, other: str, estimate: Estimate) -> list[Content]:
    return [name, label, other, estimate.value, *estimate.interval, estimate.n]


def shown(estimate: Estimate) -> str:
    """Return a figure with its interval as text."""
    low, high = estimate.interval.rounded(2)
    return f"{estimate.value:.2f} [{low:.2f}, {high:.2f}]"


def evaluation_tables(evaluation: Evaluation) -> list[ResultTable]:
    """Return a table of figures and one of tests against the first method."""
    absent = [f"{name} is not shown: {reason}." for name, reason in evaluation.missing.items()]
    graded = any(method.graded for method in evaluation.methods)
    leading = ("Method", "Calls per item", *([LOG_PROBS] if graded else []))
    columns = (*leading, *FIGURES.values())
    rows: list[list[Content]] = [
        [
            method.method,
            method.calls and method.calls.total,
            *([yes_or_no(method.graded)] if graded else []),
            *(cell_of(method.figures.get(name)) for name in FIGURES),
        ]
        for method in evaluation.methods
    ]
    rows += [[name, *[None] * (len(columns) - 1)] for name in evaluation.missing]
    figures = ResultTable(
        name="evaluation",
        title=f"Methods on the same {evaluation.n} gold rows and the same splits",
        columns=columns,
        rows=rows,
        notes=[*evaluation.notes, *([ABOUT_LOG_PROBS] if graded else []), *absent],
        best=_best(evaluation, len(leading)),
        digits={**dict.fromkeys(FIGURES.values(), 3), "Calls per item": 1},
    )
    return [figures, _tests(evaluation)] if len(evaluation.methods) > 1 else [figures]


def yes_or_no(value: bool) -> str:
    """Return the content of a cell."""
    return "yes" if value else "no"


def _best(evaluation: Evaluation, first: int) -> frozenset[tuple[int, int]]:
    marked = set()
    for column, name in enumerate(FIGURES, first):
        sign = -1 if name in LOWER_IS_BETTER else 1
        found = {
            row: method.figures[name].value for row, method in enumerate(evaluation.methods) if name in method.figures
        }
        values = {row: round(sign * value, 3) for row, value in found.items()}
        marked |= {(row, column) for row, value in values.items() if value == max(values.values())}
    return frozenset(marked)


def _tests(evaluation: Evaluation) -> ResultTable:
    first = evaluation.methods[0].method
    rows: list[list[Content]] = [
        [
            method.method,
            cell_of(method.behind),
            *map(_p_cell, [method.behind and method.behind.p_value, method.holm]),
            None if method.holm is None else stars(method.holm),
            cell_of(method.accuracy_behind),
            _p_cell(method.holm_accuracy),
        ]
        for method in evaluation.methods[1:]
    ]
    columns = (
        f"{first} against", "Class AUROC difference", "p", "p (Holm)", "Significance",
        "Accuracy difference", "p accuracy (Holm)",
    )  # fmt: skip
    notes = [
        f"Positive differences favour {first}. p: paired t-test with the standard error of {evaluation.how.resamples} "
        f"resamples of the same rows, {WIDENING:g} times as large because other gold rows would also have learned "
        "other weights. Each interval is for one comparison "
        "by itself; p (Holm) is adjusted for all methods compared, and stars are of p (Holm)."
    ]
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
