"""Gives models that think room for it: which ones do is learned from their replies, on every host."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from pcs_annotator.base.thinking import thinking_spans
from pcs_annotator.core.chat import THINKING_TOKENS, Reply, Request, Usage

# Only spares the first call that would be cut off, and calls in batches; replies decide about all other models.
_KNOWN = re.compile(r"deepseek-r|qwq|gpt-oss|magistral|thinking|qwen-?3(?!.*(?:instruct|coder))", re.I)
_FIELDS = ("reasoning_content", "reasoning", "thinking")


class Thinker(Protocol):
    """A model that may think; `thinking_tokens` is 0 until it does."""

    thinking_tokens: int


def usual_room(model: str) -> int:
    """Return the tokens for thinking that a model gets from its first call on, given its name.

    >>> usual_room("qwen3:8b"), usual_room("llama-3.1-8b-instant")
    (4096, 0)
    """
    return THINKING_TOKENS if _KNOWN.search(model) else 0


async def ask_with_room(model: Thinker, ask: Callable[[], Awaitable[Reply]]) -> Reply:
    """Return a reply; if a model's thinking left no room for the answer, it is asked once more with room."""
    room = model.thinking_tokens
    reply = await ask()
    if room or not notice_thinking(model, reply) or reply.finish != "length":
        return reply
    again = await ask()
    return replace(again, usage=_together(reply.usage, again.usage), latency=reply.latency + again.latency)


def notice_thinking(model: Thinker, reply: Reply) -> bool:
    """Return whether a model thinks, and give it room from now on if it does."""
    hidden = reply.finish == "length" and not reply.text.strip()
    thinks = reply.thought or hidden or bool(thinking_spans(reply.text))
    if thinks:
        model.thinking_tokens = max(model.thinking_tokens, THINKING_TOKENS)
    return thinks


def with_room(request: Request, tokens: int) -> Request:
    """Return a request with this much more room for the answer, unless it has no limit."""
    limit = request.max_tokens
    return request if limit is None or not tokens else replace(request, max_tokens=limit + tokens)


def has_thought(message: Mapping[str, Any], usage: object = None) -> bool:
    """Return whether a message or its usage tells of thinking, in any of the ways that servers do."""
    if any(map(message.get, _FIELDS)):
        return True
    content = message.get("content")
    if isinstance(content, list) and any(isinstance(one, Mapping) and one.get("type") in _FIELDS for one in content):
        return True
    details = usage.get("completion_tokens_details") if isinstance(usage, Mapping) else None
    return bool(isinstance(details, Mapping) and details.get("reasoning_tokens"))


def _together(first: Usage, second: Usage) -> Usage:
    """Return the tokens of two calls; None stays None, because an unknown sum is unknown."""
    pairs = zip((first.input_tokens, first.output_tokens), (second.input_tokens, second.output_tokens), strict=True)
    sums = [None if a is None or b is None else a + b for a, b in pairs]
    return Usage(input_tokens=sums[0], output_tokens=sums[1])
