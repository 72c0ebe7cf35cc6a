"""What one annotator said to one variant of one item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Cell(NamedTuple):
    """One question that can be asked about every item; positions along the axes of `Votes`."""

    annotator: int
    relation: int
    draw: int = 0


ABSTAINED = -1
"""Asked, but no usable label came back."""
NOT_ASKED = -2
"""Never asked, or the rewrite did not apply."""
OPEN = -3
"""May still be asked; only while an item is being asked about, never in `Votes`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """A label, or a silence with its reason.

    Attributes:
        label: One of the task's labels; None for a silence.
        reason: Why it is silent; empty for a label.
        asked: False when nobody was asked, because the rewrite did not apply or the budget was spent.
        cut: Characters of the text that did not fit into the model's context and were left out.
        stated: The probability that the annotator itself gives to each label of the task, in their order, nan where it
            gives none; None when it was not asked for one, or is silent.
    """

    label: str | None
    reason: str = ""
    asked: bool = True
    cut: int = 0
    stated: tuple[float, ...] | None = None
