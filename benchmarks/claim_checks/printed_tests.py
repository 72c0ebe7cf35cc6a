"""How often the tests that we print find a difference between methods that are equally good.

Rows are drawn from large sets of votes, again and again, and changed so that there is nothing to find:

- *shuffled*: the relations of every row are in random order, so that methods on different relations are equally good
  whatever they learn and whatever else they share;
- *balanced*: the models of every row are in random order, and rewrites are spoilt until PCS, which learns, is as good
  on average as one call per model, which does not (`SPOILT`, found by trying).

The check `drift` has the tests of drift.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from benchmarks.claim_checks.claim import Claim
from benchmarks.development_data import babe, load
from pcs_annotator import Votes
from pcs_annotator.core.arrays import Codes
from pcs_annotator.judging.evaluate.harness import cross_validate, evaluate
from pcs_annotator.judging.evaluate.methods import OnCells, original_of
from pcs_annotator.judging.evaluate.scored import EvaluationOptions, adjusted
from pcs_annotator.studies.paper.study import Compared, ExperimentBench, Replication, Settings, compared

LEVEL, MOST = 0.05, 0.07
MODELS = 3
ROWS = 100
SPOILT = {"rq1": 0.87, "rq3": 0.77, "fit": 0.77}
"""Share of the votes on rewrites that are replaced by a random label, so that PCS and one call per model are equal."""

Draw = tuple[Votes, Codes]
Tests = dict[str, list[float]]
"""Name of a test → its p-value in every repetition."""


def check(repetitions: int) -> Iterator[Claim]:
    sets = {
        "babe": babe(("flan_ul2", "gpt_3_5", "mistral_7b"))[:2],
        "sentiment": load("simulated/sentiment.csv.gz")[:2],
        "gossipcop": load("simulated/gossipcop.csv.gz")[:2],
    }
    for where, repeat in (
        (f"3 sets, n = {ROWS}, shuffled, lr", lambda rng: _questions(sets, rng)),
        (f"3 sets, n = {ROWS}, balanced, lr", lambda rng: _against_one_call(sets, rng)),
        (f"babe, n = {ROWS}, balanced, lr", lambda rng: _fitted(sets["babe"], ROWS, rng)),
        (f"sentiment, n = {ROWS}, balanced, lr", lambda rng: _fitted(sets["sentiment"], ROWS, rng)),
        ("babe, n = 60, shuffled, lr", lambda rng: _evaluated(sets["babe"], 60, rng)),
        ("sentiment, n = 200, shuffled, lr", lambda rng: _evaluated(sets["sentiment"], 200, rng)),
    ):
        yield from _claims(repeat, repetitions, where)


def _claims(repeat: Callable[[np.random.Generator], Mapping[str, float]], times: int, where: str) -> Iterator[Claim]:
    """Yield how often each test is significant; the paper's own t-test is measured and promises nothing."""
    rng = np.random.default_rng(0)
    found: Tests = {}
    for _ in range(times):
        for name, p_value in repeat(rng).items():
            found.setdefault(name, []).append(p_value)
    for name, p_values in found.items():
        rate = float(np.mean(np.array(p_values) < LEVEL))
        free = "as in the paper" in name
        asked = "–" if free else f"≤ {MOST:.0%}"
        yield Claim(name, f"{where}, {times} times", asked, f"{rate:.1%}", free or rate <= MOST)


def _questions(sets: Mapping[str, Draw], rng: np.random.Generator) -> dict[str, float]:
    """Return the p-values of the paper's questions, for methods on different relations of the same rows."""
    benches = _benches({name: _shuffled(_drawn(one, ROWS, rng), rng) for name, one in sets.items()})
    single = _panels(benches, 1, 1)
    one, many = (_halves(_panels(benches, *sizes)) for sizes in ((1, 1), (2, MODELS)))
    by_relation = [
        [bench.alone(models, bench.plain.relations[place]) for bench, models in single + _panels(benches, MODELS)]
        for place in range(4)
    ]
    relations = [compared(*pair) for pair in combinations(by_relation, 2)]
    baselines = [_halves([panel]) for panel in single]
    return {
        **_both("RQ1", one),
        "RQ2, Holm": min(_known(adjusted([one.test for one in baselines]))),
        **_both("RQ3", many),
        "RQ4, Holm": min(_known(adjusted([one.test for one in relations]))),
        **{name: p_value for name, p_value in _both("RQ4", relations[0]).items() if "paper" in name},
    }


