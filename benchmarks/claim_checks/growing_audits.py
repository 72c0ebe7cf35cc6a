"""Audits that grow until they decide, and how many gold rows a promise would need."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.claim_checks.claim import Claim
from benchmarks.claim_checks.promises import ALPHAS, DELTA
from benchmarks.claim_checks.repeated_fits import Cell, data_under, fits_of, one_fit
from pcs_annotator.judging.promise.certificate import audit
from pcs_annotator.judging.promise.promise import Promise
from pcs_annotator.judging.promise.thresholds import WORTHWHILE, accepted, find_thresholds, rows_needed

AUDITS = 2_000
LOOK_EVERY = 10
MOST_AUDITED = 1_000
FEW = 100
TRIES = 80
PREDICTIONS = 15
MOST_FORETOLD = 1_500
FORETOLD = ("simulated sentiment", "babe A", "simulated politifact", "graded sentiment")


def check(repetitions: int) -> Iterator[Claim]:
    yield from _audits(max(repetitions, AUDITS))
    yield from _foretold()


def _audits(repetitions: int) -> Iterator[Claim]:
    rng = np.random.default_rng(0)
    for alpha in ALPHAS:
        promise = Promise(max_error=alpha, certainty=1 - DELTA)
        found = [_decision(rng.random(MOST_AUDITED) < alpha, promise) for _ in range(repetitions)]
        for finding in ("confirmed", "revoked"):
            part = float(np.mean([one == finding for one in found]))
            where = f"true error = α = {alpha}, a look every {LOOK_EVERY} of {MOST_AUDITED} rows"
            yield Claim(f"audit wrongly {finding}", where, "≤ 10 %", f"{part:.1%}", part <= DELTA)


def _decision(wrong: np.ndarray, promise: Promise) -> str:
    counts = np.cumsum(wrong)
    for rows in range(LOOK_EVERY, len(wrong) + 1, LOOK_EVERY):
        finding = audit(promise, rows, int(counts[rows - 1])).finding
        if finding != "open":
            return finding
    return "open"


def _foretold() -> Iterator[Claim]:
    """Yield how often the number of rows that is said to do four times out of five does."""
    outcomes = [one for alpha in ALPHAS for data in FORETOLD for one in _tried(data, alpha)]
    part = float(np.mean(outcomes))
    where = f"from 100 gold rows, {len(outcomes)} predictions, α = {' and '.join(map(str, ALPHAS))}"
    yield Claim("rows that do in four cases of five", where, "65–95 %", f"{part:.0%}", 0.65 <= part <= 0.95)


def _tried(data: str, alpha: float) -> Iterator[bool]:
    """Yield whether another sample of the size that is foretold for likely success has a promise."""
    promise = Promise(max_error=alpha, certainty=1 - DELTA)
    votes, _, _ = data_under(data, "")
    spent = promise.level(FEW) if promise.least_rows() <= FEW else 0.0
    left = PREDICTIONS
    for seed, fit in enumerate(fits_of(Cell(data, "lr", FEW), TRIES)):
        if not left:
            return
        if find_thresholds(fit.gold, votes.labels, promise):
            continue
        needed = rows_needed(fit.gold, votes.labels, promise, spent, seed)
        if needed is None or needed.likely > min(MOST_FORETOLD, len(votes) * 0.8):
            continue
        left -= 1
        later = one_fit(Cell(data, "lr", needed.likely), 10_000 + seed).gold
        thresholds = find_thresholds(later, votes.labels, promise, promise.level(len(later.right), spent))
        shares = accepted(later.confidence, later.best, votes.labels, thresholds) if thresholds else np.zeros(1)
        yield bool(shares.mean() >= WORTHWHILE)
