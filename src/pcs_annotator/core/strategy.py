"""Which question to ask next, and when to stop: the interface between asking and judging."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pcs_annotator.core.arrays import Codes, Grades
from pcs_annotator.core.vote import Cell


class Strategy(Protocol):
    """The order in which to ask about an item, and when to stop.

    Both methods take the codes of one item by annotator, relation and draw: a label, `ABSTAINED`, `OPEN` for a cell
    that may still be asked, `NOT_ASKED` for one that cannot be; and the grades of its votes, nan where there are none,
    or None if no vote is graded. They must not modify them.
    """

    @property
    def order(self) -> Sequence[Cell]:
        """The cells of a job in the order to ask them; a cell that is not listed is never asked."""
        ...

    def needed(self, cells: Codes, grades: Grades | None) -> int:
        """Return how many of the next open cells must be asked in any case; 0 when the label is settled."""
        ...

    def urgency(self, cells: Codes, grades: Grades | None) -> float:
        """Return how likely further votes are to change the label, on any scale; the highest goes first."""
        ...
