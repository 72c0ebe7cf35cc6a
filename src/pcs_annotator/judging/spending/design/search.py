"""Which cells to ask within a budget: a greedy search that also uses all votes where gold rows are too few."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats, Integers, Mask
from pcs_annotator.core.vote import Cell
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.weighing.crossfit import stratified_folds
from pcs_annotator.judging.weighing.optimiser import any_graded, one_hot
from pcs_annotator.judging.weighing.optimisers.confusion import MAX_TEMPER, log_confusion, pseudo_counts
from pcs_annotator.judging.weighing.optimisers.scaling import Scaling
from pcs_annotator.judging.weighing.scoring import log_softmax, read_votes, softmax

HALVINGS = 10
ORDERS_OF_DRAWS = 4
ROWS_TO_TRUST_GOLD = 200
LEAST_TRUST_IN_GOLD = 0.03
FREE = 1e-9
FOLDS = 5


class Group(NamedTuple):
    """One question and its draws, which are worth the same before they are asked; they are asked in this order."""

    annotator: int
    relation: int
    draws: tuple[int, ...]


class Step(NamedTuple):
    """A panel found by the search: its cells, their cost, and its loss."""

    cells: tuple[Cell, ...]
    cost: float
    loss: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tariff:
    """Price of a question per annotator and of a rewrite per relation, in the order of the votes' axes."""

    question: Floats
    rewrite: Floats

    def cost(self, cells: Sequence[Cell]) -> float:
        """Return the cost of the cells for one text; a rewrite is paid once, however many questions use it."""
        rewrites = {cell.relation for cell in cells}
        return float(sum(self.question[cell.annotator] for cell in cells) + sum(self.rewrite[r] for r in rewrites))


def groups_of(votes: Votes) -> list[Group]:
    """Return every question that got at least one vote, with the draws that did."""
    alive: Mask = np.any(votes.codes >= 0, axis=0)
    pairs = np.argwhere(np.any(alive, axis=2)).tolist()
    return [Group(a, r, tuple(np.flatnonzero(alive[a, r]).tolist())) for a, r in pairs]


def affordable(steps: Sequence[Step], budget: float) -> Step:
    """Return the panel with the smallest loss within the budget; the first step if none fits."""
    within = [step for step in steps if step.cost <= budget + FREE]
    return min(within, key=lambda step: step.loss, default=steps[0])


def search(votes: Votes, gold: Codes, groups: Sequence[Group], tariff: Tariff, budget: float) -> list[Step]:
    """Return panels of growing cost; each step adds the best next question.

    One search maximises the gain per price, a second one the gain alone: neither is best for all prices.
    """
    task = _SearchProblem.of(votes, gold, groups)
    steps = list(_greedy(task, groups, tariff, budget, by_price=True))
    if len({*tariff.question.tolist()}) > 1 or tariff.rewrite.any():
        steps += _greedy(task, groups, tariff, budget, by_price=False)
    return steps


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _SearchProblem:
    """Evidence of every group after each number of draws, `[row, group, draws asked, label]`, and the target."""

    evidence: Floats
    log_prior: Floats
    target: Floats

    @classmethod
    def of(cls, votes: Votes, gold: Codes, groups: Sequence[Group]) -> _SearchProblem:
        labels = len(votes.labels)
        single, present = _evidence_per_draw(votes, gold, groups)
        log_prior = np.log((np.bincount(gold, minlength=labels) + 1) / (len(gold) + labels))
        asked = present.sum(axis=2)[..., np.newaxis]
        everything = (single.sum(axis=2) / np.maximum(asked, 1)).sum(axis=1)
        target = _softened(one_hot(gold, labels), everything, log_prior)
        orders = _orders(groups)
        evidence = np.concatenate([_after_draws(single, present, order) for order in orders])
        return cls(evidence=evidence, log_prior=log_prior, target=np.tile(target, (len(orders), 1)))


def _evidence_per_draw(votes: Votes, gold: Codes, groups: Sequence[Group]) -> tuple[Floats, Mask]:
    """Return log P(vote | label) `[item, group, draw, label]`, not counting the item itself, and where a vote exists.

    All draws share one table, so that the fourth is worth as much as the first. Graded votes count by their log-odds.
    """
    where = ([group.annotator for group in groups], [group.relation for group in groups])
    codes = votes.codes[:, *where]
    present = codes >= 0
    evidence = _by_confusion(votes.hard().shares()[:, *where], codes, one_hot(gold, len(votes.labels)))
    for place, group in enumerate(groups):
        cell = votes.select(annotators=[votes.annotators[group.annotator]], relations=[votes.relations[group.relation]])
        if any_graded(cell):
            evidence[:, place] = _by_scaling(cell, gold)
    return np.where(present[..., np.newaxis], evidence, 0.0), present


def _by_confusion(shares: Floats, codes: Codes, target: Floats) -> Floats:
    """Return log P(vote | label) of hard votes, from tables that do not count the item itself."""
    own = np.einsum("igv,ik->igvk", shares, target)
    tables = log_confusion(own.sum(axis=0) - own, pseudo_counts(shares))
    said = np.maximum(codes, 0).astype(np.intp)[..., np.newaxis]
    return np.take_along_axis(tables, said, axis=2)


