"""How much each annotator and each relation counts: `Weights`, with the `Diagnostics` of their fit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from pcs_annotator.base.display import brief, html_table
from pcs_annotator.base.plain import from_plain, to_plain
from pcs_annotator.core.arrays import Floats, Integers, frozen
from pcs_annotator.core.votes import Votes, check_unique, positions_of

TOLERANCE = 1e-9

FlagKind = Literal[
    "promise fell away", "no gold labels", "confidence below chance", "no better than one label",
    "label given too often", "label never given", "texts tell labels", "nothing accepted",
    "silent annotator", "rows without a label", "constant annotator", "disagreeing annotator", "label flips",
    "label given too rarely", "chance not ruled out", "labels chosen per text", "uniform fallback",
    "not for this language", "relation without votes", "unreadable answers", "relation with few votes", "texts cut",
    "gold contradictory", "gold chosen", "label without gold", "no original", "one annotator decides alone",
    "gold repeated",
]  # fmt: skip
"""Kinds of findings, the most important first."""


VoteScale = Literal["shares", "log-odds", "mean log-odds"]


class Interval(NamedTuple):
    """Lower and upper end of a confidence interval."""

    low: float
    high: float

    def rounded(self, digits: int) -> Interval:
        """Return the ends rounded outwards, so that the interval never excludes its own value, however it is rounded.

        >>> Interval(0.861, 0.893).rounded(2)
        Interval(low=0.86, high=0.9)
        """
        unit = 10**digits
        low, high = (round(end * unit, 6) for end in self)  # 0.29 × 100 is not quite 29
        if not (math.isfinite(low) and math.isfinite(high)):
            return self
        return Interval(math.floor(low) / unit, math.ceil(high) / unit)


class Flag(NamedTuple):
    """Something a user should know about a fit or a run."""

    kind: FlagKind
    detail: str


class Share(NamedTuple):
    """A weight among those that cast votes, with its stability range if there is one; see `Diagnostics`."""

    weight: float
    interval: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostics:
    """How a fit went.

    Attributes:
        optimiser: Registry name of the optimiser.
        gold_rows: Number of gold rows that were used.
        objective: Final value of the function that the optimiser minimises; None when it minimises none.
        iterations: Steps taken.
        flags: What a user should know.
        annotator_intervals: Stability range per annotator: where 95 % of refits on resampled rows put its weight,
            widened to contain the weight itself; empty unless requested. Weights are shrunk towards equal ones, so
            this is not a confidence interval of the weight that endless gold would give.
        relation_intervals: The same per relation.
    """

    optimiser: str = ""
    gold_rows: int = 0
    objective: float | None = None
    iterations: int = 0
    flags: tuple[Flag, ...] = ()
    annotator_intervals: Mapping[str, Interval] = field(default_factory=dict)
    relation_intervals: Mapping[str, Interval] = field(default_factory=dict)

    @property
    def nothing_learned(self) -> str:
        """Why the weights stayed equal although there are gold labels; empty if they were learned."""
        return next((flag.detail for flag in self.flags if flag.kind == "uniform fallback"), "")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evidence:
    """What a vote says about every label, from optimisers that learn which labels a model confuses."""

    labels: Sequence[str]  # the labels along the axes of the arrays
    log_prior: Floats  # `[label]`
    log_likelihood: Floats  # `[annotator, relation, vote, label]`, summed over the votes of an item
    # what of a vote it is multiplied with: its share of every label, its centred log-odds, or these averaged over the
    # answered questions of an annotator
    reads: VoteScale = "shares"
    # how much more is known from what a model of the texts says; None if the posterior is to be calibrated first
    text_slope: float | None = None
    text_offsets: Floats = field(default_factory=lambda: np.zeros(0))  # what is added to that, `[label]`

    __repr__ = brief

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", tuple(self.labels))
        object.__setattr__(self, "log_prior", frozen(self.log_prior, np.float64))
        object.__setattr__(self, "log_likelihood", frozen(self.log_likelihood, np.float64))
        object.__setattr__(self, "text_offsets", frozen(self.text_offsets, np.float64))


def worth_of_votes(log_likelihood: Floats) -> Floats:
    """Return how far the vote of a cell moves the log-odds of labels, `[annotator, relation]`; see `Evidence`."""
    return np.asarray(np.ptp(log_likelihood, axis=2).mean(axis=2))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Weights:
    """Non-negative weights over annotators and over relations, each summing to 1.

    Attributes:
        annotators: Name of every annotator.
        relations: Name of every relation.
        annotator_weights: w_L of the paper.
        relation_weights: w_M of the paper.
        evidence: Set by class-aware optimisers, whose score it defines; the weights are then only a summary.
        diagnostics: How the fit went.
    """

    annotators: Sequence[str]
    relations: Sequence[str]
    annotator_weights: Floats
    relation_weights: Floats
    evidence: Evidence | None = None
    diagnostics: Diagnostics = field(default_factory=Diagnostics)

    def __post_init__(self) -> None:
        for names, weights in (("annotators", "annotator_weights"), ("relations", "relation_weights")):
            object.__setattr__(self, names, tuple(getattr(self, names)))
            check_unique(getattr(self, names), names)
            values = frozen(np.asarray(getattr(self, weights), dtype=np.float64), np.float64)
            object.__setattr__(self, weights, values)
            if values.shape != (len(getattr(self, names)),):
                raise ValueError(
                    f"{weights} has shape {values.shape}, but there are {len(getattr(self, names))} {names}"
                )
            if not (np.isfinite(values).all() and (values >= 0).all() and abs(values.sum() - 1) <= TOLERANCE):
                raise ValueError(f"{weights} must be non-negative and sum to 1, got {values.tolist()}")

    @classmethod
    def uniform(cls, votes: Votes, diagnostics: Diagnostics | None = None) -> Weights:
        """Return equal weights for the annotators and relations of these votes."""
        return cls.normalised(votes, np.ones(len(votes.annotators)), np.ones(len(votes.relations)), diagnostics)

    @classmethod
    def normalised(
        cls, votes: Votes, annotators: Floats, relations: Floats, diagnostics: Diagnostics | None = None
    ) -> Weights:
        """Return weights for the axes of these votes, each divided by its sum; a sum of zero means equal weights."""
        return cls(
            annotators=votes.annotators,
            relations=votes.relations,
            annotator_weights=to_simplex(annotators),
            relation_weights=to_simplex(relations),
            diagnostics=diagnostics or Diagnostics(),
        )

    def __repr__(self) -> str:
        annotators, relations = (
            {name: round(weight, 4) for name, weight in shares.items()}
            for shares in (self.by_annotator, self.by_relation)
        )
        return f"{type(self).__name__}(by_annotator={annotators}, by_relation={relations})"

    def _repr_html_(self) -> str:
        details = self.diagnostics
        rows = [
            (kind, name, weight, *(ends.get(name) or (None, None)))
            for kind, weights, ends in (
                ("model", self.by_annotator, details.annotator_intervals),
                ("relation", self.by_relation, details.relation_intervals),
            )
            for name, weight in weights.items()
        ]
        learned = f"{details.optimiser}, from {details.gold_rows:,} gold rows" if details.optimiser else "weights"
        flags = "; ".join(flag.detail for flag in details.flags)
        return html_table(f"Weights: {learned}", ("", "name", "weight", "from", "to"), rows, flags)

    @property
    def by_annotator(self) -> dict[str, float]:
        """Annotator → weight."""
        return dict(zip(self.annotators, self.annotator_weights.tolist(), strict=True))

    @property
    def by_relation(self) -> dict[str, float]:
        """Relation → weight."""
        return dict(zip(self.relations, self.relation_weights.tolist(), strict=True))

    @property
    def matrix(self) -> Floats:
        """Weight of every cell, `[annotator, relation]`; sums to 1."""
        return np.outer(self.annotator_weights, self.relation_weights)

    def shares(self, votes: Votes) -> tuple[dict[str, Share | None], dict[str, Share | None]]:
        """Return the weight of every annotator and of every relation among those that cast votes, to be shown.

        Without votes there is nothing to weigh: None. The others sum to 1, as they do in the score.
        """
        votes = votes.select(annotators=self.annotators, relations=self.relations)
        cast = (votes.codes >= 0).sum(axis=(0, 3))
        details = self.diagnostics
        return (
            _shares(self.by_annotator, details.annotator_intervals, cast.sum(axis=1)),
            _shares(self.by_relation, details.relation_intervals, cast.sum(axis=0)),
        )

    def reordered(self, annotators: Sequence[str], relations: Sequence[str]) -> Weights:
        """Return the same weights with their names in another order."""
        rows = positions_of(annotators, self.annotators, "model")
        columns = positions_of(relations, self.relations, "relation")
        evidence = self.evidence and replace(
            self.evidence, log_likelihood=self.evidence.log_likelihood[np.ix_(rows, columns)]
        )
        return replace(
            self,
            annotators=annotators,
            relations=relations,
            annotator_weights=self.annotator_weights[rows],
            relation_weights=self.relation_weights[columns],
            evidence=evidence,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; `from_dict` reads them back."""
        return {
            "by_annotator": self.by_annotator,
            "by_relation": self.by_relation,
            "evidence": to_plain(self.evidence),
            "diagnostics": to_plain(self.diagnostics),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Weights:
        """Return the weights that `to_dict` wrote."""
        return cls(
            annotators=list(values["by_annotator"]),
            relations=list(values["by_relation"]),
            annotator_weights=np.array(list(values["by_annotator"].values())),
            relation_weights=np.array(list(values["by_relation"].values())),
            evidence=values["evidence"] and from_plain(Evidence, values["evidence"]),
            diagnostics=from_plain(Diagnostics, values["diagnostics"]),
        )


def _shares(
    weights: Mapping[str, float], intervals: Mapping[str, Interval], votes: Integers
) -> dict[str, Share | None]:
    voters = {name for name, cast in zip(weights, votes, strict=True) if cast}
    total = sum(weights[name] for name in voters) or 1.0

    def share(name: str) -> Share:
        ends = intervals.get(name)
        return Share(weights[name] / total, ends and Interval(*(min(end / total, 1.0) for end in ends)))

    return {name: share(name) if name in voters else None for name in weights}


def to_simplex(values: Floats) -> Floats:
    """Return the non-negative values divided by their sum; equal values when the sum is zero."""
    values = np.asarray(values, dtype=np.float64)
    if not np.isfinite(values).all():
        raise ValueError(f"weights must be finite numbers, got {values.tolist()}")
    values = np.maximum(values, 0.0)
    total = values.sum()
    return values / total if total > 0 else np.full(len(values), 1 / len(values))
