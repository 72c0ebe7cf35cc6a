"""Promises: how often they are made, how many of them are broken, and what looking again costs.

A promise is broken if more than α of the other rows that it accepts are wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.claim_checks.claim import Claim
from benchmarks.claim_checks.repeated_fits import SIZES, Cell, Fit, data_sets, data_under, fits_of, loops_of
from pcs_annotator.judging.promise.promise import Promise
from pcs_annotator.judging.promise.thresholds import EVERY_LABEL, Thresholds, find_thresholds, steps_of
from pcs_annotator.judging.promise.thresholds import _learn_then_test as learn_then_test

ALPHAS = (0.05, 0.1)
DELTA = 0.1
OPTIMISERS = ("lr", "auto")
CONDITIONS = ("imbalance", "ties", "copies", "useless votes", "wrong gold", "stopped early")
UNDER_CONDITIONS = ("simulated sentiment", "babe A")
IN_A_LOOP = ("simulated sentiment", "babe A", "simulated politifact", "graded sentiment")


class Seen(NamedTuple):
    """A promise as it turned out: the share of other rows that it accepts, and whether it is broken."""

    accepted: float
    broken: bool


def fixed_cells() -> Iterator[Cell]:
    """Yield the cells with one look at a fixed number of gold rows."""
    for data in data_sets():
        sizes = [rows for rows in SIZES if rows < len(data_under(data, "")[0]) * 0.8]
        yield from (Cell(data, optimiser, rows) for optimiser in OPTIMISERS for rows in sizes)
    for data in UNDER_CONDITIONS:
        for condition in CONDITIONS:
            yield from (Cell(data, optimiser, rows, condition) for optimiser in OPTIMISERS for rows in SIZES)


def loop_cells() -> Iterator[Cell]:
    """Yield the cells in which somebody looks after every 25 labels, from 50 to 300."""
    return (Cell(data, optimiser, 300) for optimiser in OPTIMISERS for data in IN_A_LOOP)


def check(repetitions: int) -> Iterator[Claim]:
    for alpha in ALPHAS:
        yield from _fixed(alpha, repetitions)
        yield from _loops(alpha, repetitions)


def _fixed(alpha: float, repetitions: int) -> Iterator[Claim]:
    promise = Promise(max_error=alpha, certainty=1 - DELTA)
    shown = broken = 0
    now, before = list[float](), list[float]()
    for cell in fixed_cells():
        fits = fits_of(cell, repetitions)
        made = [_seen(fit, _thresholds(fit, cell, promise), alpha) for fit in fits]
        yield from _claims(f"α = {alpha}, {cell}", made, repetitions)
        promises = [one for one in made if one is not None]
        shown, broken = shown + len(promises), broken + sum(one.broken for one in promises)
        if cell.rows >= 200:
            old = [_seen(fit, _one_look_at_full_level(fit, alpha), alpha) for fit in fits]
            for shares, these in ((now, made), (before, old)):
                shares.append(float(np.mean([one.accepted if one else 0.0 for one in these])))
    part = broken / max(shown, 1)
    yield Claim("broken among promises shown", f"α = {alpha}, pooled", "≤ 10 %", f"{part:.1%} of {shown}", part <= 0.1)
    share = sum(now) / sum(before)
    lower = sum(new < 0.8 * old for new, old in zip(now, before, strict=True))
    detail = f"{share:.0%}, below in {lower} of {len(now)} cells"
    yield Claim("rows accepted, of those with one look at δ", f"α = {alpha}, n ≥ 200", "≥ 80 %", detail, share >= 0.8)


def _loops(alpha: float, repetitions: int) -> Iterator[Claim]:
    promise = Promise(max_error=alpha, certainty=1 - DELTA)
    for cell in loop_cells():
        violated = promised = 0
        for loop in loops_of(cell, repetitions):
            seen = list(_looks(loop, cell, promise))
            promised += bool(seen)
            violated += any(one.broken for one in seen)
        part = violated / repetitions
        where = f"α = {alpha}, {cell.data}, {cell.optimiser}, promise in {promised / repetitions:.0%}"
        yield Claim("any promise of a loop 50 … 300 broken", where, "≤ 10 %", f"{part:.1%}", part <= DELTA)


def _looks(loop: Sequence[Fit], cell: Cell, promise: Promise) -> Iterator[Seen]:
    """Yield the promises of a loop; a look without a promise uses up its level."""
    spent = 0.0
    for fit in loop:
        rows = len(fit.gold.right)
        if rows < promise.least_rows(spent):
            continue
        seen = _seen(fit, _thresholds(fit, cell, promise, spent), promise.max_error)
        if seen is None:
            spent += promise.level(rows, spent)
        else:
            yield seen


def _thresholds(fit: Fit, cell: Cell, promise: Promise, spent: float = 0.0) -> Thresholds:
    level = promise.level(len(fit.gold.right), spent)
    return find_thresholds(fit.gold, data_under(cell.data, cell.condition)[0].labels, promise, level)


def _one_look_at_full_level(fit: Fit, alpha: float) -> Thresholds:
    """Return what was accepted before looks were paid for."""
    steps = steps_of(fit.gold)
    last = learn_then_test(steps, alpha, DELTA)
    return {EVERY_LABEL: float(steps.threshold[last])} if last >= 0 else {}


def _seen(fit: Fit, thresholds: Thresholds, alpha: float) -> Seen | None:
    if not thresholds:
        return None
    taken = fit.others.confidence >= thresholds[EVERY_LABEL]
    wrong = float(np.mean(~fit.others.right[taken])) if taken.any() else 0.0
    return Seen(float(taken.mean()), wrong > alpha)


def _claims(where: str, made: Sequence[Seen | None], repetitions: int) -> Iterator[Claim]:
    promises = [one for one in made if one is not None]
    broken = sum(one.broken for one in promises)
    part = broken / repetitions
    shown = len(promises) / repetitions
    yield Claim("promise broken", f"{where}, shown in {shown:.1%}", "≤ 10 %", f"{part:.1%}", part <= DELTA)
    of_shown = broken / max(len(promises), 1)
    detail = f"{broken} of {len(promises)}"
    yield Claim("broken among promises shown", where, "≤ 20 %", detail, of_shown <= 0.2)
