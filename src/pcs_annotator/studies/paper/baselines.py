"""RQ2: PCS of one model against published baselines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.core.elicitations import base_annotator
from pcs_annotator.core.result_table import Content, Experiment, ResultTable, best_in_groups, number_of
from pcs_annotator.judging.evaluation.figures import ABOUT_AUROC, NO_CONFIDENCE_AUROC, cell_of
from pcs_annotator.judging.evaluation.methods import method_name
from pcs_annotator.judging.evaluation.scored import Scored
from pcs_annotator.judging.metrics.bootstrap import WIDENING
from pcs_annotator.judging.metrics.significance import holm, p_value_text, stars
from pcs_annotator.studies.evaluation_tables import ABOUT_LOG_PROBS, LOG_PROBS, yes_or_no
from pcs_annotator.studies.paper.study import NO_TEST, ExperimentBench, Replication, compared
from pcs_annotator.studies.published import BASELINES, PCS, published_key

COLUMNS = (
    "Dataset",
    "LLM",
    "Method",
    "Calls",
    LOG_PROBS,
    "Class AUROC",
    "Confidence AUROC",
    "p (Holm)",
    "Significance",
)
PAPER_COLUMNS = ("paper: AUROC", "paper: Significance")
EXPECTED = ("1s-top-2", "2s-top-2", "ling-1s", "spuq")
"""The paper's baselines; those not recorded get a row marked as such."""
NOT_RECORDED = "not recorded"
FOR_SEVERAL_MODELS = "majority-vote"
P_VALUE = COLUMNS.index("p (Holm)")


def published_baselines(study: Replication) -> Experiment:
    """Return PCS of every single model beside the baselines that its votes allow."""
    rows: list[list[Content]] = []
    reasons: dict[str, str] = {}
    for bench in study.benches:
        for annotator in bench.plain.annotators:
            rows += _rows(study, bench, annotator, reasons)
    _adjust(rows)
    columns = [*COLUMNS, *PAPER_COLUMNS] if any(row[len(COLUMNS)] is not None for row in rows) else [*COLUMNS]
    graded = any(row[4] == yes_or_no(True) for row in rows)
    undefined = any(row[5] is not None and row[6] is None for row in rows)
    kept = [place for place, column in enumerate(columns) if graded or column != LOG_PROBS]
    columns, rows = [columns[place] for place in kept], [[row[place] for place in kept] for row in rows]
    table = ResultTable(
        name="rq2",
        title="PCS with a single model against published baselines",
        columns=columns,
        rows=[*rows, *study.refused_rows(len(columns))],
        notes=[
            *study.notes(),
            "Calls: questions per item, and rewriting calls where a model wrote the variants.",
            *([ABOUT_LOG_PROBS] if graded else []),
            ABOUT_AUROC,
            "p (Holm): DeLong's test of the class AUROC of PCS against each baseline on the same rows, its standard "
            f"error widened by {WIDENING:g} as the intervals are, two-sided, with Holm's adjustment over this table; "
            "*** p < 0.001, ** p < 0.01, * p < 0.05. It is about new rows of a dataset, with the same model, and needs "
            "two rows of every class. The paper reports paired t-tests.",
            "spuq takes paraphrases and dummy tokens where they are recorded, else whatever relations there are.",
            *(f"{name} is {NOT_RECORDED}: {reason}." for name, reason in reasons.items()),
            *([NO_CONFIDENCE_AUROC] if undefined else []),
        ],
        best=best_in_groups(rows, column=columns.index("Class AUROC"), by=2),
        digits={"Calls": 1},
    )
    return Experiment(name="rq2", tables=[table])


def _rows(study: Replication, bench: ExperimentBench, annotator: str, reasons: dict[str, str]) -> list[list[Content]]:
    """Return the rows of one model: PCS first, then baselines from best to worst, then those not recorded."""
    key = published_key(bench.dataset, [annotator])
    paper = BASELINES[key[0]] if key and key[1] == "G" else {}
    try:
        ours = bench.on_cells(study.settings.optimiser, [annotator])
    except UndefinedMetric as error:
        reasons[f"PCS of {annotator}"] = str(error)
        return []
    found, absent = _scored(study, bench, annotator, reasons)
    rows: list[tuple[str, list[Content]]] = [(PCS, [*_figures(ours), None, None])]
    for name, scored in sorted(found.items(), key=lambda one: -one[1].auroc.value):
        test = compared([ours], [scored]).test
        rows.append((name, [*_figures(scored), *([None, NO_TEST] if test is None else [test.p_value, None])]))
    rows += [(name, [None, None, None, None, None, NOT_RECORDED]) for name in absent]
    return [
        [bench.dataset, annotator, name, *cells, *_printed(paper.get(name.replace("top-k", "top-2")))]
        for name, cells in rows
    ]


def _scored(
    study: Replication, bench: ExperimentBench, annotator: str, reasons: dict[str, str]
) -> tuple[dict[str, Scored], list[str]]:
    """Return the results of the baselines on one model's votes, and the names of those that are not recorded."""
    family = [name for name in bench.votes.annotators if base_annotator(name) == annotator]
    votes = bench.votes.select(annotators=family)
    answered = np.asarray((votes.codes >= 0).any(axis=(0, 1, 3)))
    votes = votes.select(relations=[name for name, any_vote in zip(votes.relations, answered, strict=True) if any_vote])
    found: dict[str, Scored] = {}
    given = [method_name(method) for method in study.settings.baselines]
    absent = [name for name in EXPECTED if not {name, name.replace("top-2", "top-k")} & set(given)]
    reasons.update({name: "no such baseline was given" for name in absent})
    for name, method in zip(given, study.settings.baselines, strict=True):
        if name == FOR_SEVERAL_MODELS:
            continue
        try:
            found[name] = bench.score(method, votes)
        except UndefinedMetric as error:
            reasons.setdefault(name, str(error))
            absent += [name] if name.replace("top-k", "top-2") in EXPECTED else []
    return found, absent


def _figures(scored: Scored) -> list[Content]:
    entrant = scored.entrant
    return [entrant.calls.total, yes_or_no(entrant.graded), cell_of(scored.auroc), cell_of(scored.confidence)]


def _adjust(rows: Sequence[list[Content]]) -> None:
    """Adjust the p-values in the rows for their number, and add their stars."""
    tested = [row for row in rows if row[P_VALUE] is not None]
    for row, p_value in zip(tested, holm([number_of(row[P_VALUE]) or 0.0 for row in tested]), strict=True):
        row[P_VALUE : P_VALUE + 2] = [p_value_text(p_value), stars(p_value)]


def _printed(row: tuple[float, float | None, str] | None) -> list[Content]:
    return [None, None] if row is None else [row[0], row[2] or None]
