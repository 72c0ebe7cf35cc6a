"""The result for one text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Decision = Literal["accept", "review", "agree"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The label of one item, with everything needed to decide whether to believe it.

    Attributes:
        id: The item.
        label: The most probable label; the one with the highest score when there was too little gold for a confidence;
            None when the item has no votes.
        scores: The Perceived Confidence Score of every label, summing to 1.
        confidence: Probability that `label` is right: calibrated from 50 gold rows on, rough from 10, else None.
        decision: `accept` where a promise allows it, else `review`. Without gold labels `agree` where two or more
            answers all give the same label, which promises nothing, else `review`. None when no decisions were
            requested and the item has votes.
        reason: Why, in plain words; empty when there is nothing to explain.
        label_set: The labels that cannot be ruled out; empty unless requested.
    """

    id: str
    label: str | None
    scores: Mapping[str, float]
    confidence: float | None
    decision: Decision | None
    reason: str = ""
    label_set: tuple[str, ...] = ()
