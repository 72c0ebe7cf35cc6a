"""The paper's research questions, answered from recorded votes.

Single models (RQ1), published baselines (RQ2), several models (RQ3), each relation alone (RQ4), and fewer gold rows.
Every figure is cross-validated, so no row is judged by weights that saw it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.core.arrays import Integers
from pcs_annotator.core.elicitations import base_annotator
from pcs_annotator.core.result_table import Content, Curve, Experiment, Figure, ResultTable, best_in_groups, number_of
from pcs_annotator.core.weights import Interval
from pcs_annotator.judging.evaluate.as_tables import ABOUT_LOG_PROBS, LOG_PROBS, yes_or_no
from pcs_annotator.judging.evaluate.methods import calls_of, method_name, self_consistency
from pcs_annotator.judging.evaluate.scored import (
    ABOUT_AUROC,
    HARD_AND_GRADED,
    NO_CONFIDENCE_AUROC,
    Scored,
    adjusted,
    cell_of,
)
from pcs_annotator.judging.fit_weights import fit_optimiser, optimisers
from pcs_annotator.judging.heldout import stratified_folds
from pcs_annotator.judging.metrics.bootstrap import WIDENING
from pcs_annotator.judging.metrics.figures import auroc
from pcs_annotator.judging.metrics.significance import holm, p_value_text, stars
from pcs_annotator.judging.score import score
from pcs_annotator.studies.paper import study as panels

SINGLE = ("Zero-shot", "PCS hard", "PCS", "PCS equal weights", "Self-consistency")
MAX_MODELS = 7  # with more models, only pairs and all together are shown: 8 would make 247 combinations

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
    """Yield pairs first, all together last."""
    sizes = range(2, len(annotators) + 1) if len(annotators) <= MAX_MODELS else {2, len(annotators)}
    for size in sizes:
        yield from combinations(annotators, size)


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
            found.add(bench.dataset, shown, scored=_by_relation(bench, models, relations, notes))
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
    ]


def _panels(bench: panels.ExperimentBench) -> list[list[str]]:
    """Return every model alone, and all together."""
    models = list(bench.plain.annotators)
    return [*([name] for name in models), *([models] if len(models) > 1 else [])]


def _by_relation(
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


RIVAL_COLUMNS = (
    "Dataset", "LLM", "Method", "Calls", LOG_PROBS, "Class AUROC", "Confidence AUROC", "p (Holm)", "Significance",
)  # fmt: skip
EXPECTED = ("1s-top-2", "2s-top-2", "ling-1s", "spuq")  # the paper's; those not recorded get a row that says so
NOT_RECORDED = "not recorded"
FOR_SEVERAL_MODELS = "majority-vote"
P_VALUE = RIVAL_COLUMNS.index("p (Holm)")


def published_baselines(study: panels.Replication) -> Experiment:
    """Return PCS of every single model beside the baselines that its votes allow."""
    rows: list[list[Content]] = []
    reasons: dict[str, str] = {}
    for bench in study.benches:
        for annotator in bench.plain.annotators:
            rows += _baseline_rows(bench, annotator, reasons)
    _adjust(rows)
    graded = any(row[4] == yes_or_no(True) for row in rows)
    undefined = any(row[5] is not None and row[6] is None for row in rows)
    kept = [place for place, column in enumerate(RIVAL_COLUMNS) if graded or column != LOG_PROBS]
    columns, rows = [RIVAL_COLUMNS[place] for place in kept], [[row[place] for place in kept] for row in rows]
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
            "p (Holm): test of the class AUROC of PCS against each baseline on resamples of the same rows, two-sided; "
            f"its standard error is widened by {WIDENING:g} as intervals are, with Holm's adjustment over this table; "
            "*** p < 0.001, ** p < 0.01, * p < 0.05. It is about new rows of a dataset, with the same model.",
            "spuq takes paraphrases and dummy tokens where they are recorded, else whatever relations there are.",
            *(f"{name} is {NOT_RECORDED}: {reason}." for name, reason in reasons.items()),
            *([NO_CONFIDENCE_AUROC] if undefined else []),
        ],
        best=best_in_groups(rows, column=columns.index("Class AUROC"), by=2),
        digits={"Calls": 1},
    )
    return Experiment(name="rq2", tables=[table])


def _baseline_rows(bench: panels.ExperimentBench, annotator: str, reasons: dict[str, str]) -> list[list[Content]]:
    """Return the rows of one model: PCS first, then baselines from best to worst, then those not recorded."""
    try:
        ours = bench.on_cells(bench.settings.optimiser, [annotator])
    except UndefinedMetric as error:
        reasons[f"PCS of {annotator}"] = str(error)
        return []
    found, absent = _scored(bench, annotator, reasons)
    rows: list[tuple[str, list[Content]]] = [("PCS", [*_figures(ours), None, None])]
    for name, scored in sorted(found.items(), key=lambda one: -one[1].auroc.value):
        test = panels.compared([ours], [scored]).test
        rows.append((name, [*_figures(scored), test and test.p_value, None]))
    rows += [(name, [None, None, None, None, None, NOT_RECORDED]) for name in absent]
    return [[bench.dataset, annotator, name, *cells] for name, cells in rows]


def _scored(
    bench: panels.ExperimentBench, annotator: str, reasons: dict[str, str]
) -> tuple[dict[str, Scored], list[str]]:
    """Return the results of the baselines on one model's votes, and the names of those that are not recorded."""
    family = [name for name in bench.votes.annotators if base_annotator(name) == annotator]
    votes = bench.votes.select(annotators=family)
    answered = np.asarray((votes.codes >= 0).any(axis=(0, 1, 3)))
    votes = votes.select(relations=[name for name, any_vote in zip(votes.relations, answered, strict=True) if any_vote])
    found: dict[str, Scored] = {}
    given = [method_name(method) for method in bench.settings.baselines]
    absent = [name for name in EXPECTED if not {name, name.replace("top-2", "top-k")} & set(given)]
    reasons.update({name: "no such baseline was given" for name in absent})
    for name, method in zip(given, bench.settings.baselines, strict=True):
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


