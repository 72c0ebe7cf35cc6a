"""`design_panel`: which draws, rewrites and models to buy for a budget, with quality by nested cross-validation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.gold import UNLABELLED
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.vote import Cell
from pcs_annotator.core.votes import Votes
from pcs_annotator.errors import ConfigError, GoldError
from pcs_annotator.judging.metrics.bootstrap import WIDENING
from pcs_annotator.judging.metrics.metrics import Estimate, auroc, bootstrap_estimate
from pcs_annotator.judging.spending.design.search import Group, Step, Tariff, affordable, groups_of, search
from pcs_annotator.judging.spending.strategy import only
from pcs_annotator.judging.weighing.crossfit import Splits, cross_fits, stratified_folds
from pcs_annotator.judging.weighing.optimiser import any_graded, fit_optimiser, optimisers
from pcs_annotator.judging.weighing.scoring import score

MIN_GOLD_ROWS = 10
RESAMPLES = 200
FOLDS = 5
FOR_HARD_VOTES = ("naive-bayes", "logit")
FOR_GRADED_VOTES = ("scaling", "logit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What asking costs, in calls or in money; names that are not given cost one call.

    Attributes:
        by_annotator: Price of one question to an annotator.
        by_relation: Price of one rewrite of a text, paid once for all annotators and draws. Give relations made by
            rules a price of 0; the original text is free.
    """

    by_annotator: Mapping[str, float] = field(default_factory=dict)
    by_relation: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, price in {**self.by_annotator, **self.by_relation}.items():
            if not (math.isfinite(price) and price >= 0):
                raise ConfigError(f"price of {name!r}: {price} is not a price; give 0 or a positive number")

    def cost(self, votes: Votes, cells: Sequence[Cell]) -> float:
        """Return what it costs to ask the cells about one text."""
        return self.tariff(votes).cost(cells)

    def tariff(self, votes: Votes) -> Tariff:
        """Return the prices in the order of the votes' axes."""
        rewrites = {ORIGINAL: 0.0, **self.by_relation}
        return Tariff(
            question=np.array([self.by_annotator.get(name, 1.0) for name in votes.annotators]),
            rewrite=np.array([rewrites.get(name, 1.0) for name in votes.relations]),
        )


class Choice(NamedTuple):
    """Cells to ask about every new text, what they cost, and the registry name of the optimiser to use."""

    cells: tuple[Cell, ...]
    cost: float
    optimiser: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedPanel:
    """Cells to ask about every new text, what they cost, and the quality of a design at that cost.

    Attributes:
        cells: Positions along the axes of the votes it was designed from.
        cost: Price of one text, rewrites included.
        auroc: On gold rows that neither the choice of cells nor the weights saw: the design was repeated on the other
            folds with this budget. It measures designing at this cost, not these cells alone.
    """

    cells: tuple[Cell, ...]
    cost: float
    auroc: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Designed:
    """The quality–cost curve, cheapest panel first; the last panel is the choice for the whole budget.

    Attributes:
        curve: Panels of growing cost.
        optimiser: Registry name of the optimiser that predicts held-out gold best with the chosen panel.
        budget: The maximum cost of one text.
    """

    curve: tuple[PricedPanel, ...]
    optimiser: str
    budget: float

    @property
    def chosen(self) -> PricedPanel:
        """The panel for the whole budget."""
        return self.curve[-1]


def choose_panel(
    votes: Votes,
    gold: Codes,
    budget: float,
    prices: Prices | None = None,
    *,
    optimisers: Sequence[str] | None = None,
    seed: int = 0,
) -> Choice:
    """Return which cells to ask about new texts within a budget; `design_panel` also measures the quality."""
    designer, votes, gold = _prepared(votes, gold, budget, prices or Prices(), optimisers)
    design = designer.design(votes, gold, seed)
    best = affordable(design.steps, budget)
    return Choice(best.cells, best.cost, design.optimiser)


