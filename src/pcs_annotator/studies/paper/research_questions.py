"""The paper's research questions, answered from recorded votes.

Single models (RQ1), published baselines (RQ2), several models (RQ3), each relation alone (RQ4), and fewer gold rows.
Every figure is cross-validated, so no row is judged by weights that saw it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.core.elicitations import base_annotator
from pcs_annotator.core.result_table import Content, Curve, Experiment, Figure, ResultTable, best_in_groups
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
from pcs_annotator.judging.metrics.figures import auroc
from pcs_annotator.judging.metrics.significance import WIDENING, BootstrapTest, p_value_text, stars
from pcs_annotator.judging.score import score
from pcs_annotator.studies.paper.study import (
    ABOUT_TESTS,
    NO_TEST,
    Compared,
    ExperimentBench,
    PanelTable,
    Replication,
    compared,
)

MAX_MODELS = 7  # with more models, only pairs and all together are shown: 8 would make 247 combinations
NONE = "No MR"
ORDER = ("PCS", NONE, "voice", "synonym", "double-negation")  # the paper's order of comparison; other relations follow


def single_models(study: Replication) -> Experiment:
    """RQ1: return PCS of every single model beside its zero-shot labels, hard and graded, and at equal calls."""
    title = "PCS with a single model against its zero-shot labels"
    methods: dict[str, Callable[[ExperimentBench, Sequence[str]], Scored]] = {
        "Zero-shot": ExperimentBench.alone,
        "PCS hard": lambda bench, models: bench.pcs(models).hard(),
        "PCS": ExperimentBench.pcs,
        "PCS equal weights": lambda bench, models: bench.on_cells("uniform", models),
        "Self-consistency": _at_equal_calls,
    }
    panels = PanelTable(study, "rq1", title, methods, [*study.notes(), HARD_AND_GRADED, ABOUT_TESTS])
    for bench in study.benches:
        for annotator in bench.plain.annotators:
            panels.add(bench, [annotator])
    # the labels and confidence of PCS hard are those of PCS
    tables = panels.tables("Zero-shot", best=("Zero-shot", "PCS"), unsure=["PCS hard"])
    return Experiment(name="rq1", tables=tables, pairs=panels.pairs("PCS", "Zero-shot"), rival="Zero-shot")


def _at_equal_calls(bench: ExperimentBench, models: Sequence[str]) -> Scored:
    """Return self-consistency with as many calls as PCS makes."""
    votes = bench.plain.select(annotators=models)
    return bench.score(self_consistency(votes, calls_of(votes.select(draws=1), bench.settings.how.rewritten).total))


def several_models(study: Replication) -> Experiment:
    """RQ3: return PCS of every combination of two or more models beside their majority vote."""
    about = "MV: share of models that give a label to the unchanged text, one call each."
    notes = [*study.notes(), about, ABOUT_TESTS]
    title = "PCS with several models against their majority vote"
    methods = {"MV": ExperimentBench.alone, "PCS": ExperimentBench.pcs}
    panels = PanelTable(study, "rq3", title, methods, notes, ("Dataset", "LLMs"))
    for bench in study.benches:
        combined = list(_combinations(bench.plain.annotators))
        if not combined:
            notes.append(f"{bench.dataset}: one model alone has no combinations.")
        for models in combined:
            panels.add(bench, models)
    return Experiment(name="rq3", tables=panels.tables("MV"), pairs=panels.pairs("PCS", "MV"), rival="Majority vote")


def _combinations(annotators: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield pairs first, all together last."""
    sizes = range(2, len(annotators) + 1) if len(annotators) <= MAX_MODELS else {2, len(annotators)}
    for size in sizes:
        yield from combinations(annotators, size)


def each_relation(study: Replication) -> Experiment:
    """RQ4: return every relation alone beside none and all, and tests between them."""
    notes = [*study.notes(), "One relation alone: the label, or for several models (MV) the share of them."]
    names = (name for bench in study.benches for name in bench.plain.relations if name != bench.plain.original)
    methods = {name: _of_relation(name) for name in dict.fromkeys(names)}
    title = "Each relation alone, none, and all together as PCS"
    panels = PanelTable(
        study, "rq4", title, {NONE: ExperimentBench.alone, **methods, "PCS": ExperimentBench.pcs}, notes
    )
    for bench in study.benches:
        models = list(bench.plain.annotators)
        for name in models:
            panels.add(bench, [name])
        if len(models) > 1:
            panels.add(bench, models, " (MV)")
    pairs = combinations(sorted(panels.methods, key=lambda name: (*ORDER, name).index(name)), 2)
    tests = {pair: panels.compared(*pair) for pair in pairs}
    first, confidence = panels.tables()
    return Experiment(name="rq4", tables=[first, _comparisons(tests), confidence])


