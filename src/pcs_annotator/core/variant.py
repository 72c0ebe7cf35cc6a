"""An item seen through a relation."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import Literal, NamedTuple


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


Status = Literal["original", "changed", "not_applicable", "rejected"]

ORIGINAL = "original"
"""The relation that changes nothing."""

_PIECES = re.compile(r"\w+|\s+|[^\w\s]")


class Edit(NamedTuple):
    """One place where a rewrite differs from its source.

    Attributes:
        start: Where it begins in the source, in characters.
        before: What stood there; empty for an insertion.
        after: What stands there now; empty for a deletion.
    """

    start: int
    before: str
    after: str


class Verdict(NamedTuple):
    """What one check says about a rewrite.

    Attributes:
        check: Name of the check.
        passed: Whether the rewrite may stand, as far as this check can see.
        detail: What is wrong, in words that a rewriter can act on; empty when it passed.
    """

    check: str
    passed: bool
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A text as annotators see it, or the reason why there is none.

    Attributes:
        relation: Name of the relation.
        status: `original` for the identity; only `original` and `changed` are asked about.
        text: What to ask about; None unless the status is `original` or `changed`.
        reason: Why there is no text.
        source: The text that was rewritten.
        refused: The rewrite that was rejected, kept so that a person can see it; None otherwise.
        checks: What every check said of the rewrite.
    """

    relation: str
    status: Status
    text: str | None = None
    reason: str = ""
    source: str = ""
    refused: str | None = None
    checks: tuple[Verdict, ...] = ()

    @property
    def cause(self) -> str:
        """Why there is no text, without what differs from text to text, so that causes can be counted."""
        failed = [verdict.check for verdict in self.checks if not verdict.passed]
        return f"failed the check of {', '.join(failed)}" if failed else self.reason

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Where the rewrite, standing or refused, differs from its source, word by word."""
        rewritten = self.text if self.text is not None else self.refused
        return () if rewritten is None else edits_between(self.source, rewritten)


def edits_between(before: str, after: str) -> tuple[Edit, ...]:
    """Return the places where two texts differ, in whole words.

    >>> edits_between("The cat sat.", "The dog sat down.")
    (Edit(start=4, before='cat', after='dog'), Edit(start=11, before='', after=' down'))
    """
    old, new = _PIECES.findall(before), _PIECES.findall(after)
    starts = [0]
    for piece in old:
        starts.append(starts[-1] + len(piece))
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return tuple(
        Edit(starts[i1], "".join(old[i1:i2]), "".join(new[j1:j2]))
        for kind, i1, i2, j1, j2 in matcher.get_opcodes()
        if kind != "equal"
    )
