"""Promises that are looked at again and again while gold rows come in: how many are broken, and what do they accept?

A model with known error rates is tested after every ten gold rows, a hundred times. A sequence of looks is broken if
any of its promises is: if more of the labels that it accepts are wrong than it says. `python -m benchmarks.looks
[SEQUENCES]` prints the share of broken sequences in every setting, with the rule that was used before (a look that
found any threshold gave its level back) and with the present one, and then what several rules accept after 1, 10, 50
and 200 looks. Results: `benchmarks/results/looks.md`.

Confidences have few values, so that all sequences are tested at once, by the code of `find_thresholds`; `certify`
itself runs in the small version of this, `tests/judging/promise/test_looks.py`.
"""

import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Floats, Integers, Mask
from pcs_annotator.judging.metrics.special import bdtr
from pcs_annotator.judging.promise.promise import Promise, next_level
from pcs_annotator.judging.promise.thresholds import Steps, counted_steps, last_passing
from pcs_annotator.judging.promise.whole_table import few_enough

DELTA, LOOKS, EVERY, FIRST = 0.1, 100, 10, 200
SMALL = 100  # gold rows at the first look, where rules are compared
GROWTH, GRID = 1.5, 1.02
EPSILON = 1e-9


class World(NamedTuple):
    """Rows of several kinds, strictest first in every part."""

    confidence: Floats  # of each kind, falling within a part
    error: Floats  # how often its labels are wrong
    share: Floats  # of all rows
    part: Integers  # the label or group of each kind; 0 if the promise is about all together

    @property
    def parts(self) -> int:
        """How many parts have a promise of their own."""
        return int(self.part.max()) + 1

    def of(self, part: int) -> "World":
        """Return the kinds of a part."""
        return World(*(one[self.part == part] for one in self))

    def risk(self) -> Floats:
        """Return the share of wrong labels among the rows that each kind, as the last one, would accept."""
        return np.asarray(np.cumsum(self.share * self.error) / np.cumsum(self.share))


class Setting(NamedTuple):
    """A promise, and the rows that it is made about."""

    name: str
    world: World
    max_error: float


def calibrated(kinds: int = 40, shape: float = 6.0) -> World:
    """Return rows that are right as often as their confidence says."""
    confidence = ((np.arange(kinds)[::-1] + 0.5) / kinds) ** (1 / shape)
    return World(confidence, 1 - confidence, np.full(kinds, 1 / kinds), np.zeros(kinds, dtype=np.intp))


def two_levels(max_error: float, top: float = 0.6) -> World:
    """Return rows with two confidences: with the lower one accepted too, errors are just too many."""
    low = (max_error * 1.001 - top * 0.02) / (1 - top)
    shares = np.array([top, 1 - top])
    return World(np.array([0.98, 1 - low]), np.array([0.02, low]), shares, np.zeros(2, dtype=np.intp))


def at_the_limit(max_error: float, kinds: int = 40) -> World:
    """Return rows whose confidence says nothing: with every threshold, errors are just too many."""
    return calibrated(kinds)._replace(error=np.full(kinds, max_error * 1.001))


def several(worlds: list[World]) -> World:
    """Return the parts of a promise that is made for each of them."""
    parts = [np.full(len(one.share), place) for place, one in enumerate(worlds)]
    joined = [np.concatenate(columns) for columns in zip(*(one[:3] for one in worlds), strict=True)]
    return World(joined[0], joined[1], joined[2] / len(worlds), np.concatenate(parts))


def together(max_error: float) -> World:
    """Return sets of labels, whose confidence is a product that was calibrated, and is a little too high."""
    one = calibrated()
    return one._replace(error=np.minimum(one.error * 1.05 + max_error / 50, 1.0))


SETTINGS = (
    Setting("plain, 10 %", calibrated(), 0.1),
    Setting("plain, 5 %", calibrated(40, 12), 0.05),
    Setting("two confidences, the loose one at the limit", two_levels(0.1), 0.1),
    Setting("confidence says nothing, all at the limit", at_the_limit(0.1), 0.1),
    Setting("--per-label, three at the limit", several([two_levels(0.1, top) for top in (0.6, 0.7, 0.8)]), 0.1),
    Setting("--by, three groups", several([calibrated(20), two_levels(0.1), calibrated(20, 9)]), 0.1),
    Setting("sets", together(0.1), 0.1),
)


