"""The OpenAI chat protocol over aiohttp: one request and one answer, with as little in between as possible."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from pcs_annotator.asking.models import sessions
from pcs_annotator.asking.models.catalog import context_of
from pcs_annotator.asking.models.failures import (
    CallSite,
    Complaint,
    failure,
    rate_hint,
    read_complaint,
    unreachable,
    unreadable,
)
from pcs_annotator.asking.models.hosts import CUSTOM, HOSTS, Host, base_url, chat_url, check_url
from pcs_annotator.asking.models.provider import provider, read_key
from pcs_annotator.core.chat import THINKING_TOKENS, Finish, RateHint, Reply, Request, Usage
from pcs_annotator.errors import ConfigError, ModelError, PcsWarning, ServerTrouble

if TYPE_CHECKING:
    from aiohttp import ClientSession

FINISHES: dict[object, Finish] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    None: "stop",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "filter",
}
ANSWER = "answer"
ADJUSTABLE = frozenset({"temperature", "top_p", "seed", "random_seed", "logprobs", "top_logprobs", "max_tokens"})


class WireModel:
    """A model behind a server that speaks the OpenAI chat protocol.

    Attributes:
        name: `provider:model`, or `http://host/v1#model` for a server given by its URL.
        context_tokens: From the catalog; None when unknown.
        can_constrain: Whether the server holds this model's answers to a constraint.
    """

    def __init__(self, host: Host, place: CallSite, url: str) -> None:
        self.name = place.name
        self.context_tokens = context_of(place.name)
        self._host = host
        self._place = place
        self._url = url
        self._structure = host.structure_for(place.model)
        self.can_constrain = self._structure != "none"
        self._reasons = host.reasons(place.model)
        self.thinking_tokens = THINKING_TOKENS if self._reasons else 0
        self._left_out: set[str] = {"temperature", "top_p"} if self._reasons else set()
        self._limit_field = "max_completion_tokens" if self._reasons else "max_tokens"
        self._headers = _headers(host, place.secret)
        self._shared: sessions.Shared | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    async def ask(self, request: Request) -> Reply:
        """Return the answer to one request, sent once."""
        payload = self._payload(request)
        body = sessions.encode(payload)
        session = self._session()
        started = perf_counter()
        try:
            async with session.post(self._url, data=body, headers=self._headers, allow_redirects=False) as response:
                raw = await response.read()
        except sessions.transport_errors() as error:
            raise unreachable(self._place, error) from None
        latency = perf_counter() - started
        if response.status != 200:
            raise self._failure(response.status, read_complaint(raw), response.headers, payload)
        return self._reply(raw, latency, rate_hint(response.headers), request)

    async def close(self) -> None:
        """Let go of the connections, which close with the last model that uses them; asking again opens new ones."""
        self._shared = None
        await sessions.release(self)

    def _session(self) -> ClientSession:
        shared = self._shared
        if shared is None or shared.loop is not asyncio.get_running_loop() or shared.session.closed:
            shared = self._shared = sessions.lease(self._url, self)
        return shared.session

    def _payload(self, request: Request) -> dict[str, Any]:
        payload: dict[str, Any] = {
            "model": self._place.model,
            "messages": [{"role": message.role, "content": message.content} for message in request.messages],
        }
        sampling = request.sampling
        if sampling.temperature is not None:
            payload["temperature"] = sampling.temperature
        if sampling.top_p is not None:
            payload["top_p"] = sampling.top_p
        if sampling.max_tokens is not None:
            payload[self._limit_field] = sampling.max_tokens + self.thinking_tokens
        if sampling.seed is not None and self._host.seed_field:
            payload[self._host.seed_field] = sampling.seed
        if request.logprobs and self._host.top_logprobs and not self._reasons:
            payload["logprobs"] = True
            payload["top_logprobs"] = self._host.top_logprobs
        if request.constraint is not None and self.can_constrain:
            self._constrain(payload, request)
        for name in self._left_out:
            payload.pop(name, None)
        return payload

    def _constrain(self, payload: dict[str, Any], request: Request) -> None:
        constraint = request.constraint
        assert constraint is not None
        if constraint.choices and self._structure == "choice":
            choices = list(constraint.choices)
            payload["structured_outputs"] = {"choice": choices}
            payload["guided_choice"] = choices  # what vLLM before 0.11 knows; later versions ignore it
        elif constraint.choices:
            payload["response_format"] = _response_format(_choice_schema(constraint.choices))
        elif constraint.json_schema is not None:
            payload["response_format"] = _response_format(constraint.json_schema)

    def _reply(self, raw: bytes, latency: float, hint: RateHint | None, request: Request) -> Reply:
        try:
            data = json.loads(raw)
            choice = data["choices"][0]
            message = choice["message"]
            content = message.get("content")
            usage = data.get("usage") or {}
            text = content if isinstance(content, str) else join_parts(content) or message.get("refusal") or ""
            return Reply(
                text=self._unwrap(text, request) if request.constraint is not None else text,
                finish=FINISHES.get(choice.get("finish_reason"), "other"),
                usage=Usage(input_tokens=usage.get("prompt_tokens"), output_tokens=usage.get("completion_tokens")),
                latency=latency,
                logprobs=first_logprobs(choice) if request.logprobs else None,
                rate_hint=hint,
            )
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            raise self._misread(raw) from None

    def _unwrap(self, text: str, request: Request) -> str:
        """Return the bare choice where it had to travel as JSON."""
        if self._structure != "json_schema" or request.constraint is None or not request.constraint.choices:
            return text
        try:
            return str(json.loads(text)[ANSWER])
        except (ValueError, LookupError, TypeError):
            return text

    def _misread(self, raw: bytes) -> ModelError:
        """Return the error for a 200 that is none: some servers wrap an error into it."""
        complaint = read_complaint(raw)
        if complaint.code and b'"error"' in raw[:4096]:
            status = complaint.code.split()[0]
            return failure(self._place, int(status) if status.isdecimal() else 502, complaint, {})
        return unreadable(self._place, raw)

    def _failure(
        self, status: int, complaint: Complaint, headers: Mapping[str, str], payload: dict[str, Any]
    ) -> ModelError:
        wrong = complaint.parameter
        if status == 400 and "unsupported" in complaint.code and wrong in ADJUSTABLE and wrong in payload:
            return self._adjust(wrong)
        return failure(self._place, status, complaint, headers)

    def _adjust(self, wrong: str) -> ServerTrouble:
        """Return a retryable error after leaving out a setting that this model does not take."""
        done = "max_completion_tokens takes its place" if wrong == "max_tokens" else "it is left out from now on"
        message = f"{self.name} does not take {wrong}; {done}"
        if wrong == "max_tokens":
            self._limit_field = "max_completion_tokens"
        elif wrong not in self._left_out:
            self._left_out |= {"logprobs", "top_logprobs"} if "logprobs" in wrong else {wrong}
            warnings.warn(message, PcsWarning, stacklevel=2)
        return ServerTrouble(message)


def join_parts(content: object) -> str:
    """Return the text of a message given as a list of parts, leaving out thoughts and pictures."""
    if not isinstance(content, list):
        return ""
    parts = [part if isinstance(part, str) else part.get("text") for part in content if isinstance(part, str | dict)]
    return "".join(part for part in parts if isinstance(part, str))


def first_logprobs(choice: Mapping[str, Any]) -> dict[str, float] | None:
    """Return token → log-probability of the first answer token, if the server gave any."""
    tokens = (choice.get("logprobs") or {}).get("content") or []
    if not tokens:
        return None
    return {entry["token"]: float(entry["logprob"]) for entry in tokens[0].get("top_logprobs") or [tokens[0]]}


class WireProvider:
    """Opens the models of one host."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def open(self, model: str, environment: Mapping[str, str]) -> WireModel:
        """Return the model; a missing key or address is a `ConfigError`."""
        host = self.host
        base = base_url(host.name, environment, host.base_url, host.url_variables)
        key = read_key(environment, host.key_variables, host.name, required=host.needs_key)
        place = CallSite(
            name=f"{host.name}:{model}", model=model, url=base, key_variable=host.key_variables[0], secret=key
        )
        return WireModel(host, place, chat_url(host, base, model, environment))


