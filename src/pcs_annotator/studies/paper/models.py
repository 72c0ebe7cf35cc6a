"""PCS beside one call per model: single models (RQ1), several models (RQ3), and sampling temperatures.

At several temperatures, annotators are named `<model>@<temperature>`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

from pcs_annotator.core.result_table import Content, Experiment, Figure, Pair, ResultTable, best_in_rows
from pcs_annotator.judging.evaluation.evaluate import HARD_AND_GRADED
from pcs_annotator.judging.evaluation.methods import calls_of, self_consistency
from pcs_annotator.studies import published
from pcs_annotator.studies.paper.study import (
    ABOUT_TESTS,
    ExperimentBench,
    Scored,
    Study,
    attempt,
    compared,
    confidence_table,
    figure_in,
    summaries,
)

SINGLE_COLUMNS = ("Dataset", "LLM", "Zero-shot", "PCS hard", "PCS", "PCS equal weights", "Self-consistency")
SINGLE_PAPER_COLUMNS = ("paper: Zero-shot", "paper: PCS")
SEVERAL_COLUMNS = ("Dataset", "LLMs", "MV", "PCS")
SEVERAL_PAPER_COLUMNS = ("paper: MV", "paper: PCS")
TEMPERATURE_COLUMNS = ("Dataset", "Temperature", "LLM", "Zero-shot or MV", "PCS")
MAX_MODELS = 7
"""With more models, only pairs and all together are shown: 8 would make 247 combinations."""

_TEMPERATURE = re.compile(r"@(\d+(?:\.\d+)?)\Z")


def single_models(study: Study) -> Experiment:
    """RQ1: return PCS of every single model beside its zero-shot labels, hard and graded, and at equal calls."""
    notes = [*study.notes(), HARD_AND_GRADED, ABOUT_TESTS]
    rows: list[list[Content]] = []
    found: list[list[Scored | None]] = []
    for bench in study.benches:
        for annotator in bench.plain.annotators:
            found.append(_single(study, bench, annotator, notes))
            paper = published.SINGLE.get(published.published_key(bench.dataset, [annotator]) or ("", ""))
            rows.append([bench.dataset, annotator, *map(figure_in, found[-1]), *(paper or (None, None))])
    zero_shot, *others = ([row[place] for row in found] for place in range(len(SINGLE_COLUMNS) - 2))
    summary = summaries(
        {
            f"{name} against zero-shot": compared(scored, zero_shot)
            for name, scored in zip(SINGLE_COLUMNS[3:], others, strict=True)
            if any(scored)
        }
    )
    columns: tuple[str, ...] = SINGLE_COLUMNS
    if any(row[7] is not None for row in rows):
        columns = (*SINGLE_COLUMNS, *SINGLE_PAPER_COLUMNS)
        improvement = f"+{published.SINGLE_IMPROVEMENT} %, p = {published.SINGLE_P_VALUE}"
        summary.append(("paper: PCS against zero-shot", improvement))
    rows = [row[: len(columns)] for row in rows]
    table = ResultTable(
        name="rq1",
        title="PCS with a single model against its zero-shot labels (class AUROC)",
        columns=columns,
        rows=[*rows, *study.refused_rows(len(columns))],
        summary=summary,
        notes=notes,
        best=best_in_rows(rows, [2, 4]),
    )
    # the labels and confidence of PCS hard are those of PCS
    shown = [place for place, name in enumerate(SINGLE_COLUMNS[2:]) if name != "PCS hard"]
    names, results = [SINGLE_COLUMNS[2 + place] for place in shown], [[row[place] for place in shown] for row in found]
    sure = confidence_table(table, 2, names, results)
    return Experiment(name="rq1", tables=[table, sure], pairs=_pairs(rows, ours=4), rival="Zero-shot")


def _single(study: Study, bench: ExperimentBench, annotator: str, notes: list[str]) -> list[Scored | None]:
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
    panel = bench.plain.select(annotators=[annotator], draws=1)
    own = bench.plain.select(annotators=[annotator])
    return bench.score(self_consistency(own, calls_of(panel, bench.how.rewritten).total))


def _pairs(rows: list[list[Content]], ours: int) -> list[Pair]:
    """Return the points of the plot: our figure in one column against the other method's in column 2."""
    return [
        Pair(str(row[0]), str(row[1]), mine.value, rival.value)
        for row in rows
        if isinstance(mine := row[ours], Figure) and isinstance(rival := row[2], Figure)
    ]


