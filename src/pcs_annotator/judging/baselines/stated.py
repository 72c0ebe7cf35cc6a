"""Baselines that use the probabilities annotators state themselves: Ling 1S, P(True), 1S and 2S top-k."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.core.arrays import Floats
from pcs_annotator.core.elicitations import LING_1S, P_TRUE, guesses_of, kind_of
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.baselines.baseline import Asks, baseline, cells_of, mean_scores, original_column


def complete(stated: Floats) -> Floats:
    """Return stated probabilities `[..., label]` as shares that sum to 1; zeros where nothing was stated.

    The remainder is spread evenly over the labels that were not named (nan). Probabilities that add up to more than
    1, or to less with every label named, are divided by their sum.
    """
    named = ~np.isnan(stated)
    given = np.clip(np.where(named, stated, 0.0), 0.0, 1.0)
    unnamed = (~named).sum(axis=-1, keepdims=True)
    rest = np.maximum(1 - given.sum(axis=-1, keepdims=True), 0.0)
    filled = np.where(named, given, rest / np.maximum(unnamed, 1))
    total = filled.sum(axis=-1, keepdims=True)
    # "0 % for every label" is uniform, which differs from no answer
    shares = np.where(total > 0, filled / np.where(total > 0, total, 1.0), 1 / stated.shape[-1])
    return np.where(named.any(axis=-1, keepdims=True), shares, 0.0)


class Source(NamedTuple):
    """The annotators that a method uses."""

    rows: list[int]  # their positions among the annotators
    stated: Floats  # all stated probabilities, `[item, annotator, relation, draw, label]`


def elicited(votes: Votes, fits: Callable[[str], bool], who: str, record: str) -> Source:
    """Return the annotators whose kind of elicitation fits; else an error names the method and what to record."""
    rows = [row for row, name in enumerate(votes.annotators) if kind_of(name) and fits(kind_of(name))]
    if not rows or votes.stated is None or np.isnan(votes.stated[:, rows]).all():
        raise UndefinedMetric(
            f"{who} needs probabilities that the models state themselves, and these votes hold none: "
            f"record them with the elicitation {record!r}"
        )
    return Source(rows, votes.stated)


def kinds_on(votes: Votes, columns: list[int]) -> set[str]:
    """Return the kinds of elicitation with stated probabilities on some of these relations."""
    if votes.stated is None:
        return set()
    stated = votes.stated[:, :, columns]
    return {kind_of(name) for row, name in enumerate(votes.annotators) if not np.isnan(stated[:, row]).all()} - {""}


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedBaseline:
    """A method that uses the probabilities stated about the original."""

    name: str  # the name for tables, and the kind of elicitation to use
    draws: int | None = 1  # average only the first draws; all of them when None

    def source(self, votes: Votes) -> Source:
        """Return the annotators to use."""
        return elicited(votes, self.name.__eq__, self.name, self.name)

    def scores(self, votes: Votes) -> Floats:
        """Return the probabilities stated about the original, averaged over draws, then over annotators."""
        source = self.source(votes)
        shares = complete(source.stated[:, source.rows, original_column(votes, self.name), : self.draws])
        answers = (shares.sum(axis=-1, keepdims=True) > 0).sum(axis=2)
        return mean_scores(shares.sum(axis=2) / np.maximum(answers, 1), self.name)

    def asks(self, votes: Votes) -> Asks:
        """Return the answers on the original that it uses, of one or two calls each."""
        return Asks(cells_of(votes, self.source(votes).rows, [original_column(votes, self.name)], self.draws))


@baseline("ling-1s")
def linguistic() -> StatedBaseline:
    """Return Ling 1S: one guess and a phrase for how likely it is; the rest is spread evenly over the other labels.

    Tian et al. 2023, *Just Ask for Calibration*, EMNLP 2023, arXiv:2305.14975 (“Ling. 1S-human”). The phrases and their
    probabilities are `pcs_annotator.core.elicitations.PHRASES`.
    """
    return StatedBaseline(name=LING_1S)


@baseline("p-true")
def p_true(draws: int | None = None) -> StatedBaseline:
    """Return P(True): the model proposes a label, then says whether it is right.

    Kadavath et al. 2022, *Language Models (Mostly) Know What They Know*, arXiv:2207.05221. The paper reads the
    probability of the token for *True*. Most APIs hide tokens, so here it is the share of draws that say *True*: a
    draw gives the proposed label 1 when the model says *True*, else the other labels share the 1 evenly.
    """
    return StatedBaseline(name=P_TRUE, draws=draws)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopKBaseline(StatedBaseline):
    """1S and 2S top-k: the probabilities stated for k guesses; the rest is spread evenly over the other labels.

    Tian et al. 2023, *Just Ask for Calibration*, EMNLP 2023, arXiv:2305.14975 (“Verb. 1S top-k”, “Verb. 2S top-k”).

    Attributes:
        name: `1s-top-2` and so on; `1s-top-k` for the only number of guesses that the votes have.
    """

    def source(self, votes: Votes) -> Source:
        """Return the annotators that gave k guesses."""
        steps, _, k = self.name.rpartition("-")
        any_k = k == "k"
        source = elicited(
            votes,
            lambda kind: kind.startswith(f"{steps}-") and (any_k or kind == self.name),
            self.name,
            f"{steps}-2" if any_k else self.name,
        )
        kinds = sorted({kind_of(votes.annotators[row]) for row in source.rows}, key=guesses_of)
        if len(kinds) > 1:
            raise UndefinedMetric(
                f"{self.name} takes one number of guesses, these votes hold {', '.join(kinds)}: set k"
            )
        return source


@baseline("1s-top-k")
def one_step(k: int | str = "k", draws: int = 1) -> TopKBaseline:
    """Return the method with one prompt, by default for the k that the votes have."""
    return TopKBaseline(name=f"1s-top-{k}", draws=draws)


@baseline("2s-top-k")
def two_steps(k: int | str = "k") -> TopKBaseline:
    """Return the method with two prompts, by default for the k that the votes have."""
    return TopKBaseline(name=f"2s-top-{k}")
