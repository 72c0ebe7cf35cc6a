"""What one annotator said to one variant of one item."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """A label, or a silence with its reason.

    Attributes:
        label: One of the task's labels; None for a silence.
        reason: Why it is silent; empty for a label.
        asked: False when nobody was asked, because the rewrite did not apply or the budget was spent.
        cut: Characters of the text that did not fit into the model's context and were left out.
    """

    label: str | None
    reason: str = ""
    asked: bool = True
    cut: int = 0
