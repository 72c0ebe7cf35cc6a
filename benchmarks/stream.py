"""A stream whose texts become harder: is it noticed, are there false alarms, and does an audit find broken promises?

Simulated: three models are asked three questions each about texts with two labels. A run has 1,000 rows, 300 of them
with gold, and promises at most 5 % errors among accepted labels. Then 20,000 texts come. In half of the streams, texts
from the 10,000th on are harder, so that 12 % of labels are wrong, no longer 4 %.

With groups, a run has 1,000 rows of each, and a promise for each. The texts of all groups come mixed, and those of one
group become harder, or those of all.

Run it with `python -m benchmarks.stream [STREAMS]`, or `python -m benchmarks.stream groups [STREAMS]`; the results are
in `benchmarks/results/stream.md`.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pcs_annotator import PcsWarning, Votes
from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.gold_codes import UNLABELLED
from pcs_annotator.judging.fit_model import Learning, fit_model
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promise.certificate import audit_in_order
from pcs_annotator.judging.promise.promise import Promise
from pcs_annotator.judging.solver import one_thread
from pcs_annotator.runs.recent_texts import RecentTexts

ROWS, GOLD, TEXTS, SHIFT = 1_000, 300, 20_000, 10_000
EASY, HARD = 0.08, 0.30
AT_ONCE = 100
HOW = Learning(optimiser="auto", promise=Promise(max_error=0.05))


class Texts(NamedTuple):
    """Votes on texts, and their true labels."""

    votes: Votes
    truth: Codes


def texts(count: int, hard: float, rng: np.random.Generator, start: int = 0) -> Texts:
    """Return texts, a share of them hard: there, models err often, half the time alike under all questions."""
    truth = rng.integers(2, size=count)
    errs = (
        np.where(rng.random(count) < hard, 0.42, 0.06)[:, np.newaxis, np.newaxis]
        * np.array([0.8, 1, 1.2])[:, np.newaxis]
    )
    alike, once = rng.random((count, 3, 1)) < 0.5, rng.random((count, 3, 1))
    wrong = np.where(alike, once, rng.random((count, 3, 3))) < errs
    codes = np.where(wrong, 1 - truth[:, np.newaxis, np.newaxis], truth[:, np.newaxis, np.newaxis])
    votes = Votes(
        codes=codes[..., np.newaxis].astype(np.int8),
        ids=[f"t{start + row}" for row in range(count)],
        annotators=["a", "b", "c"],
        relations=["original", "order", "wording"],
        labels=["no", "yes"],
    )
    return Texts(votes, truth.astype(votes.codes.dtype))


def fitted(rng: np.random.Generator) -> Model:
    votes, truth = texts(ROWS, EASY, rng)
    gold = np.where(np.arange(ROWS) < GOLD, truth, UNLABELLED).astype(truth.dtype)
    return fit_model(votes, gold, HOW).model


class Stream(NamedTuple):
    """What became of a stream."""

    alarm: int | None  # after how many texts there was an alarm; None for none
    wrong: float | None  # share of errors among accepted texts after the alarm and a fit with 300 rows from then on


def stream(shifted: bool, rng: np.random.Generator) -> Stream:
    model = fitted(rng)
    recent = RecentTexts(model.references)
    for start in range(0, TEXTS, AT_ONCE):
        some = texts(AT_ONCE, HARD if shifted and start >= SHIFT else EASY, rng, start)
        recent.judged(model, list(some.votes.ids), some.votes)
        if recent.found is not None and recent.found.found:
            return Stream(start + AT_ONCE, _recovered(rng) if shifted else None)
    return Stream(None, None)


def _recovered(rng: np.random.Generator) -> float | None:
    """Return the errors among accepted texts after a fit whose promise rests on 300 texts from after the alarm."""
    old, new, later = texts(GOLD, EASY, rng), texts(GOLD, HARD, rng, GOLD), texts(5_000, HARD, rng, 2 * GOLD)
    votes, gold = Votes.joined([old.votes, new.votes]), np.concatenate([old.truth, new.truth])
    model = fit_model(votes, gold, HOW, random_sample=np.arange(2 * GOLD) >= GOLD).model
    judged = model.judged(later.votes)
    if judged.accepted is None or not judged.accepted.any():
        return None
    return float((judged.best != later.truth)[judged.accepted].mean())


def in_groups(some: Texts, groups: np.ndarray) -> Texts:
    """Return texts of groups."""
    return Texts(replace(some.votes, groups=[f"g{one}" for one in groups.tolist()]), some.truth)


class GroupedStream(NamedTuple):
    """What became of a stream of several groups of which one shifted, or none."""

    found: float | None  # after how many texts of its own the group that shifted had an alarm; None for none
    false: bool  # whether a group that did not shift had an alarm, or one before the shift
    accepted: float  # the share of the other groups' texts that is accepted after the shift


def grouped(groups: int, rng: np.random.Generator, *, shifted: bool, rows: int = ROWS) -> GroupedStream:
    """Return what becomes of a stream; it ends when 1,500 texts of every group have come after a shift."""
    votes, truth = in_groups(texts(groups * rows, EASY, rng), np.arange(groups * rows) % groups)
    known = np.where(np.arange(len(truth)) < groups * GOLD, truth, UNLABELLED).astype(truth.dtype)
    how = replace(HOW, optimiser="lr", promise=Promise(max_error=0.05, by="language"))
    model = fit_model(votes, known, how).model
    recent, alarms, accepted = RecentTexts(model.references), dict[str, int](), list[float]()
    for start in range(0, SHIFT + 1_500 * groups if shifted else TEXTS, AT_ONCE):
        group, later = rng.integers(groups, size=AT_ONCE), start >= SHIFT
        easy, hard = texts(AT_ONCE, EASY, rng, start), texts(AT_ONCE, HARD, rng, start)
        moved = (group == 0)[:, np.newaxis, np.newaxis, np.newaxis] & later & shifted
        some = in_groups(
            Texts(replace(easy.votes, codes=np.where(moved, hard.votes.codes, easy.votes.codes)), truth), group
        )
        _, judged = recent.judged(model, list(some.votes.ids), some.votes)
        for name in recent.found.unlike if recent.found else ():
            alarms.setdefault(name, start + AT_ONCE - SHIFT)
        if later and judged.accepted is not None:
            accepted.append(float(judged.accepted[group > 0].mean()))
    own = alarms.pop("g0", None) if shifted else None
    early = own is not None and own <= 0
    return GroupedStream(None if own is None else own / groups, bool(alarms) or early, float(np.mean(accepted)))


def main_groups(streams: int = 100) -> None:
    for groups in (2, 4):
        with one_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore", PcsWarning)
            still = [grouped(groups, np.random.default_rng(seed), shifted=False) for seed in range(streams)]
            moved = [grouped(groups, np.random.default_rng(10_000 + seed), shifted=True) for seed in range(streams)]
        false, others = np.mean([one.false for one in still]), np.mean([one.accepted for one in moved])
        print(f"{groups} groups, {streams} streams without a shift: false alarm in {false:.0%}")
        found = [one.found for one in moved if one.found is not None and one.found > 0]
        soon, false = sum(one <= 1_000 for one in found) / streams, np.mean([one.false for one in moved])
        print(
            f"one group shifted: found within 1,000 of its texts in {soon:.0%}, median {np.median(found):.0f}; ", end=""
        )
        print(f"false alarm in {false:.0%}; of the others' texts {others:.0%} are accepted")


def audits(error: float, promise: Promise, accepted: int, share: float, repetitions: int, seed: int) -> float:
    """Return how often the promise is withdrawn, if people check a share of so many accepted texts one by one."""
    rng = np.random.default_rng(seed)
    checked = (rng.random((repetitions, accepted)) < share).sum(axis=1)
    found = [audit_in_order(promise, rng.random(count) < error).finding for count in checked.tolist()]
    return float(np.mean([one == "revoked" for one in found]))


def main(streams: int = 100) -> None:
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", PcsWarning)
        still = [stream(False, np.random.default_rng(seed)) for seed in range(streams)]
        moved = [stream(True, np.random.default_rng(10_000 + seed)) for seed in range(streams)]
    print(f"{streams} streams without a shift: alarm in {np.mean([one.alarm is not None for one in still]):.0%}")
    late = [one.alarm - SHIFT for one in moved if one.alarm is not None and one.alarm > SHIFT]
    early = np.mean([one.alarm is not None and one.alarm <= SHIFT for one in moved])
    print(
        f"with a shift: found within 1,000 texts in {np.mean(np.array(late) <= 1_000) * len(late) / streams:.0%}, ",
        end="",
    )
    print(f"after {np.median(late):.0f} texts (median); before the shift, a false alarm in {early:.0%}")
    errors = [one.wrong for one in moved if one.wrong is not None]
    kept = np.mean([one.wrong is None or one.wrong <= HOW.promise.max_error for one in moved])  # type: ignore[union-attr]
    print(f"after a fit with 300 rows from then on: promise kept in {kept:.0%}, {len(errors)} accept anything")
    for limit in (0.1, 0.05, 0.02):
        promise = Promise(max_error=limit)
        twice, same, half = (audits(rate * limit, promise, 5_000, 0.05, 2_000, 1) for rate in (2, 1, 0.5))
        print(f"audit of 5 % of 5,000, promise {limit:.0%}: ", end="")
        print(f"withdrawn if errors are twice as many {twice:.1%}, as many {same:.1%}, half as many {half:.1%}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["groups"]:
        main_groups(*map(int, sys.argv[2:]))
    else:
        main(*map(int, sys.argv[1:]))
