"""RQ1: does PCS help a single model, against one zero-shot call?"""

from __future__ import annotations

from pcs_annotator.core.result_table import Content, Experiment, Figure, Pair, ResultTable, best_in_rows
from pcs_annotator.judging.evaluation.evaluate import HARD_AND_GRADED
from pcs_annotator.judging.evaluation.experiments.study import ExperimentBench, Study, attempt, compared
from pcs_annotator.judging.evaluation.methods import calls_of, self_consistency
from pcs_annotator.judging.evaluation.published import (
    SINGLE,
    SINGLE_IMPROVEMENT,
    SINGLE_P_VALUE,
    published_key,
)

COLUMNS = ("Dataset", "LLM", "Zero-shot", "PCS hard", "PCS", "PCS equal weights", "Self-consistency")
PAPER_COLUMNS = ("paper: Zero-shot", "paper: PCS")


def single_models(study: Study) -> Experiment:
    """Return PCS of every single model beside its zero-shot labels, hard and graded, and at equal calls."""
    notes = [*study.notes(), HARD_AND_GRADED]
    rows: list[list[Content]] = []
    for bench in study.benches:
        for annotator in bench.plain.annotators:
            rows.append([bench.dataset, annotator, *_figures(study, bench, annotator, notes)])
    summary = []
    for column in (3, 4, 5, 6):
        found = compared([row[column] for row in rows], [row[2] for row in rows])
        if any(row[column] is not None for row in rows):
            name = f"{COLUMNS[column]} against zero-shot: average relative improvement, paired t-test"
            summary.append((name, found.sentence))
    columns: tuple[str, ...] = COLUMNS
    if any(row[7] is not None for row in rows):
        columns = (*COLUMNS, *PAPER_COLUMNS)
        summary.append(("paper: PCS against zero-shot", f"+{SINGLE_IMPROVEMENT} %, p = {SINGLE_P_VALUE}"))
    rows = [row[: len(columns)] for row in rows]
    table = ResultTable(
        name="rq1",
        title="PCS with a single model against its zero-shot labels (AUROC)",
        columns=columns,
        rows=[*rows, *study.refused_rows(len(columns))],
        summary=summary,
        notes=notes,
        best=best_in_rows(rows, [2, 4]),
    )
    return Experiment(name="rq1", tables=[table], pairs=_pairs(rows), rival="Zero-shot")


def _figures(study: Study, bench: ExperimentBench, annotator: str, notes: list[str]) -> list[Content]:
    chosen = study.settings.optimiser
    paper = SINGLE.get(published_key(bench.dataset, [annotator]) or ("", ""))
    return [
        bench.alone(notes, [annotator]),
        attempt(notes, lambda: bench.on_cells(chosen, [annotator]).hard()),
        bench.pcs(notes, chosen, [annotator]),
        bench.pcs(notes, "uniform", [annotator]),
        attempt(notes, lambda: _at_equal_calls(bench, annotator)),
        *(paper or (None, None)),
    ]


def _at_equal_calls(bench: ExperimentBench, annotator: str) -> Figure:
    """Return self-consistency of one model with as many calls as its PCS makes."""
    panel = bench.plain.select(annotators=[annotator], draws=1)
    own = bench.plain.select(annotators=[annotator])
    return bench.score(self_consistency(own, calls_of(panel, bench.how.rewritten).total, "uniform")).graded()


def _pairs(rows: list[list[Content]]) -> list[Pair]:
    return [
        Pair(str(row[0]), str(row[1]), row[4].value, row[2].value)
        for row in rows
        if isinstance(row[4], Figure) and isinstance(row[2], Figure)
    ]
