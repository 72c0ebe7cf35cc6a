"""Claude through Anthropic's Messages API."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from pcs_annotator.core.chat import THINKING_TOKENS, Finish, Reply, Request, Usage
from pcs_annotator.models.batch_apis import MessageBatches
from pcs_annotator.models.failures import CallSite, failure, rate_hint, read_complaint, unreadable
from pcs_annotator.models.http import UNREADABLE, HttpModel, HttpReply
from pcs_annotator.models.openai import Host, as_dicts, call_site, finish_of, usage_of
from pcs_annotator.models.provider import opens

HOST = Host("anthropic", "https://api.anthropic.com")
VERSION = "2023-06-01"
MAX_TOKENS = 1024  # the API requires a limit; this one is for requests that set none
FINISHES: dict[object, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "filter",
}
# Models up to 4.6 accept a temperature and think only on request; later ones refuse it.
TAKES_TEMPERATURE = re.compile(r"claude-(?:instant|2|3|(?:opus|sonnet|haiku)-4(?:-[0-6])?(?:-\d{8}|-latest)?$)")


class AnthropicModel(HttpModel):
    """One of the Claude models."""

    can_constrain = False  # the prompt asks for the form of the answer
    can_grade = False  # the API has no log-probabilities

    def __init__(self, site: CallSite) -> None:
        super().__init__(site, f"{site.url}/v1/messages", {"anthropic-version": VERSION, "x-api-key": site.secret})
        self._takes_temperature = TAKES_TEMPERATURE.match(site.model) is not None
        self.thinking_tokens = 0 if self._takes_temperature else THINKING_TOKENS

    async def ask(self, request: Request) -> Reply:
        """Return the answer to one request, sent once."""
        return await self.post(self.payload(request), partial(self.parse_answer, request))

    @property
    def batches(self) -> MessageBatches:
        """Message batches."""
        return MessageBatches(self)

    def payload(self, request: Request) -> dict[str, Any]:
        """Return the body of a request."""
        payload: dict[str, Any] = {
            "model": self.site.model,
            "max_tokens": (request.max_tokens or MAX_TOKENS) + self.thinking_tokens,
            "messages": as_dicts([message for message in request.messages if message.role != "system"]),
        }
        system = "\n\n".join(message.content for message in request.messages if message.role == "system")
        if system:
            payload["system"] = system
        if self._takes_temperature:
            payload["temperature"] = 0.0
        return payload

    def parse_answer(self, request: Request, answer: HttpReply) -> Reply:
        """Return the reply in an answer; raises if there is none."""
        if answer.status != 200:
            raise failure(self.site, answer.status, read_complaint(answer.body), answer.headers)
        try:
            data = json.loads(answer.body)
            self.check_model(data.get("model"))
            return Reply(
                text="".join(block["text"] for block in data["content"] if block.get("type") == "text"),
                finish=finish_of(data.get("stop_reason"), FINISHES),
                usage=_usage(data.get("usage")),
                latency=answer.latency,
                rate_hint=rate_hint(answer.headers),
            )
        except UNREADABLE:
            raise unreadable(self.site, answer.body) from None


def _usage(reported: object) -> Usage:
    usage = usage_of(reported, "input_tokens", "output_tokens")
    # Anthropic counts tokens that went through its prompt cache separately.
    cached = usage_of(reported, "cache_creation_input_tokens", "cache_read_input_tokens")
    if usage.input_tokens is None:
        return usage
    return replace(usage, input_tokens=usage.input_tokens + (cached.input_tokens or 0) + (cached.output_tokens or 0))


@opens("anthropic")
def open_anthropic(model: str, environment: Mapping[str, str]) -> AnthropicModel:
    """Return a Claude model; a missing `ANTHROPIC_API_KEY` raises `ConfigError`."""
    site = call_site(HOST, model, environment)
    return AnthropicModel(replace(site, url=site.url.removesuffix("/v1")))