class Drawn(NamedTuple):
    """Gold rows of all sequences: how many of each kind, and how many of them are wrong, `[sequence, kind]`."""

    rows: Integers
    wrong: Integers


def drawn_more(before: Drawn, world: World, rows: int, rng: np.random.Generator) -> Drawn:
    more = rng.multinomial(rows, world.share / world.share.sum(), size=len(before.rows))
    return Drawn(before.rows + more, before.wrong + rng.binomial(more, world.error))


def steps_of(drawn: Drawn, world: World, part: int, sequences: Mask) -> Steps:
    kinds = world.part == part
    return counted_steps(
        world.confidence[kinds], drawn.rows[sequences][:, kinds], drawn.wrong[sequences][:, kinds].astype(np.intp)
    )


def last_steps(drawn: Drawn, world: World, promise: Promise, levels: Floats) -> Integers:
    """Return the last step that passes in every part, `[sequence, part]`; −1 if none does."""
    found = np.full((len(levels), world.parts), -1)
    for level in np.unique(levels):
        rows = levels == level
        for part in range(world.parts):
            found[rows, part] = last_passing(steps_of(drawn, world, part, rows), promise, level / world.parts)
    return found


def broken(found: Integers, world: World, max_error: float) -> Mask:
    """Return which sequences have a promise that is not kept, in any part."""
    risks = [world.of(part).risk() for part in range(world.parts)]
    limit = max_error * (1 + EPSILON)
    return np.any([(last >= 0) & (risk[last] > limit) for last, risk in zip(found.T, risks, strict=True)], axis=0)


Used = Callable[[Integers, World], Floats]
"""Last steps of a look → the share of its level that it has used up."""


def used_before(found: Integers, world: World) -> Floats:
    """Return what the earlier rule took: a part that found any threshold gave its level back."""
    return np.asarray((found < 0).mean(axis=1))


def used_now(found: Integers, world: World) -> Floats:
    """Return what the present rule takes: a part gives its level back only if it passed to the end."""
    ends = np.array([int((world.part == part).sum()) - 1 for part in range(world.parts)])
    return np.asarray((found < ends).mean(axis=1))


def half_of_the_rest(delta: float, spent: Floats) -> Floats:
    return (delta - spent) / 2


def rounded(levels: Floats) -> Floats:
    """Return levels rounded down to one of few, so that many sequences are tested at once."""
    return np.asarray(GRID ** np.floor(np.log(levels) / np.log(GRID)))


def sequences_broken(
    setting: Setting, sequences: int, used: Used, level_of: Callable[[float, Any], Any], seed: int = 0
) -> Mask:
    """Return which sequences of looks have a broken promise."""
    rng, world = np.random.default_rng(seed), setting.world
    promise = Promise(max_error=setting.max_error, certainty=1 - DELTA)
    empty = np.zeros((sequences, len(world.share)), dtype=np.intp)
    drawn, spent, found_broken = Drawn(empty, empty), np.zeros(sequences), np.zeros(sequences, dtype=np.bool_)
    for look in range(LOOKS):
        drawn = drawn_more(drawn, world, FIRST if not look else EVERY, rng)
        levels = rounded(level_of(DELTA, spent))
        if FIRST + look * EVERY < 7.5 / setting.max_error:
            levels = np.minimum(levels, rounded((DELTA - spent) / 10))
        found = last_steps(drawn, world, promise, levels)
        spent = spent + levels * used(found, world)
        found_broken |= broken(found, world, setting.max_error)
    return found_broken