def open_url(spec: str, environment: Mapping[str, str]) -> WireModel:
    """Return the model behind `http://host:port/v1#model`; `PCS_API_KEY` is sent along where it is set."""
    address, _, model = spec.partition("#")
    base = check_url(address, "model URL")
    if not model:
        raise ConfigError(f"{spec!r} names no model: append it, as in {base}#my-model")
    key = read_key(environment, CUSTOM.key_variables, base, required=False)
    place = CallSite(name=f"{base}#{model}", model=model, url=base, key_variable=CUSTOM.key_variables[0], secret=key)
    return WireModel(CUSTOM, place, f"{base}/chat/completions")


def _headers(host: Host, key: str) -> dict[str, str]:
    # Answers are short: compressing them costs more time than it saves.
    headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
    if key:
        headers |= {"api-key": key} if host.auth == "api-key" else {"Authorization": f"Bearer {key}"}
    return headers


def _choice_schema(choices: Sequence[str]) -> dict[str, object]:
    """Return a schema for one of the choices; an object, since servers take no bare text as the root."""
    return {
        "type": "object",
        "properties": {ANSWER: {"type": "string", "enum": list(choices)}},
        "required": [ANSWER],
        "additionalProperties": False,
    }


def _response_format(schema: Mapping[str, object]) -> dict[str, object]:
    return {"type": "json_schema", "json_schema": {"name": ANSWER, "strict": True, "schema": dict(schema)}}


for _host in HOSTS:
    provider(_host.name)(partial(WireProvider, _host))
