"""The OpenAI chat protocol over aiohttp, with as little overhead per call as possible, and how each host differs."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Literal
from urllib.parse import quote, urlsplit

import orjson

from pcs_annotator.base.errors import ConfigError, ModelError, ServerTrouble, warn_user
from pcs_annotator.core.chat import LONGEST_ANSWER, THINKING_TOKENS, Constraint, Finish, Message, Reply, Request, Usage
from pcs_annotator.models.batch_apis import FILE_BATCHES, BatchApi
from pcs_annotator.models.failures import CallSite, Complaint, failure, rate_hint, read_complaint, unreadable
from pcs_annotator.models.http import ERROR_BYTES, UNREADABLE, HttpModel, HttpReply
from pcs_annotator.models.logprobs import read_logprobs
from pcs_annotator.models.provider import check_same_source, opens, read_key, refuse_key
from pcs_annotator.models.reasoning import ask_with_room, has_thought, notice_thinking, usual_room

Structure = Literal["json_schema", "choice", "none"]
AZURE_VERSION = "2024-10-21"
# Reasoning models: no temperature, and `max_completion_tokens` instead of `max_tokens`.
OPENAI_REASONING = r"(?:ft:)?(?:o\d|gpt-(?:[5-9]|\d\d)(?!.*chat))"
OPENAI_SCHEMA = r"(?:ft:)?(?:o[1-9](?!-mini-2024|-preview)|gpt-4o(?!-2024-05)|gpt-4\.1|gpt-(?:[5-9]|\d\d))"


@dataclass(frozen=True, slots=True)
class Host:
    """A server, or a provider's servers."""

    name: str  # the provider's name
    base_url: str = ""  # its address; `<NAME>_BASE_URL` overrides it
    keys: tuple[str, ...] = ()  # environment variables of the key, the usual one first; empty for `<NAME>_API_KEY`
    _: KW_ONLY
    needs_key: bool = True  # whether a key is required
    auth: Literal["Authorization", "api-key"] = "Authorization"  # the header that the key is sent in
    structure: Structure = "none"  # how answers can be constrained: by a JSON schema, a list of choices, or not at all
    structured_models: str = ""  # the models whose answers can be, as a pattern for the start of the name
    reasoning_models: str = "(?!)"  # the models that take the settings of OpenAI's reasoning models, as a pattern
    top_logprobs: int = 0  # most alternatives with log-probabilities; 0 if requesting them is an error
    # whether log-probabilities are those before an answer is constrained, among which a label may be far down: as many
    # as possible are then requested
    raw_logprobs: bool = False
    counts_logprobs: bool = False  # whether `logprobs` is that number, as in the older protocol, instead of `true`
    logprobs_vary: bool = False  # whether only an answer tells if a model gives log-probabilities

    @property
    def key_variables(self) -> tuple[str, ...]:
        """The environment variables that may hold the key."""
        return self.keys or (f"{self.name.upper()}_API_KEY",)


_OPENAI: Mapping[str, Any] = {
    "structure": "json_schema",
    "structured_models": OPENAI_SCHEMA,
    "reasoning_models": OPENAI_REASONING,
    "top_logprobs": 20,
}
_OWN_SERVER: Mapping[str, Any] = {"needs_key": False, "top_logprobs": 20, "raw_logprobs": True}
_HUGGING_FACE_KEYS = ("HF_TOKEN", "HUGGINGFACE_API_KEY", "HUGGINGFACEHUB_API_TOKEN")
_AZURE_KEYS = ("AZURE_OPENAI_API_KEY", "AZURE_API_KEY")
_GOOGLE = "https://generativelanguage.googleapis.com/v1beta/openai"
HOSTS = (
    Host("openai", "https://api.openai.com/v1", **_OPENAI),
    Host(
        "groq",
        "https://api.groq.com/openai/v1",
        structure="json_schema",
        structured_models=r"openai/gpt-oss|moonshotai/kimi-k2|meta-llama/llama-4",
    ),
    Host("huggingface", "https://router.huggingface.co/v1", _HUGGING_FACE_KEYS, top_logprobs=5, logprobs_vary=True),
    Host("mistral", "https://api.mistral.ai/v1", structure="json_schema"),
    Host("together", "https://api.together.xyz/v1", top_logprobs=20, counts_logprobs=True),
    Host("fireworks", "https://api.fireworks.ai/inference/v1", structure="json_schema", top_logprobs=5),
    Host("openrouter", "https://openrouter.ai/api/v1", top_logprobs=20, logprobs_vary=True),
    Host("deepseek", "https://api.deepseek.com/v1", top_logprobs=20),
    Host("gemini", _GOOGLE, ("GEMINI_API_KEY", "GOOGLE_API_KEY"), structure="json_schema"),
    Host("ollama", "http://localhost:11434/v1", structure="json_schema", logprobs_vary=True, **_OWN_SERVER),
    Host("vllm", "http://localhost:8000/v1", structure="choice", **_OWN_SERVER),
    Host("azure", "", _AZURE_KEYS, auth="api-key", **_OPENAI),
)
CUSTOM = Host("url", "", ("PCS_API_KEY",), needs_key=False, top_logprobs=20, logprobs_vary=True)
"""Any other server, given by its URL. Keys of providers are never sent to it."""


def call_site(host: Host, model: str, environment: Mapping[str, str], url: str = "") -> CallSite:
    """Return where calls to a model go, to a URL of the user's own if one is given; a missing key is an error."""
    base = url or _base_url(host, environment)
    return CallSite(
        name=f"{base}#{model}" if url else f"{host.name}:{model}",
        model=model,
        url=base,
        key_variable=host.key_variables[0],
        secret=read_key(environment, host.key_variables, url or host.name, required=host.needs_key),
        batch_model=environment.get(f"{host.name.upper()}_BATCH_DEPLOYMENT", "").strip(),
    )


def _base_url(host: Host, environment: Mapping[str, str]) -> str:
    variables = [f"{host.name.upper()}_BASE_URL", *(["AZURE_OPENAI_ENDPOINT"] if host.name == "azure" else [])]
    for variable in variables:
        check_same_source(environment, variable, host.key_variables)
        if url := environment.get(variable, "").strip():
            return check_url(url, variable, f"set {host.name.upper()}_API_KEY instead")
    if not host.base_url:
        raise ConfigError(f"{host.name} has no address: set {variables[-1]}")
    return host.base_url


def check_url(url: str, source: str, remedy: str = "set PCS_API_KEY instead") -> str:
    """Return the URL without a trailing slash, or raise a `ConfigError` that names where it came from."""
    refuse_key(url, source, remedy)
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:  # a port that is not a number
        raise ConfigError(f"{source}: not a URL: write it as http://host:port/v1") from None
    if not usable:
        raise ConfigError(f"{source}: {url!r} is not a URL: write it as http://host:port/v1")
    return url.rstrip("/").removesuffix("/chat/completions")


def chat_url(host: Host, base: str, model: str, environment: Mapping[str, str]) -> str:
    """Return the URL that requests are posted to."""
    if host.name != "azure":
        return f"{base}/chat/completions"
    version = environment.get("AZURE_OPENAI_API_VERSION") or environment.get("OPENAI_API_VERSION") or AZURE_VERSION
    folder = base if base.endswith("/openai") else f"{base}/openai"
    return f"{folder}/deployments/{quote(model, safe='')}/chat/completions?api-version={quote(version)}"


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
