"""What a rewrite may do to a text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What a rewrite is allowed to do to a text; the checks hold it to that.

    Attributes:
        negations: `kept`, or `doubled`: an even number of negations is added.
        reorders: Whether names may change places, as they do when the voice changes.
        shortest: The rewrite's length, as a share of the text's, at the least.
        longest: The same at the most.
        misspells: Whether words, even names, may be misspelt on purpose.
        renumbers: Whether a number may be written in another way, such as 5 for five.
    """

    negations: Literal["kept", "doubled"] = "kept"
    reorders: bool = False
    shortest: float = 0.6
    longest: float = 1.8
    misspells: bool = False
    renumbers: bool = False
