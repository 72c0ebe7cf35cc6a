"""Several rewrites of a text from one call."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from pcs_annotator.core.chat import Constraint, Message, Request, Sampling
from pcs_annotator.core.concurrency import gather_all
from pcs_annotator.core.variant import Expectation, Variant
from pcs_annotator.relations.base import AskRewriter, Context, Need, Relation
from pcs_annotator.relations.prompted.cleaning import DOES_NOT_APPLY, Refused, clean_reply
from pcs_annotator.relations.prompted.joint_reply import Rewrites, plain_key, read_rewrites
from pcs_annotator.relations.prompted.prompted import (
    PLACE,
    PromptedRelation,
    fenced,
    prompt_file,
    rewriter_of,
    room_for,
)
from pcs_annotator.relations.prompted.windows import (
    count_windows,
    cut_windows,
    has_words,
    rewrite_in_windows,
    unless_unchanged,
)

KEPT_TEXTS = 1000
_REMINDER = "Now write the JSON object, and nothing else."
_NAMES_AND_BRACES = 16


def join(members: Sequence[PromptedRelation]) -> list[Relation]:
    """Return one relation for each member, in their order; those that can be asked together share a call per text.

    A relation of several steps stays as it is, and so does one that finds no other to share with. Members with
    windows of another length than the first one's stay single too.
    """
    able = [member for member in members if not member.then]
    able = [member for member in able if member.longest_window == able[0].longest_window]
    if len(able) < 2 or len({member.name for member in able}) < len(able):
        return list(members)
    shared = SharedCalls(tuple(able))
    return [JointRelation(member, shared) if member in able else member for member in members]


@dataclass(frozen=True, slots=True)
class JointRelation:
    """A rewrite by a model in the same call as others; alone where that call brought nothing good for it.

    Attributes:
        member: The relation as it is when asked alone.
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
        return f"{self.member.version}+joint{prompt_file('_joint').version}"

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
        """What the member expects."""
        return self.member.expects

    def calls(self, text: str) -> float:
        """Return its share of the calls."""
        return count_windows(text, self.member.longest_window) / len(self.shared.members)

    async def rewrite(self, text: str, context: Context) -> Variant:
        """Return its part of the joint reply; at a second attempt, and for windows without a good one, ask alone."""
        ask = rewriter_of(context, self.name)
        if context.hint or not count_windows(text, self.member.longest_window):
            return await self.member.rewrite(text, context)
        answers = await self.shared.answers(text, self.name, ask)
        key = self.shared.key_of(self.member)

        async def window(number: int, piece: str) -> str | Refused:
            given = _given(answers[number], key, piece)
            return await self.member.rewrite_window(piece, ask) if given is None else given

        return await rewrite_in_windows(self.name, text, self.member.longest_window, window)


def _given(answer: Rewrites, key: str, piece: str) -> str | Refused | None:
    """Return what a joint reply says for a member; None when that is of no use."""
    if key not in answer:
        return None
    value = answer[key]
    if value is None:
        return Refused(DOES_NOT_APPLY, fails=False)
    cleaned = clean_reply(value, piece)
    if isinstance(cleaned, str):
        cleaned = unless_unchanged(cleaned, piece)
    # "…" is what the prompt shows as a value
    of_use = has_words(cleaned) if isinstance(cleaned, str) else cleaned.reason == DOES_NOT_APPLY
    return cleaned if of_use else None


@dataclass(slots=True)
class _SharedCall:
    """A call for all members that is under way or done."""

    task: asyncio.Task[tuple[Rewrites, ...]]
    loop: asyncio.AbstractEventLoop
    waiting: int = 0
    had: set[str] = field(default_factory=set)

    def serves(self, member: str) -> bool:
        """Return whether a member may take its result from here."""
        if self.loop is not asyncio.get_running_loop():
            return False
        if not self.task.done():
            return True
        failed = self.task.cancelled() or self.task.exception() is not None
        return not failed or (not self.task.cancelled() and member not in self.had)


class SharedCalls:
    """The calls that members share: the first to need a text asks, the others wait for the same reply.

    A reply is forgotten when every member has had it. Where a member never comes for its part, the oldest are
    forgotten first.

    Attributes:
        members: Whose rewrites are asked for.
    """

    def __init__(self, members: tuple[PromptedRelation, ...]) -> None:
        self.members = members
        short = [member.name.removeprefix("llm:") for member in members]
        unique = len(set(map(plain_key, short))) == len(short)
        self._keys = {member.name: key if unique else member.name for member, key in zip(members, short, strict=True)}
        self._calls: OrderedDict[str, _SharedCall] = OrderedDict()

    def __len__(self) -> int:
        return len(self._calls)

    def key_of(self, member: PromptedRelation) -> str:
        """Return the name of a member in the JSON object."""
        return self._keys[member.name]

    async def answers(self, text: str, member: str, ask: AskRewriter) -> tuple[Rewrites, ...]:
        """Return what the model says about each window of a text."""
        call = self._call(text, member, ask)
        call.waiting += 1
        try:
            # a member that is cancelled must not take the call away from the others
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
            call.task.cancel()  # everybody who waited has gone
        elif len(call.had) < len(self.members):
            return
        if self._calls.get(text) is call:
            del self._calls[text]

    async def _ask_all(self, text: str, ask: AskRewriter) -> tuple[Rewrites, ...]:
        pieces = cut_windows(text, self.members[0].longest_window).texts
        return tuple(await gather_all(self._ask(piece, ask) for piece in pieces))

    async def _ask(self, piece: str, ask: AskRewriter) -> Rewrites:
        if not has_words(piece):
            return {}
        return read_rewrites(await ask(self.request(piece)), tuple(self._keys.values()))

    def request(self, text: str) -> Request:
        """Return the question for all rewrites of a text."""
        keys = list(self._keys.values())
        shape = json.dumps(dict.fromkeys(keys, "…"), ensure_ascii=False)
        ways = "\n\n".join(
            f"# {self.key_of(member)}\n\n{member.prompt.replace(PLACE, 'the text')}" for member in self.members
        )
        system = f"{prompt_file('_joint').parts[0]}\n{shape}\n\nThe ways:\n\n{ways}"
        schema = {
            "type": "object",
            "properties": {key: {"type": ["string", "null"]} for key in keys},
            "required": keys,
            "additionalProperties": False,
        }
        room = room_for(text, [member.expects for member in self.members]) + _NAMES_AND_BRACES * len(keys)
        return Request(
            messages=(Message("system", system), Message("user", f"{fenced(text)}\n\n{_REMINDER}")),
            sampling=Sampling(temperature=0.0, max_tokens=room),
            constraint=Constraint(json_schema=schema),
        )


def _seen(task: asyncio.Task[tuple[Rewrites, ...]]) -> None:
    if not task.cancelled():
        task.exception()  # the members have it; asyncio would print it as forgotten