def early_stop_broken(setting: Setting, sequences: int, *, recorded: bool, seed: int = 0) -> Mask:
    """Return which sequences are broken if new texts are asked about with fewer questions after every look.

    Then confidences are coarser: pairs of kinds become one. That is tested on the same gold rows, at the level of the
    next test if it is recorded, else at that of the look itself.
    """
    rng, world, coarse = np.random.default_rng(seed), setting.world, merged(setting.world)
    promise = Promise(max_error=setting.max_error, certainty=1 - DELTA)
    empty = np.zeros((sequences, len(world.share)), dtype=np.intp)
    drawn, spent, found_broken = Drawn(empty, empty), np.zeros(sequences), np.zeros(sequences, dtype=np.bool_)
    for look in range(LOOKS):
        drawn = drawn_more(drawn, world, FIRST if not look else EVERY, rng)
        fewer = Drawn(*(one.reshape(sequences, -1, 2).sum(axis=2) for one in drawn))
        for counts, kinds in ((drawn, world), (fewer, coarse)):
            levels = rounded(next_level(DELTA, spent))  # type: ignore[arg-type]  # of many sequences
            found = last_steps(counts, kinds, promise, levels)
            if recorded or kinds is world:
                spent = spent + levels * (used_now(found, kinds) if recorded else used_before(found, kinds))
            found_broken |= broken(found, kinds, setting.max_error)
    return found_broken


def merged(world: World) -> World:
    """Return the world with each pair of neighbouring kinds as one."""
    confidence, error = ((one * world.share).reshape(-1, 2).sum(axis=1) for one in world[:2])
    share = world.share.reshape(-1, 2).sum(axis=1)
    return World(confidence / share, error / share, share, world.part[::2])


def finish_broken(sequences: int, *, spends: bool, seed: int = 0, rows: int = 4_000, max_error: float = 0.1) -> Mask:
    """Return which tables, shared anew between people and machine after every ten gold rows, have too many errors.

    Rows stand in the order of confidence, and each is wrong as often as that says. The first place of the order with
    too many errors is the one that may not be passed, so the bound has to hold there.
    """
    rng = np.random.default_rng(seed)
    confidence = np.sort(rng.beta(6, 1.2, size=rows))[::-1]
    wrong = rng.random((sequences, rows)) > confidence
    beyond = np.argmax(np.cumsum(wrong, axis=1) > max_error * rows, axis=1)
    beyond = np.where(beyond == 0, rows - 1, beyond)
    errors = np.cumsum(wrong, axis=1)[np.arange(sequences), beyond]
    possible, found, spent = errors > max_error * rows, np.zeros(sequences, dtype=np.bool_), 0.0
    seen, left = np.zeros(sequences, dtype=np.intp), errors.astype(np.intp)
    drawn = 0
    for look in range(LOOKS):
        more = FIRST if not look else EVERY
        new = rng.hypergeometric(left, rows - drawn - left, more)
        seen, left, drawn = seen + new, left - new, drawn + more
        level = next_level(DELTA, spent) if spends else DELTA / 2
        spent += level if spends else 0.0
        found |= possible & few_enough(rows, drawn, seen, max_error * rows, level)
    return found


@lru_cache
def most_errors(most: int, alpha: float, delta: float) -> Integers:
    """Return for every number of rows the most errors with which a test by evidence passes; −1 if none does.

    Evidence is the likelihood of the rows under a mixture of smaller error rates, over that under α; it exceeds 1/δ at
    any time in δ of cases at most, if the rate is α or more.
    """
    from scipy.special import betainc, betaln

    rows, wrong = np.arange(most + 1)[:, np.newaxis], np.arange(int(alpha * most) + 1)
    right = np.maximum(rows - wrong, 0)
    below = np.maximum(betainc(wrong + 0.5, right + 0.5, alpha) / betainc(0.5, 0.5, alpha), 1e-300)
    log = betaln(wrong + 0.5, right + 0.5) - betaln(0.5, 0.5) + np.log(below)
    passes = (log - wrong * np.log(alpha) - right * np.log1p(-alpha) >= -np.log(delta)) & (wrong <= rows)
    return np.asarray(passes.sum(axis=1) - 1)


