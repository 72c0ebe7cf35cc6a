"""RQ4: how good is each relation alone, compared with none and with all together?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from pcs_annotator.core.result_table import Content, Experiment, ResultTable, best_in_rows
from pcs_annotator.errors import UndefinedMetric
from pcs_annotator.judging.evaluation.experiments.models import by_temperature
from pcs_annotator.judging.evaluation.experiments.study import ExperimentBench, Study, paired_numbers
from pcs_annotator.judging.evaluation.published import BY_RELATION, COMPARISONS, PCS, RELATIONS, published_key
from pcs_annotator.judging.metrics.significance import average_relative_improvement, p_value_text, paired_t_test, stars

NONE = "No MR"
ORDER = (PCS, NONE, "voice", "synonym", "double-negation")
"""The paper's order of comparison; other relations follow."""


def each_relation(study: Study) -> Experiment:
    """Return every relation alone beside none and all, and paired tests between them over all rows."""
    notes = [*study.notes(), "One relation alone: the label, or for several models (MV) the share of them."]
    relations = list(dict.fromkeys(name for bench in study.benches for name in _rewritten(bench)))
    columns = [NONE, *relations, PCS]
    rows: list[list[Content]] = []
    paper: list[list[Content]] = []
    for bench in study.benches:
        for models in _panels(bench):
            shown = " + ".join(models) + (" (MV)" if len(models) > 1 else "")
            rows.append([bench.dataset, shown, *_figures(study, bench, models, relations, notes)])
            printed = BY_RELATION.get(published_key(bench.dataset, models) or ("", ""), {})
            paper.append([printed.get(RELATIONS.get(name, name)) for name in columns])
    known = [place for place in range(len(columns)) if any(row[place] is not None for row in paper)]
    heading = ("Dataset", "LLM", *columns, *(f"paper: {columns[place]}" for place in known))
    table = ResultTable(
        name="rq4",
        title="Each relation alone, none, and all together as PCS (AUROC)",
        columns=heading,
        rows=[
            *([*row, *(printed[place] for place in known)] for row, printed in zip(rows, paper, strict=True)),
            *study.refused_rows(len(heading)),
        ],
        notes=notes,
        best=best_in_rows(rows, range(2, 2 + len(columns))),
    )
    by_name = {name: [row[2 + place] for row in rows] for place, name in enumerate(columns)}
    return Experiment(name="rq4", tables=[table, comparisons(by_name, paper=bool(known))])


def comparisons(by_name: Mapping[str, Sequence[Content]], *, paper: bool) -> ResultTable:
    """Return paired t-tests and average relative improvements between all columns of a table of AUROCs.

    `paper` adds the published figures.
    """
    names = sorted(by_name, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))
    rows = [_comparison(one, other, by_name) for one, other in combinations(names, 2)]
    columns: tuple[str, ...] = ("Method comparison", "Pairs", "p-value", "Significance", "ARI (%)", "Superior method")
    if paper:
        columns = (*columns, "paper: p-value", "paper: ARI (%)")
    return ResultTable(
        name="rq4-tests",
        title="Relations against each other: paired two-sided t-tests over (model, dataset) pairs",
        columns=columns,
        rows=[row[: len(columns)] for row in rows],
        notes=["ARI: mean of (first − second) / second. *** p < 0.001, ** p < 0.01, * p < 0.05, n.s. otherwise."],
    )


def _comparison(one: str, other: str, by_name: Mapping[str, Sequence[Content]]) -> list[Content]:
    first, second = paired_numbers(by_name[one], by_name[other])
    paper = COMPARISONS.get((RELATIONS.get(one, one), RELATIONS.get(other, other)))
    printed: list[Content] = [None, None]
    if paper is not None:
        printed = ["<0.01" if paper.p_value is None else f"{paper.p_value:.2f}", paper.improvement]
    try:
        test = paired_t_test(first, second)
        improvement = 100 * average_relative_improvement(first, second)
    except UndefinedMetric:
        return [f"{one} vs {other}", len(first), None, "too few pairs", None, None, *printed]
    marks = stars(test.p_value)
    superior = marks if marks == "n.s." else one if test.difference > 0 else other
    return [f"{one} vs {other}", test.n, p_value_text(test.p_value), marks, improvement, superior, *printed]


def _rewritten(bench: ExperimentBench) -> list[str]:
    return [name for name in bench.plain.relations if name != bench.original]


def _panels(bench: ExperimentBench) -> list[list[str]]:
    """Return every model alone, and all of one temperature together."""
    panels = [[name] for name in bench.plain.annotators]
    return panels + [models for models in by_temperature(bench.plain.annotators).values() if len(models) > 1]


def _figures(
    study: Study, bench: ExperimentBench, models: Sequence[str], relations: Sequence[str], notes: list[str]
) -> list[Content]:
    cells: list[Content] = []
    for relation in (bench.original, *relations):
        if relation in bench.plain.relations:
            # the notes already list what is missing here
            cells.append(bench.alone([], models, relation))
        else:
            cells.append(None)
            if (sentence := f"{bench.dataset}: {relation} is not recorded.") not in notes:
                notes.append(sentence)
    return [*cells, bench.pcs(notes, study.settings.optimiser, models)]
