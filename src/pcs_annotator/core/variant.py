"""An item seen through a relation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["original", "changed", "not_applicable", "rejected"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A text as annotators see it, or the reason why there is none.

    Attributes:
        relation: Name of the relation.
        status: `original` for the identity; only `original` and `changed` are asked about.
        text: What to ask about; None unless the status is `original` or `changed`.
        reason: Why there is no text.
    """

    relation: str
    status: Status
    text: str | None = None
    reason: str = ""
