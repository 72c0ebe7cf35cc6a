"""What a check gets, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pcs_annotator.core.variant import Expectation

if TYPE_CHECKING:
    from spacy.tokens import Doc


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A text, what was made of it, and what was allowed.

    Attributes:
        source: The text that was rewritten.
        text: The rewrite.
        expects: What the relation may do to a text.
        source_doc: Parse of the source, where there is one.
        text_doc: Parse of the rewrite, where there is one.
    """

    source: str
    text: str
    expects: Expectation = field(default_factory=Expectation)
    source_doc: Doc | None = None
    text_doc: Doc | None = None


Check = Callable[[Rewrite], str]
"""Says what is wrong with a rewrite, in words that a rewriting model can act on; an empty text when nothing is."""


def quoted(words: Iterable[str], most: int = 4) -> str:
    """Return words in a row for a complaint; the first few, when there are many.

    >>> quoted(["a", "b"])
    '"a", "b"'
    """
    shown = [f'"{word}"' for word in words]
    return ", ".join(shown[:most]) + (" and others" if len(shown) > most else "")
