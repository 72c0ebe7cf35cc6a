"""Promises about passages, simulated: how often they are broken, and how many passages they accept, test by test.

Texts have 2 to 12 candidate passages, which five models vote for. Errors are alone, or come together in hard texts, in
long texts, or in texts that are all wrong or all right. Confidence is from a logistic model of votes and a feature,
fitted on gold texts, out of fold by text; *overconfident* has three times the logit. A promise at level .1 in a single
look is broken if more than α of the accepted passages of 20,000 other texts are wrong. All tests walk the same way
through the thresholds:

- `texts` is the test of the product, and `no table` the same if nothing is known but gold, so that the largest text is
  feared everywhere;
- `thinning` counts a random passage of each text, which is kept in proportion to its number of passages, so that it is
  wrong with the probability of the error rate;
- `rows` is the binomial test, as if passages were drawn one by one.

Run it with `python -m benchmarks.passages_promise [REPETITIONS [PROCESSES]]`; the results are in
`benchmarks/results/passages.md`.
"""

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
from scipy.special import bdtr, expit
from scipy.stats import beta

from pcs_annotator.core.arrays import Floats, Integers, Mask
from pcs_annotator.judging.heldout import Judged
from pcs_annotator.judging.promise import per_text
from pcs_annotator.judging.promise.per_text import passage_threshold, recall_at_least
from pcs_annotator.judging.promise.promise import Promise
from pcs_annotator.judging.promise.thresholds import EVERY_LABEL, find_thresholds

KINDS = ("alone", "hard texts", "long texts", "whole texts")
SIZES, ALPHAS, LEVEL = (50, 100, 300), (0.05, 0.1, 0.2), 0.1
TABLE, POPULATION, FOLDS, MODELS = 4_000, 20_000, 5, 5
OVERCONFIDENT = 3.0
Rng = np.random.Generator


class Panel(NamedTuple):
    """Candidate passages of texts."""

    units: Integers
    features: Floats  # `[passage, feature]`
    right: Mask
    missed: Integers  # right passages of each text that no model found

    def take(self, texts: Mask) -> "Panel":
        """Return the passages of some texts."""
        rows = texts[self.units]
        return Panel(np.cumsum(texts)[self.units[rows]] - 1, self.features[rows], self.right[rows], self.missed[texts])


def draw(rng: Rng, texts: int, kind: str) -> Panel:
    size = 1 + np.minimum(rng.geometric(0.28, texts), 11)
    units = np.repeat(np.arange(texts), size)
    ease = rng.normal(0, {"hard texts": 2.0, "long texts": 1.0}.get(kind, 0.0), texts)[units]
    right = rng.random(len(units)) < expit(0.7 * ease + (2.2 - 0.22 * size[units] if kind == "long texts" else 1.2))
    seen = rng.normal(1.8, 1, len(units)) + 0.3 * ease
    made_up = rng.normal(-1.6, 0.8, len(units)) - 0.9 * ease
    if kind == "whole texts":
        right = (rng.random(texts) < 0.75)[units]
        seen, made_up = (
            rng.normal(mean, spread, texts)[units] + rng.normal(0, 0.5, len(units))
            for mean, spread in ((1.6, 1.0), (-1.5, 1.5))
        )
    votes = rng.random((len(units), MODELS)) < expit(np.where(right, seen, made_up))[:, np.newaxis]
    votes[np.arange(len(units)), rng.integers(MODELS, size=len(units))] = True  # a candidate has a vote at least
    count = votes.sum(axis=1)
    overlap = rng.normal(np.where(right, 0.6, -0.2), 0.8)
    features = np.column_stack([np.ones(len(units)), count - 3, overlap, count == MODELS])
    return Panel(
        units, features, right, rng.poisson(0.3 * np.exp(-0.5 * ease[np.flatnonzero(np.diff(units, prepend=-1))]))
    )


@cache
def population(kind: str) -> Panel:
    return draw(np.random.default_rng(10_000), POPULATION, kind)


def logistic(features: Floats, right: Mask) -> Floats:
    weights = np.zeros(features.shape[1])
    for _ in range(20):
        chance = expit(features @ weights)
        bend = (features.T * (chance * (1 - chance))) @ features + 0.01 * np.eye(len(weights))
        weights += np.linalg.solve(bend, features.T @ (right - chance) - 0.01 * weights)
    return weights


def thinning(sizes: Integers, wrong: Floats, table_sizes: Integers, alpha: float, _: float, *, rng: Rng) -> float:
    kept = rng.random(len(sizes)) < sizes / max(sizes.max(), table_sizes.max(initial=1))
    share = (wrong / sizes)[kept]
    errors = share.sum() if (share % 1).any() and np.ptp(share) == 0 else (rng.random(len(share)) < share).sum()
    return float(bdtr(np.floor(errors), int(kept.sum()), alpha)) if kept.any() else 1.0