def _halves(panels: Sequence[tuple[ExperimentBench, Sequence[str]]]) -> Compared:
    """Return weights learned on the first two relations against weights learned on the other two."""
    first, second = (
        [bench.on_cells("lr", models, bench.plain.relations[half]) for bench, models in panels]
        for half in (slice(0, 2), slice(2, 4))
    )
    return compared(first, second)


def _against_one_call(sets: Mapping[str, Draw], rng: np.random.Generator) -> dict[str, float]:
    """Return the p-values of PCS against one call per model where both are equally good."""
    found = {}
    for name, sizes in (("rq1", (1, 1)), ("rq3", (2, MODELS))):
        drawn = {of: _spoilt(_drawn(one, ROWS, rng), SPOILT[name], rng) for of, one in sets.items()}
        panels = _panels(_benches(drawn), *sizes)
        ours = [bench.pcs(models) for bench, models in panels]
        found.update(_both(name.upper(), compared(ours, [bench.alone(models) for bench, models in panels])))
    return found


def _evaluated(one: Draw, rows: int, rng: np.random.Generator) -> dict[str, float]:
    """Return the p-values of `pcs evaluate` for the same optimiser on one relation each."""
    votes, gold = _shuffled(_drawn(one, rows, rng), rng)
    methods = [OnCells(name=name, optimiser="lr", relations=[name]) for name in votes.relations]
    found = evaluate(votes, gold, methods, EvaluationOptions(repeats=1))
    others = found.methods[1:]
    assert others[0].behind is not None, "only the first method has no test"
    assert others[0].accuracy_behind is not None, "the same"
    return {
        "bootstrap, class AUROC": others[0].behind.p_value,
        "bootstrap, class AUROC, Holm": min(_known([one.holm for one in others])),
        "bootstrap, accuracy": others[0].accuracy_behind.p_value,
        "bootstrap, accuracy, Holm": min(_known([one.holm_accuracy for one in others])),
    }


def _fitted(one: Draw, rows: int, rng: np.random.Generator) -> dict[str, float]:
    """Return the p-value of `pcs fit` for learned weights against a majority vote that is as good."""
    votes, gold = _spoilt(_drawn(one, rows, rng), SPOILT["fit"], rng)
    found = cross_validate(votes, gold, ["lr", "majority"])[1].behind
    return {"fit, class AUROC": found.p_value if found else 1.0}


def _both(name: str, found: Compared) -> dict[str, float]:
    assert found.test is not None
    return {f"{name}, test over rows": found.test.p_value}


def _known(p_values: Sequence[float | None]) -> list[float]:
    return [one for one in p_values if one is not None] or [1.0]


def _benches(drawn: Mapping[str, Draw]) -> Sequence[ExperimentBench]:
    return Replication.of(drawn, Settings(how=EvaluationOptions(repeats=1))).benches


def _panels(
    benches: Sequence[ExperimentBench], least: int, most: int = MODELS
) -> list[tuple[ExperimentBench, list[str]]]:
    """Return all combinations of as many models, on every dataset."""
    sizes = range(least, most + 1)
    return [
        (bench, [*some]) for bench in benches for size in sizes for some in combinations(bench.plain.annotators, size)
    ]


def _drawn(one: Draw, rows: int, rng: np.random.Generator) -> Draw:
    votes, gold = one
    taken = np.sort(rng.choice(np.flatnonzero(gold >= 0), rows, replace=False))
    return votes.take(taken), gold[taken]


def _shuffled(drawn: Draw, rng: np.random.Generator) -> Draw:
    """Return the votes with the relations of every row in random order, the same for all models."""
    votes, gold = drawn
    order = rng.permuted(np.tile(np.arange(len(votes.relations)), (len(votes), 1)), axis=1)
    return replace(votes, codes=np.take_along_axis(votes.codes, order[:, np.newaxis, :, np.newaxis], axis=2)), gold


def _spoilt(drawn: Draw, share: float, rng: np.random.Generator) -> Draw:
    """Return the votes with the models of every row in random order and a share of the votes on rewrites at random."""
    votes, gold = drawn
    order = rng.permuted(np.tile(np.arange(len(votes.annotators)), (len(votes), 1)), axis=1)
    codes = np.take_along_axis(votes.codes, order[:, :, np.newaxis, np.newaxis], axis=1)
    hit = (rng.random(codes.shape) < share) & (codes >= 0)
    hit[:, :, votes.relations.index(original_of(votes))] = False
    codes[hit] = rng.integers(len(votes.labels), size=int(hit.sum()))
    return replace(votes, codes=codes), gold
