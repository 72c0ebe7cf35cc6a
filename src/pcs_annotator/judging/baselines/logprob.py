"""`logprob`: one question, whose log-probabilities are the score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.core.arrays import Floats
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.baselines.baseline import Asks, baseline, cells_of, mean_scores, original_column, plain_rows


@baseline("logprob")
@dataclass(frozen=True, slots=True, kw_only=True)
class LogProb:
    """The probabilities that the model gives to the labels in its first answer on the unchanged text; no learning.

    What went to no label is left out, so that rows sum to 1. An answer without log-probabilities, from a model that
    gave them elsewhere, counts as its label.
    """

    name: ClassVar[str] = "logprob"

    def scores(self, votes: Votes) -> Floats:
        """Return the probability of every label, averaged over the annotators that give log-probabilities."""
        rows, column = graded_rows(votes, self.name), original_column(votes, self.name)
        shares = votes.select(draws=1).shares()[:, rows, column]
        total = shares.sum(axis=2, keepdims=True)
        return mean_scores(shares / np.where(total > 0, total, 1.0), self.name)

    def asks(self, votes: Votes) -> Asks:
        """Return one call per annotator that gives log-probabilities."""
        rows, column = graded_rows(votes, self.name), original_column(votes, self.name)
        return Asks(cells_of(votes, rows, [column], 1), graded=True)


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