SIZE_COLUMNS = ("Dataset", "Method", "Gold rows", "Class AUROC")
HELD_OUT = 0.25  # share of the rows held out for testing, the same for every size, so that sizes can be panels.compared
STABLE_WITHIN = 0.005
BAND = (0.1, 0.9)
EQUAL = "equal weights"


def gold_size(study: panels.Replication) -> Experiment:
    """Return the class AUROC on held-out rows for growing numbers of gold rows, beside equal weights."""
    curves: list[Curve] = []
    notes = [
        f"Each of {study.settings.draws} random draws (seeds {study.settings.how.seed} and on) holds out a quarter of "
        f"the rows for class AUROC; weights by {study.settings.optimiser} on growing parts of the rest. Means over "
        "draws; intervals and bands are the central 80 % of them.",
        *study.trouble(),
    ]
    summary = []
    for bench in study.benches:
        sizes = [size for size in study.settings.sizes if size <= (1 - HELD_OUT) * len(bench.gold)]
        if not sizes:
            notes.append(f"{bench.dataset}: {len(bench.gold)} rows are too few for a learning curve.")
            continue
        try:
            curves += _curves(bench, sizes)
        except UndefinedMetric:
            notes.append(f"{bench.dataset}: too few rows of the rarer class for a learning curve.")
            continue
        stable = f"from {_stable_from(curves[-2])} gold rows"
        summary.append((f"{bench.dataset}: within {STABLE_WITHIN} of its last point", stable))
    rows: list[list[Content]] = [
        [curve.dataset, curve.method, int(x), Figure(float(y), Interval(float(low), float(high)))]
        for curve in curves
        for x, y, low, high in zip(curve.x, curve.y, curve.low, curve.high, strict=True)
    ]
    table = ResultTable(
        name="size",
        title="Class AUROC against the number of gold rows learned from",
        columns=SIZE_COLUMNS,
        rows=[*rows, *study.refused_rows(len(SIZE_COLUMNS))],
        summary=summary,
        notes=notes,
        digits={"Class AUROC": 3},
    )
    return Experiment(name="size", tables=[table], curves=curves)


def _curves(bench: panels.ExperimentBench, sizes: Sequence[int]) -> list[Curve]:
    """Return the curve of the optimiser and that of equal weights, on the same rows."""
    votes = bench.plain.select(draws=1)
    chosen = optimisers.create(bench.settings.optimiser)
    equal = score(votes, optimisers.create("uniform").fit(votes, bench.gold, 0))
    found = np.empty((2, len(sizes), bench.settings.draws))
    for draw in range(bench.settings.draws):
        seed = bench.settings.how.seed + draw
        held, rest = _split(bench, seed)
        found[1, :, draw] = auroc(equal[held], bench.gold[held])
        for place, size in enumerate(sizes):
            weights = fit_optimiser(chosen, votes.take(rest[:size]), bench.gold[rest[:size]], seed)
            found[0, place, draw] = auroc(score(votes.take(held), weights), bench.gold[held])
    points = zip(found.mean(axis=2), *np.quantile(found, BAND, axis=2), strict=True)
    return [
        Curve(bench.dataset, name, tuple(map(float, sizes)), *map(tuple, own))
        for name, own in zip((bench.settings.optimiser, EQUAL), points, strict=True)
    ]


def _split(bench: panels.ExperimentBench, seed: int) -> tuple[Integers, Integers]:
    """Return rows to test on, with their share of every class, and rows to learn from in random order."""
    held = stratified_folds(bench.gold, round(1 / HELD_OUT), seed) == 0
    return np.flatnonzero(held), np.random.default_rng(seed).permutation(np.flatnonzero(~held))


def _stable_from(curve: Curve) -> int:
    """Return the smallest size from which the mean stays close to its last value."""
    far = [place for place, value in enumerate(curve.y) if abs(value - curve.y[-1]) > STABLE_WITHIN]
    return int(curve.x[max(far, default=-1) + 1])


EXPERIMENTS: dict[str, Callable[[panels.Replication], Experiment]] = {
    "rq1": single_models,
    "rq2": published_baselines,
    "rq3": several_models,
    "rq4": each_relation,
    "size": gold_size,
}
