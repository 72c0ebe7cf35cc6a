"""Labelling new texts with fewer questions: whom to ask first, when to stop, and what is then promised.

Scores of texts that were not asked about in full are coarser than those that a calibrator and a certificate are made
from. So both are learned again here, from gold rows of which only those votes are seen that would have been asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Mask
from pcs_annotator.core.gold import gold_codes
from pcs_annotator.core.vote import NOT_ASKED, Cell
from pcs_annotator.core.votes import Votes, positions_of
from pcs_annotator.core.weights import Weights
from pcs_annotator.errors import ConfigError
from pcs_annotator.judging.fit_model import Learning, Trial, chosen_optimiser, fit_model
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.spending.posterior import Checkpoints, PosteriorStop, fit_checkpoints
from pcs_annotator.judging.spending.pruning import REPEATS, prune
from pcs_annotator.judging.spending.stopping import ExactStop
from pcs_annotator.judging.spending.strategy import order_of, simulate, tier_ends
from pcs_annotator.judging.weighing.fitting import fit_weights


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingOptions:
    """How to spend less.

    Attributes:
        stop: `exact` when no further vote can change the label; `posterior` also when it is probable enough.
        level: How probable that is.
        prune: Whether to leave out cells that cross-validation shows to be worth nothing.
        prices: Annotator → price of a call. Cheap ones are then asked first, and dear ones only about texts that the
            cheap ones leave less probable than `level`.
    """

    stop: Literal["exact", "posterior"] = "exact"
    level: float = 0.95
    prune: bool = False
    prices: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise ConfigError(f"level is {self.level!r}: give a probability between 0 and 1, such as 0.95")

    @property
    def checks(self) -> bool:
        """Whether a probable label ends the asking."""
        return self.stop == "posterior" or bool(self.prices)


class Spending(NamedTuple):
    """Which part of all questions is asked, measured on recorded votes.

    Attributes:
        questions: Share of all questions.
        by_annotator: The same for every annotator.
        by_relation: Share of texts that must be seen through each relation at all, and so be rewritten.
    """

    questions: float
    by_annotator: Mapping[str, float]
    by_relation: Mapping[str, float]


class Frugal(NamedTuple):
    """How to ask about new texts, and what their answers are worth.

    Attributes:
        model: Its confidence and promise hold for texts asked about by the strategy.
        strategy: Whom to ask first, and when to stop.
        spending: What that spares.
        trial: The gold rows as fits that did not see them judge them, asked about in the same way.
    """

    model: Model
    strategy: ExactStop | PosteriorStop
    spending: Spending
    trial: Trial | None


def learn_frugal(
    votes: Votes, gold: Sequence[object], how: Learning, stopping: StoppingOptions, random_sample: Mask | None = None
) -> Frugal:
    """Return how to ask about new texts, and what their answers are worth.

    Args:
        votes: What everybody said about recorded texts.
        gold: Their gold labels, None where unknown.
        how: How to learn.
        stopping: How to spend less.
        random_sample: Which rows were drawn at random, so that they can carry a promise; by default all.
    """
    rule = _Rule.learn(votes, gold, how, stopping)

    def ask_policy(held_out: Votes, weights: Weights) -> Votes:
        return simulate(held_out, rule.strategy(weights, held_out.labels)).votes

    model, trial = fit_model(votes, gold, how, random_sample=random_sample, ask_policy=ask_policy)
    strategy = rule.strategy(model.weights, votes.labels)
    return Frugal(model, strategy, _spending(votes, simulate(votes, strategy).votes), trial)


def _spending(votes: Votes, stopped: Votes) -> Spending:
    could, did = votes.codes != NOT_ASKED, stopped.codes != NOT_ASKED
    share = did.sum() / max(could.sum(), 1)
    by_annotator = did.sum(axis=(0, 2, 3)) / np.maximum(could.sum(axis=(0, 2, 3)), 1)
    seen, possible = did.any(axis=(1, 3)).sum(axis=0), could.any(axis=(1, 3)).sum(axis=0)
    return Spending(
        float(share),
        dict(zip(votes.annotators, by_annotator.tolist(), strict=True)),
        dict(zip(votes.relations, (seen / np.maximum(possible, 1)).tolist(), strict=True)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """The order of cells and, for a posterior stop, what scores along it mean; positions as in `weights`."""

    weights: Weights
    order: Sequence[Cell]
    draws: int
    level: float
    checkpoints: Checkpoints | None

    @classmethod
    def learn(cls, votes: Votes, gold: Sequence[object], how: Learning, stopping: StoppingOptions) -> _Rule:
        codes = gold_codes(votes, gold)
        weights = fit_weights(votes, gold, how.optimiser, seed=how.splits.seed)
        chosen = chosen_optimiser(how.optimiser, weights)
        splits = replace(how.splits, repeats=REPEATS)
        draws = votes.codes.shape[3]
        order = order_of(weights, draws, stopping.prices)
        if stopping.prune:
            order = prune(votes, codes, chosen, splits).order(order)
        checkpoints = None
        if stopping.checks:
            ends = list(range(1, len(order) + 1))
            if stopping.prices:
                ends = tier_ends(order, weights, stopping.prices)
            checkpoints = fit_checkpoints(votes, codes, chosen, order, ends, splits)
        return cls(weights=weights, order=order, draws=draws, level=stopping.level, checkpoints=checkpoints)

    def strategy(self, weights: Weights, labels: Sequence[str]) -> ExactStop | PosteriorStop:
        """Return the rule for weights of the same names in any order."""
        rows = positions_of(self.weights.annotators, weights.annotators, "annotator")
        columns = positions_of(self.weights.relations, weights.relations, "relation")
        order = [Cell(rows[cell.annotator], columns[cell.relation], cell.draw) for cell in self.order]
        exact = ExactStop(weights, labels, self.draws, order)
        if self.checkpoints is None:
            return exact
        moved = Checkpoints(order=order, ends=self.checkpoints.ends, calibrators=self.checkpoints.calibrators)
        return PosteriorStop(self.level, exact, moved)
