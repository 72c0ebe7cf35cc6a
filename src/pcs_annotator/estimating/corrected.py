r"""Estimates from many machine labels and few gold ones, without the bias of the machine.

Labels are known only as probabilities. In a regression, row $i$ enters once per label $k$, with a weight $a_{ik}$ of
its own, with explanatory values $x_{ik}$ and outcome $t_{ik}$. The coefficients $\theta$ solve

$$\sum_{ik} a_{ik}\, x_{ik}\,\bigl(t_{ik} - \mu(x_{ik}^\top\theta)\bigr) = 0.$$

If the label is the outcome, $x$ is the same for all labels; if the label explains the outcome, $t$ is. Means and shares
are linear regressions on indicators of groups.

With $\hat\psi_i$ the score of a row under its label probabilities, $\psi_i$ under its gold label, and sampling weights
$w$, the corrected coefficients solve

$$\frac{\lambda}{N}\sum_i \hat\psi_i(\theta)
+ \sum_{i \in S} w_i\,\bigl(\psi_i(\theta) - \lambda\hat\psi_i(\theta)\bigr) = 0.$$

$\lambda = 0$ is gold only; $\lambda$ between 0 and 1 is chosen for the smallest error (PPI++; Angelopoulos, Duchi and
Zrnic, 2023). With known unequal probabilities this is design-based supervised learning (Egami et al., 2023), and
confidence-driven inference (Gligorić et al., 2025) if they follow confidence. Probabilities of gold rows must come from
fits that did not see them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import expit, softmax

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.core.arrays import Floats, Integers, Mask
from pcs_annotator.estimating.sampling import Sample

Link = Literal["linear", "logistic", "multinomial"]
MOST_STEPS = 50
TOLERANCE = 1e-9
FARTHEST = 30.0  # coefficients of a logistic regression beyond this, on scaled columns, are on the way to infinity
PART = 32_768  # so many rows are computed at a time: a million must not take gigabytes


class Sums(NamedTuple):
    """What Newton's method needs to know at some coefficients."""

    scores: Floats  # the sum of the scores of all rows, `[column × equation]`
    curvature: Floats  # minus its derivative, `[column × equation, column × equation]`


