"""`ga`: the paper's second optimiser, a genetic algorithm."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Diagnostics, Weights
from pcs_annotator.judging.fit_weights import one_hot, optimiser
from pcs_annotator.judging.score import DECIMALS


@optimiser("ga")
@dataclass(frozen=True, kw_only=True)
class GeneticAlgorithm:
    """Evolves weight vectors by tournament selection, blending crossover, Gaussian mutation and elitism.

    Many weight vectors have the same accuracy, because it changes only where a label changes; a small share of the
    Brier score breaks such ties.
    """

    population: int = 60
    generations: int = 80
    elite: int = 4
    mutation: float = 0.15
    needs_gold: ClassVar[bool] = True

    def fit(self, votes: Votes, gold: Codes, seed: int) -> Weights:
        """Return the fittest weights found; never worse than equal weights, which are in the first generation."""
        rng = np.random.default_rng(seed)
        annotators, relations = len(votes.annotators), len(votes.relations)
        fitness = _fitness(votes.shares(), gold, annotators)
        genomes = rng.random((self.population, annotators + relations))
        genomes[0] = 1.0
        values = fitness(genomes)
        for _ in range(self.generations):
            best = genomes[np.argsort(-values, kind="stable")[: self.elite]]
            genomes = np.concatenate([best, self._children(genomes, values, rng)])
            values = fitness(genomes)
        winner = int(np.argmax(values))
        diagnostics = Diagnostics(objective=-float(values[winner]), iterations=self.generations)
        return Weights.normalised(votes, genomes[winner, :annotators], genomes[winner, annotators:], diagnostics)

    def _children(self, genomes: Floats, values: Floats, rng: np.random.Generator) -> Floats:
        count = self.population - self.elite
        rivals = rng.integers(len(genomes), size=(2, count, 3))
        parents = genomes[np.take_along_axis(rivals, values[rivals].argmax(axis=2)[..., np.newaxis], axis=2)[..., 0]]
        blend = rng.random((count, genomes.shape[1]))
        children = blend * parents[0] + (1 - blend) * parents[1]
        mutated = rng.random(children.shape) < 0.2
        return np.clip(children + mutated * rng.normal(0, self.mutation, children.shape), 0.0, 1.0)


def _fitness(shares: Floats, gold: Codes, annotators: int) -> Callable[[Floats], Floats]:
    target = one_hot(gold, shares.shape[3])
    rows = np.arange(len(gold))

    def fitness(genomes: Floats) -> Floats:
        scores = _population_scores(shares, genomes[:, :annotators], genomes[:, annotators:])
        brier = np.mean(np.sum((scores - target) ** 2, axis=2), axis=1)
        # A tie counts as a random draw, as in `metrics.accuracy`; counted as a hit, weights that tie everything win.
        best = scores == scores.max(axis=2, keepdims=True)
        return np.mean(best[:, rows, gold] / best.sum(axis=2), axis=1) - 1e-3 * brier

    return fitness


def _population_scores(shares: Floats, annotators: Floats, relations: Floats) -> Floats:
    """Return the scores of Eq. 2 for many weight vectors at once, `[genome, item, label]`."""
    items, voters, views, labels = shares.shape
    annotators, relations = _or_equal(annotators), _or_equal(relations)
    flat = shares.transpose(0, 1, 3, 2).reshape(-1, views)
    mass = (flat @ relations.T).T.reshape(len(relations), items, voters, labels)
    total = mass.sum(axis=3)
    voice = np.where(total > 0, annotators[:, np.newaxis, :], 0.0)
    norm = voice.sum(axis=2, keepdims=True)
    per_mass = voice / np.where(total > 0, total, 1.0) / np.where(norm > 0, norm, 1.0)
    scores = np.where(norm > 0, np.einsum("piak,pia->pik", mass, per_mass), 1 / labels)
    return np.round(scores, DECIMALS, out=scores)  # otherwise evolution exploits rounding errors to break ties


def _or_equal(genes: Floats) -> Floats:
    """Return the genes, replaced by equal ones where all are zero, as in `Weights.normalised`."""
    return np.where(genes.any(axis=1, keepdims=True), genes, 1.0)
