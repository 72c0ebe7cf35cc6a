"""Relations made from a function, the user's or our own, on a text or on a parsed sentence."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, ClassVar, Generic, NamedTuple, TypeVar

from pcs_annotator.base.concurrency import off_loop
from pcs_annotator.base.errors import ConfigError, PcsError
from pcs_annotator.core.variant import Expectation, Variant
from pcs_annotator.relations.base import Context, Need, relations
from pcs_annotator.relations.language import why_not_english, why_not_prose
from pcs_annotator.relations.parse import LONGEST

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span


class NotApplicable(NamedTuple):
    """The rule does not apply to this text."""

    reason: str  # why, in the same words for every text of this kind, so that reasons can be counted


class Replacement(NamedTuple):
    """New words for a range of characters."""

    start: int
    end: int
    text: str


def splice(text: str, replacements: list[Replacement], offset: int = 0) -> str:
    """Return the text with every replacement made; positions count from `offset` and must not overlap.

    >>> splice("a cat sat", [Replacement(6, 9, "slept"), Replacement(2, 5, "dog")])
    'a dog slept'
    """
    pieces, done = [], 0
    for start, end, new in sorted(replacements):
        if start - offset < done:
            raise ValueError(f"replacement at {start} overlaps the one before it")
        pieces += [text[done : start - offset], new]
        done = end - offset
    return "".join([*pieces, text[done:]])


# What separates two sentences; kept when a text is split, so that every second piece is such a gap.
_GAP = re.compile(r"((?<=[.!?])\s+|(?<!\s)\s*\n\s*)")

TextFunction = Callable[[str], str | NotApplicable]
SentenceFunction = Callable[["Span"], str | NotApplicable]
F = TypeVar("F", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class ByFunction(Generic[F]):
    """Base of relations made from a function: no model is called, and the same text gives the same rewrite."""

    name: str  # as it appears in tables
    function: F  # rewrites a text or a sentence
    version: str = "1"  # changes whenever the rewrite of a text may change
    expects: Expectation = field(default_factory=Expectation)  # what its rewrites may do to a text
    needs: ClassVar[frozenset[Need]] = frozenset()
    deterministic: ClassVar[bool] = True

    def calls(self, text: str) -> float:
        """Return 0: no model is called."""
        return 0.0


@dataclass(frozen=True, slots=True)
class TextRule(ByFunction[TextFunction]):
    """A rule that works on the characters of a text."""

    english: bool = True  # whether it is for English only

    async def rewrite(self, text: str, context: Context) -> Variant:
        """Return the rewrite, or why there is none."""
        reason = why_not_english(text) if self.english else why_not_prose(text)
        result = NotApplicable(reason) if reason else await off_loop(len(text), partial(self.function, text))
        return as_variant(self.name, text, result)

    async def sentences(self, text: str, context: Context) -> list[Replacement] | NotApplicable:
        """Return a replacement for every sentence that the rule changes, or why there is none."""
        variant = await self.rewrite(text, context)
        return NotApplicable(variant.reason) if variant.text is None else in_pairs(text, variant.text)


@dataclass(frozen=True, slots=True)
class SentenceRule(ByFunction[SentenceFunction]):
    """A rule that works on one parsed sentence at a time and changes every sentence that it can."""

    vouches: bool = False  # whether its rewrites speak of truth: it does not apply where the task asks about that
    needs: ClassVar[frozenset[Need]] = frozenset({"parser"})

    async def rewrite(self, text: str, context: Context) -> Variant:
        """Return the rewrite, or why there is none."""
        found = await self.sentences(text, context)
        return as_variant(self.name, text, found if isinstance(found, NotApplicable) else splice(text, found))

    async def sentences(self, text: str, context: Context) -> list[Replacement] | NotApplicable:
        """Return a replacement for every sentence that the rule changes, or why there is none."""
        reason = "the task asks if texts are true" if self.vouches and context.about_truth else why_not_english(text)
        if reason or len(text) > LONGEST:
            return NotApplicable(reason or "too long to parse")
        return by_sentence(await context.parser.parse(text), self.function)


def text_rule(
    name: str, *, version: str = "1", expects: Expectation | None = None, english: bool = True
) -> Callable[[TextFunction], TextFunction]:
    """Return a decorator that registers a function of a text as a relation; by default for English only."""
    return partial(_register, lambda function: TextRule(name, function, version, expects or Expectation(), english))


def sentence_rule(
    name: str, *, version: str, expects: Expectation, vouches: bool = False
) -> Callable[[SentenceFunction], SentenceFunction]:
    """Return a decorator that registers a function of a parsed sentence as a relation."""
    return partial(_register, lambda function: SentenceRule(name, function, version, expects, vouches))


def _register(make: Callable[[F], TextRule | SentenceRule], function: F) -> F:
    rule = make(function)
    relations.register(rule.name)(lambda: rule)
    return function


def by_sentence(doc: Doc, function: SentenceFunction) -> list[Replacement] | NotApplicable:
    """Return a replacement for every sentence that can be rewritten, or the most common reason if there is none."""
    found: list[Replacement] = []
    reasons: Counter[str] = Counter()
    for sentence in map(_without_blanks, doc.sents):
        reason = _why_no_sentence(sentence.text)
        result = NotApplicable(reason) if reason else function(sentence)
        if not isinstance(result, NotApplicable) and result.split() == sentence.text.split():
            result = NotApplicable("the rewrite changed nothing")
        if isinstance(result, NotApplicable):
            reasons[result.reason] += 1
        else:
            found.append(Replacement(sentence.start_char, sentence.end_char, result))
    return found or NotApplicable(reasons.most_common(1)[0][0] if reasons else "no sentence")


def in_pairs(text: str, rewrite: str) -> list[Replacement]:
    """Return a replacement for every changed sentence; one for all of the text if sentences were split or joined.

    >>> in_pairs("It is late. I know.", "It's late. I know.")
    [Replacement(start=0, end=11, text="It's late.")]
    """
    old, new = _GAP.split(text), _GAP.split(rewrite)
    if old[1::2] != new[1::2]:
        return [Replacement(0, len(text), rewrite)]
    places = zip(old, new, accumulate(map(len, old)), strict=True)
    return [Replacement(end - len(one), end, other) for one, other, end in places if one != other]


def _why_no_sentence(text: str) -> str:
    """Return why a sentence is none that a parse can be trusted with; empty when it may be one."""
    if not text:
        return "no sentence"
    return "all in capitals" if sum(map(str.isupper, text)) > sum(map(str.islower, text)) else ""


def _without_blanks(sentence: Span) -> Span:
    """Return a sentence without line breaks and double spaces at its ends, which spaCy treats as words."""
    first, last = 0, len(sentence)
    while first < last and sentence[first].is_space:
        first += 1
    while first < last and sentence[last - 1].is_space:
        last -= 1
    return sentence[first:last]


def as_variant(relation: str, text: str, result: str | NotApplicable) -> Variant:
    """Return the result of a rule as a variant; an unchanged text counts as not applicable."""
    if isinstance(result, str) and result.split() == text.split():
        result = NotApplicable("the rewrite changed nothing")
    if isinstance(result, NotApplicable):
        return Variant(relation=relation, status="not_applicable", reason=result.reason, source=text)
    return Variant(relation=relation, status="changed", text=result, source=text)


Rewritten = str | NotApplicable | None
Rewriting = Callable[[str], Rewritten | Awaitable[Rewritten]]
Own = TypeVar("Own", bound=Rewriting)


class FunctionRelation(ByFunction[Rewriting]):
    """A rewrite by a function `str -> str`, sync or async, which returns None when it does not apply."""

    __slots__ = ()

    async def rewrite(self, text: str, context: Context) -> Variant:
        """Return the function's rewrite."""
        result = await self._result(text) if text.strip() else NotApplicable("the text is empty")
        return as_variant(self.name, text, NotApplicable("the function gave nothing") if result is None else result)

    async def _result(self, text: str) -> Rewritten:
        try:
            result = self.function(text)
            if inspect.isawaitable(result):
                result = await result
        except PcsError:
            raise
        except Exception as error:
            raise ConfigError(
                f"relation {self.name!r}: its function raised {type(error).__name__}: {error}, on the text "
                f"{text[:60]!r}: return None where it does not apply"
            ) from error
        if result is None or isinstance(result, str | NotApplicable):
            return result
        raise ConfigError(
            f"relation {self.name!r}: its function returned {type(result).__name__}, not a string or None"
        )


_REGISTERED: dict[str, FunctionRelation] = {}


def relation(name: str, *, version: str = "1", expects: Expectation | None = None) -> Callable[[Own], Own]:
    """Return a decorator that registers a function `str -> str` as a relation.

    The same function may be defined again, as happens when a cell of a notebook is run twice.

    >>> @relation("shouted")
    ... def shouted(text: str) -> str:
    ...     return text.upper()
    """

    def decorate(function: Own) -> Own:
        earlier = _REGISTERED.get(name)
        if earlier is None or _place(earlier.function) != _place(function):
            relations.register(name)(partial(_REGISTERED.__getitem__, name))
        _REGISTERED[name] = FunctionRelation(name, function, version, expects or Expectation())
        return function

    return decorate


def relation_of(function: object) -> FunctionRelation | None:
    """Return the relation that a function was registered as; None if it was not."""
    return next((one for one in _REGISTERED.values() if one.function is function), None)


def _place(function: Rewriting) -> tuple[str | None, str]:
    return getattr(function, "__module__", None), getattr(function, "__qualname__", "")
