"""One vote: its place (`Cell`), its content (`Vote`), codes for cells without a label, and what to ask (`Strategy`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from pcs_annotator.core.arrays import Codes, Floats

ABSTAINED = -1  # asked, but no usable label came back
NOT_ASKED = -2  # never asked, or the rewrite did not apply
OPEN = -3  # may still be asked; used only while a job runs, never in `Votes`


class Cell(NamedTuple):
    """One question that can be asked about every item: positions along the axes of `Votes`."""

    annotator: int
    relation: int
    draw: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """A label, or the reason why there is none."""

    label: str | None  # one of the task's labels, or None
    reason: str = ""  # why there is no label; empty otherwise
    asked: bool = True  # false when no model was called, because the rewrite did not apply or the budget was spent
    cut: int = 0  # characters of the text that did not fit into the model's context and were left out
    # the probability that the annotator itself gives to each label of the task, in task order, nan where it gives none;
    # None when none were requested, or there is no label
    stated: tuple[float, ...] | None = None
    # the probability with which the model would have answered each label of the task, in task order; what is missing to
    # 1 went to no label. None for a hard vote, and when there is no label
    grades: tuple[float, ...] | None = None
    # what is to be counted about the grades: why there are none although they were requested, or that a label not among
    # the tokens listed may have more than 1 %
    remark: str = ""


class Strategy(Protocol):
    """The order in which to ask about an item, and when to stop: the interface between asking and judging.

    `needed` takes the codes of one item by annotator, relation and draw: a label, `ABSTAINED`, `OPEN` for a cell that
    may still be asked, `NOT_ASKED` for one that cannot be; and what its text says. It must not modify them.
    """

    @property
    def order(self) -> Sequence[Cell]:
        """The cells of a job in the order to ask them; a cell that is not listed is never asked."""
        ...

    def said_of(self, text: str) -> Floats | None:
        """Return what a text says about each label before anything is asked; None if nothing."""
        ...

    def needed(self, cells: Codes, said: Floats | None = None) -> int:
        """Return how many of the next open cells must be asked in any case; 0 when the label is settled."""
        ...
