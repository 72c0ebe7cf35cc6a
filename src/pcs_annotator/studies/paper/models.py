"""PCS beside one call per model: single models (RQ1), several models (RQ3), and sampling temperatures.

At several temperatures, annotators are named `<model>@<temperature>`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

from pcs_annotator.core.result_table import Experiment
from pcs_annotator.judging.evaluation.figures import HARD_AND_GRADED
from pcs_annotator.judging.evaluation.methods import calls_of, self_consistency
from pcs_annotator.judging.evaluation.scored import Scored
from pcs_annotator.studies import published
from pcs_annotator.studies.paper.study import (
    ABOUT_TESTS,
    ExperimentBench,
    PanelRow,
    PanelTable,
    Replication,
    attempt,
    compared,
    summaries,
)

SINGLE = ("Zero-shot", "PCS hard", "PCS", "PCS equal weights", "Self-consistency")
MAX_MODELS = 7
"""With more models, only pairs and all together are shown: 8 would make 247 combinations."""

_TEMPERATURE = re.compile(r"@(\d+(?:\.\d+)?)\Z")


def single_models(study: Replication) -> Experiment:
    """RQ1: return PCS of every single model beside its zero-shot labels, hard and graded, and at equal calls."""
    notes = [*study.notes(), HARD_AND_GRADED, ABOUT_TESTS]
    rows = []
    for bench in study.benches:
        for annotator in bench.plain.annotators:
            paper = published.SINGLE.get(published.published_key(bench.dataset, [annotator]) or ("", ""))
            scored = _single(study, bench, annotator, notes)
            rows.append(PanelRow([bench.dataset, annotator], scored, paper or (None, None)))
    found = PanelTable(
        name="rq1",
        title="PCS with a single model against its zero-shot labels (class AUROC)",
        leading=("Dataset", "LLM"),
        methods=SINGLE,
        paper=("Zero-shot", "PCS"),
        rows=rows,
        notes=notes,
        best=("Zero-shot", "PCS"),
    )
    others = {name: found.by_method(name) for name in SINGLE[1:]}
    tests = {name: compared(own, found.by_method("Zero-shot")) for name, own in others.items() if any(own)}
    summary = summaries({f"{name} against zero-shot": one for name, one in tests.items()})
    if found.known:
        improvement = f"+{published.SINGLE_IMPROVEMENT} %, p = {published.SINGLE_P_VALUE}"
        summary.append(("paper: PCS against zero-shot", improvement))
    # the labels and confidence of PCS hard are those of PCS
    tables = [found.table(study, summary), found.confidence(study, without=["PCS hard"])]
    return Experiment(name="rq1", tables=tables, pairs=found.pairs("PCS", "Zero-shot"), rival="Zero-shot")


def _single(study: Replication, bench: ExperimentBench, annotator: str, notes: list[str]) -> list[Scored | None]:
    """Return the results of one model in the order of the columns."""
    chosen = study.settings.optimiser
    return [
        bench.alone(notes, [annotator]),
        attempt(notes, lambda: bench.on_cells(chosen, [annotator]).hard()),
        bench.pcs(notes, chosen, [annotator]),
        bench.pcs(notes, "uniform", [annotator]),
        attempt(notes, lambda: _at_equal_calls(bench, annotator)),
    ]


def _at_equal_calls(bench: ExperimentBench, annotator: str) -> Scored:
    """Return self-consistency of one model with as many calls as its PCS makes."""
    own = bench.plain.select(annotators=[annotator])
    return bench.score(self_consistency(own, calls_of(own.select(draws=1), bench.how.rewritten).total))


def several_models(study: Replication) -> Experiment:
    """RQ3: return PCS of every combination of two or more models beside their majority vote."""
    notes = [*study.notes(), "MV: share of models that give a label to the unchanged text, one call each.", ABOUT_TESTS]
    rows = []
    for bench in study.benches:
        panels = list(_combinations(bench.plain.annotators))
        if not panels:
            notes.append(f"{bench.dataset}: one model alone has no combinations.")
        for models in panels:
            paper = published.SEVERAL.get(published.published_key(bench.dataset, models) or ("", ""))
            scored = _beside_one_call(study, bench, models, notes)
            rows.append(PanelRow([bench.dataset, " + ".join(models)], scored, paper or (None, None)))
    found = PanelTable(
        name="rq3",
        title="PCS with several models against their majority vote (class AUROC)",
        leading=("Dataset", "LLMs"),
        methods=("MV", "PCS"),
        paper=("MV", "PCS"),
        rows=rows,
        notes=notes,
    )
    summary = summaries({"PCS against MV": compared(found.by_method("PCS"), found.by_method("MV"))})
    if found.known:
        summary.append(("paper: PCS against MV", f"+{published.SEVERAL_IMPROVEMENT} %, p < 0.01"))
    tables = [found.table(study, summary), found.confidence(study)]
    return Experiment(name="rq3", tables=tables, pairs=found.pairs("PCS", "MV"), rival="Majority vote")


def _beside_one_call(
    study: Replication, bench: ExperimentBench, models: Sequence[str], notes: list[str]
) -> list[Scored | None]:
    return [bench.alone(notes, models), bench.pcs(notes, study.settings.optimiser, models)]


def _combinations(annotators: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield pairs first, all together last; models asked at different temperatures are not mixed."""
    for models in by_temperature(annotators).values():
        sizes = range(2, len(models) + 1) if len(models) <= MAX_MODELS else (2, len(models))
        for size in sizes:
            yield from combinations(models, size)


def by_temperature(annotators: Sequence[str]) -> dict[str, list[str]]:
    """Return temperature → annotators, in rising order; names without a temperature come under an empty string.

    >>> by_temperature(["a@0.7", "a@0", "b@0"])
    {'0': ['a@0', 'b@0'], '0.7': ['a@0.7']}
    """
    found: dict[str, list[str]] = {}
    for name in annotators:
        match = _TEMPERATURE.search(name)
        found.setdefault(match[1] if match else "", []).append(name)
    return dict(sorted(found.items(), key=lambda one: float(one[0] or -1)))


def temperatures(study: Replication) -> Experiment:
    """Return PCS beside one call per model at every recorded temperature."""
    notes = [*study.notes(), ABOUT_TESTS]
    rows = []
    for bench in study.benches:
        groups = by_temperature(bench.plain.annotators)
        groups.pop("", None)
        if not groups:
            notes.append(
                f"{bench.dataset}: no model is called <model>@<temperature>, so temperatures cannot be told apart."
            )
        for degree, models in groups.items():
            for panel in [[name] for name in models] + ([models] if len(models) > 1 else []):
                shown = " + ".join(_TEMPERATURE.sub("", name) for name in panel)
                scored = _beside_one_call(study, bench, panel, notes)
                rows.append(PanelRow([bench.dataset, degree, shown], scored))
    found = PanelTable(
        name="temperature",
        title="PCS against one call per model, by sampling temperature (class AUROC)",
        leading=("Dataset", "Temperature", "LLM"),
        methods=("Zero-shot or MV", "PCS"),
        rows=rows,
        notes=notes,
    )
    degrees = sorted({row.names[1] for row in rows}, key=float)
    pairs = {degree: [row.scored for row in rows if row.names[1] == degree] for degree in degrees}
    summary = summaries(
        {
            f"Temperature {degree}": compared([ours for _, ours in own], [theirs for theirs, _ in own])
            for degree, own in pairs.items()
        }
    )
    return Experiment(name="temperature", tables=[found.table(study, summary), found.confidence(study)])