def evidence(steps: Steps, alpha: float, delta: float, *, moving: bool) -> Integers:
    """Return the last step that passes a test by evidence, which needs no levels.

    The sequence of thresholds starts where it has most power, which is `moving` with the number of rows, or where
    evidence is expected to grow fastest, which hardly moves.
    """
    allowed = most_errors(SMALL + AT[-1] * EVERY, alpha, delta)[steps.rows]
    if moving:
        power = bdtr(np.maximum(allowed, 0), steps.rows, np.clip(steps.expected_error, 0, 1))
        start = np.argmax(np.where(allowed >= 0, power, 0.0), axis=-1)
    else:
        start = np.argmax(steps.rows * np.maximum(alpha - steps.expected_error, 0) ** 2, axis=-1)
    through = (steps.wrong <= allowed) | (np.arange(allowed.shape[-1]) < start[:, np.newaxis])
    last = np.argmin(np.concatenate([through, np.zeros((len(through), 1), dtype=np.bool_)], axis=1), axis=1) - 1
    return np.asarray(np.where(last >= start, last, -1))


AT = (1, 10, 50, 200)


def accepted_by_rule(setting: Setting, sequences: int, seed: int = 0) -> dict[str, tuple[list[float], float]]:
    """Return for several rules the share of rows accepted after some looks, and how many sequences are broken."""
    world, alpha = setting.world, setting.max_error
    promise, cumulative = Promise(max_error=alpha, certainty=1 - DELTA), np.cumsum(setting.world.share)
    rules = ("half of the rest, every look", "1/k(k+1), every look", "1/k(k+1), half as many rows again")
    names = (*rules, "evidence, start that moves", "evidence, fixed start")
    rng, everyone = np.random.default_rng(seed), np.ones(sequences, dtype=np.bool_)
    empty = np.zeros((sequences, len(world.share)), dtype=np.intp)
    drawn, shares = Drawn(empty, empty), {name: list[float]() for name in names}
    wrongs = dict.fromkeys(names, np.zeros(sequences, dtype=np.bool_))
    spent, tested, kept = {name: np.zeros(sequences) for name in rules}, 0, np.full(sequences, -1)
    for look in range(1, AT[-1] + 1):
        drawn = drawn_more(drawn, world, SMALL if look == 1 else EVERY, rng)
        rows = SMALL + (look - 1) * EVERY
        steps = steps_of(drawn, world, 0, everyone)
        for name in names:
            if name == rules[2] and rows < GROWTH * tested:
                found = kept
            elif name in rules:
                rule: Any = half_of_the_rest if name == rules[0] else next_level
                levels = rounded(rule(DELTA, spent[name]))
                found = last_steps(drawn, world, promise, levels)[:, 0]
                spent[name] = spent[name] + levels * used_now(found[:, np.newaxis], world)
                tested, kept = (rows, found) if name == rules[2] else (tested, kept)
            else:
                found = evidence(steps, alpha, DELTA, moving=name == names[3])
            wrongs[name] = wrongs[name] | broken(found[:, np.newaxis], world, alpha)
            if look in AT:
                shares[name].append(float(np.where(found >= 0, cumulative[found], 0.0).mean()))
    return {name: (shares[name], float(wrongs[name].mean())) for name in names}


def main(sequences: int) -> None:
    """Print both tables."""
    print(f"broken sequences of {LOOKS} looks, {sequences} sequences, δ = {DELTA:g} (before → now):")
    for setting in SETTINGS:
        before = sequences_broken(setting, sequences // 4, used_before, half_of_the_rest).mean()
        now = sequences_broken(setting, sequences, used_now, next_level).mean()
        print(f"{setting.name:46} {before:6.1%} → {now:6.1%}", flush=True)
    plain = Setting("early stop", calibrated(), 0.1)
    before, now = (early_stop_broken(plain, sequences, recorded=one).mean() for one in (False, True))
    print(f"{'early stop of label --ask':46} {before:6.1%} → {now:6.1%}", flush=True)
    before, now = (finish_broken(sequences, spends=one).mean() for one in (False, True))
    print(f"{'finish --again (before: finish.json deleted)':46} {before:6.1%} → {now:6.1%}", flush=True)
    print(f"accepted after {AT} looks, and broken:")
    limit = Setting("confidence says nothing, at the limit 10 %", at_the_limit(0.1), 0.1)
    for setting in (Setting("plain, 10 %", calibrated(), 0.1), Setting("plain, 5 %", calibrated(), 0.05), limit):
        print(setting.name)
        for name, (shares, wrong) in accepted_by_rule(setting, sequences // 4).items():
            print(f"  {name:36} {'  '.join(f'{share:6.1%}' for share in shares)}  {wrong:6.1%}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000)
