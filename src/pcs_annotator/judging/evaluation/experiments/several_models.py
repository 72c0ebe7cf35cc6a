"""RQ3: does PCS combine several models better than their majority vote?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from pcs_annotator.core.result_table import Content, Experiment, Figure, Pair, ResultTable, best_in_rows
from pcs_annotator.judging.evaluation.experiments.study import Study, compared
from pcs_annotator.judging.evaluation.experiments.temperature import by_temperature
from pcs_annotator.judging.evaluation.published import SEVERAL, SEVERAL_IMPROVEMENT, published_key

COLUMNS = ("Dataset", "LLMs", "MV", "PCS")
PAPER_COLUMNS = ("paper: MV", "paper: PCS")
MAX_MODELS = 7
"""Of more models, only pairs and all together are shown: 8 would make 247 combinations."""


def several_models(study: Study) -> Experiment:
    """Return PCS of every combination of two models or more beside their majority vote."""
    notes = [*study.notes(), "MV: share of models that give a label to the unchanged text, one call each."]
    rows: list[list[Content]] = []
    for bench in study.benches:
        found = list(_combinations(bench.plain.annotators))
        if not found:
            notes.append(f"{bench.dataset}: one model alone has no combinations.")
        for models in found:
            paper = SEVERAL.get(published_key(bench.dataset, models) or ("", ""))
            figures = [bench.alone(notes, models), bench.pcs(notes, study.settings.optimiser, models)]
            rows.append([bench.dataset, " + ".join(models), *figures, *(paper or (None, None))])
    improvement, p_value = compared([row[3] for row in rows], [row[2] for row in rows])
    summary = [("Average relative improvement", improvement), ("Paired t-test p-value", p_value)]
    columns: tuple[str, ...] = COLUMNS
    if any(row[4] is not None for row in rows):
        columns = (*COLUMNS, *PAPER_COLUMNS)
        summary.append(("paper: PCS against MV", f"+{SEVERAL_IMPROVEMENT} %, p < 0.01"))
    rows = [row[: len(columns)] for row in rows]
    table = ResultTable(
        name="rq3",
        title="PCS with several models against their majority vote (AUROC)",
        columns=columns,
        rows=[*rows, *study.refused_rows(len(columns))],
        summary=summary,
        notes=notes,
        best=best_in_rows(rows, [2, 3]),
    )
    pairs = [
        Pair(str(row[0]), str(row[1]), row[3].value, row[2].value)
        for row in rows
        if isinstance(row[3], Figure) and isinstance(row[2], Figure)
    ]
    return Experiment(name="rq3", tables=[table], pairs=pairs, rival="Majority vote")


def _combinations(annotators: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield pairs first, all together last; models asked at different temperatures are not mixed."""
    for models in by_temperature(annotators).values():
        sizes = range(2, len(models) + 1) if len(models) <= MAX_MODELS else (2, len(models))
        for size in sizes:
            yield from combinations(models, size)
