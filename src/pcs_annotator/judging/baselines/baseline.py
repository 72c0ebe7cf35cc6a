"""What a baseline is, and those that need answers on the unchanged text alone: zero-shot, votes, log-probabilities.

A published method uses one model. On the votes of one annotator (with its elicited siblings) a baseline is that
method; on the votes of several, each annotator is scored separately and the scores are averaged over those that
answered. All but `logprob` are defined on labels, so graded votes count as the label that was answered.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.base.registry import Registry
from pcs_annotator.core.arrays import Floats, Mask
from pcs_annotator.core.elicitations import kind_of
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.votes import NOT_ASKED, Votes
from pcs_annotator.judging.score import DECIMALS


class Asks(NamedTuple):
    """What a method pays for on every item."""

    cells: Mask  # true for the answers it uses, `[annotator, relation, draw]`
    rewrites: frozenset[str] = frozenset()  # relations whose text a model must write first
    graded: bool = False  # whether it needs the log-probabilities of these answers, not just their labels


class Baseline(Protocol):
    """A method that scores labels from some of the votes and learns nothing."""

    @property
    def name(self) -> str:
        """Return the name for tables."""
        ...

    def scores(self, votes: Votes) -> Floats:
        """Return the score of every label for every item; rows sum to 1, an item without usable votes is uniform."""
        ...

    def asks(self, votes: Votes) -> Asks:
        """Return which of the votes it uses."""
        ...


baselines: Registry[Baseline] = Registry("baseline", "pcs_annotator.baselines")
baseline = baselines.register  # decorator that registers a baseline class under a name


def original_column(votes: Votes, who: str) -> int:
    """Return the position of the unchanged text among the relations."""
    if ORIGINAL not in votes.relations:
        raise UndefinedMetric(
            f"{who} needs answers on the unchanged text, and these votes hold only {', '.join(votes.relations)}: "
            f"record it, or name its relation {ORIGINAL!r}"
        )
    return list(votes.relations).index(ORIGINAL)


def plain_rows(votes: Votes, who: str) -> list[int]:
    """Return the positions of the annotators that gave plain labels, without stating a confidence."""
    rows_found = [row for row, name in enumerate(votes.annotators) if not kind_of(name)]
    if not rows_found:
        raise UndefinedMetric(f"{who} needs plain labels: record a model without an elicitation too")
    return rows_found


def cells_of(votes: Votes, annotators: Sequence[int], relations: Sequence[int], draws: int | None = None) -> Mask:
    """Return the mask of the answers that were asked for at these positions, `[annotator, relation, draw]`."""
    cells = np.zeros(votes.codes.shape[1:], dtype=np.bool_)
    cells[np.ix_(annotators, relations, range(votes.codes.shape[3])[:draws])] = True
    return cells & (votes.codes != NOT_ASKED).any(axis=0)


def mean_scores(by_annotator: Floats, who: str) -> Floats:
    """Return the mean over annotators of `[item, annotator, label]` without rows of zeros; raise if all of them are."""
    present = by_annotator.sum(axis=2, keepdims=True) > 0
    if present.size and not present.any():
        raise UndefinedMetric(f"{who} finds no usable answer to its questions among these votes: look at the answers")
    voices = present.sum(axis=1)
    total = by_annotator.sum(axis=1)
    scores = np.where(voices > 0, total / np.maximum(voices, 1), 1 / by_annotator.shape[2])
    return np.asarray(np.round(scores, DECIMALS))


@baseline("zero-shot")
@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroShot:
    """One call per text: 1 for the label of the first answer on the unchanged text (RQ1 of Salimian et al.).

    Several annotators are averaged, so select one for the paper's figure.
    """

    name: ClassVar[str] = "zero-shot"
    graded: ClassVar[bool] = False
    draws: int | None = 1  # use only the first draws; all of them when None

    def scores(self, votes: Votes) -> Floats:
        """Return the share of draws for every label, averaged over annotators."""
        rows, column = self.rows(votes), original_column(votes, self.name)
        shares = (votes if self.graded else votes.hard()).select(draws=self.draws).shares()[:, rows, column]
        total = shares.sum(axis=2, keepdims=True)  # log-probabilities leave a rest that went to no label
        return mean_scores(shares / np.where(total > 0, total, 1.0), self.name)

    def asks(self, votes: Votes) -> Asks:
        """Return one call per annotator and draw."""
        cells = cells_of(votes, self.rows(votes), [original_column(votes, self.name)], self.draws)
        return Asks(cells, graded=self.graded)

    def rows(self, votes: Votes) -> list[int]:
        """Return the positions of the annotators that it asks."""
        return plain_rows(votes, self.name)


@baseline("majority-vote")
@dataclass(frozen=True, slots=True, kw_only=True)
class MajorityVote(ZeroShot):
    """The share of annotators that give a label to the unchanged text, one call each (RQ3 of Salimian et al.)."""

    name: ClassVar[str] = "majority-vote"

    def rows(self, votes: Votes) -> list[int]:
        """Return the positions of the annotators, of which two or more must have answered."""
        rows = plain_rows(votes, self.name)
        asked = int((votes.codes[:, rows, original_column(votes, self.name), 0] >= 0).any(axis=0).sum())
        if asked < 2:
            raise UndefinedMetric(
                f"{self.name} needs answers of two models or more, and these votes have {asked}: record more"
            )
        return rows


@baseline("self-consistency")
@dataclass(frozen=True, slots=True, kw_only=True)
class SelfConsistency(ZeroShot):
    """The share of draws on the unchanged text that give a label: the same question asked several times.

    Wang et al. 2022, arXiv:2203.11171: of m sampled answers a_1 … a_m take arg max_a Σ_i 1[a_i = a]; the score is the
    m-th part of that sum. Set `draws` to the number of calls that another method makes, to compare it with that one.
    """

    name: ClassVar[str] = "self-consistency"
    draws: int | None = None

    def __post_init__(self) -> None:
        if self.draws is not None and self.draws < 1:
            raise ValueError(f"draws must be 1 or more, or None for all of them, not {self.draws}")

    def rows(self, votes: Votes) -> list[int]:
        """Return the positions of the annotators, all of which must have been asked often enough."""
        rows = plain_rows(votes, self.name)
        drawn = (votes.codes[:, rows, original_column(votes, self.name)] >= 0).any(axis=0).sum(axis=1)
        fewest = int(np.argmin(drawn))
        if drawn[fewest] < (self.draws or 2):
            raise UndefinedMetric(
                f"self-consistency needs {self.draws or 'several'} draws of the original, and "
                f"{votes.annotators[rows[fewest]]} has {drawn[fewest]}: record them with --draws {self.draws or 5}"
            )
        return rows


@baseline("logprob")
@dataclass(frozen=True, slots=True, kw_only=True)
class LogProb(ZeroShot):
    """The probabilities that the model gives to the labels in its first answer on the unchanged text; no learning.

    What went to no label is left out, so that rows sum to 1. An answer without log-probabilities, from a model that
    gave them elsewhere, counts as its label.
    """

    name: ClassVar[str] = "logprob"
    graded: ClassVar[bool] = True

    def rows(self, votes: Votes) -> list[int]:
        """Return the positions of the annotators that give log-probabilities."""
        return graded_rows(votes, self.name)


def graded_rows(votes: Votes, who: str) -> list[int]:
    """Return the positions of the annotators whose first answers on the unchanged text have log-probabilities."""
    rows, column = plain_rows(votes, who), original_column(votes, who)
    graded: list[int] = []
    if votes.grades is not None:
        graded = [row for row in rows if not np.isnan(votes.grades[:, row, column, 0]).all()]
    if not graded:
        raise UndefinedMetric(
            f"{who} needs the log-probabilities of answers on the unchanged text, and these votes hold none: record "
            "them with --answers graded, from a model that gives them"
        )
    return graded
