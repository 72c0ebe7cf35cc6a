"""Elicitations: ways to ask for a label together with its probability, registered by name.

>>> from pcs_annotator.asking.annotators.elicitations import elicitation_of
>>> elicitation_of("1s-top-4").name
'1s-top-4'
"""

from pcs_annotator.asking.annotators.elicitations import linguistic, p_true, top_k
from pcs_annotator.asking.annotators.elicitations.base import Elicitation, Messages, Stated, elicitation, elicitations
from pcs_annotator.asking.annotators.elicitations.top_k import OneStepTopK, TwoStepTopK
from pcs_annotator.core.elicitations import guesses_of, top_k_kind

BUILT_IN = (linguistic, p_true, top_k)

__all__ = ["BUILT_IN", "Elicitation", "Messages", "Stated", "elicitation", "elicitation_of", "elicitations"]


def elicitation_of(kind: str) -> Elicitation:
    """Return the elicitation of a kind such as `1s-top-4`, or of a registered name."""
    k = guesses_of(kind)
    for steps, made in ((1, OneStepTopK), (2, TwoStepTopK)):
        if kind == top_k_kind(steps, k):
            return made(k=k)
    return elicitations.create(kind)
