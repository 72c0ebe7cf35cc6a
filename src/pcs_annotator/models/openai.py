"""The OpenAI chat protocol over aiohttp, with as little overhead per call as possible."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import orjson

from pcs_annotator.base.errors import ConfigError, ModelError, ServerTrouble, warn_user
from pcs_annotator.core.chat import LONGEST_ANSWER, THINKING_TOKENS, Constraint, Finish, Message, Reply, Request, Usage
from pcs_annotator.models.batch_apis import FILE_BATCHES, BatchApi
from pcs_annotator.models.failures import CallSite, Complaint, failure, rate_hint, read_complaint, unreadable
from pcs_annotator.models.hosts import CUSTOM, HOSTS, Host, call_site, chat_url, check_url
from pcs_annotator.models.http import ERROR_BYTES, UNREADABLE, HttpModel, HttpReply
from pcs_annotator.models.logprobs import read_logprobs
from pcs_annotator.models.provider import opens
from pcs_annotator.models.reasoning import ask_with_room, has_thought, notice_thinking, usual_room

FINISHES: dict[object, Finish] = {
    **dict.fromkeys(("stop", "eos", "end_turn", None), "stop"),
    **dict.fromkeys(("length", "max_tokens"), "length"),
    "content_filter": "filter",
}
ANSWER = "answer"
ADJUSTABLE = frozenset({"temperature", "max_tokens"})
# Servers refuse log-probabilities in many words, with many statuses; nothing else that we send is named like this.
LOGPROBS = re.compile(r"log_?probs?\b|n_probs", re.I)
TOO_MANY = re.compile(r"maximum|at most|less than|greater than|between|exceed|range|<=|≤", re.I)
FEW_LOGPROBS = 5


class WireModel(HttpModel):
    """A model behind a server that speaks the OpenAI chat protocol."""

    def __init__(self, host: Host, site: CallSite, url: str) -> None:
        key = f"Bearer {site.secret}" if host.auth == "Authorization" else site.secret
        super().__init__(site, url, {host.auth: key} if site.secret else {})
        self._host = host
        self._structure = host.structure if re.match(host.structured_models, site.model) else "none"
        self.can_constrain = self._structure != "none"
        self._reasons = re.match(host.reasoning_models, site.model) is not None
        self._top_logprobs = 0 if self._reasons else host.top_logprobs
        # whether only an answer tells if log-probabilities come: another server may stand at the provider's address
        self.may_not_grade = host.logprobs_vary or site.url != host.base_url
        # added to the limit of every request; 0 until a reply shows thinking
        self.thinking_tokens = THINKING_TOKENS if self._reasons else usual_room(site.model)
        self._left_out: set[str] = {"temperature"} if self._reasons else set()
        self._limit_field = "max_completion_tokens" if self._reasons else "max_tokens"

    @property
    def can_grade(self) -> bool:
        """Return whether log-probabilities are requested; False once the server has refused them."""
        return self._top_logprobs > 0

    async def ask(self, request: Request) -> Reply:
        """Return the answer to one request, sent again without what was refused, or with room to think."""
        return await ask_with_room(self, partial(self._ask, request))

    async def _ask(self, request: Request) -> Reply:
        while True:
            payload = self.payload(request)
            reply = await self.post(payload, partial(self._read, request, payload))
            if reply is not None:
                return reply

    @property
    def batches(self) -> BatchApi | None:
        """The batch API of the host, if it has one."""
        endpoint = FILE_BATCHES.get(self._host.name)
        return None if endpoint is None else BatchApi(self, endpoint)

    def parse_answer(self, request: Request, answer: HttpReply) -> Reply:
        """Return the reply in an answer to a request that was sent in a batch; of the request, no text is needed."""
        sent: dict[str, Any] = dict.fromkeys(ADJUSTABLE)
        if request.logprobs:
            sent["logprobs"] = min(request.logprobs, self._host.top_logprobs)
        reply = self._read(request, sent, answer)
        if reply is None:
            raise ServerTrouble(f"{self.name} was asked for log-probabilities that it does not give")
        notice_thinking(self, reply)
        return reply

    def payload(self, request: Request) -> dict[str, Any]:
        """Return the body of a request."""
        payload: dict[str, Any] = {"model": self.site.model, "messages": as_dicts(request.messages), "temperature": 0.0}
        if request.max_tokens is not None:
            payload[self._limit_field] = request.max_tokens + self.thinking_tokens
        alternatives = min(request.logprobs, self._top_logprobs)
        if request.logprobs and request.constraint is not None and self._host.raw_logprobs:
            alternatives = self._top_logprobs
        if alternatives and self._host.counts_logprobs:
            payload["logprobs"] = alternatives
        elif alternatives:
            payload["logprobs"] = True
            payload["top_logprobs"] = alternatives
        if request.constraint is not None and self.can_constrain:
            payload |= self._form(request.constraint)
        for name in self._left_out:
            payload.pop(name, None)
        return payload

    def _form(self, constraint: Constraint) -> dict[str, Any]:
        """Return the fields of a body that restrict the answer."""
        if constraint.choices and self._structure == "choice":
            choices = list(constraint.choices)
            return {"structured_outputs": {"choice": choices}, "guided_choice": choices}  # the latter for vLLM < 0.11
        schema = constraint.json_schema
        if constraint.choices:  # in an object, because servers do not accept a bare string as the root
            answer = {"type": "string", "enum": list(constraint.choices)}
            fields = {"type": "object", "properties": {ANSWER: answer}}
            schema = {**fields, "required": [ANSWER], "additionalProperties": False}
        form = {"type": "json_schema", "json_schema": {"name": ANSWER, "strict": True, "schema": schema}}
        return {} if schema is None else {"response_format": form}

    def _read(self, request: Request, payload: Mapping[str, Any], answer: HttpReply) -> Reply | None:
        """Return the reply, or None if the request should be sent again without what the server refused."""
        if answer.status == 200:
            return self._reply(answer, request)
        complaint = read_complaint(answer.body)
        if not self._refuses_logprobs(answer.status, complaint, payload):
            raise self._failure(answer.status, complaint, answer.headers, payload)
        return None

    def _reply(self, answer: HttpReply, request: Request) -> Reply:
        try:
            data = _loads(answer.body)
            if self._host.name != "azure":  # a deployment has a name of its own
                self.check_model(data.get("model"))
            choice, usage = data["choices"][0], data.get("usage")
            message = choice["message"]
            text = _text_of(message)
            return Reply(
                text=self._unwrap(text, request),
                finish=finish_of(choice.get("finish_reason"), FINISHES),
                usage=usage_of(usage, "prompt_tokens", "completion_tokens"),
                latency=answer.latency,
                logprobs=read_logprobs(choice, text) if request.logprobs else None,
                rate_hint=rate_hint(answer.headers),
                thought=has_thought(message, usage),
            )
        except UNREADABLE:
            raise self._misread(answer.body) from None

    def _unwrap(self, text: str, request: Request) -> str:
        """Return the bare choice if it was sent as JSON."""
        if self._structure != "json_schema" or request.constraint is None or not request.constraint.choices:
            return text
        try:
            return text if len(text) > LONGEST_ANSWER else str(json.loads(text)[ANSWER])
        except (ValueError, LookupError, TypeError, RecursionError):
            return text

    def _misread(self, raw: bytes) -> ModelError:
        """Return the error for a 200 that is not an answer: some servers send errors with this status."""
        complaint = read_complaint(raw[:ERROR_BYTES])
        if complaint.code and b'"error"' in raw[:4096]:
            status = complaint.code.split()[0][:9]
            return failure(self.site, int(status) if status.isdecimal() else 502, complaint, {})
        return unreadable(self.site, raw)

    def _failure(
        self, status: int, complaint: Complaint, headers: Mapping[str, str], payload: Mapping[str, Any]
    ) -> ModelError:
        """Return the error of a server; a setting that it does not accept is no longer sent, and it is asked again."""
        wrong = complaint.parameter
        if status != 400 or "unsupported" not in complaint.code or wrong not in ADJUSTABLE or wrong not in payload:
            return failure(self.site, status, complaint, headers)
        done = "sending max_completion_tokens instead" if wrong == "max_tokens" else "it is no longer sent"
        message = f"{self.name} does not accept {wrong}; {done}"
        if wrong == "max_tokens":
            self._limit_field = "max_completion_tokens"
        elif wrong not in self._left_out:
            self._left_out.add(wrong)
            warn_user(message)
        return ServerTrouble(message)

    def _refuses_logprobs(self, status: int, complaint: Complaint, payload: Mapping[str, Any]) -> bool:
        """Return whether a server refuses log-probabilities; the next request asks for fewer, or for none."""
        words = f"{complaint.parameter} {complaint.words}"
        if "logprobs" not in payload or status in (401, 403, 404, 429) or not LOGPROBS.search(words):
            return False
        sent = payload.get("top_logprobs", payload["logprobs"])
        if sent > self._top_logprobs:  # another call has been told already
            return True
        if sent > FEW_LOGPROBS and TOO_MANY.search(complaint.message):
            self._top_logprobs = FEW_LOGPROBS
            return True
        self._top_logprobs = 0
        message = self.site.scrub(complaint.message)
        warn_user(f"{self.name} gives no log-probabilities, so its votes are hard. The server's message: {message}")
        return True


def _loads(raw: bytes) -> Any:
    # Log-probabilities make bodies ten times as long; this reads them four times as fast.
    try:
        return orjson.loads(raw)
    except ValueError:  # it takes no NaN and no lone surrogates, which some servers send
        return json.loads(raw)


def as_dicts(messages: Sequence[Message]) -> list[dict[str, str]]:
    """Return a conversation as the usual list of dicts."""
    return [{"role": message.role, "content": message.content} for message in messages]


def _text_of(message: Mapping[str, Any]) -> str:
    content, refusal = message.get("content"), message.get("refusal")
    text = content if isinstance(content, str) else join_parts(content)
    return refusal if not text and isinstance(refusal, str) else text


def usage_of(reported: object, sent: str, received: str) -> Usage:
    """Return the tokens in a reply's usage, whatever its shape."""
    if not isinstance(reported, Mapping):
        return Usage()
    return Usage(input_tokens=reported.get(sent), output_tokens=reported.get(received))


