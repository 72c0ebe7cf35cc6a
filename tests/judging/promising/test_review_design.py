from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from typing import NamedTuple, cast

import numpy as np
import pytest

from pcs_annotator.core.arrays import Codes, Floats, Integers
from pcs_annotator.judging.promising.review_design import (
    AT_RANDOM,
    Drawn,
    Shares,
    draw_at_random,
    draw_for_audit,
    draw_learning,
    draw_weights,
    estimate_shares,
    learning_distribution,
)

TRUTH = np.array([0, 1, 1, 2], dtype=np.int8)
Queue = Callable[[int], bool]


class Branching:
    """Takes a fixed branch at each decision, and notes how many there were and how probable the path is."""

    def __init__(self, path: tuple[int, ...]) -> None:
        self.path = path
        self.branches: list[int] = []
        self.probability = 1.0

    def _take(self, probabilities: Floats) -> int:
        depth = len(self.branches)
        self.branches.append(len(probabilities))
        branch = self.path[depth] if depth < len(self.path) else 0
        self.probability *= float(probabilities[branch])
        return branch

    def random(self) -> float:
        return (0.0, 0.999)[self._take(np.array([AT_RANDOM, 1 - AT_RANDOM]))]

    def choice(self, _: int, p: Floats) -> int:
        possible = np.flatnonzero(p)
        return int(possible[self._take(p[possible])])


class Path(NamedTuple):
    probability: float
    order: tuple[int, ...]
    draws: list[Drawn]


def all_paths(rows: int, draws: int, learns: Queue) -> Iterator[Path]:
    """Yield every way in which rows can be drawn; what is doubted depends on the labels seen so far."""
    orders = list(permutations(range(rows)))
    for order in orders:
        path: tuple[int, ...] = ()
        while True:
            branching = Branching(path)
            found = run(np.array(order), draws, learns, cast(np.random.Generator, branching))
            yield Path(branching.probability / len(orders), order, found)
            path = (*path, *[0] * (len(branching.branches) - len(path)))
            while path and path[-1] == branching.branches[len(path) - 1] - 1:
                path = path[:-1]
            if not path:
                break
            path = (*path[:-1], path[-1] + 1)


def run(order: Integers, draws: int, learns: Queue, rng: np.random.Generator) -> list[Drawn]:
    drawn = np.zeros(len(order), dtype=np.bool_)
    found: list[Drawn] = []
    reached = 0
    for number in range(draws):
        if learns(number):
            sum_seen = int(sum(TRUTH[one.row] for one in found))
            doubt = np.roll(np.arange(len(order)), sum_seen)
            one = draw_learning(order, reached, drawn, doubt, rng)
        else:
            one = draw_at_random(order, reached, drawn, rng)
        found.append(one)
        drawn[one.row] = True
        reached = one.reached
    return found


QUEUES: dict[str, Queue] = {
    "learn": lambda number: True,
    "random": lambda number: False,
    "both": lambda number: number != 1,
}


@pytest.mark.parametrize("queue", QUEUES)
def test_the_probability_of_a_draw_is_how_often_it_happens(queue: str) -> None:
    happens: dict[tuple[object, ...], float] = defaultdict(float)
    for path in all_paths(4, 3, QUEUES[queue]):
        for number, one in enumerate(path.draws):
            # what is known before the draw: all earlier draws, and what the order has revealed
            before = path.draws[number - 1].reached if number else 0
            known = (tuple(path.draws[:number]), path.order[:before])
            happens[known] += path.probability
            happens[(*known, one.row, one.probability)] += path.probability
    for key, probability in happens.items():
        if len(key) == 4:
            assert probability / happens[key[:2]] == pytest.approx(key[3])


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("draws", [1, 2, 3])
def test_rows_reached_are_a_simple_random_sample_after_every_draw(queue: str, draws: int) -> None:
    samples: dict[frozenset[int], float] = defaultdict(float)
    for path in all_paths(4, draws, QUEUES[queue]):
        samples[frozenset(path.order[: path.draws[-1].reached])] += path.probability
    for size in {len(sample) for sample in samples}:
        same = [probability for sample, probability in samples.items() if len(sample) == size]
        assert len(same) == [1, 4, 6, 4][size]
        assert same == pytest.approx([same[0]] * len(same))


def shares_of(draws: Sequence[Drawn], truth: Codes, expected: Floats, strength: Floats | None = None) -> Shares:
    rows = np.array([one.row for one in draws])
    return estimate_shares(truth[rows], rows, np.array([one.probability for one in draws]), expected, strength)


NOTHING = np.zeros((4, 3))
SOMETHING = np.random.default_rng(0).dirichlet([1, 1, 1], size=4)


@pytest.mark.parametrize("expected", [NOTHING, SOMETHING], ids=["nothing", "something"])
@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("draws", [1, 2, 3])
def test_the_mean_of_estimates_is_the_truth_whatever_was_expected(queue: str, draws: int, expected: Floats) -> None:
    paths = all_paths(4, draws, QUEUES[queue])
    mean = sum(path.probability * shares_of(path.draws, TRUTH, expected).share for path in paths)
    assert mean == pytest.approx([0.25, 0.5, 0.25])


