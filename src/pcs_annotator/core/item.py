"""One text to label."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One text to label. It carries no gold label, so that gold cannot leak into a prompt."""

    id: str
    text: str