def finish_of(reason: object, finishes: Mapping[object, Finish]) -> Finish:
    """Return why an answer ended, whatever the server sends as its reason."""
    return finishes.get(reason, "other") if isinstance(reason, str | None) else "other"


def join_parts(content: object) -> str:
    """Return the text of a message given as a list of parts, without reasoning and images."""
    if not isinstance(content, list):
        return ""
    parts = [part if isinstance(part, str) else part.get("text") for part in content if isinstance(part, str | dict)]
    return "".join(part for part in parts if isinstance(part, str))


def open_at_host(host: Host, model: str, environment: Mapping[str, str]) -> WireModel:
    """Return a model of a host; a missing key or address raises `ConfigError`."""
    site = call_site(host, model, environment)
    return WireModel(host, site, chat_url(host, site.url, model, environment))


def open_url(spec: str, environment: Mapping[str, str]) -> WireModel:
    """Return the model at `http://host:port/v1#model`; `PCS_API_KEY` is sent if it is set."""
    address, _, model = spec.partition("#")
    base = check_url(address, "model URL")
    if not model:
        raise ConfigError(f"{spec!r} names no model: add it, as in {base}#my-model")
    return WireModel(CUSTOM, call_site(CUSTOM, model, environment, base), f"{base}/chat/completions")


for _host in HOSTS:
    opens(_host.name)(partial(open_at_host, _host))
