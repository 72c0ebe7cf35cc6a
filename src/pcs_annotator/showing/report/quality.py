"""Quality on rows that the fit did not see: labels against gold, people against each other, simpler methods."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pcs_annotator.base.text import capital, counted
from pcs_annotator.core.task import MANY_LABELS
from pcs_annotator.judging.evaluate import as_tables as tables
from pcs_annotator.judging.evaluate.agreement import AgainstGold, AmongCoders
from pcs_annotator.judging.evaluate.harness import FIRST_QUESTION, LOGPROB, VOTES_ALONE
from pcs_annotator.judging.evaluate.methods import SCALED_LOGPROB, ZERO_SHOT
from pcs_annotator.judging.evaluate.relation_value import points
from pcs_annotator.judging.evaluate.scored import ABOUT_AUROC, ABOUT_ECE, NO_CONFIDENCE_AUROC, MethodFigures, cell_of
from pcs_annotator.judging.metrics.figures import Estimate
from pcs_annotator.judging.metrics.significance import BootstrapTest, p_text
from pcs_annotator.runs.learn import Learned
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.formats import SHOWN, count, interval, number, percent, signed
from pcs_annotator.showing.report.charts import calibration, risk, separation
from pcs_annotator.showing.report.over_time import fits_of, over_time
from pcs_annotator.showing.report.view import View

MEANS = ("precision", "recall", "f1")
ELSEWHERE = ("accuracy", *MEANS)
MOST_CONFUSED = 20
FOR_A_PAPER = "For a paper: pcs paper FOLDER writes this with a methods paragraph."
HEAT = (0.02, 0.1, 0.2, 0.35)  # shares of a gold label from which on a wrong label is shown in a stronger colour
METRICS = (
    ("auroc", "class AUROC"),
    ("auroc_confidence", "confidence AUROC"),
    ("accuracy", "accuracy"),
    ("ece_confidence", "ECE of confidence"),
)
HELD_OUT = "each judged by a fit that did not see it"
NO_CURVES = "There are too few gold rows for them."
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
    "Each interval is for one comparison by itself; p is adjusted for the number of methods (Holm), and "
    "bold words mean p below .05."
)
NO_DIFFERENCE = "No difference between PCS and {} can be shown on these rows."
ABOUT_ZERO_SHOT = " Zero-shot asks one model one question; each fold uses the model that does best on the others."


def beyond_chance(against_gold: AgainstGold) -> b.Folded:
    """Return κ and α; accuracy and means over labels are shown elsewhere."""
    figures = against_gold.figures.items()
    shown = {key: figure for key, figure in figures if key.removesuffix("_weighted") not in ELSEWHERE}
    return b.Folded("Agreement beyond chance: κ and α", [_listed(shown), b.note(f"{tables.ABOUT_KAPPA} {FOR_A_PAPER}")])


def _listed(figures: Mapping[str, Estimate]) -> b.Table:
    rows: list[b.Row] = [[tables.TITLES[key], cell_of(figure), figure.n] for key, figure in figures.items()]
    return b.Table(columns=[b.Column("Figure"), *b.numbers("value", "n")], rows=rows, kind="figures narrow")


def _most_confused(against_gold: AgainstGold) -> b.Group:
    wrong = against_gold.table[:-1] * (1 - np.eye(len(against_gold.labels), dtype=np.intp))
    places = np.argsort(-wrong, axis=None, kind="stable")[:MOST_CONFUSED]
    pairs = [divmod(index, len(against_gold.labels)) for index in places.tolist()]
    labels = against_gold.labels
    rows: list[b.Row] = [[labels[pair[0]], labels[pair[1]], int(wrong[pair])] for pair in pairs if wrong[pair]]
    table = b.Table(columns=[b.Column("label"), b.Column("gold"), *b.numbers("rows")], rows=rows, kind="narrow")
    return b.titled("Which labels are confused most?", table)


def _confused(against_gold: AgainstGold) -> b.Group:
    """Return a line per label and a column per gold label; from some number of labels on, columns are numbered."""
    numbered = len(against_gold.labels) > tables.MOST_NAMED
    gold = against_gold.table.sum(axis=0).tolist()
    columns, lines = [b.Column("label ↓ gold →")], []
    for index, label in enumerate(against_gold.labels, 1):
        columns.append(b.Column(str(index) if numbered else b.name(label), "number", label))
        lines.append((b.Styled(f"{index} ", "quiet"), b.name(label)) if numbered else b.name(label))
    rows = [
        [line, *_line(against_gold, at, gold, numbered)]
        for at, line in enumerate((*lines, tables.NO_LABEL))
        if at < len(lines) or against_gold.table[at].any()
    ]
    rows.append(["all", *(b.Shaded(count(times), "number quiet") for times in (*gold, against_gold.n))])
    shares = "Below each count: its share of the gold label (column) and of the label that was given (row)."
    if numbered:
        shares = "Point at a cell for its shares. Columns are gold labels by number."
    table = b.Table(
        columns=[*columns, *b.numbers("all")],
        rows=rows,
        kind="heat confusion many" if numbered else "heat confusion",
        label="Labels against gold",
        total=True,
    )
    return b.titled("Which labels are confused?", table, b.note(shares))


def _line(against_gold: AgainstGold, line: int, gold: Sequence[int], numbered: bool) -> b.Row:
    row_total = int(against_gold.table[line].sum())
    cells: b.Row = []
    for column, times in enumerate(against_gold.table[line].tolist()):
        of_gold, of_label = percent(times, gold[column]), percent(times, row_total)
        heat = f"heat-{sum(times > step * gold[column] for step in HEAT)}" if times else "quiet"
        shares = () if numbered or not times else (b.Styled(f"{of_gold} · {of_label}", "small"),)
        hint = f"{of_gold} of this gold label, {of_label} of this label" if times else None
        shown = "·" if numbered and not times else count(times)
        cells.append(b.Shaded((shown, *shares), f"number {'same' if line == column else heat}", hint))
    return [*cells, b.Shaded(count(row_total), "number quiet")]


def _by_label(against_gold: AgainstGold) -> b.Group:
    rare = any("f1" not in figures and "recall" in figures for figures in against_gold.by_label.values())
    notes = [tables.ABOUT_INTERVALS, *([tables.ABOUT_F1] if rare else [])]
    if silent := int(against_gold.table[-1].sum()):
        notes.append(f"{counted(silent, 'row')} without a label count as wrong; κ and α leave them out.")
    rows: list[b.Row] = []
    for code, (label, figures) in enumerate(against_gold.by_label.items()):
        labelled, true = int(against_gold.table[code].sum()), int(against_gold.table[:, code].sum())
        rows.append([b.name(label), *(cell_of(figures.get(mean)) for mean in MEANS), labelled, true])
    for title, ending in (("mean of labels", ""), ("mean weighted by gold", "_weighted")):
        cells = [cell_of(against_gold.figures.get(f"{mean}{ending}")) for mean in MEANS]
        rows.append([b.Styled(title, "em"), *cells, "", against_gold.n])
    columns = [b.Column("Label"), *b.numbers("precision", "recall", "F1", "labelled", "gold")]
    return b.titled(
        "Per label",
        b.Table(columns=columns, rows=rows, kind="figures", label="Quality per label"),
        b.note(" ".join(notes)),
    )


def coders(among_coders: AmongCoders) -> b.Group:
    """Return how far people agree with each other and with the labels."""
    kinds = list(dict.fromkeys(kind for figure in among_coders.pairs for kind in figure.figures))
    rows: list[b.Row] = []
    for coder_pair in among_coders.pairs:
        pair: b.Words = (b.name(coder_pair.first), " – ", b.name(coder_pair.second))
        n = max((each.n for each in coder_pair.figures.values()), default=0)
        rows.append([pair, *(cell_of(coder_pair.figures.get(kind)) for kind in kinds), n])
    alphas: list[str | b.Styled] = []
    for kind, alpha in among_coders.alpha.items():
        alphas.append(b.strong(f"{tables.TITLES[kind]}: {number(alpha.value)}"))
        alphas.append(f" {interval(alpha.interval)} on {counted(alpha.n, 'row')}. ")
    tied = f"{count(among_coders.tied)} of {counted(among_coders.rows, 'row')} with several labels have no majority."
    columns = [b.Column("Pair"), *b.numbers(*(tables.TITLES[kind] for kind in kinds), "n")]
    return b.titled(
        counted(len(among_coders.names), "coder"),
        b.text(*alphas, tied),
        b.Table(columns=columns, rows=rows, kind="figures"),
        b.text(b.name(tables.about_replacing(among_coders))),
        b.note(tables.ABOUT_PAIRS),
    )


def how_good(view: View) -> b.Section:
    """Return how good the labels are: the charts and tables that most people need, the others folded; or why not."""
    learned, config = view.result.learned, view.result.config
    against_gold, curves, people = learned.against_gold, learned.curves, learned.among_coders
    unit = "questions" if config.relations.rewriter else "calls"
    shown: list[b.Block | None] = [b.text(f"From {counted(curves.rows, 'gold row')}, {HELD_OUT}.")] if curves else []
    beside: list[b.Block] = [] if curves is None else [calibration(curves)]
    if curves is not None:
        shown.append(risk(curves, learned.model.certificate))
    if learned.figures and (curves is None or against_gold is None):
        shown.append(b.not_known(NO_CURVES, "Some charts and tables are missing."))
    labels = 0 if against_gold is None else len(against_gold.labels)
    by_label: list[b.Block] = []
    if against_gold is not None and not against_gold.by_label:
        beside.append(b.titled("Numbers against gold", _listed(against_gold.figures)))
    elif against_gold is not None:
        many = labels > MANY_LABELS
        beside.append(_most_confused(against_gold) if many else _confused(against_gold))
        by_label = [None if many else _by_label(against_gold), beyond_chance(against_gold)]
    wide = tables.MOST_NAMED < labels <= MANY_LABELS
    shown += beside if wide else [b.Group(beside, kind="pair")] if beside else []
    shown += [over_time(fits_of(view.result.folder, config)), *by_label]
    if learned.by_group is not None:
        shown.append(b.titled(f"By {learned.by_group.by}", *b.results(learned.by_group.table())[1:]))
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
        *(_verdict(figure) for figure in figures[1:] if figure.behind is not None and figure.method not in PARTS),
        b.note(
            ABOUT_AUROC,
            "" if all("auroc_confidence" in figure.figures for figure in figures) else f" {NO_CONFIDENCE_AUROC}",
            GLOSSARY,
            ABOUT_ECE,
            f" {ABOUT_P}",
            ABOUT_ZERO_SHOT if any(figure.method.startswith(ZERO_SHOT) for figure in figures[1:]) else "",
            ABOUT_LOG_PROBS if any(figure.graded for figure in figures) else "",
        ),
    )


def what_more_questions_bought(figures: Sequence[MethodFigures], unit: str = "questions") -> str:
    """Return in one sentence what all questions bought over the first one alone; empty if that was not measured."""
    first = next((figure for figure in figures if figure.method == FIRST_QUESTION), None)
    if first is None or first.behind is None or first.accuracy_behind is None:
        return ""
    times = figures[0].calls.questions / first.calls.questions
    asking = "Asking twice" if round(times, 1) == 2 else "Asking every question, not just the first,"
    gains = f"{points(first.behind, 'class AUROC')} and {points(first.accuracy_behind, 'accuracy')}"
    shown = first.holm is not None and first.holm < SHOWN and first.behind.difference > 0
    doubt = "" if shown else "; a gain in class AUROC cannot be shown on these rows"
    return f"{asking} bought {gains} for {times:.2g} × the {unit}{doubt}."


def what_texts_add(figures: Sequence[MethodFigures]) -> str:
    """Return in one sentence what the model of the texts adds to the votes; empty if it has no say."""
    alone = next((figure for figure in figures if figure.method == VOTES_ALONE), None)
    if alone is None or alone.accuracy_behind is None:
        return ""
    return f"Reading the texts adds {points(alone.accuracy_behind, 'accuracy')} to the votes, without a call."


def _table(figures: Sequence[Any], optimiser: str) -> b.Table:
    ends = [figure.auroc.interval for figure in figures]
    low = max(0.0, min(figure.low for figure in ends) - 0.02)
    high = min(1.0, max(figure.high for figure in ends) + 0.02)
    graded = any(figure.graded for figure in figures)
    auroc, *others = b.numbers(*(title for _, title in METRICS))
    more = b.numbers("questions", *(["log-probs"] if graded else []), "n")
    rows: list[b.Row] = []
    for figure in figures:
        first, *rest = [cell_of(figure.figures.get(metric)) for metric, _ in METRICS]
        needs = ["yes" if figure.graded else "no"] if graded else []
        spot = b.Spot(figure.auroc.value, figure.auroc.interval, low, high)
        whole = round(figure.calls.questions, 1).is_integer()  # else some texts were asked fewer
        asked = number(figure.calls.questions, 0 if whole else 1)
        rows.append([_name(figure, optimiser), first, spot, *rest, asked, *needs, figure.auroc.n])
    axis = b.Column(f"{number(low)} to {number(high)}", "chart axis")
    return b.Table(columns=[b.Column("Method"), auroc, axis, *others, *more], rows=rows, kind="figures")


def _name(figures: Any, optimiser: str) -> b.Styled:
    if figures.behind is not None or figures.method in NAMES:
        return b.name(NAMES.get(figures.method, figures.method))
    return b.name(f"PCS, {figures.method}" + ("" if optimiser in ("", figures.method) else f": {optimiser}"))


def _verdict(other: Any) -> b.Paragraph:
    rival = RIVALS.get(other.method, other.method)
    tests = [("class AUROC", other.behind, other.holm)]
    if other.accuracy_behind:
        tests.append(("accuracy", other.accuracy_behind, other.holm_accuracy))
    shown = [VERDICTS[metric][test.difference > 0] for metric, test, p_value in tests if p_value < SHOWN]
    verdict = f"PCS {' and '.join(shown)} than {rival}." if shown else NO_DIFFERENCE.format(rival)
    differences = [f"in {metric} {_difference(test, p_value)}" for metric, test, p_value in tests]
    return b.text(b.strong(verdict, own=True), f" Difference {'; '.join(differences)}.", kind="verdict")


def _difference(test: BootstrapTest, p_value: float) -> str:
    shown = p_text(p_value).replace(" ", "\N{NO-BREAK SPACE}")
    return f"{signed(test.difference)} {interval(test.interval, 3)}, {shown}"
