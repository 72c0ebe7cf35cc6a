"""Several rewrites of a text from one call."""

from __future__ import annotations

import asyncio
import json
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pcs_annotator.core.chat import Constraint, Message, Reply, Request, Sampling
from pcs_annotator.core.concurrency import gather_all
from pcs_annotator.core.variant import Expectation, Variant
from pcs_annotator.relations.base import AskRewriter, Context, Need, Relation
from pcs_annotator.relations.prompted import prompted, windows
from pcs_annotator.relations.prompted.cleaning import DOES_NOT_APPLY, Refused, clean_reply
from pcs_annotator.relations.prompted.prompted import PromptedRelation

Rewrites = Mapping[str, str | None]
"""The rewrites in a joint reply, by key of the member; None where the model says that it does not apply."""

_TRAILING_COMMA = re.compile(r",\s*([}\]])")
_BEGUN_KEY = re.compile(r",\s*\"([\w:-]{0,60})\"?\s*\Z")
_SEPARATORS = re.compile(r"[\W_]+")
_DECODER = json.JSONDecoder(strict=False)  # allows line breaks inside a text
_BROKEN = object()


def read_rewrites(reply: Reply, keys: Sequence[str]) -> Rewrites:
    """Return the rewrites in a joint reply that are complete, by key.

    >>> read_rewrites(Reply(text='{"voice": "It was seen.", "synonym": "He saw', finish="length"), ["voice", "synonym"])
    {'voice': 'It was seen.'}
    """
    if reply.finish == "filter":
        return {}
    text = reply.text.rpartition("</think>")[2]
    found = _whole_object(text)
    if found is None:
        found = _salvaged(text, keys, cut=reply.finish == "length")
    return _by_key(found, keys)


def _whole_object(text: str) -> dict[str, object] | None:
    start, end = text.find("{"), text.rfind("}")
    if not 0 <= start < end:
        return None
    body = text[start : end + 1]
    for attempt in (body, _TRAILING_COMMA.sub(r"\1", body)):
        try:
            value = json.loads(attempt, strict=False)
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, dict) else None
    return None


def _salvaged(text: str, keys: Sequence[str], *, cut: bool) -> dict[str, object]:
    """Return the entries of a broken JSON object that can be found by their keys."""
    names = "|".join(re.escape(key) for key in keys)
    marks = list(re.finditer(rf"[\"']({names})[\"']\s*:\s*", text, re.IGNORECASE))
    found: dict[str, object] = {}
    for number, mark in enumerate(marks, 1):
        is_last = number == len(marks)
        raw = text[mark.end() :] if is_last else text[mark.end() : marks[number].start()]
        value = _proper_value(_without_begun_key(raw, keys) if is_last else raw)
        # If the reply was cut off, only valid JSON shows that the last value is complete.
        if value is _BROKEN and not (cut and is_last):
            value = _loose_value(raw)
        if value is not _BROKEN:
            found.setdefault(mark[1], value)
    return found


def _without_begun_key(raw: str, keys: Sequence[str]) -> str:
    """Return a value without a next entry of which only part of the key was written."""
    found = _BEGUN_KEY.search(raw)
    return raw[: found.start()] if found is not None and any(key.startswith(found[1]) for key in keys) else raw


def _proper_value(raw: str) -> object:
    """Return a JSON value if only the object's end follows it."""
    try:
        value, end = _DECODER.raw_decode(raw)
    except (ValueError, RecursionError):
        return _BROKEN
    return _BROKEN if raw[end:].strip(" \t\r\n,}`") else value


def _loose_value(raw: str) -> object:
    """Return a text that contains quotation marks the model forgot to escape."""
    inner = raw.rstrip().rstrip("`").rstrip("}, \r\n\t")
    if len(inner) < 2 or inner[0] not in "\"'" or inner[-1] != inner[0] or inner[-2] == "\\":
        return _BROKEN
    return inner[1:-1].replace('\\"', '"').replace("\\n", "\n")


