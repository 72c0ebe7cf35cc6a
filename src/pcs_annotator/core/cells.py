"""The cells of a panel: who is asked about which variant, and for which repetition."""

from __future__ import annotations

from typing import NamedTuple


class Cell(NamedTuple):
    """One question that can be asked about every item; positions along the axes of `Votes`."""

    annotator: int
    relation: int
    draw: int = 0
