"""PCS beside one call per model: single models (RQ1), several models (RQ3), each relation alone (RQ4), temperatures.

At several temperatures, annotators are named `<model>@<temperature>`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from pcs_annotator.core.result_table import Content, Experiment, ResultTable
from pcs_annotator.judging.evaluation.figures import HARD_AND_GRADED, adjusted
from pcs_annotator.judging.evaluation.methods import calls_of, self_consistency
from pcs_annotator.judging.evaluation.scored import Scored
from pcs_annotator.judging.metrics.significance import p_value_text, stars
from pcs_annotator.studies.paper import study as panels

SINGLE = ("Zero-shot", "PCS hard", "PCS", "PCS equal weights", "Self-consistency")
MAX_MODELS = 7  # with more models, only pairs and all together are shown: 8 would make 247 combinations

_TEMPERATURE = re.compile(r"@(\d+(?:\.\d+)?)\Z")
NONE = "No MR"
ORDER = ("PCS", NONE, "voice", "synonym", "double-negation")  # the paper's order of comparison; other relations follow


def single_models(study: panels.Replication) -> Experiment:
    """RQ1: return PCS of every single model beside its zero-shot labels, hard and graded, and at equal calls."""
    notes = [*study.notes(), HARD_AND_GRADED, panels.ABOUT_TESTS]
    rows = []
    for bench in study.benches:
        for annotator in bench.plain.annotators:
            rows.append(panels.PanelRow([bench.dataset, annotator], _single(bench, annotator, notes)))
    found = panels.PanelTable(
        study=study,
        name="rq1",
        title="PCS with a single model against its zero-shot labels (class AUROC)",
        leading=("Dataset", "LLM"),
        methods=SINGLE,
        rows=rows,
        notes=notes,
    )
    others = {name: found.by_method(name) for name in SINGLE[1:]}
    tests = {name: panels.compared(own, found.by_method("Zero-shot")) for name, own in others.items() if any(own)}
    summary = panels.summaries({f"{name} against zero-shot": one for name, one in tests.items()})
    # the labels and confidence of PCS hard are those of PCS
    tables = [found.table(summary, best=("Zero-shot", "PCS")), found.confidence(without=["PCS hard"])]
    return Experiment(name="rq1", tables=tables, pairs=found.pairs("PCS", "Zero-shot"), rival="Zero-shot")


def _single(bench: panels.ExperimentBench, annotator: str, notes: list[str]) -> list[Scored | None]:
    """Return the results of one model in the order of the columns."""
    return [
        bench.alone(notes, [annotator]),
        panels.attempt(notes, lambda: bench.on_cells(bench.settings.optimiser, [annotator]).hard()),
        bench.pcs(notes, [annotator]),
        bench.pcs(notes, [annotator], "uniform"),
        panels.attempt(notes, lambda: _at_equal_calls(bench, annotator)),
    ]


def _at_equal_calls(bench: panels.ExperimentBench, annotator: str) -> Scored:
    """Return self-consistency of one model with as many calls as its PCS makes."""
    own = bench.plain.select(annotators=[annotator])
    return bench.score(self_consistency(own, calls_of(own.select(draws=1), bench.settings.how.rewritten).total))


def several_models(study: panels.Replication) -> Experiment:
    """RQ3: return PCS of every combination of two or more models beside their majority vote."""
    notes = [
        *study.notes(),
        "MV: share of models that give a label to the unchanged text, one call each.",
        panels.ABOUT_TESTS,
    ]
    rows = []
    for bench in study.benches:
        combined = list(_combinations(bench.plain.annotators))
        if not combined:
            notes.append(f"{bench.dataset}: one model alone has no combinations.")
        for models in combined:
            scored = [bench.alone(notes, models), bench.pcs(notes, models)]
            rows.append(panels.PanelRow([bench.dataset, " + ".join(models)], scored))
    found = panels.PanelTable(
        study=study,
        name="rq3",
        title="PCS with several models against their majority vote (class AUROC)",
        leading=("Dataset", "LLMs"),
        methods=("MV", "PCS"),
        rows=rows,
        notes=notes,
    )
    summary = panels.summaries({"PCS against MV": panels.compared(found.by_method("PCS"), found.by_method("MV"))})
    tables = [found.table(summary), found.confidence()]
    return Experiment(name="rq3", tables=tables, pairs=found.pairs("PCS", "MV"), rival="Majority vote")


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


def temperatures(study: panels.Replication) -> Experiment:
    """Return PCS beside one call per model at every recorded temperature."""
    notes = [*study.notes(), panels.ABOUT_TESTS]
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
                scored = [bench.alone(notes, panel), bench.pcs(notes, panel)]
                rows.append(panels.PanelRow([bench.dataset, degree, shown], scored))
    found = panels.PanelTable(
        study=study,
        name="temperature",
        title="PCS against one call per model, by sampling temperature (class AUROC)",
        leading=("Dataset", "Temperature", "LLM"),
        methods=("Zero-shot or MV", "PCS"),
        rows=rows,
        notes=notes,
    )
    degrees = sorted({row.names[1] for row in rows}, key=float)
    pairs = {degree: [row.scored for row in rows if row.names[1] == degree] for degree in degrees}
    summary = panels.summaries(
        {
            f"Temperature {degree}": panels.compared([ours for _, ours in own], [theirs for theirs, _ in own])
            for degree, own in pairs.items()
        }
    )
    return Experiment(name="temperature", tables=[found.table(summary), found.confidence()])


def each_relation(study: panels.Replication) -> Experiment:
    """Return every relation alone beside none and all, and tests between them."""
    notes = [*study.notes(), "One relation alone: the label, or for several models (MV) the share of them."]
    benches = study.benches
    relations = list(
        dict.fromkeys(name for bench in benches for name in bench.plain.relations if name != bench.original)
    )
    columns = [NONE, *relations, "PCS"]
    rows = []
    for bench in benches:
        for models in _panels(bench):
            shown = " + ".join(models) + (" (MV)" if len(models) > 1 else "")
            rows.append(panels.PanelRow([bench.dataset, shown], _scored(bench, models, relations, notes)))
    found = panels.PanelTable(
        study=study,
        name="rq4",
        title="Each relation alone, none, and all together as PCS (class AUROC)",
        leading=("Dataset", "LLM"),
        methods=columns,
        rows=rows,
        notes=notes,
    )
    pairs = combinations(sorted(columns, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER)), 2)
    tests = {(one, other): panels.compared(found.by_method(one), found.by_method(other)) for one, other in pairs}
    return Experiment(name="rq4", tables=[found.table(), _comparisons(tests), found.confidence()])


def _comparisons(found: Mapping[tuple[str, str], panels.Compared]) -> ResultTable:
    """Return tests and average relative improvements between methods, by their names."""
    p_values = adjusted([one.test for one in found.values()])
    rows = [_comparison(*names, one, p_value) for (names, one), p_value in zip(found.items(), p_values, strict=True)]
    return ResultTable(
        name="rq4-tests",
        title="Relations against each other over all models and datasets",
        columns=(
            "Method comparison", "Pairs", "p (Holm)", "Significance", "ARI (%)", "Superior method",
            f"p of the {panels.T_TEST}",
        ),
        rows=rows,
        notes=["ARI: mean of (first − second) / second.", panels.ABOUT_TESTS],
    )  # fmt: skip


def _comparison(one: str, other: str, found: panels.Compared, p_value: float | None) -> list[Content]:
    marks: str = panels.NO_TEST
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
    ]


def _panels(bench: panels.ExperimentBench) -> list[list[str]]:
    """Return every model alone, and all of one temperature together."""
    alone = [[name] for name in bench.plain.annotators]
    return alone + [models for models in by_temperature(bench.plain.annotators).values() if len(models) > 1]


def _scored(
    bench: panels.ExperimentBench, models: Sequence[str], relations: Sequence[str], notes: list[str]
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
    return [*cells, bench.pcs(notes, models)]