def _by_scaling(cell: Votes, gold: Codes) -> Floats:
    """Return what each draw of a cell adds to the log-odds, `[item, draw, label]`, by fits without the item's fold."""
    draws = cell.codes.shape[3]
    found = np.empty((len(cell), draws, len(cell.labels)))
    fold = stratified_folds(gold, min(FOLDS, len(gold)), seed=0)
    for number in np.unique(fold):
        inside = fold != number
        evidence = Scaling().fit(cell.take(inside), gold[inside], seed=0).evidence
        assert evidence is not None
        for draw in range(draws):
            one = cell.take(~inside).only((np.arange(draws) == draw)[np.newaxis, np.newaxis])
            found[~inside, draw] = np.tensordot(read_votes(one, evidence.reads), evidence.log_likelihood, axes=3)
    return found


def _softened(truth: Floats, everything: Floats, log_prior: Floats) -> Floats:
    """Return the target of a panel: gold, mixed with the prediction from all recorded votes.

    Where votes carry little information about the label, which of two panels fits a hundred gold labels better is
    mostly chance, while its distance to the prediction from all votes is not. Gold counts more with more rows, and
    the more of the uncertainty the votes explain.
    """
    temper, loss = _best_temper(everything[np.newaxis], log_prior, truth)
    explained = max(0.0, 1 - float(loss[0]) / -float(np.mean(truth @ log_prior)))
    informative = len(truth) * explained
    trust = max(LEAST_TRUST_IN_GOLD, informative / (informative + ROWS_TO_TRUST_GOLD * (1 - explained)))
    return trust * truth + (1 - trust) * softmax(temper[0] * everything + log_prior)


def _orders(groups: Sequence[Group]) -> list[list[Integers]]:
    """Return a few random orders of the draws, so that a lucky early draw does not count as quality."""
    rng = np.random.default_rng(0)
    turns = ORDERS_OF_DRAWS if any(len(group.draws) > 1 for group in groups) else 1
    return [[rng.permutation(np.array(group.draws)) for group in groups] for _ in range(turns)]


def _after_draws(single: Floats, present: Mask, order: Sequence[Integers]) -> Floats:
    """Return the mean evidence after each number of draws, because scores average draws; 0 before the first."""
    rows, groups, draws, labels = single.shape
    result = np.zeros((rows, groups, draws + 1, labels))
    for group, chosen in enumerate(order):
        asked = np.cumsum(present[:, group, chosen], axis=1)[..., np.newaxis]
        result[:, group, 1 : len(chosen) + 1] = np.cumsum(single[:, group, chosen], axis=1) / np.maximum(asked, 1)
    return result


def _greedy(
    task: _SearchProblem, groups: Sequence[Group], tariff: Tariff, budget: float, *, by_price: bool
) -> Iterator[Step]:
    asked = np.zeros(len(groups), dtype=np.intp)
    total = np.zeros_like(task.target)
    cells: tuple[Cell, ...] = ()
    cost, loss = 0.0, -float(np.mean(task.target @ task.log_prior))
    while True:
        offers = [g for g, group in enumerate(groups) if asked[g] < len(group.draws)]
        costs = np.array([tariff.cost((*cells, _next_cell(groups[g], asked[g]))) for g in offers])
        open_ = np.flatnonzero(costs <= budget + FREE)
        if not len(open_):
            return
        offered = np.array(offers)[open_]
        change = task.evidence[:, offered, asked[offered] + 1] - task.evidence[:, offered, asked[offered]]
        panels = total + change.transpose(1, 0, 2)
        _, losses = _best_temper(panels, task.log_prior, task.target)
        price = np.maximum(costs[open_] - cost, FREE) if by_price else 1.0
        best = int(np.argmax(_gain_for_price(loss - losses, price)))
        cells = (*cells, _next_cell(groups[offered[best]], asked[offered[best]]))
        asked[offered[best]] += 1
        total, cost, loss = panels[best], float(costs[open_][best]), float(losses[best])
        yield Step(cells, cost, loss)


def _gain_for_price(gain: Floats, price: Floats | float) -> Floats:
    """Return the gain per price; a high price does not make a loss look smaller."""
    return np.where(gain > 0, gain / price, gain * price)


def _next_cell(group: Group, asked: int) -> Cell:
    return Cell(group.annotator, group.relation, group.draws[asked])


def _best_temper(evidence: Floats, log_prior: Floats, target: Floats) -> tuple[Floats, Floats]:
    """Return the temper that predicts the target best for each `[panel, row, label]`, and the mean log-loss there.

    Cells err together, so their evidence counts less than it would if they were independent. The loss is convex in the
    temper, so bisection on the sign of the slope finds the minimum.
    """
    low, high = np.zeros(len(evidence)), np.full(len(evidence), MAX_TEMPER)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        error = softmax(_logits(middle, evidence, log_prior)) - target
        rising = np.einsum("pik,pik->p", error, evidence) > 0
        low, high = np.where(rising, low, middle), np.where(rising, middle, high)
    temper = (low + high) / 2
    fit = log_softmax(_logits(temper, evidence, log_prior))
    return temper, -np.einsum("pik,ik->p", fit, target) / len(target)


def _logits(temper: Floats, evidence: Floats, log_prior: Floats) -> Floats:
    return temper[:, np.newaxis, np.newaxis] * evidence + log_prior
