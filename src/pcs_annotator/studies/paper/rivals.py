"""PCS beside other methods: published baselines (RQ2), and fewer gold rows (the paper's figure)."""

from collections.abc import Sequence

import numpy as np

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.core.arrays import Integers
from pcs_annotator.core.elicitations import base_annotator
from pcs_annotator.core.result_table import Content, Curve, Experiment, Figure, ResultTable, best_in_groups, number_of
from pcs_annotator.core.weights import Interval
from pcs_annotator.judging.evaluation.figures import ABOUT_AUROC, NO_CONFIDENCE_AUROC, cell_of
from pcs_annotator.judging.evaluation.methods import method_name
from pcs_annotator.judging.evaluation.scored import Scored
from pcs_annotator.judging.evaluation.tables import ABOUT_LOG_PROBS, LOG_PROBS, yes_or_no
from pcs_annotator.judging.metrics.bootstrap import WIDENING
from pcs_annotator.judging.metrics.metrics import auroc
from pcs_annotator.judging.metrics.significance import holm, p_value_text, stars
from pcs_annotator.judging.weighing.crossfit import stratified_folds
from pcs_annotator.judging.weighing.optimiser import fit_optimiser, optimisers
from pcs_annotator.judging.weighing.scoring import score
from pcs_annotator.studies.paper.study import NO_TEST, ExperimentBench, Replication, compared

COLUMNS = (
    "Dataset", "LLM", "Method", "Calls", LOG_PROBS, "Class AUROC", "Confidence AUROC", "p (Holm)", "Significance",
)  # fmt: skip
EXPECTED = ("1s-top-2", "2s-top-2", "ling-1s", "spuq")  # the paper's; those not recorded get a row that says so
NOT_RECORDED = "not recorded"
FOR_SEVERAL_MODELS = "majority-vote"
P_VALUE = COLUMNS.index("p (Holm)")


def published_baselines(study: Replication) -> Experiment:
    """Return PCS of every single model beside the baselines that its votes allow."""
    rows: list[list[Content]] = []
    reasons: dict[str, str] = {}
    for bench in study.benches:
        for annotator in bench.plain.annotators:
            rows += _baseline_rows(bench, annotator, reasons)
    _adjust(rows)
    graded = any(row[4] == yes_or_no(True) for row in rows)
    undefined = any(row[5] is not None and row[6] is None for row in rows)
    kept = [place for place, column in enumerate(COLUMNS) if graded or column != LOG_PROBS]
    columns, rows = [COLUMNS[place] for place in kept], [[row[place] for place in kept] for row in rows]
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


def _baseline_rows(bench: ExperimentBench, annotator: str, reasons: dict[str, str]) -> list[list[Content]]:
    """Return the rows of one model: PCS first, then baselines from best to worst, then those not recorded."""
    try:
        ours = bench.on_cells(bench.settings.optimiser, [annotator])
    except UndefinedMetric as error:
        reasons[f"PCS of {annotator}"] = str(error)
        return []
    found, absent = _scored(bench, annotator, reasons)
    rows: list[tuple[str, list[Content]]] = [("PCS", [*_figures(ours), None, None])]
    for name, scored in sorted(found.items(), key=lambda one: -one[1].auroc.value):
        test = compared([ours], [scored]).test
        rows.append((name, [*_figures(scored), *([None, NO_TEST] if test is None else [test.p_value, None])]))
    rows += [(name, [None, None, None, None, None, NOT_RECORDED]) for name in absent]
    return [[bench.dataset, annotator, name, *cells] for name, cells in rows]


def _scored(bench: ExperimentBench, annotator: str, reasons: dict[str, str]) -> tuple[dict[str, Scored], list[str]]:
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
HELD_OUT = 0.25  # share of the rows held out for testing, the same for every size, so that sizes can be compared
STABLE_WITHIN = 0.005
BAND = (0.1, 0.9)
EQUAL = "equal weights"


def gold_size(study: Replication) -> Experiment:
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


def _curves(bench: ExperimentBench, sizes: Sequence[int]) -> list[Curve]:
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


def _split(bench: ExperimentBench, seed: int) -> tuple[Integers, Integers]:
    """Return rows to test on, with their share of every class, and rows to learn from in random order."""
    held = stratified_folds(bench.gold, round(1 / HELD_OUT), seed) == 0
    return np.flatnonzero(held), np.random.default_rng(seed).permutation(np.flatnonzero(~held))


def _stable_from(curve: Curve) -> int:
    """Return the smallest size from which the mean stays close to its last value."""
    far = [place for place, value in enumerate(curve.y) if abs(value - curve.y[-1]) > STABLE_WITHIN]
    return int(curve.x[max(far, default=-1) + 1])