Outcome = tuple[bool, float]  # whether the promise is broken, and the share of passages that are accepted


class Judgement(NamedTuple):
    """Gold texts as judged out of fold, the table and the population as judged by the model of all gold."""

    gold: Judged
    units: Integers
    table: Floats
    table_units: Integers
    everything: Judged

    def outcome(self, alpha: float, least: float | None) -> Outcome:
        """Return what a threshold does in the population."""
        taken = self.everything.confidence >= (np.inf if least is None else least)
        broken = taken.any() and (~self.everything.right[taken]).mean() > alpha
        return bool(broken), float(taken.mean())


def judge(rng: Rng, kind: str, texts: int, sharpness: float) -> Judgement:
    table, others = draw(rng, TABLE, kind), population(kind)
    gold = table.take(np.arange(TABLE) < texts)
    fold = rng.permutation(texts)[gold.units] % FOLDS
    logits = np.empty(len(gold.right))
    for number in range(FOLDS):
        inside = fold == number
        logits[inside] = gold.features[inside] @ logistic(gold.features[~inside], gold.right[~inside])
    weights = logistic(gold.features, gold.right)
    sure, table_sure, others_sure = (
        expit(sharpness * each) for each in (logits, table.features @ weights, others.features @ weights)
    )
    nothing = np.zeros(0, dtype=np.intp)
    return Judgement(
        Judged(sure, np.zeros_like(gold.units), gold.right),
        gold.units,
        table_sure,
        table.units,
        Judged(others_sure, nothing, others.right),
    )


def tests_of(seen: Judgement, alpha: float, rng: Rng, *, all_tests: bool) -> Iterator[tuple[str, float | None]]:
    ask = partial(passage_threshold, seen.gold, seen.units, alpha, LEVEL)
    yield "texts", ask(seen.table, seen.table_units)
    if all_tests:
        largest = seen.table_units == np.bincount(seen.table_units).argmax()
        yield "no table", ask(seen.table[largest], seen.table_units[largest])
        with patch.object(per_text, "p_value", partial(thinning, rng=rng)):
            yield "thinning", ask(seen.table, seen.table_units)
    yield "rows", find_thresholds(seen.gold, ("",), Promise(max_error=alpha), LEVEL).get(EVERY_LABEL)


def run(kind: str, texts: int, sharpness: float, seed: int) -> dict[tuple[float, str], Outcome]:
    rng = np.random.default_rng(seed)
    seen = judge(rng, kind, texts, sharpness)
    return {
        (alpha, name): seen.outcome(alpha, least)
        for alpha in ALPHAS
        for name, least in tests_of(seen, alpha, rng, all_tests=sharpness == 1)
    }


def recall(kind: str, texts: int, seed: int) -> tuple[bool, float, bool]:
    """Return whether recall is below its bound, the bound, and whether it is below that of the binomial test."""

    def counts(panel: Panel) -> tuple[Integers, Integers]:
        hits = np.bincount(panel.units, panel.right & (panel.features[:, 1] > 0)).astype(np.intp)
        return hits, np.bincount(panel.units, panel.right).astype(np.intp) + panel.missed

    hits, passages = counts(population(kind))
    truth = hits.sum() / passages.sum()
    hits, passages = counts(draw(np.random.default_rng(seed), texts, kind))
    bound = recall_at_least(hits, passages, LEVEL)
    single = beta.ppf(LEVEL, hits.sum(), passages.sum() - hits.sum() + 1)
    return bool(bound > truth), bound / truth, bool(single > truth)


def main(repetitions: int = 400, processes: int = 2) -> None:
    with ProcessPoolExecutor(processes) as pool:
        for sharpness in (1.0, OVERCONFIDENT):
            print("\noverconfident" if sharpness > 1 else "\nfitted", "— broken / accepted, in per cent")
            for kind in KINDS:
                for texts in SIZES:
                    outcomes = list(pool.map(partial(run, kind, texts, sharpness), range(repetitions), chunksize=10))
                    for alpha in ALPHAS:
                        cells = []
                        for name in dict.fromkeys(name for _, name in outcomes[0]):
                            runs = [each[alpha, name] for each in outcomes if (alpha, name) in each]
                            broken, accepted = np.mean(runs, axis=0)
                            cells.append(f"{name} {100 * broken:.1f} / {100 * accepted:.0f}")
                        print(f"{kind} | {texts} | {alpha:.2f} | {' | '.join(cells)}", flush=True)
        print("\nrecall: the bound is too high, mean bound / recall, and that of single passages is too high")
        for kind in KINDS:
            for texts in SIZES:
                figures = np.mean(
                    list(pool.map(partial(recall, kind, texts), range(repetitions), chunksize=10)), axis=0
                )
                print(
                    f"{kind} | {texts} | {100 * figures[0]:.1f} | {figures[1]:.2f} | {100 * figures[2]:.1f}", flush=True
                )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
