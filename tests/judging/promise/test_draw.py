from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from typing import NamedTuple, cast

import numpy as np
import pytest
from scipy.special import stdtrit

from pcs_annotator.core.arrays import Codes, Floats, Integers
from pcs_annotator.estimating.corrected import LabelRegression, Study
from pcs_annotator.estimating.sampling import Round, Sample, counts_in_turn
from pcs_annotator.judging.promise.draw import (
    AT_RANDOM,
    Drawn,
    draw_at_random,
    draw_for_audit,
    draw_learning,
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
            known = (tuple(one[:4] for one in path.draws[:number]), path.order[:before])
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


def sample_of(draws: Sequence[Drawn], truth: Codes, strength: Floats | None = None) -> Sample:
    strength = np.ones(len(draws)) if strength is None else strength
    counts = counts_in_turn(strength, len(truth))
    kinds = np.unique(strength, return_inverse=True)[1].tolist()
    rounds = [
        Round([one.row], [int(truth[one.row])], [one.probability], [kind], count)
        for one, kind, count in zip(draws, kinds, counts.tolist(), strict=True)
    ]
    return Sample.in_rounds(rounds)


@pytest.mark.parametrize("strength", [None, np.array([0.1, 1.0, 0.1])], ids=["alike", "differently"])
@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("draws", [1, 2, 3])
def test_the_mean_of_estimates_is_the_truth(queue: str, draws: int, strength: Floats | None) -> None:
    mean = np.zeros(3)
    for path in all_paths(4, draws, QUEUES[queue]):
        one = sample_of(path.draws, TRUTH, None if strength is None else strength[:draws])
        mean += path.probability * (one.unscaled @ np.eye(3)[one.truth]) / len(TRUTH)
    assert mean == pytest.approx([0.25, 0.5, 0.25])


@pytest.mark.system
@pytest.mark.parametrize(("learn", "at_random"), [(0, 50), (100, 0), (80, 40)])
def test_shares_from_a_review_are_unbiased_and_their_intervals_hold(learn: int, at_random: int) -> None:
    """The queue that learns prefers doubtful rows, of which more are wrong; 120 reviews of 400 rows."""
    rng = np.random.default_rng(3)
    errors, held, rows = list[float](), 0, 400
    whole = LabelRegression(explanatory=[np.ones((1, 1, 1))], outcome=np.array([[[0.0], [1.0]]]))
    strength = np.repeat([AT_RANDOM, 1.0], [learn, at_random])
    for _ in range(120):
        truth = (rng.random(rows) < 0.4).astype(np.int8)
        known = rng.beta(1 + 2 * truth, 3 - 2 * truth)
        draws = sequence(np.argsort(abs(known - 0.5)), learn, at_random, rng)
        expected = np.column_stack([1 - known, known])
        one = sample_of(draws, truth, strength)
        found = Study(expected, expected[one.rows], one, whole=True).corrected(whole)
        reach = stdtrit(found.freedom, 0.975) * np.sqrt(found.covariance.item())
        errors.append(found.value.item() - truth.mean())
        held += abs(errors[-1]) <= reach
    assert abs(np.mean(errors)) < 2.5 * np.std(errors) / np.sqrt(120)
    assert held >= 0.92 * 120


def sequence(doubt: Integers, learn: int, at_random: int, rng: np.random.Generator) -> list[Drawn]:
    order, drawn, found = rng.permutation(len(doubt)), np.zeros(len(doubt), dtype=np.bool_), list[Drawn]()
    for number in range(learn + at_random):
        reached = found[-1].reached if found else 0
        if number < learn:
            found.append(draw_learning(order, reached, drawn, doubt, rng))
        else:
            found.append(draw_at_random(order, reached, drawn, rng))
        drawn[found[-1].row] = True
    return found


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