def test_draws_of_different_queues_may_count_differently() -> None:
    paths, strength = all_paths(4, 3, QUEUES["both"]), np.array([0.1, 1.0, 0.1])
    mean = sum(path.probability * shares_of(path.draws, TRUTH, SOMETHING, strength).share for path in paths)
    assert mean == pytest.approx([0.25, 0.5, 0.25])


def test_weights_are_those_of_the_paper_if_all_draws_count_the_same() -> None:
    probability = np.random.default_rng(0).uniform(0.01, 1, size=20)
    m = np.arange(1, 21)
    expected = 1 + (50 - 20) / (50 - m) * (1 / ((50 - m + 1) * probability) - 1)
    assert draw_weights(probability, 50) == pytest.approx(expected)


def test_when_all_rows_were_drawn_shares_are_counts() -> None:
    for seed in range(20):
        order, rng = np.random.default_rng(seed).permutation(4), np.random.default_rng(seed)
        found = shares_of(run(order, 4, QUEUES["both"], rng), TRUTH, SOMETHING)
        assert found.share == pytest.approx([0.25, 0.5, 0.25])
        assert found.standard_error.tolist() == [0, 0, 0]


def test_draws_at_random_all_weigh_the_same() -> None:
    probability = 1 / np.arange(50, 20, -1)
    assert draw_weights(probability, 50) == pytest.approx(np.ones(30))


@pytest.mark.parametrize(("queue", "draws"), [("random", 40), ("learn", 80)])
def test_the_standard_error_is_that_of_many_repetitions_and_smaller_if_much_is_known(queue: str, draws: int) -> None:
    rng = np.random.default_rng(0)
    truth = (rng.random(200) < 0.4).astype(np.int8)
    known = rng.beta(1 + 2 * truth, 3 - 2 * truth)
    expected = np.column_stack([1 - known, known])
    doubt = np.argsort(abs(known - 0.5))
    errors = []
    sequences = [sequence(doubt, draws, queue, rng) for _ in range(120)]
    for guess in (expected, np.zeros((200, 2))):
        found = [shares_of(drawn, truth, guess) for drawn in sequences]
        spread = np.std([one.share[1] for one in found])
        errors.append(np.sqrt(np.mean([one.standard_error[1] ** 2 for one in found])))
        assert errors[-1] == pytest.approx(spread, rel=0.2)
        assert np.mean([one.share[1] for one in found]) == pytest.approx(truth.mean(), abs=3 * spread / np.sqrt(120))
    assert errors[0] < 0.8 * errors[1]


def sequence(doubt: Integers, draws: int, queue: str, rng: np.random.Generator) -> list[Drawn]:
    order, drawn, found = rng.permutation(len(doubt)), np.zeros(len(doubt), dtype=np.bool_), list[Drawn]()
    for _ in range(draws):
        reached = found[-1].reached if found else 0
        if queue == "learn":
            found.append(draw_learning(order, reached, drawn, doubt, rng))
        else:
            found.append(draw_at_random(order, reached, drawn, rng))
        drawn[found[-1].row] = True
    return found


def test_rows_that_nobody_could_label_belong_to_no_share() -> None:
    rows, probability = np.array([2, 0]), np.array([1 / 4, 1 / 3])
    found = estimate_shares(np.array([0, -1], dtype=np.int8), rows, probability, np.zeros((4, 2)))
    assert found.share == pytest.approx([0.5, 0])


def test_shares_are_unknown_before_the_first_draw_and_their_errors_before_the_second() -> None:
    none, one = (
        estimate_shares(np.zeros(n, dtype=np.int8), np.arange(n), np.full(n, 0.2), np.zeros((5, 2))) for n in (0, 1)
    )
    assert np.isnan([*none.share, *none.standard_error, *one.standard_error]).all()
    assert one.share.tolist() == [1, 0]


def test_the_least_certain_rows_left_are_the_most_probable() -> None:
    doubt = np.random.default_rng(0).permutation(1000)
    drawn = np.zeros(1000, dtype=np.bool_)
    drawn[doubt[:100]] = True
    found = learning_distribution(doubt, drawn)
    assert found.sum() == pytest.approx(1)
    assert not found[drawn].any()
    assert (np.diff(found[doubt[100:]]) < 0).all()
    assert found[doubt[100:200]].sum() > 0.99


def test_rows_outside_the_frame_are_never_drawn() -> None:
    rng = np.random.default_rng(0)
    outside = np.arange(20) % 2 == 0
    order, drawn = rng.permutation(np.flatnonzero(~outside)), outside.copy()
    reached = 0
    for pool in range(10, 0, -1):
        one = draw_learning(order, reached, drawn, rng.permutation(20), rng)
        assert not drawn[one.row]
        assert one.pool == pool
        drawn[one.row], reached = True, one.reached


def test_an_audit_draws_each_open_row_with_the_same_probability() -> None:
    open_rows = np.array([True, False, True, True])
    found = [draw_for_audit(np.array(order), open_rows) for order in permutations(range(4))]
    assert {(one.probability, one.pool, one.reached) for one in found} == {(1 / 3, 3, 0)}
    assert np.bincount([one.row for one in found]).tolist() == [8, 0, 8, 8]
