"""The time left that a run shows, against the time it then took; a simulated clock, and no waiting."""

import random
from collections.abc import Callable, Sequence

import pytest

from pcs_annotator.asking.engine.progress import SAMPLE_SECONDS, Tally, TimeLeft

QUESTIONS = 4
Speed = Callable[[float, float], float]
"""Calls per second, given the seconds since the start and the share of rows that are finished."""


def simulate(needed: Sequence[int], speed: Speed, at_once: int = 30) -> list[tuple[float, float | None]]:
    """Return the time left that is shown at each moment, for rows that need so many calls each.

    As in a run, `at_once` rows are open, answers about the first few of them come in any order, and rows that need no
    call pass quickly. The time that it took in all comes last.
    """
    rng, tally, time_left = random.Random(0), Tally(rows_expected=len(needed)), TimeLeft()
    waiting, seconds, credit = list(reversed(needed)), 0.0, 0.0
    open_rows: list[int] = []
    shown: list[tuple[float, float | None]] = []
    while waiting or open_rows:
        seconds += SAMPLE_SECONDS
        for _ in range(2000):  # the ledger finds so many rows in that time
            if not waiting or len(open_rows) >= at_once:
                break
            calls = waiting.pop()
            tally.from_ledger += QUESTIONS - calls
            if calls:
                open_rows.append(calls)
            tally.rows += not calls
        credit += SAMPLE_SECONDS * speed(seconds, tally.rows / len(needed))
        while credit >= 1 and open_rows:
            credit -= 1
            place = rng.randrange(min(8, len(open_rows)))
            open_rows[place] -= 1
            tally.calls += 1
            if not open_rows[place]:
                tally.rows += 1
                open_rows.pop(place)
        shown.append((seconds, time_left.at(seconds, tally)))
    return [*shown, (seconds, 0.0)]


def chunks(seconds: float, done: float) -> float:
    """Return the speed over a large table: after each tenth of it nothing is asked for a while."""
    return 0.0 if seconds % 20 > 17 else 100.0


PLAIN = [QUESTIONS] * 2000
MIXED = [calls for pair in zip([0] * 2000, PLAIN, strict=True) for calls in pair]
EARLY_STOPS = [1 + (place * 7919 % 11) % QUESTIONS for place in range(3000)]
LONGER_LATER = [2] * 1000 + [3] * 1000
PROFILES: dict[str, tuple[Sequence[int], Speed]] = {
    "constant": (PLAIN, lambda seconds, done: 50.0),
    "few rows": ([QUESTIONS] * 200, lambda seconds, done: 2.0),
    "growing window": (PLAIN, lambda seconds, done: min(60.0, 2.0 + 10 * seconds)),
    "rate limit after a burst": (PLAIN, lambda seconds, done: 1000.0 if done < 0.02 else 10.0),
    "slow end": (PLAIN, lambda seconds, done: 50.0 if done < 0.95 else 30.0),
    "half of it known, first": ([0] * 2000 + PLAIN, lambda seconds, done: 20.0),
    "nine tenths known, first": ([0] * 90_000 + [QUESTIONS] * 10_000, lambda seconds, done: 100.0),
    "known after a few that failed before": ([QUESTIONS] * 5 + [0] * 2000 + PLAIN, lambda seconds, done: 20.0),
    "every other row known": (MIXED, lambda seconds, done: 50.0),
    "stopping early": (EARLY_STOPS, lambda seconds, done: 40.0),
    "rows that need more later": (LONGER_LATER, lambda seconds, done: 30.0),
    "chunks of a large table": ([QUESTIONS] * 5000, chunks),
}


@pytest.mark.parametrize("profile", PROFILES)
def test_after_a_twentieth_the_time_left_is_right_within_a_factor_of_two_or_ten_seconds(profile: str) -> None:
    *shown, (total, _) = simulate(*PROFILES[profile])
    later = [(total - seconds, left) for seconds, left in shown if total / 20 <= seconds < total]
    assert len(later) > 100
    wrong = [(true, left) for true, left in later if left is None or not 0.5 <= left / true <= 2.0]
    assert [pair for pair in wrong if pair[1] is None or abs(pair[1] - pair[0]) > 10] == []


def test_a_run_whose_answers_are_all_known_promises_nothing() -> None:
    assert {left for _, left in simulate([0] * 5000, lambda seconds, done: 1.0)[:-1]} == {None}


def test_what_has_stood_still_for_an_hour_is_not_done_in_a_minute() -> None:
    time_left, tally = TimeLeft(), Tally(rows_expected=100)
    for second in range(1, 100):
        tally.rows, tally.calls = second, 4 * second
        time_left.at(float(second), tally)
    assert (time_left.at(99.2, tally) or 0.0) == pytest.approx(1.0, abs=0.1)
    assert (time_left.at(99.0 + 3600, tally) or 0.0) >= 3600


def test_a_run_of_unknown_length_has_no_time_left() -> None:
    assert TimeLeft().at(1.0, Tally(rows=5, calls=5)) is None
