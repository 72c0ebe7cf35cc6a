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
    """Return the tokens for thinking that a model gets from its first call on, given its name."""
    return THINKING_TOKENS if _KNOWN.search(model) else 0


async def ask_with_room(model: Thinker, ask: Callable[[], Awaitable[Reply]]) -> Reply:
    """Return a reply; if a model's thinking left no room for the answer, it is asked once more with room."""
    room = model.thinking_tokens
    reply = await ask()
    if room or not notice_thinking(model, reply) or reply.finish != "length":
        return reply
    again = await ask()
    tokens_in = _sum(reply.usage.input_tokens, again.usage.input_tokens)
    tokens_out = _sum(reply.usage.output_tokens, again.usage.output_tokens)
    usage = Usage(input_tokens=tokens_in, output_tokens=tokens_out)
    return replace(again, usage=usage, latency=reply.latency + again.latency)


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
    content = message.get("content")
    parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
    details = usage.get("completion_tokens_details") if isinstance(usage, Mapping) else None
    counted = details.get("reasoning_tokens") if isinstance(details, Mapping) else None
    return bool(counted) or any(map(message.get, _FIELDS)) or any(part.get("type") in _FIELDS for part in parts)


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second
