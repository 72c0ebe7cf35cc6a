"""RQ4: how good is each relation alone, compared with none and with all together?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from pcs_annotator.core.result_table import Content, Experiment, ResultTable, best_in_rows
from pcs_annotator.judging.metrics.significance import p_value_text, stars
from pcs_annotator.studies.paper.models import by_temperature
from pcs_annotator.studies.paper.study import (
    ABOUT_TESTS,
    NO_TEST,
    T_TEST,
    Compared,
    ExperimentBench,
    Scored,
    Study,
    adjusted,
    compared,
    confidence_table,
    figure_in,
)
from pcs_annotator.studies.published import BY_RELATION, COMPARISONS, PCS, RELATIONS, published_key

NONE = "No MR"
ORDER = (PCS, NONE, "voice", "synonym", "double-negation")
"""The paper's order of comparison; other relations follow."""


def each_relation(study: Study) -> Experiment:
    """Return every relation alone beside none and all, and tests between them."""
    notes = [*study.notes(), "One relation alone: the label, or for several models (MV) the share of them."]
    relations = list(dict.fromkeys(name for bench in study.benches for name in _rewritten(bench)))
    columns = [NONE, *relations, PCS]
    rows: list[list[Content]] = []
    found: list[list[Scored | None]] = []
    paper: list[list[Content]] = []
    for bench in study.benches:
        for models in _panels(bench):
            shown = " + ".join(models) + (" (MV)" if len(models) > 1 else "")
            found.append(_scored(study, bench, models, relations, notes))
            rows.append([bench.dataset, shown, *map(figure_in, found[-1])])
            printed = BY_RELATION.get(published_key(bench.dataset, models) or ("", ""), {})
            paper.append([printed.get(RELATIONS.get(name, name)) for name in columns])
    known = [place for place in range(len(columns)) if any(row[place] is not None for row in paper)]
    heading = ("Dataset", "LLM", *columns, *(f"paper: {columns[place]}" for place in known))
    table = ResultTable(
        name="rq4",
        title="Each relation alone, none, and all together as PCS (class AUROC)",
        columns=heading,
        rows=[
            *([*row, *(printed[place] for place in known)] for row, printed in zip(rows, paper, strict=True)),
            *study.refused_rows(len(heading)),
        ],
        notes=notes,
        best=best_in_rows(rows, range(2, 2 + len(columns))),
    )
    by_name = {name: [row[place] for row in found] for place, name in enumerate(columns)}
    pairs = combinations(sorted(columns, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER)), 2)
    tests = {(one, other): compared(by_name[one], by_name[other]) for one, other in pairs}
    sure = confidence_table(table, 2, columns, found)
    return Experiment(name="rq4", tables=[table, comparisons(tests, paper=bool(known)), sure])


def comparisons(found: Mapping[tuple[str, str], Compared], *, paper: bool) -> ResultTable:
    """Return tests and average relative improvements between methods, by their names.

    `paper` adds the published figures.
    """
    p_values = adjusted([*found.values()])
    rows = [_comparison(*names, one, p_value) for (names, one), p_value in zip(found.items(), p_values, strict=True)]
    columns: tuple[str, ...] = (
        "Method comparison", "Pairs", "p (Holm)", "Significance", "ARI (%)", "Superior method", f"p of the {T_TEST}"
    )  # fmt: skip
    if paper:
        columns = (*columns, "paper: p-value", "paper: ARI (%)")
    return ResultTable(
        name="rq4-tests",
        title="Relations against each other over all models and datasets",
        columns=columns,
        rows=[row[: len(columns)] for row in rows],
        notes=["ARI: mean of (first − second) / second.", ABOUT_TESTS],
    )


def _comparison(one: str, other: str, found: Compared, p_value: float | None) -> list[Content]:
    paper = COMPARISONS.get((RELATIONS.get(one, one), RELATIONS.get(other, other)))
    printed: list[Content] = [None, None]
    if paper is not None:
        printed = ["<0.01" if paper.p_value is None else f"{paper.p_value:.2f}", paper.improvement]
    marks: str = NO_TEST
    superior = shown = None
    if found.test is not None and p_value is not None:
        shown, marks = p_value_text(p_value), stars(p_value)
        superior = marks if marks == "n.s." else one if found.test.difference > 0 else other
    return [
        f"{one} vs {other}",
        found.pairs,
        shown,
        marks,
        None if found.improvement is None else 100 * found.improvement,
        superior,
        None if found.t_test is None else p_value_text(found.t_test.p_value),
        *printed,
    ]


def _rewritten(bench: ExperimentBench) -> list[str]:
    return [name for name in bench.plain.relations if name != bench.original]


def _panels(bench: ExperimentBench) -> list[list[str]]:
    """Return every model alone, and all of one temperature together."""
    panels = [[name] for name in bench.plain.annotators]
    return panels + [models for models in by_temperature(bench.plain.annotators).values() if len(models) > 1]


def _scored(
    study: Study, bench: ExperimentBench, models: Sequence[str], relations: Sequence[str], notes: list[str]
) -> list[Scored | None]:
    cells: list[Scored | None] = []
    for relation in (bench.original, *relations):
        if relation in bench.plain.relations:
            # the notes already list what is missing here
            cells.append(bench.alone([], models, relation))
        else:
            cells.append(None)
            if (sentence := f"{bench.dataset}: {relation} is not recorded.") not in notes:
                notes.append(sentence)
    return [*cells, bench.pcs(notes, study.settings.optimiser, models)]
