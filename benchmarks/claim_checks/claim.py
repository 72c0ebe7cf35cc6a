"""A claim of ours against what was measured."""

from __future__ import annotations

from typing import NamedTuple


class Claim(NamedTuple):
    """A claim that the product or its docs make, and what repetitions show.

    Attributes:
        claim: What is claimed, in a few words.
        where: Data, optimiser and gold rows of this cell.
        asked: The limit, such as `≤ 10 %`.
        measured: The figure, such as `4.5 %`.
        kept: Whether the figure is within the limit.
    """

    claim: str
    where: str
    asked: str
    measured: str
    kept: bool
