"""RQ4: how good is each relation alone, compared with none and with all together?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from pcs_annotator.core.result_table import Content, Experiment, ResultTable
from pcs_annotator.judging.evaluation.figures import adjusted
from pcs_annotator.judging.evaluation.scored import Scored
from pcs_annotator.judging.metrics.significance import p_value_text, stars
from pcs_annotator.studies.paper.models import by_temperature
from pcs_annotator.studies.paper.study import (
    ABOUT_TESTS,
    NO_TEST,
    T_TEST,
    Compared,
    ExperimentBench,
    PanelRow,
    PanelTable,
    Replication,
    compared,
)
from pcs_annotator.studies.published import BY_RELATION, COMPARISONS, PCS, RELATIONS, published_key

NONE = "No MR"
ORDER = (PCS, NONE, "voice", "synonym", "double-negation")
"""The paper's order of comparison; other relations follow."""


def each_relation(study: Replication) -> Experiment:
    """Return every relation alone beside none and all, and tests between them."""
    notes = [*study.notes(), "One relation alone: the label, or for several models (MV) the share of them."]
    benches = study.benches
    relations = list(
        dict.fromkeys(name for bench in benches for name in bench.plain.relations if name != bench.original)
    )
    columns = [NONE, *relations, PCS]
    rows = []
    for bench in benches:
        for models in _panels(bench):
            shown = " + ".join(models) + (" (MV)" if len(models) > 1 else "")
            printed = BY_RELATION.get(published_key(bench.dataset, models) or ("", ""), {})
            paper = [printed.get(RELATIONS.get(name, name)) for name in columns]
            rows.append(PanelRow([bench.dataset, shown], _scored(study, bench, models, relations, notes), paper))
    found = PanelTable(
        name="rq4",
        title="Each relation alone, none, and all together as PCS (class AUROC)",
        leading=("Dataset", "LLM"),
        methods=columns,
        paper=columns,
        rows=rows,
        notes=notes,
    )
    pairs = combinations(sorted(columns, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER)), 2)
    tests = {(one, other): compared(found.by_method(one), found.by_method(other)) for one, other in pairs}
    tested = comparisons(tests, paper=bool(found.known))
    return Experiment(name="rq4", tables=[found.table(study), tested, found.confidence(study)])


def comparisons(found: Mapping[tuple[str, str], Compared], *, paper: bool) -> ResultTable:
    """Return tests and average relative improvements between methods, by their names.

    `paper` adds the published figures.
    """
    p_values = adjusted([one.test for one in found.values()])
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


def _panels(bench: ExperimentBench) -> list[list[str]]:
    """Return every model alone, and all of one temperature together."""
    panels = [[name] for name in bench.plain.annotators]
    return panels + [models for models in by_temperature(bench.plain.annotators).values() if len(models) > 1]


def _scored(
    study: Replication, bench: ExperimentBench, models: Sequence[str], relations: Sequence[str], notes: list[str]
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