def _of_relation(relation: str) -> Callable[[ExperimentBench, Sequence[str]], Scored]:
    def alone(bench: ExperimentBench, models: Sequence[str]) -> Scored:
        if relation not in bench.plain.relations:
            raise UndefinedMetric(f"{bench.dataset}: {relation} is not recorded")
        return bench.alone(models, relation)

    return alone


def _comparisons(tests: Mapping[tuple[str, str], Compared]) -> ResultTable:
    """Return tests and average relative improvements between methods, by their names."""
    rows: list[list[Content]] = []
    p_values = adjusted([comparison.test for comparison in tests.values()])
    for ((first, second), comparison), p_value in zip(tests.items(), p_values, strict=True):
        improvement = None if comparison.improvement is None else 100 * comparison.improvement
        judged: list[Content] = [None, NO_TEST, improvement, None]
        if comparison.test is not None and p_value is not None:
            marks = stars(p_value)
            better = first if comparison.test.difference > 0 else second
            judged = [p_value_text(p_value), marks, improvement, marks if marks == "n.s." else better]
        rows.append([f"{first} vs {second}", comparison.pairs, *judged])
    return ResultTable(
        name="rq4-tests",
        title="Relations against each other over all models and datasets",
        columns=["Method comparison", "Pairs", "p (Holm)", "Significance", "ARI (%)", "Superior method"],
        rows=rows,
        notes=["ARI: mean of (first − second) / second.", ABOUT_TESTS],
    )


RIVAL_COLUMNS = (
    "Dataset", "LLM", "Method", "Calls", LOG_PROBS, "Class AUROC", "Confidence AUROC", "p (Holm)", "Significance",
)  # fmt: skip
EXPECTED = ("1s-top-2", "2s-top-2", "ling-1s", "spuq")  # the paper's; those not recorded get a row that says so
NOT_RECORDED = "not recorded"
FOR_SEVERAL_MODELS = "majority-vote"