def several_models(study: Study) -> Experiment:
    """RQ3: return PCS of every combination of two or more models beside their majority vote."""
    notes = [*study.notes(), "MV: share of models that give a label to the unchanged text, one call each.", ABOUT_TESTS]
    rows: list[list[Content]] = []
    ours: list[Scored | None] = []
    theirs: list[Scored | None] = []
    for bench in study.benches:
        found = list(_combinations(bench.plain.annotators))
        if not found:
            notes.append(f"{bench.dataset}: one model alone has no combinations.")
        for models in found:
            paper = published.SEVERAL.get(published.published_key(bench.dataset, models) or ("", ""))
            theirs.append(bench.alone(notes, models))
            ours.append(bench.pcs(notes, study.settings.optimiser, models))
            figures = [figure_in(theirs[-1]), figure_in(ours[-1])]
            rows.append([bench.dataset, " + ".join(models), *figures, *(paper or (None, None))])
    summary = summaries({"PCS against MV": compared(ours, theirs)})
    columns: tuple[str, ...] = SEVERAL_COLUMNS
    if any(row[4] is not None for row in rows):
        columns = (*SEVERAL_COLUMNS, *SEVERAL_PAPER_COLUMNS)
        summary.append(("paper: PCS against MV", f"+{published.SEVERAL_IMPROVEMENT} %, p < 0.01"))
    rows = [row[: len(columns)] for row in rows]
    table = ResultTable(
        name="rq3",
        title="PCS with several models against their majority vote (class AUROC)",
        columns=columns,
        rows=[*rows, *study.refused_rows(len(columns))],
        summary=summary,
        notes=notes,
        best=best_in_rows(rows, [2, 3]),
    )
    sure = confidence_table(table, 2, SEVERAL_COLUMNS[2:], [*zip(theirs, ours, strict=True)])
    return Experiment(name="rq3", tables=[table, sure], pairs=_pairs(rows, ours=3), rival="Majority vote")


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


def temperatures(study: Study) -> Experiment:
    """Return PCS beside one call per model at every recorded temperature."""
    notes = [*study.notes(), ABOUT_TESTS]
    rows: list[list[Content]] = []
    in_rows: list[tuple[Scored | None, Scored | None]] = []
    found: dict[str, list[tuple[Scored | None, Scored | None]]] = {}
    for bench in study.benches:
        groups = by_temperature(bench.plain.annotators)
        groups.pop("", None)
        if not groups:
            notes.append(
                f"{bench.dataset}: no annotator is called <model>@<temperature>, so temperatures cannot be told apart."
            )
        for degree, models in groups.items():
            panels = [[name] for name in models] + ([models] if len(models) > 1 else [])
            for panel in panels:
                pair = bench.alone(notes, panel), bench.pcs(notes, study.settings.optimiser, panel)
                found.setdefault(degree, []).append(pair)
                shown = " + ".join(_TEMPERATURE.sub("", name) for name in panel)
                rows.append([bench.dataset, degree, shown, *map(figure_in, pair)])
                in_rows.append(pair)
    summary = summaries(
        {
            f"Temperature {degree}": compared([ours for _, ours in pairs], [theirs for theirs, _ in pairs])
            for degree, pairs in sorted(found.items(), key=lambda one: float(one[0]))
        }
    )
    table = ResultTable(
        name="temperature",
        title="PCS against one call per model, by sampling temperature (class AUROC)",
        columns=TEMPERATURE_COLUMNS,
        rows=[*rows, *study.refused_rows(len(TEMPERATURE_COLUMNS))],
        summary=summary,
        notes=notes,
        best=best_in_rows(rows, [3, 4]),
    )
    return Experiment(name="temperature", tables=[table, confidence_table(table, 3, TEMPERATURE_COLUMNS[3:], in_rows)])