def _by_key(found: Mapping[str, object], keys: Sequence[str]) -> Rewrites:
    given = {plain_key(name): value for name, value in found.items()}
    if len(found) == 1 and not any(plain_key(key) in given for key in keys):
        inner = next(iter(found.values()))  # {"rewrites": {…}}
        if isinstance(inner, dict):
            given = {plain_key(str(name)): value for name, value in inner.items()}
    rewrites: dict[str, str | None] = {}
    for key in keys:
        value = _text_of(given.get(plain_key(key), _BROKEN))
        if value is None or isinstance(value, str):
            rewrites[key] = value
    return rewrites


def _text_of(value: object) -> object:
    """Return the text in a value: the first entry of a list or an object."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list) and value and isinstance(value[0], str):
        return value[0]
    return value


def plain_key(name: str) -> str:
    """Return a key in the form used for comparison: `Double_Negation` equals `double-negation`."""
    return _SEPARATORS.sub(" ", name.removeprefix("llm:")).strip().lower()


KEPT_TEXTS = 1000
_REMINDER = "Now write the JSON object, and nothing else."
_NAMES_AND_BRACES = 16


def join(members: Sequence[PromptedRelation]) -> list[Relation]:
    """Return one relation per member, in order; those that can share a call do so, one call per text.

    Members with several steps, or with windows of another length than the first member's, are asked alone, as is a
    member with no other to share a call with.
    """
    able = [member for member in members if not member.then]
    able = [member for member in able if member.longest_window == able[0].longest_window]
    if len(able) < 2 or len({member.name for member in able}) < len(able):
        return list(members)
    shared = SharedCalls(tuple(able))
    return [JointRelation(member, shared) if member in able else member for member in members]


@dataclass(frozen=True, slots=True)
class JointRelation:
    """A rewrite made in one call with others; where that call gives no usable rewrite, the member is asked alone.

    Attributes:
        member: The relation to use when asked alone.
        shared: The calls that it shares.
    """

    member: PromptedRelation
    shared: SharedCalls

    @property
    def name(self) -> str:
        """Name of the member."""
        return self.member.name

    @property
    def version(self) -> str:
        """Version of the member and of the joint prompt."""
        return f"{self.member.version}+joint{prompted.prompt_file('_joint').version}"

    @property
    def needs(self) -> frozenset[Need]:
        """A rewriter."""
        return self.member.needs

    @property
    def deterministic(self) -> bool:
        """False: a model writes."""
        return self.member.deterministic

    @property
    def expects(self) -> Expectation:
        """What the member's rewrites may do to a text."""
        return self.member.expects

    def calls(self, text: str) -> float:
        """Return its share of the calls."""
        return windows.count_windows(text, self.member.longest_window) / len(self.shared.members)

    async def rewrite(self, text: str, context: Context) -> Variant:
        """Return its part of the joint reply; second attempts and windows without a usable part are asked alone."""
        ask = prompted.rewriter_of(context, self.name)
        if context.hint or not windows.count_windows(text, self.member.longest_window):
            return await self.member.rewrite(text, context)
        answers = await self.shared.answers(text, self.name, ask)
        key = self.shared.key_of(self.member)

        async def window(number: int, piece: str) -> str | Refused:
            given = _given(answers[number], key, piece)
            return await self.member.rewrite_window(piece, ask) if given is None else given

        return await windows.rewrite_in_windows(self.name, text, self.member.longest_window, window)


def _given(answer: Rewrites, key: str, piece: str) -> str | Refused | None:
    """Return a member's part of a joint reply; None when it is unusable."""
    if key not in answer:
        return None
    value = answer[key]
    if value is None:
        return Refused(DOES_NOT_APPLY, fails=False)
    cleaned = clean_reply(value, piece)
    if isinstance(cleaned, str):
        cleaned = windows.unless_unchanged(cleaned, piece)
    # The prompt shows "…" as the value, and a weak model repeats it.
    usable = windows.has_words(cleaned) if isinstance(cleaned, str) else cleaned.reason == DOES_NOT_APPLY
    return cleaned if usable else None


