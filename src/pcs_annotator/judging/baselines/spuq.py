"""SPUQ: ask again about slightly perturbed inputs.

Gao et al. 2024, *SPUQ: Perturbation-Based Uncertainty Quantification for Large Language Models*, EACL 2024,
arXiv:2403.02509. With the original input x_0 and its output y_0, perturbed inputs x_i and their outputs y_i:

* inter-sample: c = Σ_{i≥1} w_i s(y_0, y_i) / Σ_{i≥1} w_i
* intra-sample: c = Σ_{i≥0} w_i c_i / Σ_{i≥0} w_i, where c_i is the model's stated confidence in y_i

w_i is the similarity of x_i to x_0. Two labels are equal or not, so s is 1 or 0. c is the confidence in y_0; the rest
is spread evenly over the other labels.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.core.arrays import Floats, Integers, Mask
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.baselines.baseline import Asks, baseline, cells_of, mean_scores, original_column, plain_rows
from pcs_annotator.judging.baselines.stated import elicited, kinds_on

PERTURBATIONS = ("paraphrase", "dummy", "system", "temperature")
"""Those of the paper; each may have numbered variants such as `paraphrase-2`."""
FREE = frozenset(["dummy", "system", "temperature"])
"""Those that need no model to write them."""

_NUMBER = re.compile(r"[-_ ]?\d+\Z")


class _Places(NamedTuple):
    """The annotators and relations to use, and the stated probabilities; None where only labels count."""

    rows: list[int]
    columns: list[int]
    stated: Floats | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spuq:
    """Confidence in the answer on the original, from the answers on perturbed inputs."""

    # `inter`: the share of answers that agree with the original one. `intra`: the stated confidence
    aggregation: Literal["inter", "intra"] = "inter"
    # relations to use, with all their numbered variants; by default those of the paper that the votes have, or else
    # every relation but the original
    perturbations: tuple[str, ...] | None = None
    # (item id, relation) → similarity of the perturbed input to the original; 1 where none is given
    similarity: Mapping[tuple[str, str], float] = field(default_factory=dict)
    # the kind of stated confidence for `intra`; by default the alphabetically first kind that was asked about
    # perturbed inputs
    elicitation: str | None = None

    @property
    def name(self) -> str:
        """`spuq` or `spuq-intra`."""
        return "spuq" if self.aggregation == "inter" else "spuq-intra"

    def __post_init__(self) -> None:
        wrong = [value for value in self.similarity.values() if not 0 <= value < np.inf]
        if wrong:
            raise ValueError(f"similarities must be finite and not negative, got {wrong[0]}")

    def scores(self, votes: Votes) -> Floats:
        """Return the confidence at the answer on the original, the rest at the other labels."""
        places = self._places(votes)
        guess = votes.codes[:, places.rows, original_column(votes, self.name), 0].astype(np.intp)
        answers = votes.codes[:, places.rows][:, :, places.columns].astype(np.intp)
        if places.stated is None:
            signs = np.where(answers >= 0, answers == guess[:, :, np.newaxis, np.newaxis], np.nan)
        else:
            signs = _own_confidence(answers, places.stated[:, places.rows][:, :, places.columns])
        weights = np.where(np.isnan(signs), 0.0, self._weights(votes, places.columns))
        total = np.where(guess >= 0, weights.sum(axis=(2, 3)), 0.0)
        _require_half(total > 0, self.name)
        confidence = (np.nan_to_num(signs) * weights).sum(axis=(2, 3)) / np.where(total > 0, total, 1.0)
        return mean_scores(_spread(len(votes.labels), np.where(total > 0, guess, -1), confidence), self.name)

    def asks(self, votes: Votes) -> Asks:
        """Return the first answer on the original, those on perturbed inputs, and the inputs that a model wrote."""
        places = self._places(votes)
        first = cells_of(votes, places.rows, [original_column(votes, self.name)], 1)
        names = {votes.relations[column] for column in places.columns} - {ORIGINAL}
        written = frozenset(name for name in names if _family(name) not in FREE)
        return Asks(first | cells_of(votes, places.rows, places.columns), written)

    def _places(self, votes: Votes) -> _Places:
        original, perturbed = original_column(votes, self.name), self._perturbed(votes)
        if self.aggregation == "inter":
            return _Places(plain_rows(votes, self.name), perturbed, None)
        kinds = [kind for kind in kinds_on(votes, perturbed) if self.elicitation in (None, kind)]
        wanted = min(kinds, default="")
        source = elicited(votes, wanted.__eq__, f"{self.name}, on perturbed inputs,", self.elicitation or "1s-top-1")
        return _Places(source.rows, [original, *perturbed], source.stated)

    def _perturbed(self, votes: Votes) -> list[int]:
        others = {name: column for column, name in enumerate(votes.relations) if name != ORIGINAL}
        wanted = self.perturbations or PERTURBATIONS
        found = [column for name, column in others.items() if name in wanted or _family(name) in wanted]
        if not found and self.perturbations is None:
            found = list(others.values())
        if not found:
            raise UndefinedMetric(
                f"{self.name} needs answers on perturbed inputs ({', '.join(wanted)}), and these votes hold only "
                f"{', '.join(votes.relations)}: record such relations"
            )
        return found

    def _weights(self, votes: Votes, columns: list[int]) -> Floats:
        """Return w_i, `[item, 1, relation, 1]`."""
        weights = np.ones((len(votes), len(columns)))
        if self.similarity:
            names = [votes.relations[column] for column in columns]
            for row, item in enumerate(votes.ids):
                weights[row] = [self.similarity.get((item, name), 1.0) for name in names]
        return weights[:, np.newaxis, :, np.newaxis]


@baseline("spuq")
def inter_sample() -> Spuq:
    """Return SPUQ by agreement between answers."""
    return Spuq()


@baseline("spuq-intra")
def intra_sample() -> Spuq:
    """Return SPUQ by the model's stated confidence."""
    return Spuq(aggregation="intra")


def _family(relation: str) -> str:
    return _NUMBER.sub("", relation)


def _require_half(compared: Mask, who: str) -> None:
    """Raise if fewer than half of the rows have an answer to compare, `[item, annotator]`; the rest would be ties."""
    rows = int(compared.any(axis=1).sum())
    if 2 * rows < len(compared):
        raise UndefinedMetric(
            f"{who} needs answers on perturbed inputs, and {rows} of {len(compared)} rows have one: "
            "record relations that apply to more texts, such as llm:paraphrase or frame"
        )


def _own_confidence(answers: Integers, stated: Floats) -> Floats:
    """Return the probability that each annotator stated for its own answer, nan where there is none."""
    own = np.take_along_axis(stated, np.maximum(answers, 0)[..., np.newaxis], axis=-1)[..., 0]
    return np.where(answers >= 0, np.clip(own, 0.0, 1.0), np.nan)


def _spread(labels: int, guess: Integers, confidence: Floats) -> Floats:
    """Return the confidence at the guessed label and the rest spread evenly over the others; zeros without a guess."""
    if labels == 1:
        confidence = np.ones_like(confidence)  # no other label can take the rest
    hit = guess[..., np.newaxis] == np.arange(labels)
    shares = np.where(hit, confidence[..., np.newaxis], (1 - confidence[..., np.newaxis]) / max(labels - 1, 1))
    return np.where(guess[..., np.newaxis] >= 0, shares, 0.0)
