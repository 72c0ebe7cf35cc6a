"""Queues of a review with a simulated reviewer, who gives gold labels: how soon labels are right, and what is biased.

Run it with `python -m benchmarks.review [repetitions of reviews] [repetitions of estimates]`; the tables are in
benchmarks/results/review.md.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np

from benchmarks.development_data import development_sets
from pcs_annotator import PcsWarning, Votes, Weights, score
from pcs_annotator.core.arrays import Codes, Floats, Integers, Mask
from pcs_annotator.core.gold_codes import UNLABELLED
from pcs_annotator.estimating.corrected import LabelRegression, Study
from pcs_annotator.estimating.sampling import Round, Sample, counts_in_turn
from pcs_annotator.judging.fit_model import Learning, fit_model
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promise.draw import AT_RANDOM, Drawn, draw_at_random, draw_learning
from pcs_annotator.judging.promise.promise import Promise

SETS = ("simulated sentiment", "simulated gossipcop", "simulated politifact", "babe")
ROWS = 1_000
GOAL = 0.95
REFIT_EVERY = 25
LEARN_FIRST, RANDOM_THEN = 150, 100
RARELY = 50
MAX_ERROR = 0.1
RANDOM_SAMPLES = 4


class Shares(NamedTuple):
    """The estimated share of every label, and its standard error."""

    share: Floats
    standard_error: Floats


class Data(NamedTuple):
    """Rows of a set: their votes and true labels."""

    votes: Votes
    truth: Codes


loaded = cache(development_sets)


def sample(name: str, seed: int) -> Data:
    votes, truth, _ = loaded()[name]
    rows = np.sort(np.random.default_rng(seed).permutation(len(votes))[:ROWS])
    return Data(votes.take(rows), truth[rows])


@dataclass
class Review:
    """A review in which every row drawn gets its true label."""

    data: Data
    rng: np.random.Generator
    optimiser: str = "auto"
    draws: list[Drawn] = field(default_factory=list)

    def __post_init__(self) -> None:
        rows = len(self.data.truth)
        self.order: Integers = self.rng.permutation(rows)
        self.drawn: Mask = np.zeros(rows, dtype=np.bool_)
        self._take(Model(weights=Weights.uniform(self.data.votes), calibrator=None))

    @property
    def reached(self) -> int:
        """How far the fixed random order was walked."""
        return self.draws[-1].reached if self.draws else 0

    @property
    def gold(self) -> Codes:
        """The labels known so far."""
        return np.where(self.drawn, self.data.truth, UNLABELLED).astype(np.int8)

    @property
    def accuracy(self) -> float:
        """The share of right final labels: verdicts, and the machine's labels of other rows."""
        return float((self.right | self.drawn).mean())

    def _take(self, model: Model) -> None:
        judged = model.judged(self.data.votes)
        certainty = judged.deciding[np.arange(len(judged.best)), judged.best]
        self.right: Mask = (judged.best == self.data.truth) & ~self.data.votes.silent
        self.doubt: Integers = np.lexsort((certainty, ~self.data.votes.silent))

    def verdict(self, queue: str) -> None:
        """Draw a row and label it."""
        if queue == "learn":
            one = draw_learning(self.order, self.reached, self.drawn, self.doubt, self.rng)
        elif queue == "random":
            one = draw_at_random(self.order, self.reached, self.drawn, self.rng)
        else:
            one = Drawn(int(self.doubt[~self.drawn[self.doubt]][0]), np.nan, 0, 0)
        self.draws.append(one)
        self.drawn[one.row] = True

    def refit(self) -> None:
        """Learn from the labels known so far."""
        self._take(fit_model(self.data.votes, self.gold, Learning(optimiser=self.optimiser)).model)

    def shares(self, expected: Floats, strength: Floats) -> Shares:
        """Estimate the share of every label from all draws."""
        counts = counts_in_turn(strength, len(expected)).tolist()
        rounds = [
            Round([one.row], [int(self.data.truth[one.row])], [one.probability], [int(10 * kind)], count)
            for one, kind, count in zip(self.draws, strength, counts, strict=True)
        ]
        drawn = Sample.in_rounds(rounds)
        study = Study(expected, expected[drawn.rows], drawn, whole=True)
        every = LabelRegression(explanatory=[np.ones((1, 1, 1))], outcome=np.eye(expected.shape[1])[np.newaxis])
        found = study.corrected(every, 1.0) if expected.any() else study.gold_only(every)
        return Shares(found.value, np.sqrt(np.diag(found.covariance)))

    def broken(self) -> bool | None:
        """Return whether a promise from rows at random is broken for the rows without gold; None if there is none."""
        at_random = np.zeros(len(self.drawn), dtype=np.bool_)
        at_random[self.order[: self.reached]] = True
        how = Learning(optimiser=self.optimiser, promise=Promise(max_error=MAX_ERROR))
        model = fit_model(self.data.votes, self.gold, how, random_sample=at_random).model
        judged = model.judged(self.data.votes)
        assert judged.accepted is not None
        accepted = judged.accepted & ~self.drawn
        if not judged.accepted.any():
            return None
        return bool((judged.best != self.data.truth)[accepted].sum() > MAX_ERROR * accepted.sum())


def verdicts_needed(data: Data, queue: str, seed: int) -> int:
    review = Review(data, np.random.default_rng(seed))
    while review.accuracy < GOAL:
        review.verdict(queue)
        if len(review.draws) % REFIT_EVERY == 0:
            review.refit()
    return len(review.draws)