def published_baselines(study: Replication) -> Experiment:
    """RQ2: return PCS of every single model beside the baselines that its votes allow."""
    reasons: dict[str, str] = {}
    lines = [
        line
        for bench in study.benches
        for annotator in bench.plain.annotators
        for line in _baseline_rows(bench, annotator, reasons)
    ]
    rows: list[list[Content]] = []
    for (cells, _), p_value in zip(lines, adjusted([test for _, test in lines]), strict=True):
        missing = NOT_RECORDED if cells[3] is None else None  # no number of calls
        rows.append([*cells, *([None, missing] if p_value is None else [p_value_text(p_value), stars(p_value)])])
    graded = any(row[4] == yes_or_no(True) for row in rows)
    undefined = any(row[5] is not None and row[6] is None for row in rows)
    kept = [position for position, column in enumerate(RIVAL_COLUMNS) if graded or column != LOG_PROBS]
    columns, rows = (
        [RIVAL_COLUMNS[position] for position in kept],
        [[row[position] for position in kept] for row in rows],
    )
    table = study.table(
        columns,
        rows,
        name="rq2",
        title="PCS with a single model against published baselines",
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


def _baseline_rows(
    bench: ExperimentBench, annotator: str, reasons: dict[str, str]
) -> list[tuple[list[Content], BootstrapTest | None]]:
    """Return the rows of one model and their tests: PCS, then baselines from best to worst, then those not recorded."""
    try:
        ours = bench.pcs([annotator])
    except UndefinedMetric as error:
        reasons[f"PCS of {annotator}"] = str(error)
        return []
    scores, absent = _baselines(bench, annotator, reasons)
    ordered = sorted(scores.items(), key=lambda baseline: -baseline[1].auroc.value)
    rows: list[tuple[list[Content], BootstrapTest | None]] = []
    for name, scored in (("PCS", ours), *ordered):
        entrant = scored.entrant
        figures: list[Content] = [
            entrant.calls.total,
            yes_or_no(entrant.graded),
            cell_of(scored.auroc),
            cell_of(scored.confidence),
        ]
        test = None if scored is ours else compared([ours], [scored]).test
        rows.append(([bench.dataset, annotator, name, *figures], test))
    for name in absent:
        rows.append(([bench.dataset, annotator, name, None, None, None, None], None))
    return rows


def _baselines(bench: ExperimentBench, annotator: str, reasons: dict[str, str]) -> tuple[dict[str, Scored], list[str]]:
    """Return the results of the baselines on one model's votes, and the names of those that are not recorded."""
    votes = bench.votes.select(
        annotators=[name for name in bench.votes.annotators if base_annotator(name) == annotator]
    )
    answered = np.asarray((votes.codes >= 0).any(axis=(0, 1, 3)))
    votes = votes.select(relations=np.array(votes.relations, dtype=object)[answered].tolist())
    scores: dict[str, Scored] = {}
    baselines = {method_name(method): method for method in bench.settings.baselines}
    absent = [name for name in EXPECTED if not {name, name.replace("top-2", "top-k")} & {*baselines}]
    reasons.update({name: "no such baseline was given" for name in absent})
    for name, method in baselines.items():
        if name == FOR_SEVERAL_MODELS:
            continue
        try:
            scores[name] = bench.score(method, votes)
        except UndefinedMetric as error:
            reasons.setdefault(name, str(error))
            absent += [name] if name.replace("top-k", "top-2") in EXPECTED else []
    return scores, absent


SIZE_COLUMNS = ("Dataset", "Method", "Gold rows", "Class AUROC")
HELD_OUT = 0.25  # share of the rows held out for testing, the same for every size, so that sizes can be compared
STABLE_WITHIN = 0.005
BAND = (0.1, 0.9)


def gold_size(study: Replication) -> Experiment:
    """Return the class AUROC on held-out rows for growing numbers of gold rows, beside equal weights."""
    curves: list[Curve] = []
    summary = []
    notes = [
        f"Each of {study.settings.draws} random draws (seeds {study.settings.how.seed} and on) holds out a quarter of "
        f"the rows for class AUROC; weights by {study.settings.optimiser} on growing parts of the rest. Means over "
        "draws; intervals and bands are the central 80 % of them.",
        *study.trouble(),
    ]
    for bench in study.benches:
        sizes = [size for size in study.settings.sizes if size <= (1 - HELD_OUT) * len(bench.gold)]
        if not sizes:
            notes.append(f"{bench.dataset}: {len(bench.gold)} rows are too few for a learning curve.")
            continue
        try:
            learned, equal = _curves(bench, sizes)
        except UndefinedMetric:
            notes.append(f"{bench.dataset}: too few rows of the rarer class for a learning curve.")
            continue
        curves += [learned, equal]
        far = [position for position, value in enumerate(learned.y) if abs(value - learned.y[-1]) > STABLE_WITHIN]
        stable = f"from {int(learned.x[max(far, default=-1) + 1])} gold rows"
        summary.append((f"{bench.dataset}: within {STABLE_WITHIN} of its last point", stable))
    rows: list[list[Content]] = [
        [curve.dataset, curve.method, int(x), Figure(float(y), Interval(float(low), float(high)))]
        for curve in curves
        for x, y, low, high in zip(curve.x, curve.y, curve.low, curve.high, strict=True)
    ]
    title = "Class AUROC against the number of gold rows learned from"
    digits = {"Class AUROC": 3}
    table = study.table(SIZE_COLUMNS, rows, name="size", title=title, summary=summary, notes=notes, digits=digits)
    return Experiment(name="size", tables=[table], curves=curves)


def _curves(bench: ExperimentBench, sizes: Sequence[int]) -> list[Curve]:
    """Return the curve of the optimiser and that of equal weights, on the same rows."""
    votes, gold, settings = bench.plain.select(draws=1), bench.gold, bench.settings
    chosen = optimisers.create(settings.optimiser)
    equal = score(votes, optimisers.create("uniform").fit(votes, gold, 0))
    curves = np.empty((2, len(sizes), settings.draws))
    for draw in range(settings.draws):
        seed = settings.how.seed + draw
        held_out = stratified_folds(gold, round(1 / HELD_OUT), seed) == 0
        held, rest = np.flatnonzero(held_out), np.random.default_rng(seed).permutation(np.flatnonzero(~held_out))
        curves[1, :, draw] = auroc(equal[held], gold[held])
        for number, size in enumerate(sizes):
            weights = fit_optimiser(chosen, votes.take(rest[:size]), gold[rest[:size]], seed)
            curves[0, number, draw] = auroc(score(votes.take(held), weights), gold[held])
    points = zip(curves.mean(axis=2), *np.quantile(curves, BAND, axis=2), strict=True)
    names = (settings.optimiser, "equal weights")
    return [
        Curve(bench.dataset, name, tuple(map(float, sizes)), *map(tuple, values))
        for name, values in zip(names, points, strict=True)
    ]


EXPERIMENTS: dict[str, Callable[[Replication], Experiment]] = {
    "rq1": single_models,
    "rq2": published_baselines,
    "rq3": several_models,
    "rq4": each_relation,
    "size": gold_size,
}
