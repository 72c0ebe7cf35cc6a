"""Any GGUF model in this process, with `xllamacpp`: no server, no key, no network."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

from pcs_annotator.base.errors import ConfigError, MissingPackage
from pcs_annotator.core.chat import ChatModel, Reply, Request, TokenPosition
from pcs_annotator.models.failures import CallSite, Complaint, failure
from pcs_annotator.models.logprobs import read_logprobs
from pcs_annotator.models.provider import provider
from pcs_annotator.models.thinking import ask_with_room, has_thought, usual_room, with_room
from pcs_annotator.models.wire import FINISHES, finish_of, replace_surrogates, usage_of

INSTALL = "pip install 'perceived-confidence[gguf]'"
MAGIC = b"GGUF"
ONLY_ERRORS = -1
MANY_LOGPROBS = 100


class LlamaModel:
    """A model file, loaded at the first question.

    Several questions are answered at once, one per slot; others wait. `xllamacpp` also opens a port on this machine; a
    random key protects it from other programs.

    Attributes:
        name: `llama:` and the file's name, without its folder.
        context_tokens: Tokens per slot.
        thinking_tokens: Room for thinking, added to the limit of every request; 0 until a reply shows thinking.
        can_constrain: True: choices become a grammar.
        can_grade: True.
        in_process: True.
    """

    can_constrain = True
    can_grade = True
    in_process = True

    def __init__(self, path: Path, *, slots: int = 4, context_tokens: int = 4096) -> None:
        self.name = f"llama:{path.name}"
        self.context_tokens = context_tokens
        self.slots = slots
        self.path = path
        self._place = CallSite(name=self.name, model=path.name, url=str(path))
        self.thinking_tokens = usual_room(path.name)
        self._server: Any = None
        self._threads: ThreadPoolExecutor | None = None
        self._loading = threading.Lock()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    async def ask(self, request: Request) -> Reply:
        """Return the answer to one request, asked once, or again with room to think."""
        return await ask_with_room(self, partial(self._ask, request))

    async def _ask(self, request: Request) -> Reply:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self.slots, thread_name_prefix="llama")
        payload = _payload(with_room(request, self.thinking_tokens))
        started = perf_counter()
        data = await asyncio.get_running_loop().run_in_executor(self._threads, self._complete, payload)
        error = data.get("error")
        if error is not None:
            complaint = Complaint(str(error.get("message")), str(error.get("type")))
            raise failure(self._place, int(error.get("code") or 500), complaint, {})
        return _reply(data, perf_counter() - started, request)

    async def close(self) -> None:
        """Unload the model; asking again loads it again."""
        threads, self._threads = self._threads, None
        if threads is not None:
            await asyncio.to_thread(threads.shutdown)
        # The destructor joins the server's threads, which would block the event loop.
        await asyncio.to_thread(self._unload)

    def _complete(self, payload: dict[str, Any]) -> dict[str, Any]:
        with self._loading:
            if self._server is None:
                self._server = self._load()
            server = self._server
        answer: dict[str, Any] = server.handle_chat_completions(payload)
        return answer

    def _unload(self) -> None:
        with self._loading:
            self._server = None

    def _load(self) -> Any:
        import xllamacpp  # type: ignore[import-untyped]  # it has no types

        params = xllamacpp.CommonParams()
        params.model.path = str(self.path)
        params.n_parallel = self.slots
        params.n_ctx = self.slots * self.context_tokens
        params.verbosity = ONLY_ERRORS
        params.warmup = False
        params.ui = False
        params.endpoint_slots = False
        params.api_keys = [secrets.token_hex(16)]
        try:
            return xllamacpp.Server(params)
        except RuntimeError as error:
            raise ConfigError(f"llama.cpp cannot load {self.path}: {error} Check that the file is complete.") from None


@provider("llama")
class LlamaProvider:
    """Opens `llama:/path/model.gguf`."""

    def open(self, model: str, environment: Mapping[str, str]) -> ChatModel:
        """Return the model; raises if the package or the file is missing. It is loaded at the first question."""
        if find_spec("xllamacpp") is None:
            raise MissingPackage(f"llama:{model} runs in this process and needs xllamacpp: {INSTALL}")
        return LlamaModel(check_file(Path(model).expanduser()))


def check_file(path: Path) -> Path:
    """Return the path after checking that it is a GGUF file."""
    try:
        with path.open("rb") as file:
            start = file.read(len(MAGIC))
    except OSError as error:
        raise ConfigError(
            f"the model file {path} cannot be read: {error.strerror}; give the path of a .gguf file"
        ) from None
    if start != MAGIC:
        raise ConfigError(f"{path} is not a GGUF file: convert the model, or download it as .gguf")
    return path


def choices_grammar(choices: Sequence[str]) -> str:
    r"""Return a GBNF grammar for exactly one of the choices.

    >>> choices_grammar(["Fake", 'a "real" one'])
    'root ::= "Fake" | "a \\"real\\" one"'
    """
    escaped = (
        choice.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n").replace("\r", r"\r") for choice in choices
    )
    return "root ::= " + " | ".join(f'"{choice}"' for choice in escaped)


def _payload(request: Request) -> dict[str, Any]:
    sampling = request.sampling
    settings = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": sampling.max_tokens,
        "seed": sampling.seed,
    }
    payload: dict[str, Any] = {
        "messages": [
            {"role": message.role, "content": replace_surrogates(message.content)} for message in request.messages
        ],
        **{name: value for name, value in settings.items() if value is not None},
    }
    if request.logprobs:
        # they are those before the grammar, among which a label may be far down
        payload |= {"logprobs": True, "top_logprobs": MANY_LOGPROBS if request.constraint else request.logprobs}
    constraint = request.constraint
    if constraint is not None and constraint.choices:
        payload["grammar"] = choices_grammar([replace_surrogates(choice) for choice in constraint.choices])
    elif constraint is not None and constraint.json_schema is not None:
        schema = {"name": "answer", "schema": dict(constraint.json_schema)}
        payload["response_format"] = {"type": "json_schema", "json_schema": schema}
    return payload


def _reply(data: Mapping[str, Any], latency: float, request: Request) -> Reply:
    choice = data["choices"][0]
    text = choice["message"].get("content") or ""
    return Reply(
        text=text,
        finish=finish_of(choice.get("finish_reason"), FINISHES),
        usage=usage_of(data.get("usage"), "prompt_tokens", "completion_tokens"),
        latency=latency,
        logprobs=_logprobs(choice, text, request) if request.logprobs else None,
        thought=has_thought(choice["message"]),
    )


def _logprobs(choice: Mapping[str, Any], text: str, request: Request) -> tuple[TokenPosition, ...] | str | None:
    """Return the log-probabilities of an answer: of the many listed, the first few and those that start a choice."""
    found = read_logprobs(choice, text)
    if request.constraint is None or not isinstance(found, tuple):
        return found
    choices = [choice.casefold() for choice in request.constraint.choices]
    return tuple(position._replace(alternatives=_useful(position, choices, request.logprobs)) for position in found)


def _useful(position: TokenPosition, choices: Sequence[str], first: int) -> tuple[tuple[str, float], ...]:
    last = len(position.alternatives) - 2  # the least likely tell how unlikely those are that are not listed
    return tuple(
        (token, log)
        for place, (token, log) in enumerate(position.alternatives)
        if place < first or place >= last or token == position.token or _in_some(token.strip().casefold(), choices)
    )


def _in_some(token: str, choices: Sequence[str]) -> bool:
    return len(token) > 0 and any(token in choice for choice in choices)