class _Pull(NamedTuple):
    """What rows, or pairs of row and label if the label explains, have: `residuals` are weighted."""

    columns: Floats
    weights: Floats
    residuals: Floats
    expected: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelRegression:
    """A regression in which the label is the outcome or explains it."""

    # blocks of columns, each `[row, label, column]`, with one row for all if it is the same in all rows, and one label
    # for all if it does not depend on the label
    explanatory: Sequence[Floats]
    # `[row, label, equation]`, with one row for all if the label is the outcome, and one label for all if it explains.
    # A multinomial regression has one equation for every label but the first
    outcome: Floats
    link: Link = "linear"  # what the linear predictor is turned into

    @property
    def is_outcome(self) -> bool:
        """Whether the label is the outcome."""
        return all(block.shape[1] == 1 for block in self.explanatory)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the coefficients, `[column, equation]`."""
        return sum(block.shape[2] for block in self.explanatory), self.outcome.shape[2]

    def take(self, rows: Integers | Mask | slice) -> "LabelRegression":
        """Return the regression on some rows."""
        outcome, *explanatory = (
            block if len(block) == 1 else block[rows] for block in (self.outcome, *self.explanatory)
        )
        return replace(self, explanatory=explanatory, outcome=outcome)

    def scores(self, coefficients: Floats, weights: Floats) -> Floats:
        """Return how far every row pulls the coefficients, `[row, column × equation]`; weights are `[row, label]`."""
        pull = self._pull(coefficients, weights)
        pulled = (pull.columns[:, :, np.newaxis] * pull.residuals[:, np.newaxis]).reshape(len(pull.columns), -1)
        return pulled if self.is_outcome else pulled.reshape(*weights.shape, -1).sum(axis=1)

    def sums(self, coefficients: Floats, weights: Floats) -> Sums:
        """Return the summed scores and their curvature; weights are `[row, label]`."""
        if all(len(block) == 1 for block in (self.outcome, *self.explanatory)):
            weights = np.ones((1, len(weights))) @ weights  # all rows are alike
        parts = [self.take(rows)._sums(coefficients, weights[rows]) for rows in _parts(len(weights))]
        return Sums(*(np.sum(block, axis=0) for block in zip(*parts, strict=True)))

    def _sums(self, coefficients: Floats, weights: Floats) -> Sums:
        pull = self._pull(coefficients, weights)
        columns, count = pull.columns, self.shape[1]
        curvature = np.empty((self.shape[0], count, self.shape[0], count))
        for first in range(count):
            for other in range(count):
                slope = pull.weights * self._slope(pull.expected, first, other)
                curvature[:, first, :, other] = (columns * slope[:, np.newaxis]).T @ columns
        return Sums((columns.T @ pull.residuals).ravel(), curvature.reshape(self.shape[0] * count, -1))

    def _pull(self, coefficients: Floats, weights: Floats) -> _Pull:
        width = max(block.shape[1] for block in self.explanatory)
        blocks = [np.broadcast_to(one, (len(weights), width, one.shape[2])) for one in self.explanatory]
        columns = np.concatenate(blocks, axis=2, dtype=np.float64).reshape(-1, self.shape[0])
        expected = self._expected(columns @ coefficients)
        if self.is_outcome:
            total = weights @ np.ones(weights.shape[1])  # many times faster than a sum over few labels
            return _Pull(columns, total, weights @ self.outcome[0] - total[:, np.newaxis] * expected, expected)
        outcome = np.broadcast_to(self.outcome, (len(weights), width, self.shape[1])).reshape(expected.shape)
        return _Pull(columns, weights.ravel(), weights.reshape(-1, 1) * (outcome - expected), expected)

    def solve(self, weights: Floats, start: Floats | None = None) -> Floats:
        """Return the coefficients, given the weight of every row and label, and coefficients that should be near."""
        coefficients = np.zeros(self.shape) if start is None else start
        if self.link == "linear":
            scores, curvature = self.sums(coefficients, weights)
            return coefficients + solved(curvature, scores).reshape(self.shape)
        scale = np.concatenate([block.reshape(-1, block.shape[2]).std(axis=0) for block in self.explanatory])
        for _ in range(MOST_STEPS):
            scores, curvature = self.sums(coefficients, weights)
            step = solved(curvature, scores)
            coefficients = coefficients + step.reshape(self.shape)
            if np.abs(coefficients * np.maximum(scale, 1e-12)[:, np.newaxis]).max() > FARTHEST:
                break
            if np.abs(step).max() <= TOLERANCE * max(1.0, float(np.abs(coefficients).max())):
                return coefficients
        raise UndefinedMetric(
            "the regression has no solution, because some column tells the outcome perfectly (separation): leave that "
            "column out, join rare groups, or label more rows"
        )

    def _expected(self, predictor: Floats) -> Floats:
        if self.link == "linear":
            return predictor
        if self.link == "logistic":
            return expit(predictor)
        return softmax(np.concatenate([np.zeros((len(predictor), 1)), predictor], axis=1), axis=1)[:, 1:]

    def _slope(self, expected: Floats, first: int, other: int) -> Floats | float:
        """Return the derivative of an expectation by a predictor, for every row."""
        if self.link == "linear":
            return float(first == other)
        return expected[:, first] * (float(first == other) - expected[:, other])


def _parts(rows: int) -> Iterator[slice]:
    return (slice(start, start + PART) for start in range(0, rows, PART))


def solved(matrix: Floats, right: Floats) -> Floats:
    """Return the solution of a linear system; no unique solution is an error that says what that means."""
    if not np.linalg.cond(matrix) <= 1e12:  # of a singular matrix it is infinite, or nan
        raise UndefinedMetric(
            "the columns of the formula are collinear: one is constant, or follows from the others; leave one out"
        )
    return np.asarray(np.linalg.solve(matrix, right), dtype=np.float64)


def inverted(matrix: Floats) -> Floats:
    """Return the inverse of a matrix; see `solved`."""
    return solved(matrix, np.eye(len(matrix)))


def _ratio(parts: Iterable[tuple[float, float]]) -> float:
    """Return the λ with the smallest sum of squared errors, from `_common_and_own` of each regression."""
    common, own_part = np.sum([*parts], axis=0)
    return float(np.clip(common / own_part, 0, 1)) if own_part else 0.0


NOTHING = 1e-12
# So many gold rows are added to those that tell a coefficient, of each outcome equally many, when errors are computed:
# few gold rows that show no error would otherwise say that there is none (Agresti and Caffo, 2000).
UNSEEN = 2.0


class CoefficientEstimate(NamedTuple):
    """Estimated coefficients, flattened `[column × equation]`."""

    value: Floats  # the estimates
    covariance: Floats  # of their errors
    freedom: float  # degrees of freedom of the errors
    tuning: float  # λ, how much machine labels count: 0 for gold only, 1 for all
    shift: float = 0.0  # how far the middle of an interval is from the estimate

    def contrast(self, weights: Floats) -> "CoefficientEstimate":
        """Return weighted sums of these, such as differences; weights are `[sum, coefficient]`."""
        return self._replace(value=weights @ self.value, covariance=weights @ self.covariance @ weights.T)


@dataclass(frozen=True)  # without slots, so that what takes time is computed once
class Study:
    """What is known about the labels of all rows, to estimate from."""

    expected: Floats  # probability of every label, `[row, label]`, from fits on gold
    held_out: Floats  # the same for the rows of the sample, from fits that did not see them
    sample: Sample  # the gold rows
    # whether the rows are all there are, so that only drawing gold rows adds error. Otherwise, they are themselves a
    # random sample of something larger
    whole: bool = False
    # whether gold rows are a random sample of the same source as the others, but not of interest themselves
    apart: bool = False
    clusters: Integers | None = None  # for every row its group, if rows of a group have errors in common; None for none
    said: Integers | None = None  # for every row the machine's label, -1 for none; None for the most probable one
    size: Floats | None = None  # for every row how much it counts, such as a survey's weight; None if all count alike
    unseen: float = UNSEEN  # how many gold rows of each kind are added when errors are computed

    def corrected(self, regression: LabelRegression, tuning: float | None = None) -> CoefficientEstimate:
        """Return the estimate from machine and gold labels; `tuning` is chosen if it is None."""
        first = None
        if tuning is None:
            first = self._solve(regression, 1.0)
            tuning = _ratio([self._common_and_own(regression, first)])
        coefficients = self._solve(regression, tuning, first)
        inverse = self._inverse_curvature(regression, coefficients, tuning)
        covariance = inverse @ self._error(regression, coefficients, tuning) @ inverse.T
        return CoefficientEstimate(coefficients.ravel(), covariance, self._freedom, tuning)

    def gold_only(self, regression: LabelRegression) -> CoefficientEstimate:
        """Return the estimate from gold labels alone."""
        gold, weights = regression.take(self.sample.rows), self._known
        coefficients = gold.solve(weights)
        inverse = inverted(gold.sums(coefficients, weights).curvature)
        covariance = inverse @ self._error(regression, coefficients, 0.0) @ inverse.T
        return CoefficientEstimate(coefficients.ravel(), covariance, self._freedom, 0.0)

    def naive(self, regression: LabelRegression) -> CoefficientEstimate:
        """Return the estimate from machine labels as if they were true, with the usual robust errors."""
        weights = np.zeros_like(self.expected)
        rows = np.flatnonzero(self.machine >= 0)  # a row without a label says nothing
        weights[rows, self.machine[rows]] = self._shares[rows]
        coefficients = regression.solve(weights)
        inverse = inverted(regression.sums(coefficients, weights).curvature)
        covariance = inverse @ self._between(regression, coefficients, weights) @ inverse.T
        return CoefficientEstimate(coefficients.ravel(), covariance, max(1.0, len(rows) - len(covariance)), 1.0)

    @property
    def machine(self) -> Integers:
        """The machine's label of every row, -1 for none."""
        return self.expected.argmax(axis=1) if self.said is None else self.said

    @property
    def _freedom(self) -> float:
        """The degrees of freedom of errors; clusters are what varies, if rows have errors in common."""
        of_rows = max(1.0, 1 / (self.weights**2).sum() - len(np.unique(self.sample.stratum)))
        return of_rows if self._cluster is None else float(self._cluster.max())

    @property
    def _cluster(self) -> Integers | None:
        """The number of each gold row's cluster among theirs; None if rows have no errors in common."""
        if self.clusters is None or self.whole:
            return None
        return np.unique(self.clusters[self.sample.rows], return_inverse=True)[1]

    @cached_property
    def _shares(self) -> Floats:
        """Return how much every row counts in a mean over all rows."""
        counted = np.ones(len(self.expected)) if self.size is None else self.size.copy()
        if self.apart:
            counted[self.sample.rows] = 0.0
        return counted / counted.sum()

    @cached_property
    def _scale(self) -> Floats:
        """Return how much every gold row counts beside its sampling weight, `[row of the sample, 1]`."""
        sizes = np.ones(len(self.sample)) if self.size is None else self.size[self.sample.rows]
        return (sizes / (sizes @ self.sample.weights))[:, np.newaxis]

    @cached_property
    def weights(self) -> Floats:
        """Return how much every gold row counts in a mean over all rows; they add up to 1."""
        return self.sample.weights * self._scale[:, 0]

    @cached_property
    def _known(self) -> Floats:
        """Return the weights of gold labels, `[row of the sample, label]`."""
        return np.eye(self.expected.shape[1])[self.sample.truth] * self.weights[:, np.newaxis]

    @cached_property
    def _held_out(self) -> Floats:
        return self.held_out * self.weights[:, np.newaxis]

    def _weights(self, tuning: float) -> Floats:
        """Return the weights of all rows and labels that make the scores add up to the corrected ones."""
        weights: Floats = tuning * self._shares[:, np.newaxis] * self.expected
        np.add.at(weights, self.sample.rows, self._known - tuning * self._held_out)
        return weights

    def _solve(self, regression: LabelRegression, tuning: float, start: Floats | None = None) -> Floats:
        if regression.link != "linear" or not regression.is_outcome:
            return regression.solve(self._weights(tuning), start)
        # the corrections are a regression of their own: groups are then corrected by their own rows alone
        gold = regression.take(self.sample.rows)
        machine = regression.solve(self._shares[:, np.newaxis] * self.expected)
        target = solved(
            gold.sums(machine, self._known).curvature,
            gold.sums(np.zeros(gold.shape), self._known - tuning * self._held_out).scores,
        )
        return tuning * machine + target.reshape(machine.shape)

    def _inverse_curvature(self, regression: LabelRegression, coefficients: Floats, tuning: float) -> Floats:
        if not regression.is_outcome:
            return inverted(regression.sums(coefficients, self._weights(tuning)).curvature)
        weights = self.expected / len(self.expected) if self.apart else self._shares[:, np.newaxis] * self.expected
        return inverted(regression.sums(coefficients, weights).curvature)

    def joint_tuning(self, regressions: Iterable[LabelRegression]) -> float:
        """Return one λ for several regressions: with it, shares of all labels add up to 1."""
        return _ratio(self._common_and_own(regression, self._solve(regression, 1.0)) for regression in regressions)

    def _common_and_own(self, regression: LabelRegression, first: Floats) -> tuple[float, float]:
        """Return how gold and machine labels vary together, and machine labels alone; 0 and 0 if that is nothing."""
        inverse = self._inverse_curvature(regression, first, 1.0)
        gold = regression.take(self.sample.rows)
        truth, machine = (gold.scores(first, weights) @ inverse.T for weights in self._unweighted)
        size = truth.shape[1]
        errors = self.sample.error_of_drawing(np.concatenate([truth, machine], axis=1))
        common, own_part = float(np.trace(errors[:size, size:])), float(np.trace(errors[size:, size:]))
        if self.apart:
            # as in PPI++: what machine labels vary is best known from all rows
            rest = regression.take(self._shares > 0).scores(first, self.expected[self._shares > 0]) @ inverse.T
            varies = float(np.concatenate([machine, rest]).var(axis=0, ddof=1).sum())
            common, own_part = common * (1 - 1 / len(truth)), varies * (1 / len(truth) + 1 / len(rest))
        # labels that are the same for all rows vary by rounding only
        useful = own_part > NOTHING * np.trace(errors[:size, :size])
        return (common, own_part) if useful else (0.0, 0.0)

    @property
    def _unweighted(self) -> tuple[Floats, Floats]:
        return np.eye(self.expected.shape[1])[self.sample.truth] * self._scale, self.held_out * self._scale

    def _error(self, regression: LabelRegression, coefficients: Floats, tuning: float) -> Floats:
        """Return the covariance of the summed scores."""
        gold = regression.take(self.sample.rows)
        truth, machine = (gold.scores(coefficients, weights) for weights in self._unweighted)
        if self.apart:
            error = self.sample.error_of_drawing(truth - tuning * machine)
            weights = tuning * self._shares[:, np.newaxis] * self.expected
            return error + self._between(regression, coefficients, weights)
        unseen = self._unseen(gold, coefficients, tuning * machine)
        if self._cluster is not None:
            return unseen + self._between(regression, coefficients, self._weights(tuning))
        error = unseen + self.sample.error_of_drawing(truth - tuning * machine)
        if not self.whole:
            error += (truth * self.sample.weights[:, np.newaxis]).T @ truth / len(self.expected)
        return error

    def _unseen(self, gold: LabelRegression, coefficients: Floats, machine: Floats) -> Floats:
        """Return what `UNSEEN` gold rows of any outcome would add to the covariance, for each coefficient."""
        labels = np.arange(self.expected.shape[1])
        if gold.is_outcome:
            labels = np.unique(gold.outcome[0], axis=0, return_index=True)[1]
        possible_labels = np.eye(self.expected.shape[1])[labels]
        possible = [gold.scores(coefficients, label * self._scale) - machine for label in possible_labels]
        pulls = self.sample.weights[:, np.newaxis, np.newaxis] * np.stack(possible, axis=1)
        if (cluster := self._cluster) is not None:
            pulls = np.stack([pulls[cluster == label].sum(axis=0) for label in range(cluster.max() + 1)])
        size = np.sqrt((pulls**2).mean(axis=1))
        # of how many rows, all alike, such sums could be (Kish, 1965)
        rows = size.sum(axis=0) ** 2 / np.maximum((size**2).sum(axis=0), NOTHING**2)
        pulls /= np.sqrt(np.maximum(rows, 1.0))
        if self.whole:
            pulls *= np.sqrt(self.left)[:, np.newaxis, np.newaxis]
        return self.unseen * np.einsum("ikp,ikq->pq", pulls, pulls) / len(labels)

    @property
    def left(self) -> Floats:
        """For every gold row which part of its squared weight adds to the error."""
        left = (1 - self.sample.probability) * (self.sample.spread / self.sample.weights) ** 2
        return left if self.whole else np.ones(len(self.sample))

    def _between(self, regression: LabelRegression, coefficients: Floats, weights: Floats) -> Floats:
        """Return the covariance of the sum of scores of independent rows or clusters."""
        size = regression.shape[0] * regression.shape[1]
        count = int((self._shares > 0).sum()) if self.clusters is None else int(self.clusters.max()) + 1
        total, products = np.zeros(size), np.zeros((size, size))
        by_cluster = np.zeros((0 if self.clusters is None else count, size))
        for rows in _parts(len(weights)):
            scores = regression.take(rows).scores(coefficients, weights[rows])
            total += scores.sum(axis=0)
            if self.clusters is None:
                products += scores.T @ scores
            else:
                np.add.at(by_cluster, self.clusters[rows], scores)
        products += by_cluster.T @ by_cluster
        return (products - np.outer(total, total) / count) * (count / (count - 1))