@dataclass(slots=True)
class _SharedCall:
    """A call for all members, in progress or done."""

    task: asyncio.Task[tuple[Rewrites, ...]]
    loop: asyncio.AbstractEventLoop
    waiting: int = 0
    had: set[str] = field(default_factory=set)

    def serves(self, member: str) -> bool:
        """Return whether a member may use the result of this call."""
        if self.loop is not asyncio.get_running_loop():
            return False
        if not self.task.done():
            return True
        failed = self.task.cancelled() or self.task.exception() is not None
        return not failed or (not self.task.cancelled() and member not in self.had)


class SharedCalls:
    """The calls that members share: the first one that needs a text asks, the others wait for the same reply.

    A reply is dropped once every member has used it. If a member never does, the oldest replies are dropped first.

    Attributes:
        members: The relations whose rewrites are asked for.
    """

    def __init__(self, members: tuple[PromptedRelation, ...]) -> None:
        self.members = members
        short = [member.name.removeprefix("llm:") for member in members]
        unique = len(set(map(plain_key, short))) == len(short)
        self._keys = {member.name: key if unique else member.name for member, key in zip(members, short, strict=True)}
        self._calls: OrderedDict[str, _SharedCall] = OrderedDict()

    def key_of(self, member: PromptedRelation) -> str:
        """Return the key of a member in the JSON object."""
        return self._keys[member.name]

    async def answers(self, text: str, member: str, ask: AskRewriter) -> tuple[Rewrites, ...]:
        """Return the rewrites of each window of a text."""
        call = self._call(text, member, ask)
        call.waiting += 1
        try:
            # Cancelling one member must not cancel the call for the others.
            return await asyncio.shield(call.task)
        finally:
            call.waiting -= 1
            call.had.add(member)
            self._let_go(text, call)

    def _call(self, text: str, member: str, ask: AskRewriter) -> _SharedCall:
        known = self._calls.get(text)
        if known is not None and known.serves(member):
            return known
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._ask_all(text, ask))
        task.add_done_callback(_seen)
        call = self._calls[text] = _SharedCall(task, loop)
        self._calls.move_to_end(text)
        if len(self._calls) > KEPT_TEXTS:
            self._calls.popitem(last=False)
        return call

    def _let_go(self, text: str, call: _SharedCall) -> None:
        if call.waiting:
            return
        if not call.task.done():
            call.task.cancel()  # no member is waiting any more
        elif len(call.had) < len(self.members):
            return
        if self._calls.get(text) is call:
            del self._calls[text]

    async def _ask_all(self, text: str, ask: AskRewriter) -> tuple[Rewrites, ...]:
        pieces = windows.cut_windows(text, self.members[0].longest_window).texts
        return tuple(await gather_all(self._ask(piece, ask) for piece in pieces))

    async def _ask(self, piece: str, ask: AskRewriter) -> Rewrites:
        if not windows.has_words(piece):
            return {}
        return read_rewrites(await ask(self.request(piece)), tuple(self._keys.values()))

    def request(self, text: str) -> Request:
        """Return the request for all rewrites of a text."""
        keys = list(self._keys.values())
        shape = json.dumps(dict.fromkeys(keys, "…"), ensure_ascii=False)
        ways = "\n\n".join(
            f"# {self.key_of(member)}\n\n{member.prompt.replace(prompted.PLACE, 'the text')}" for member in self.members
        )
        language = prompted.foreign_name(text) if all(member.keeps_language for member in self.members) else ""
        system = f"{prompted.prompt_file('_joint').parts[0]}\n{shape}\n\nThe ways:\n\n{ways}"
        system += prompted.in_its_language(language)
        schema = {
            "type": "object",
            "properties": {key: {"type": ["string", "null"]} for key in keys},
            "required": keys,
            "additionalProperties": False,
        }
        room = prompted.room_for(text, [member.expects for member in self.members]) + _NAMES_AND_BRACES * len(keys)
        return Request(
            messages=(Message("system", system), Message("user", f"{prompted.fenced(text)}\n\n{_REMINDER}")),
            sampling=Sampling(temperature=0.0, max_tokens=room),
            constraint=Constraint(json_schema=schema),
        )


def _seen(task: asyncio.Task[tuple[Rewrites, ...]]) -> None:
    if not task.cancelled():
        task.exception()  # the members got it; otherwise asyncio would warn that it was never retrieved
