"""Scores from the probabilities that annotators stated themselves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Floats
from pcs_annotator.core.elicitations import LING_1S, P_TRUE, guesses_of, kind_of
from pcs_annotator.core.votes import Votes
from pcs_annotator.errors import UndefinedMetric
from pcs_annotator.judging.baselines.baseline import Asks, baseline, cells_of, mean_scores, original_of


def complete(stated: Floats) -> Floats:
    """Return stated probabilities `[..., label]` as shares that sum to 1; zeros where nothing was stated.

    What the named labels leave is spread evenly over those that were not named (nan); probabilities that add up to
    more than 1, or to less with every label named, are divided by their sum.
    """
    named = ~np.isnan(stated)
    given = np.clip(np.where(named, stated, 0.0), 0.0, 1.0)
    unnamed = (~named).sum(axis=-1, keepdims=True)
    rest = np.maximum(1 - given.sum(axis=-1, keepdims=True), 0.0)
    filled = np.where(named, given, rest / np.maximum(unnamed, 1))
    total = filled.sum(axis=-1, keepdims=True)
    # "0 % for every label" tells nothing apart, which is not the same as saying nothing
    shares = np.where(total > 0, filled / np.where(total > 0, total, 1.0), 1 / stated.shape[-1])
    return np.where(named.any(axis=-1, keepdims=True), shares, 0.0)


class Source(NamedTuple):
    """The annotators that a method listens to.

    Attributes:
        rows: Where they stand among the annotators.
        stated: Everything that was stated, `[item, annotator, relation, draw, label]`.
    """

    rows: list[int]
    stated: Floats


def elicited(votes: Votes, fits: Callable[[str], bool], who: str, record: str) -> Source:
    """Return the annotators whose kind fits.

    Args:
        votes: Votes with elicited annotators among them.
        fits: Whether a kind is meant.
        who: The method that needs them.
        record: The elicitation to record where there is none.
    """
    rows = [row for row, name in enumerate(votes.annotators) if kind_of(name) and fits(kind_of(name))]
    if not rows or votes.stated is None or np.isnan(votes.stated[:, rows]).all():
        raise UndefinedMetric(
            f"{who} needs probabilities that the annotators state themselves, and these votes hold none: "
            f"record them with the elicitation {record!r}"
        )
    return Source(rows, votes.stated)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedBaseline(ABC):
    """A method that takes what annotators stated about the original.

    Attributes:
        draws: How many draws to average, the first ones; all of them when None.
    """

    draws: int | None = 1

    @property
    @abstractmethod
    def name(self) -> str:
        """The name for tables; unless `source` says otherwise, the kind of its annotators as well."""

    def source(self, votes: Votes) -> Source:
        """Return the annotators to listen to."""
        return elicited(votes, self.name.__eq__, self.name, self.name)

    def scores(self, votes: Votes) -> Floats:
        """Return what was stated about the original, averaged over draws, then over annotators."""
        source = self.source(votes)
        shares = complete(source.stated[:, source.rows, original_of(votes, self.name), : self.draws])
        answers = (shares.sum(axis=-1, keepdims=True) > 0).sum(axis=2)
        return mean_scores(shares.sum(axis=2) / np.maximum(answers, 1))

    def asks(self, votes: Votes) -> Asks:
        """Return the answers on the original that count, of one or two calls each."""
        return Asks(cells_of(votes, self.source(votes).rows, [original_of(votes, self.name)], self.draws))


@baseline("ling-1s")
@dataclass(frozen=True, slots=True, kw_only=True)
class LinguisticBaseline(StatedBaseline):
    """The probability that the phrase stands for at the guessed label, the rest spread evenly over the others."""

    @property
    def name(self) -> str:
        """`ling-1s`."""
        return LING_1S


@baseline("p-true")
@dataclass(frozen=True, slots=True, kw_only=True)
class PTrueBaseline(StatedBaseline):
    """The mean over draws: 1 for the proposed label when the model says *True*; else the others share the 1 evenly."""

    draws: int | None = None

    @property
    def name(self) -> str:
        """`p-true`."""
        return P_TRUE


@dataclass(frozen=True, slots=True, kw_only=True)
class TopKBaseline(StatedBaseline):
    """The probabilities stated for k guesses; what they leave is spread evenly over labels that were not guessed.

    Attributes:
        steps: 1 when guesses and probabilities come in one reply, 2 when the probabilities are asked for afterwards.
        k: How many guesses; by default the only number that the votes hold.
    """

    steps: Literal[1, 2] = 1
    k: int | None = None

    @property
    def name(self) -> str:
        """`1s-top-2` and so on; `1s-top-k` where k is left open."""
        return f"{self.steps}s-top-{self.k or 'k'}"

    def source(self, votes: Votes) -> Source:
        """Return the annotators that gave so many guesses."""
        source = elicited(votes, self._fits, self.name, f"{self.steps}s-top-{self.k or 2}")
        kinds = sorted({kind_of(votes.annotators[row]) for row in source.rows}, key=guesses_of)
        if len(kinds) > 1:
            raise UndefinedMetric(
                f"{self.name} takes one number of guesses, these votes hold {', '.join(kinds)}: set k"
            )
        return source

    def _fits(self, kind: str) -> bool:
        return kind.startswith(f"{self.steps}s-top-") and self.k in (None, guesses_of(kind))


@baseline("1s-top-k")
def one_step() -> TopKBaseline:
    """Return the method with one prompt, for whatever k the votes hold."""
    return TopKBaseline(steps=1)


@baseline("2s-top-k")
def two_steps() -> TopKBaseline:
    """Return the method with two prompts, for whatever k the votes hold."""
    return TopKBaseline(steps=2)
