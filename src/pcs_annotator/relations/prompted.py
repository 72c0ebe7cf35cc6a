"""Rewrites made by a model, from a prompt; of long texts in pieces of whole sentences, so that none drops the end."""

import re
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from importlib.resources import files
from typing import ClassVar

from pcs_annotator.base.concurrency import gather_all
from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.chat import Message, Reply, Request, sendable
from pcs_annotator.core.variant import Expectation, Variant
from pcs_annotator.relations import rewrite_in_reply as cleaning
from pcs_annotator.relations.base import AskRewriter, Context, Need, relations
from pcs_annotator.relations.check_words import Rewrite, prose
from pcs_annotator.relations.checks import passes
from pcs_annotator.relations.language import NAMES, known_language
from pcs_annotator.relations.phrases import fenced
from pcs_annotator.relations.rewrite_in_reply import Refused

PLACE = "{text}"
_LONGEST_HINT = 300
# English needs a quarter of a token per byte; other languages need a little more.
_TOKENS_PER_BYTE = 0.3
_TOKENS_PER_RARE_BYTE, _BYTES_PER_RARE = 0.6, 1.5
_TOKENS_AT_LEAST = 64
_SHORTEST_EXAMPLE = 20
MOST_WORDS = 0.4  # what a rewrite that keeps most words has in common with its text at least


@dataclass(frozen=True, slots=True)
class PromptedRelation:
    """A rewrite by a model.

    Attributes:
        name: As it appears in tables.
        prompt: The instruction for the model; `{text}` in it is replaced by the text, which else follows it.
        version: Changes with the prompt.
        expects: What its rewrites may do to a text.
        keeps_language: Whether the prompt of a text that is known not to be English names the language to write in.
        keeps_words: Whether most words of a text stay, so that a reply with few of them is no rewrite.
    """

    name: str
    prompt: str
    version: str = "1"
    expects: Expectation = field(default_factory=Expectation)
    keeps_language: bool = False
    keeps_words: bool = False
    needs: ClassVar[frozenset[Need]] = frozenset({"rewriter"})
    deterministic: ClassVar[bool] = False

    def calls(self, text: str) -> float:
        """Return one call per window."""
        return float(count_windows(text))

    async def rewrite(self, text: str, context: Context) -> Variant:
        """Return what the model wrote, unless that is empty, unchanged, a refusal or cut off."""
        if context.ask is None:
            raise ConfigError(f"relation {self.name!r} needs a model that rewrites: name one as rewriter")
        rewrite = partial(self.rewrite_window, ask=context.ask, hint=context.hint)
        return await rewrite_in_windows(self.name, text, rewrite)

    async def rewrite_window(self, text: str, ask: AskRewriter, hint: str = "") -> str | Refused:
        """Return the rewrite of one window."""
        code = known_language(text) if self.keeps_language else ""
        messages = messages_for(self.prompt, text, hint, language="" if code == "en" else NAMES.get(code, ""))
        reply = await ask(Request(messages=messages, max_tokens=room_for(text, self.expects)))
        new = self._read(reply, text)
        same = isinstance(new, str) and new.split() == text.split()
        return Refused(cleaning.CHANGED_NOTHING, fails=False) if same else new

    def _read(self, reply: Reply, text: str) -> str | Refused:
        """Return the rewrite in a reply, or why there is none; of several, the first that passes the checks."""
        if reply.finish == "filter":
            return Refused(cleaning.NOTHING_WRITTEN)
        least = MOST_WORDS if self.keeps_words else cleaning.LEAST
        versions = cleaning.read_versions(reply.text, text, least=least)
        if reply.finish == "length" and reply.text.strip():
            return Refused(cleaning.CUT_OFF, text=versions.text if isinstance(versions, Refused) else versions[0])
        if isinstance(versions, Refused):
            return versions
        if text.strip() not in self.prompt:  # an example from the prompt is a rewrite of another text
            versions = [new for new in versions if new not in self.prompt or len(new) < _SHORTEST_EXAMPLE]
        if not versions:
            return Refused(cleaning.NO_REWRITE)
        return next((new for new in versions if passes(Rewrite(text, new, self.expects))), versions[0])


def messages_for(prompt: str, text: str, hint: str = "", language: str = "") -> tuple[Message, ...]:
    """Return the messages that ask for one rewrite; the same text always gives the same messages."""
    rules = prompt_file("_answer")[1]
    if language:
        rules += (
            f"\n\nThe text is in {language}. Write the new version in {language} and do not translate it: examples are "
            "in English only to show what is meant."
        )
    problem = " ".join(sendable(hint).split())[:_LONGEST_HINT].rstrip(".")  # of the first attempt
    why = f"An earlier attempt was not accepted: {problem}. Avoid that this time.\n\n" if problem else ""
    if PLACE in prompt:
        # Only `{text}` is filled in: other braces in a prompt or a text have no meaning.
        return (Message("user", f"{rules}\n\n{why}{prompt.replace(PLACE, fenced(text))}\n\n{cleaning.REMINDER}"),)
    return Message("system", f"{prompt}\n\n{rules}"), Message("user", f"{why}{fenced(text)}\n\n{cleaning.REMINDER}")


def room_for(text: str, expects: Expectation) -> int:
    """Return how many tokens the longest acceptable rewrite may need."""
    bytes_of_text = sendable(text).encode()
    # Two bytes per character and more: a script for which many models have few tokens.
    rare = len(bytes_of_text) > _BYTES_PER_RARE * len(text)
    size = len(bytes_of_text) * (_TOKENS_PER_RARE_BYTE if rare else _TOKENS_PER_BYTE)
    return _TOKENS_AT_LEAST + int(size * max(1.0, expects.longest))


