"""Ling 1S: one guess and a phrase that says how likely it is.

Tian et al. 2023, *Just Ask for Calibration*, EMNLP 2023, arXiv:2305.14975 (“Ling. 1S-human”). The phrases and their
probabilities are `pcs_annotator.core.elicitations.PHRASES`.
"""

from __future__ import annotations

from dataclasses import dataclass

from pcs_annotator.core.elicitations import LING_1S
from pcs_annotator.judging.baselines.baseline import baseline
from pcs_annotator.judging.baselines.stated import StatedBaseline


@baseline("ling-1s")
@dataclass(frozen=True, slots=True, kw_only=True)
class Linguistic(StatedBaseline):
    """The probability that the phrase stands for at the guessed label, the rest spread evenly over the others."""

    @property
    def name(self) -> str:
        """`ling-1s`."""
        return LING_1S