def show_needed(repetitions: int) -> None:
    print(f"\nverdicts until {GOAL:.0%} of {ROWS:,} final labels are right, a fit every {REFIT_EVERY} verdicts,")
    print(f"mean of {repetitions} samples ({RANDOM_SAMPLES} at random); the ratio with its standard error over samples")
    print("| set | random | doubtful first | learn | learn / doubtful first |\n|---|---|---|---|---|")
    for name in SETS:
        doubtful, learn = (
            np.array([verdicts_needed(sample(name, seed), queue, seed) for seed in range(repetitions)])
            for queue in ("doubtful", "learn")
        )
        at_random = np.mean([verdicts_needed(sample(name, seed), "random", seed) for seed in range(RANDOM_SAMPLES)])
        ratio = learn.mean() / doubtful.mean()
        spread = (learn - ratio * doubtful).std(ddof=1) / np.sqrt(repetitions) / doubtful.mean()
        cells = f"{at_random:.0f} | {doubtful.mean():.0f} | {learn.mean():.0f} | {ratio:.3f} ± {spread:.3f}"
        print(f"| {name} | {cells} |", flush=True)


class Repetition(NamedTuple):
    """Shares of all labels after the queue that learns, and after rows at random too; whether a promise is broken."""

    shares: dict[str, Shares]
    broken: bool | None


def repeat(data: Data, seed: Sequence[int]) -> Repetition:
    """Review with the queue that learns, then at random."""
    nothing = np.zeros((len(data.truth), len(data.votes.labels)))
    expected = score(data.votes, Weights.uniform(data.votes))
    strength = np.repeat([AT_RANDOM, 1.0], [LEARN_FIRST, RANDOM_THEN])
    review = Review(data, np.random.default_rng(seed), "lr")
    found = dict[str, Shares]()
    for queue, verdicts in (("learn", LEARN_FIRST), ("random", RANDOM_THEN)):
        for number in range(verdicts):
            if queue == "learn" and number and number % RARELY == 0:
                review.refit()
            review.verdict(queue)
        after = f"{LEARN_FIRST} learn" if queue == "learn" else f"{LEARN_FIRST} learn, {RANDOM_THEN} random"
        counting = strength[: len(review.draws)]
        found[f"{after}: weighted differences from votes"] = review.shares(expected, counting)
        found[f"{after}: weighted"] = review.shares(nothing, counting)
        found[f"{after}: counted"] = counted(review)
    return Repetition(found, review.broken())


def counted(review: Review) -> Shares:
    """Return the shares among the verdicts, as if these were a random sample."""
    share = np.bincount(review.data.truth[review.drawn], minlength=len(review.data.votes.labels)) / review.drawn.sum()
    return Shares(share, np.sqrt(share * (1 - share) / review.drawn.sum()))


def doubtful_first(data: Data) -> Shares:
    """Return the shares among the least certain rows; nothing about them is random."""
    review = Review(data, np.random.default_rng(0), "lr")
    for number in range(LEARN_FIRST + RANDOM_THEN):
        if number and number % RARELY == 0:
            review.refit()
        review.verdict("doubtful")
    return counted(review)


def show_estimates(repetitions: int) -> None:
    print(
        f"\nshare of each label in {ROWS:,} rows, in points: truth; then bias ± its standard error over {repetitions}"
    )
    print("repetitions (standard error of one estimate, as it says itself; how often ± 1.96 of these cover the truth)")
    promises = []
    for name in SETS:
        data = sample(name, 0)
        truth = np.bincount(data.truth, minlength=len(data.votes.labels)) / ROWS
        # sets do not share flips, or all would be off in the same direction
        found = [repeat(data, (seed, SETS.index(name))) for seed in range(repetitions)]
        labels = zip(data.votes.labels, 100 * truth, strict=True)
        print(f"\n| {name} | {' | '.join(f'{label}: {share:.1f}' for label, share in labels)} |")
        print("|---|" + "---|" * len(truth))
        for how in found[0].shares:
            print(f"| {how} | {' | '.join(cells([one.shares[how] for one in found], truth))} |", flush=True)
        doubtful = doubtful_first(data)
        print(f"| {LEARN_FIRST + RANDOM_THEN} doubtful first: counted | {' | '.join(cells([doubtful], truth))} |")
        promises.append((name, [one.broken for one in found if one.broken is not None]))
    print(f"\n| set | promise that at most {MAX_ERROR:.0%} are wrong made | broken, of all fits |\n|---|---|---|")
    for name, broken in promises:
        print(f"| {name} | {len(broken) / repetitions:.0%} | {sum(broken) / repetitions:.1%} |")


def cells(found: Sequence[Shares], truth: Floats) -> Iterator[str]:
    shares, errors = np.array([one.share for one in found]), np.array([one.standard_error for one in found])
    bias = shares.mean(axis=0) - truth
    spread = shares.std(axis=0) / np.sqrt(max(len(found) - 1, 1))
    own = np.sqrt((errors**2).mean(axis=0))
    covered = (np.abs(shares - truth) <= 1.96 * errors).mean(axis=0)
    for values in zip(100 * bias, 100 * spread, 100 * own, covered, strict=True):
        yield "{:+.2f} ± {:.2f} ({:.1f}; {:.0%})".format(*values)


def main(reviews: int = 10, estimates: int = 200) -> None:
    warnings.simplefilter("ignore", PcsWarning)
    parts: list[tuple[Callable[[int], None], int]] = [(show_needed, reviews), (show_estimates, estimates)]
    for show, repetitions in parts:
        if repetitions:
            show(repetitions)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