@cache
def prompt_file(name: str) -> tuple[str, str]:
    """Return the version of a prompt of the package, which is its first line, and the prompt."""
    content = files(__package__).joinpath("prompts", f"{name}.md").read_text(encoding="utf-8")
    front, _, body = content.partition("\n")
    return front.removeprefix("version:").strip(), body.strip()


LONGEST_WINDOW = 1500

RewriteWindow = Callable[[str], Awaitable["str | Refused"]]  # returns the rewrite of a window, or why there is none

# The end of a sentence or of a line, with the whitespace that follows.
_STOP = re.compile(rf"{cleaning.SENTENCE.pattern}|(?<!\s)[^\S\n]*+\n\s*+")
_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """A text in pieces."""

    texts: tuple[str, ...]  # the pieces, without whitespace around them
    gaps: tuple[str, ...]  # whitespace before the first piece, between pieces, and after the last: one more than pieces

    def joined(self, texts: Sequence[str]) -> str:
        """Return other pieces joined with the same whitespace."""
        between = zip(texts, self.gaps[1:], strict=True)
        return "".join([self.gaps[0], *(part for piece in between for part in piece)])


# Relations that share a call cut the same text, and planning a run counts its windows.
@lru_cache(maxsize=64)
def cut_windows(text: str, longest: int = LONGEST_WINDOW) -> Windows:
    """Return a text as pieces of whole sentences, each of at most `longest` characters; longer sentences are cut."""
    start = len(text) - len(text.lstrip())
    end = len(text.rstrip())
    if start >= end:
        return Windows(texts=(), gaps=(text,))
    if end - start <= longest:
        return Windows(texts=(text[start:end],), gaps=(text[:start], text[end:]))
    texts: list[str] = []
    gaps = [text[:start]]
    stops = [*(stop.end() for stop in _STOP.finditer(text, start, end)), end]
    while start < end:
        piece = text[start : _furthest(text, stops, start, longest)].rstrip()
        done = start + len(piece)
        start = done
        while start < end and text[start].isspace():
            start += 1
        texts.append(piece)
        gaps.append(text[done : start if start < end else None])
    return Windows(texts=tuple(texts), gaps=tuple(gaps))


def count_windows(text: str) -> int:
    """Return how many pieces of a text need a model call."""
    return sum(map(has_words, cut_windows(text).texts))


def has_words(text: str) -> bool:
    """Return whether a text has more than links, user names, numbers and symbols."""
    return _LETTER.search(prose(text)) is not None


async def rewrite_in_windows(
    relation: str, text: str, rewrite: RewriteWindow, longest: int = LONGEST_WINDOW
) -> Variant:
    """Return a text rewritten window by window; one to which the relation does not apply stays as it is.

    If a window is refused or cut off, there is no rewrite at all: half a rewrite must not pass for a whole one.
    """
    windows = cut_windows(text, longest)
    answers = iter(await gather_all(rewrite(piece) for piece in windows.texts if has_words(piece)))
    outcomes = [next(answers) if has_words(piece) else _NO_WORDS for piece in windows.texts]
    failed = next((outcome for outcome in outcomes if isinstance(outcome, Refused) and outcome.fails), None)
    pieces = [piece if isinstance(new, Refused) else new for piece, new in zip(windows.texts, outcomes, strict=True)]
    if failed is None and any(isinstance(outcome, str) for outcome in outcomes):
        return Variant(relation=relation, status="changed", text=windows.joined(pieces), source=text)
    reasons = [outcome.reason for outcome in outcomes if isinstance(outcome, Refused)]
    reason = failed.reason if failed is not None else max(reasons, key=reasons.count, default="empty text")
    if failed is not None and reason in (cleaning.CUT_OFF, cleaning.NO_REWRITE):
        refused = failed.text if len(outcomes) == 1 else None
        return Variant(relation=relation, status="rejected", reason=reason, source=text, refused=refused)
    return Variant(relation=relation, status="not_applicable", reason=reason, source=text)


_NO_WORDS = Refused("no words to rewrite", fails=False)


def _furthest(text: str, stops: Sequence[int], start: int, longest: int) -> int:
    """Return where a piece that begins at `start` ends."""
    limit = start + longest
    if stops[-1] <= limit:
        return stops[-1]
    fitting = stops[bisect_right(stops, start) : bisect_right(stops, limit)]
    if not fitting:  # at a blank, or anywhere
        blank = text.rfind(" ", start + 1, limit + 1)
        return limit if blank < 0 else blank
    # a paragraph ends a piece that is at least half full by then
    paragraphs = (stop for stop in reversed(fitting) if "\n" in text[stop - 2 : stop])
    return next((stop for stop in paragraphs if stop - start >= longest / 2), fitting[-1])


_BUILT_IN = {
    "voice": Expectation(),
    "double-negation": Expectation(negations="doubled", longest=2.5),
    "synonym": Expectation(),
    "paraphrase": Expectation(shortest=0.5),
    "expansion": Expectation(shortest=0.9, longest=2.5),
    "register": Expectation(shortest=0.5, longest=2.0),
    "noise": Expectation(shortest=0.85, longest=1.15, misspells=True),
}
_FREE = ("paraphrase", "register")


@cache
def built_in(name: str) -> PromptedRelation:
    """Return a built-in relation; `voice` means `llm:voice`."""
    version, prompt = prompt_file(name)
    version = f"{version}.{prompt_file('_answer')[0]}"
    kept = {"keeps_language": True, "keeps_words": name not in _FREE}
    return PromptedRelation(f"llm:{name}", prompt, version, _BUILT_IN[name], **kept)


for _name in _BUILT_IN:
    relations.register(f"llm:{_name}")(partial(built_in, _name))
