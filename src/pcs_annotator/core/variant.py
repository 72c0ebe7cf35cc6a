"""What a relation turns an item into: a `Variant` with its `Edit`s.

An `Expectation` says what a rewrite may do; a `CheckResult` is the result of one check on it.
"""

import difflib
import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

Status = Literal["original", "changed", "not_applicable", "rejected"]

ORIGINAL = "original"  # the relation that changes nothing

# A Chinese or Japanese character is a word, and marks above or below letters belong to them.
_SINGLE = "\u3040-\u30ff\u3400-\u9fff"
_MARKS = (
    "\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u0670\u0900-\u0963\u0980-\u0dff\u0e00-\u0eff\u1000-\u109f\u1780-\u17d3"
)
_PIECES = re.compile(rf"[{_SINGLE}]|(?:(?![{_SINGLE}])[\w{_MARKS}])+|\s+|[^\w\s]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What a rewrite may do to a text; the checks enforce it.

    Attributes:
        negations: `kept`: the rewrite negates the same statements as the text; `doubled`: it adds negations in pairs,
            which cancel out.
        shortest: Minimum length of the rewrite, as a multiple of the text's length in characters (8 fewer are allowed).
        longest: Maximum length of the rewrite, as a multiple of the text's length in characters (16 more are allowed).
        misspells: Whether words, including names, may be misspelt on purpose.
    """

    negations: Literal["kept", "doubled"] = "kept"
    shortest: float = 0.6
    longest: float = 1.8
    misspells: bool = False


class Edit(NamedTuple):
    """One place where a rewrite differs from its source."""

    start: int  # position in the source, in characters
    before: str  # the text of the source there; empty for an insertion
    after: str  # the text of the rewrite there; empty for a deletion


class CheckResult(NamedTuple):
    """The result of one check on a rewrite."""

    check: str  # name of the check
    passed: bool  # whether this check found nothing wrong
    detail: str = ""  # what is wrong, in words that a rewriter can act on; if it passed, why not all could be checked


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A text as annotators see it, or the reason why there is none.

    Attributes:
        relation: Name of the relation.
        status: `original` for the unchanged text; annotators see only `original` and `changed`.
        text: The text that annotators see; None unless the status is `original` or `changed`.
        reason: Why there is no text.
        source: The text that was rewritten.
        refused: The rejected rewrite, kept so that people can look at it; None otherwise.
        checks: The result of every check on the rewrite.
    """

    relation: str
    status: Status
    text: str | None = None
    reason: str = ""
    source: str = ""
    refused: str | None = None
    checks: tuple[CheckResult, ...] = ()

    @property
    def cause(self) -> str:
        """Why there is no text, without details of the text, so that causes can be counted."""
        failed = [verdict.check for verdict in self.checks if not verdict.passed]
        return f"failed the check of {', '.join(failed)}" if failed else self.reason

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Where the rewrite, accepted or rejected, differs from its source, word by word."""
        rewritten = self.text if self.text is not None else self.refused
        return () if rewritten is None else edits_between(self.source, rewritten)


class VariantCount(NamedTuple):
    """How often a relation had this result for this reason."""

    relation: str
    status: Status
    reason: str
    times: int


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
