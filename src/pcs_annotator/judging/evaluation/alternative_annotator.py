r"""May the model replace a human coder? The alternative annotator test (Calderon, Reichart and Dror, 2025).

Each coder $j$ is left out in turn. On a row, the model wins if it agrees with the other coders at least as often as $j$
does, and $j$ wins if it is the other way round; both may win. The model may replace $j$ if its share of wins is higher
than that of $j$ minus $\varepsilon$, the benefit of not having to pay for $j$. That is tested for all coders together
(Benjamini and Yekutieli, 2001). The model may replace coders if it may replace at least half of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.core.arrays import CODE, Codes, Floats, Mask

LEAST_ROWS = 30
LEAST_CODERS = 2
LEVEL = 0.05
EPSILON = 0.2
"""What the authors recommend against experts; .15 against skilled annotators, .1 against crowd workers."""


class LeftOut(NamedTuple):
    """A coder against whom the model was tested."""

    rows: int  # rows on which this coder and at least one other gave a label
    model: float  # how often the model agrees with the others at least as well as this coder does
    coder: float  # how often this coder agrees with the others at least as well as the model does
    p_value: float  # of the hypothesis that the model is worse than this coder by more than ε
    may_replace: bool  # whether that is rejected, all coders together


class AlternativeAnnotator(NamedTuple):
    """The result of the test."""

    coders: tuple[LeftOut, ...]  # for every coder what was found
    winning_rate: float  # the share of coders that the model may replace
    advantage: float  # how often the model agrees with the others at least as well as the coder left out, on average
    epsilon: float  # the benefit of not having to pay a coder

    @property
    def may_replace(self) -> bool:
        """Whether the model may replace coders."""
        return self.winning_rate >= 0.5

    def sentence(self, names: Sequence[str]) -> str:
        """Return the result in words."""
        told = ", ".join(
            f"{name} (p = {one.p_value:.3f}, {one.rows:,} rows)"
            for name, one in zip(names, self.coders, strict=True)
            if one.may_replace
        )
        return (
            f"Alternative annotator test (ε = {self.epsilon:g}): the model may {'' if self.may_replace else 'not '}"
            f"replace a coder. It wins against {told or 'none'} of {len(names)}, winning rate {self.winning_rate:.2f}; "
            f"it agrees with the others at least as well as the coder left out on {100 * self.advantage:.0f} % of rows."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**self._asdict(), "coders": [one._asdict() for one in self.coders], "may_replace": self.may_replace}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> AlternativeAnnotator:
        """Return what `to_dict` wrote."""
        coders = tuple(LeftOut(**one) for one in values["coders"])
        return cls(coders, values["winning_rate"], values["advantage"], values["epsilon"])


def alternative_annotator(machine: Codes, coders: Codes, epsilon: float = EPSILON) -> AlternativeAnnotator:
    """Test whether a model may replace human coders, from its labels and theirs, `[coder, row]`.

    Labels are negative where there is none. The model must not have learned from these rows. ε is the benefit of not
    having to pay a coder, as a share of wins.

    Raises:
        UndefinedMetric: There are too few coders, or rows that two of them labelled.
    """
    if len(coders) < LEAST_CODERS:
        raise UndefinedMetric(
            f"the alternative annotator test needs {LEAST_CODERS} human coders or more, and there is {len(coders)}: "
            "name the column of each with pcs run --coders"
        )
    differences, wins = [], []
    for place in range(len(coders)):
        model, coder = _wins(machine, coders[place], np.delete(coders, place, axis=0))
        if len(model) < LEAST_ROWS:
            raise UndefinedMetric(
                f"the alternative annotator test needs {LEAST_ROWS} rows that coder {place + 1} and another one have "
                f"labelled, and there are {len(model)}: let them label more rows"
            )
        differences.append(coder.astype(np.float64) - model)
        wins.append((float(model.mean()), float(coder.mean())))
    p_values = np.array([_p_value(one - epsilon) for one in differences])
    rejected = benjamini_yekutieli(p_values, LEVEL)
    found = tuple(
        LeftOut(len(one), model, coder, float(p), bool(no))
        for one, (model, coder), p, no in zip(differences, wins, p_values, rejected, strict=True)
    )
    return AlternativeAnnotator(found, float(rejected.mean()), float(np.mean([won for won, _ in wins])), epsilon)


def _wins(machine: Codes, coder: Codes, others: Codes) -> tuple[Codes, Codes]:
    """Return on which rows the model and the coder win, of those that the coder and another one have labelled."""
    known = (coder >= 0) & (others >= 0).any(axis=0) & (machine >= 0)
    machine, coder, others = machine[known], coder[known], others[:, known]
    ours, theirs = (others == machine).sum(axis=0), (others == coder).sum(axis=0)
    return (ours >= theirs).astype(CODE), (theirs >= ours).astype(CODE)


def _p_value(values: Floats) -> float:
    """Return how probable a mean this low is if the true mean is 0 or higher (one-sided t-test)."""
    from scipy.stats import ttest_1samp

    if (values == values[0]).all():
        return float(values[0] >= 0)
    return float(ttest_1samp(values, 0.0, alternative="less").pvalue)


def benjamini_yekutieli(p_values: Floats, level: float) -> Mask:
    """Return which hypotheses are rejected, so that few of the rejected ones are true, however they depend."""
    from scipy.stats import false_discovery_control

    return np.asarray(false_discovery_control(p_values, method="by") <= level)
