"""Which optimiser? All of them on the same votes and splits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pcs_annotator.core.result_table import Content, Experiment, Figure, ResultTable, best_in_groups
from pcs_annotator.judging.evaluation.evaluate import Evaluation, evaluate
from pcs_annotator.judging.evaluation.evaluation_tables import p_value_text
from pcs_annotator.judging.evaluation.experiments.study import ExperimentBench, Study
from pcs_annotator.judging.evaluation.methods import Method, OnCells
from pcs_annotator.judging.weighing.optimisers.ga import GeneticAlgorithm

COLUMNS = ("Dataset", "Optimiser", "AUROC", "AUROC hard", "Accuracy", "ECE score", "ECE calibrated", "p (Holm)")
SHOWN = ("auroc", "auroc_hard", "accuracy", "ece_score", "ece_confidence")
MOST_ROWS = 1000
SMALL_GA = {"population": 40, "generations": 40}


def optimiser_choice(study: Study) -> Experiment:
    """Return the figures of every optimiser, and the test of the first against each other one."""
    rows: list[list[Content]] = []
    first = next(iter(study.settings.optimisers), "")
    notes = [
        *study.trouble(),
        f"p (Holm): paired bootstrap on AUROC of {first} against each, adjusted for their number.",
        f"ga searches with {SMALL_GA['population']} candidates over {SMALL_GA['generations']} generations.",
    ]
    for bench in study.benches:
        evaluation = _evaluation(study, bench, notes)
        for found in evaluation.methods:
            figures = [Figure(found.figures[name].value, found.figures[name].interval) for name in SHOWN]
            p_value = None if found.against is None else p_value_text(found.against.holm)
            rows.append([bench.dataset, found.method, *figures, p_value])
        notes += [f"{name}: {reason}." for name, reason in evaluation.missing.items()]
        notes.append(f"{bench.dataset}: {evaluation.notes[1]}")
    table = ResultTable(
        name="optimisers",
        title="Optimisers on the same votes and splits",
        columns=COLUMNS,
        rows=[*rows, *study.refused_rows(len(COLUMNS))],
        notes=list(dict.fromkeys(notes)),
        best=best_in_groups(rows, column=2, by=1, digits=3),
        digits=dict.fromkeys(COLUMNS[2:7], 3),
    )
    return Experiment(name="optimisers", tables=[table])


def _evaluation(study: Study, bench: ExperimentBench, notes: list[str]) -> Evaluation:
    votes, gold = bench.plain.select(draws=1), bench.gold
    if len(gold) > MOST_ROWS:
        seed = study.settings.how.seed
        rows = np.sort(np.random.default_rng(seed).choice(len(gold), MOST_ROWS, replace=False))
        votes, gold = votes.take(rows), gold[rows]
        notes.append(f"{bench.dataset}: {MOST_ROWS} of {len(bench.gold)} rows at random (seed {seed}), to save time.")
    methods: list[Method] = [
        OnCells(name="ga", optimiser=GeneticAlgorithm(**SMALL_GA)) if name == "ga" else name  # type: ignore[arg-type]  # counts, not the objective
        for name in study.settings.optimisers
    ]
    how = replace(study.settings.how, rewritten=frozenset())
    return evaluate(votes, gold, methods, how)
