"""Claude through Anthropic's Messages API, over the same connections as everything else."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from time import perf_counter
from typing import Any

from pcs_annotator.asking.models import sessions
from pcs_annotator.asking.models.catalog import context_of
from pcs_annotator.asking.models.failures import CallSite, failure, rate_hint, read_complaint, unreachable, unreadable
from pcs_annotator.asking.models.hosts import base_url
from pcs_annotator.asking.models.provider import provider, read_key
from pcs_annotator.core.chat import THINKING_TOKENS, Finish, Reply, Request, Usage

KEY = "ANTHROPIC_API_KEY"
HOME = "https://api.anthropic.com"
VERSION = "2023-06-01"
MAX_TOKENS = 1024  # the API insists on a limit; this one is for requests that set none
FINISHES: dict[object, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "filter",
}
# Models up to 4.6 take sampling settings and think only when told to; later ones refuse the settings.
TAKES_SAMPLING = re.compile(r"claude-(?:instant|2|3|(?:opus|sonnet|haiku)-4(?:-[0-6])?(?:-\d{8}|-latest)?$)")


class AnthropicModel:
    """One of the Claude models.

    Attributes:
        name: `anthropic:model`.
        context_tokens: From the catalog; None when unknown.
        can_constrain: False: answers are asked for in words.
    """

    can_constrain = False

    def __init__(self, place: CallSite) -> None:
        self.name = place.name
        self.context_tokens = context_of(place.name)
        self._place = place
        self._url = f"{place.url}/v1/messages"
        self._headers = {
            "Content-Type": "application/json",
            "Accept-Encoding": "identity",
            "anthropic-version": VERSION,
            "x-api-key": place.secret,
        }
        self._takes_sampling = TAKES_SAMPLING.match(place.model) is not None
        self.thinking_tokens = 0 if self._takes_sampling else THINKING_TOKENS
        self._shared: sessions.Shared | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    async def ask(self, request: Request) -> Reply:
        """Return the answer to one request, sent once."""
        body = sessions.encode(self._payload(request))
        shared = self._shared
        if shared is None or shared.loop is not asyncio.get_running_loop() or shared.session.closed:
            shared = self._shared = sessions.lease(self._url, self)
        started = perf_counter()
        try:
            async with shared.session.post(
                self._url, data=body, headers=self._headers, allow_redirects=False
            ) as response:
                raw = await response.read()
        except sessions.transport_errors() as error:
            raise unreachable(self._place, error) from None
        latency = perf_counter() - started
        if response.status != 200:
            raise failure(self._place, response.status, read_complaint(raw), response.headers)
        return self._reply(raw, latency, response.headers)

    async def close(self) -> None:
        """Let go of the connections; asking again opens new ones."""
        self._shared = None
        await sessions.release(self)

    def _payload(self, request: Request) -> dict[str, Any]:
        sampling = request.sampling
        limit = sampling.max_tokens or MAX_TOKENS
        payload: dict[str, Any] = {
            "model": self._place.model,
            "max_tokens": limit + self.thinking_tokens,
            "messages": [{"role": m.role, "content": m.content} for m in request.messages if m.role != "system"],
        }
        system = "\n\n".join(message.content for message in request.messages if message.role == "system")
        if system:
            payload["system"] = system
        if self._takes_sampling and sampling.temperature is not None:
            payload["temperature"] = min(sampling.temperature, 1.0)
        elif self._takes_sampling and sampling.top_p is not None:  # the API takes one of the two, not both
            payload["top_p"] = sampling.top_p
        return payload

    def _reply(self, raw: bytes, latency: float, headers: Mapping[str, str]) -> Reply:
        try:
            data = json.loads(raw)
            usage = data.get("usage") or {}
            return Reply(
                text="".join(block["text"] for block in data["content"] if block.get("type") == "text"),
                finish=FINISHES.get(data.get("stop_reason"), "other"),
                usage=Usage(input_tokens=_input_tokens(usage), output_tokens=usage.get("output_tokens")),
                latency=latency,
                rate_hint=rate_hint(headers),
            )
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            raise unreadable(self._place, raw) from None


def _input_tokens(usage: Mapping[str, int]) -> int | None:
    if "input_tokens" not in usage:
        return None
    # Anthropic counts what went through its prompt cache apart.
    cached = (usage.get("cache_creation_input_tokens") or 0) + (usage.get("cache_read_input_tokens") or 0)
    return usage["input_tokens"] + cached


@provider("anthropic")
class AnthropicProvider:
    """Opens Claude models."""

    def open(self, model: str, environment: Mapping[str, str]) -> AnthropicModel:
        """Return the model; a missing `ANTHROPIC_API_KEY` is a `ConfigError`."""
        url = base_url("anthropic", environment, HOME).removesuffix("/v1")
        key = read_key(environment, (KEY,), "anthropic")
        place = CallSite(name=f"anthropic:{model}", model=model, url=url, key_variable=KEY, secret=key)
        return AnthropicModel(place)