def design_panel(
    votes: Votes,
    gold: Codes,
    budget: float,
    prices: Prices | None = None,
    *,
    optimisers: Sequence[str] | None = None,
    seed: int = 0,
) -> Designed:
    """Return which cells to ask about new texts within a budget, and the quality–cost curve up to it.

    Args:
        votes: Recorded votes; every question with a vote is a candidate, and each of its draws costs one call.
        gold: For every item a position in `votes.labels`, or `UNLABELLED`; only labelled rows are used.
        budget: The maximum cost of one text, in the unit of the prices.
        prices: What questions and rewrites cost; by default one call each.
        optimisers: Candidates for turning the panel's votes into scores, by default two for the kind of votes. The
            first is used unless another predicts held-out gold better by more than a standard error.
        seed: Random seed of the folds.
    """
    designer, votes, gold = _prepared(votes, gold, budget, prices or Prices(), optimisers)
    design = designer.design(votes, gold, seed)
    steps = design.curve()
    scores = _held_out_scores(designer, votes, gold, [step.cost for step in steps], seed)
    curve = tuple(
        PricedPanel(
            cells=step.cells,
            cost=step.cost,
            auroc=bootstrap_estimate(auroc, held_out, gold, resamples=RESAMPLES, seed=seed, widening=WIDENING),
        )
        for step, held_out in zip(steps, scores, strict=True)
    )
    return Designed(curve=curve, optimiser=design.optimiser, budget=budget)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Design:
    """All panels that a search found, and the optimiser for the best one."""

    steps: Sequence[Step]
    optimiser: str

    def curve(self) -> list[Step]:
        """Return the panels that are better than all cheaper ones, cheapest first."""
        best: list[Step] = []
        for step in sorted(self.steps, key=lambda step: (step.cost, step.loss)):
            if not best or step.loss < best[-1].loss:
                best.append(step)
        return best


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Designer:
    """The settings that all folds share."""

    groups: Sequence[Group]
    tariff: Tariff
    budget: float
    optimisers: Sequence[str]

    def design(self, votes: Votes, gold: Codes, seed: int) -> _Design:
        """Return the panels found on these gold rows."""
        steps = search(votes, gold, self.groups, self.tariff, self.budget)
        panel = only(votes, affordable(steps, self.budget).cells)
        return _Design(steps=steps, optimiser=self._optimiser_for(panel, gold, seed))

    def _optimiser_for(self, panel: Votes, gold: Codes, seed: int) -> str:
        if len(self.optimisers) == 1:
            return self.optimisers[0]
        losses = [_row_losses(name, panel, gold, seed) for name in self.optimisers]
        gains = [losses[0] - other for other in losses]
        worth = [gain.mean() - gain.std() / math.sqrt(len(gold)) for gain in gains]
        return self.optimisers[int(np.argmax(worth))]


def _row_losses(name: str, panel: Votes, gold: Codes, seed: int) -> Floats:
    fits = cross_fits(optimisers.create(name), panel, gold, Splits(folds=FOLDS, seed=seed))
    probabilities = [fit.probabilities[np.arange(len(gold)), gold] for fit in fits]
    return np.asarray(-np.mean(np.log(probabilities), axis=0))


def _prepared(
    votes: Votes, gold: Codes, budget: float, prices: Prices, names: Sequence[str] | None
) -> tuple[_Designer, Votes, Codes]:
    """Return a designer and the labelled rows; raise if there is nothing to design."""
    labelled = gold != UNLABELLED
    votes, gold = votes.take(labelled), gold[labelled]
    _check_gold(votes, gold)
    groups, tariff = groups_of(votes), prices.tariff(votes)
    least = min(tariff.cost([Cell(group.annotator, group.relation)]) for group in groups)
    if not budget >= least:
        raise ConfigError(f"a budget of {budget} is too small: the cheapest question costs {least:g}")
    if names is None:
        names = FOR_GRADED_VOTES if any_graded(votes) else FOR_HARD_VOTES
    return _Designer(groups=groups, tariff=tariff, budget=budget, optimisers=names), votes, gold


def _held_out_scores(designer: _Designer, votes: Votes, gold: Codes, costs: Sequence[float], seed: int) -> Floats:
    """Return `[cost, item, label]`: scores by a design of at most that cost, made without using the item."""
    fold = stratified_folds(gold, FOLDS, seed)
    scores = np.empty((len(costs), len(votes), len(votes.labels)))
    for held_out in range(FOLDS):
        inside = fold != held_out
        seen, truth, unseen = votes.take(inside), gold[inside], votes.take(~inside)
        design = designer.design(seen, truth, seed)
        chosen = optimisers.create(design.optimiser)
        for place, cost in enumerate(costs):
            cells = affordable(design.steps, cost).cells
            weights = fit_optimiser(chosen, only(seen, cells), truth, seed)
            scores[place, ~inside] = score(only(unseen, cells), weights)
    return scores


def _check_gold(votes: Votes, gold: Codes) -> None:
    if len(gold) < MIN_GOLD_ROWS:
        raise GoldError(f"{len(gold)} gold rows are too few to compare panels: label at least {MIN_GOLD_ROWS}")
    if len(np.unique(gold)) < 2:
        raise GoldError(f"all gold rows say {votes.labels[gold[0]]!r}: label rows of another class too")
    if votes.silent.all():
        raise GoldError("no gold row has a vote: label rows that the models were asked about")
