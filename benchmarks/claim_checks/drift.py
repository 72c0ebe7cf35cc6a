"""Drift and repeated texts: false alarms, and promises from gold rows with copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.stats import binom

from benchmarks.claim_checks.claim import Claim
from benchmarks.development_data import babe, load
from pcs_annotator import Votes, Weights
from pcs_annotator.core.arrays import Codes, Integers
from pcs_annotator.judging.fit_model import Learning, fit_model
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promise.drift import MAX_P_VALUE, profile
from pcs_annotator.judging.promise.promise import Promise
from pcs_annotator.runs.learn import check_drift, counted_once

DRIFT_REPETITIONS = 10  # a comparison is cheap, and alarms are meant to be rare
COPIES = 10
GROUP = 5
ALIKE = 0.7  # share of a group's texts that are answered as the first of them: half of all pairs are alike
MAX_ERROR = 0.1

Rows = Callable[[np.random.Generator, int, int], Integers]


def check(repetitions: int) -> Iterator[Claim]:
    """Yield what is claimed about drift and about repeated texts."""
    graded, *_ = load("recorded/graded_tweets.csv.gz")
    sets = {
        "babe": babe(("flan_ul2", "gpt_3_5", "mistral_7b"))[0],
        "simulated sentiment": load("simulated/sentiment.csv.gz")[0],
        "graded tweets": graded.select(relations=["original"]),
    }
    times = DRIFT_REPETITIONS * repetitions
    for name, votes in sets.items():
        for old, new in ((50, 50), (200, 200), (2000, 60), (2000, 2000)):
            yield _false_alarms(votes, _one_by_one, f"{name}, {old} and {new} texts", (old, new), times)
        yield _false_alarms(votes, _copied, f"{name}, 1000 rows, each text ×{COPIES}", (1000, 1000), times)
        # nothing is claimed for these: groups are unknown
        grouped = _false_alarms(votes, _grouped, f"{name}, 200 texts, groups of {GROUP}", (200, 200), repetitions)
        yield grouped._replace(asked="not claimed", kept=True)
    for name, (votes, gold, _) in {
        "babe": babe(("flan_ul2", "gpt_3_5", "mistral_7b")),
        "simulated": _sentiment(),
    }.items():
        for drawn in ("at random", "all copies of a text"):
            yield from _promise(
                votes, gold, f"{name}, lr, 150 rows, texts ×3, {drawn}", drawn == "at random", repetitions
            )


def _sentiment() -> tuple[Votes, Codes, list[str | None]]:
    return load("simulated/sentiment.csv.gz")


def _one_by_one(rng: np.random.Generator, texts: int, rows: int) -> Integers:
    return rng.integers(texts, size=rows)


def _copied(rng: np.random.Generator, texts: int, rows: int) -> Integers:
    return np.repeat(rng.integers(texts, size=rows // COPIES), COPIES)


def _grouped(rng: np.random.Generator, texts: int, rows: int) -> Integers:
    first = np.repeat(rng.integers(texts, size=rows // GROUP), GROUP)
    return np.where(rng.random(rows) < ALIKE, first, rng.integers(texts, size=rows))


def _false_alarms(votes: Votes, draw: Rows, where: str, rows: tuple[int, int], repetitions: int) -> Claim:
    """Compare samples of one population; copies have the same text, members of a group do not."""
    weights = Weights.uniform(votes)
    alarms = 0
    for seed in range(repetitions):
        rng = np.random.default_rng(seed)
        old, new = (draw(rng, len(votes), count) for count in rows)
        alarms += _drifts(votes, weights, old, new, by_text=draw is _copied)
    limit = MAX_P_VALUE
    by_chance = binom.sf(alarms - 1, repetitions, limit)  # even if the limit is kept exactly
    measured = f"{alarms / repetitions:.2%}"
    return Claim("no drift where nothing changed", where, f"≤ {limit:.1%}", measured, bool(by_chance > 0.01))


def _drifts(votes: Votes, weights: Weights, old: Integers, new: Integers, *, by_text: bool) -> bool:
    texts = [[f"text {row}" if by_text else f"text {place}" for place, row in enumerate(rows)] for rows in (old, new)]
    before = votes.resampled(old)
    before = before.take(counted_once(before, np.full(len(old), -1, dtype=np.int8), texts[0]).distinct)
    model = Model(weights=weights, calibrator=None)
    judged = model.judged(before)
    model = Model(weights=weights, calibrator=None, profile=profile(before, judged.scores, judged.best))
    found = check_drift(model, votes.resampled(new), texts[1])
    return found is not None and found.found


def _promise(votes: Votes, gold: Codes, where: str, at_random: bool, repetitions: int) -> Iterator[Claim]:
    """Promise from 150 gold rows of a population in which each text occurs three times."""
    how = Learning(promise=Promise(max_error=MAX_ERROR))
    shown = broken = 0
    counted = True
    for seed in range(repetitions):
        rng = np.random.default_rng(seed)
        if at_random:
            rows = rng.choice(3 * len(votes), size=150, replace=False) % len(votes)
        else:
            rows = np.repeat(rng.choice(len(votes), size=50, replace=False), 3)
        known = votes.resampled(rows)
        once = counted_once(known, gold[rows], [f"text {row}" for row in rows])
        model = fit_model(known, gold[rows], how, distinct=once.distinct).model
        certificate = model.certificate
        assert certificate is not None
        counted &= certificate.gold_rows == len(np.unique(rows))
        others = np.setdiff1d(np.arange(len(votes)), rows)
        judged = model.judged(votes.take(others))
        assert judged.accepted is not None
        if certificate.holds and judged.accepted.any():
            shown += 1
            broken += (judged.best != gold[others])[judged.accepted].mean() > MAX_ERROR
    limit = 1 - how.promise.certainty if how.promise else 0.1
    share = broken / repetitions
    measured = f"{share:.1%} ({shown / repetitions:.0%} shown)"
    yield Claim("promises broken, with copies", where, f"≤ {limit:.0%}", measured, share <= limit)
    yield Claim("copies of a gold text count once", where, "always", "always" if counted else "not always", counted)
