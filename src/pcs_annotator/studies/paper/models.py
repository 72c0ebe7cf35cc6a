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
    title = "PCS with a single model against its zero-shot labels"
    found = panels.PanelTable(study, "rq1", title, SINGLE, notes)
    for bench in study.benches:
        for annotator in bench.plain.annotators:
            found.add(bench.dataset, annotator, scored=_single(bench, annotator, notes))
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
    about = "MV: share of models that give a label to the unchanged text, one call each."
    notes = [*study.notes(), about, panels.ABOUT_TESTS]
    title = "PCS with several models against their majority vote"
    found = panels.PanelTable(study, "rq3", title, ("MV", "PCS"), notes, ("Dataset", "LLMs"))
    for bench in study.benches:
        combined = list(_combinations(bench.plain.annotators))
        if not combined:
            notes.append(f"{bench.dataset}: one model alone has no combinations.")
        for models in combined:
            found.add(bench.dataset, " + ".join(models), scored=[bench.alone(notes, models), bench.pcs(notes, models)])
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
    title, leading = "PCS against one call per model, by sampling temperature", ("Dataset", "Temperature", "LLM")
    found = panels.PanelTable(study, "temperature", title, ("Zero-shot or MV", "PCS"), notes, leading)
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
                found.add(bench.dataset, degree, shown, scored=scored)
    tests = {}
    for degree in sorted({row.names[1] for row in found.rows}, key=float):
        theirs, ours = zip(*(row.scored for row in found.rows if row.names[1] == degree), strict=True)
        tests[f"Temperature {degree}"] = panels.compared(ours, theirs)
    summary = panels.summaries(tests)
    return Experiment(name="temperature", tables=[found.table(summary), found.confidence()])


def each_relation(study: panels.Replication) -> Experiment:
    """Return every relation alone beside none and all, and tests between them."""
    notes = [*study.notes(), "One relation alone: the label, or for several models (MV) the share of them."]
    recorded = (name for bench in study.benches for name in bench.plain.relations if name != bench.original)
    relations = list(dict.fromkeys(recorded))
    columns = [NONE, *relations, "PCS"]
    found = panels.PanelTable(study, "rq4", "Each relation alone, none, and all together as PCS", columns, notes)
    for bench in study.benches:
        for models in _panels(bench):
            shown = " + ".join(models) + (" (MV)" if len(models) > 1 else "")
            found.add(bench.dataset, shown, scored=_scored(bench, models, relations, notes))
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
