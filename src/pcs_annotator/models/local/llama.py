"""Any GGUF model in this process, with `xllamacpp`: no server, no key, no network."""

import secrets
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.chat import ChatModel, Request, TokenPosition, sendable
from pcs_annotator.models.failures import CallSite, Complaint, failure
from pcs_annotator.models.local.models import LocalModel, require
from pcs_annotator.models.local.runner import Runner, WaitingQuestion
from pcs_annotator.models.provider import opens
from pcs_annotator.models.thinking import usual_room
from pcs_annotator.models.wire import as_dicts, read_completion, sampling_fields

MAGIC = b"GGUF"
ONLY_ERRORS = -1
MANY_LOGPROBS = 100


class LlamaModel(LocalModel):
    """A model file, called `llama:` and its name without its folder.

    Several questions are answered at once, one per slot; others wait. Choices and JSON schemas become grammars.
    """

    def __init__(self, path: Path, *, slots: int = 4, context_tokens: int = 4096) -> None:
        self.name = f"llama:{path.name}"
        self.context_tokens = context_tokens
        self.slots = slots
        self.path = path
        self.thinking_tokens = usual_room(path.name)

    @property
    def _key(self) -> Hashable:
        return "llama", str(self.path.resolve()), self.slots, self.context_tokens

    def _runner(self) -> Runner[Any]:
        return LlamaRunner(self)


class LlamaRunner(Runner[Any]):
    """Asks a server of `xllamacpp`, which also opens a port on this machine; a random key protects it."""

    def __init__(self, model: LlamaModel) -> None:
        self._model = model
        self._place = CallSite(name=model.name, model=model.path.name, url=str(model.path))
        super().__init__(self._start, threads=model.slots, size=1)

    def _work(self, jobs: Sequence[WaitingQuestion]) -> None:
        for job in jobs:
            request = job.request
            data = self.engine().handle_chat_completions(_payload(request))
            error = data.get("error")
            if error is not None:
                complaint = Complaint(str(error.get("message")), str(error.get("type")))
                raise failure(self._place, int(error.get("code") or 500), complaint, {})
            reply = read_completion(data, request)
            job.answer.set_result(replace(reply, logprobs=_useful_logprobs(reply.logprobs, request)))

    def _start(self) -> Any:
        import xllamacpp  # type: ignore[import-untyped]  # it has no types

        params = xllamacpp.CommonParams()
        params.model.path = str(self._model.path)
        params.n_parallel = self._model.slots
        params.n_ctx = self._model.slots * self._model.context_tokens
        params.verbosity = ONLY_ERRORS
        params.warmup = params.ui = params.endpoint_slots = False
        params.api_keys = [secrets.token_hex(16)]
        try:
            return xllamacpp.Server(params)
        except RuntimeError as error:
            raise ConfigError(
                f"llama.cpp cannot load {self._model.path}: {error} Check that the file is complete."
            ) from None


@opens("llama")
def open_llama(model: str, environment: Mapping[str, str]) -> ChatModel:
    """Return `llama:/path/model.gguf`, loaded at the first question; a missing package or file is an error."""
    require(f"llama:{model}", ("xllamacpp",), "gguf")
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
    messages = [replace(message, content=sendable(message.content)) for message in request.messages]
    payload: dict[str, Any] = {"messages": as_dicts(messages), **sampling_fields(request.sampling)}
    if request.logprobs:
        # they are those before the grammar, among which a label may be far down
        payload |= {"logprobs": True, "top_logprobs": MANY_LOGPROBS if request.constraint else request.logprobs}
    constraint = request.constraint
    if constraint is not None and constraint.choices:
        payload["grammar"] = choices_grammar([sendable(choice) for choice in constraint.choices])
    elif constraint is not None and constraint.json_schema is not None:
        schema = {"name": "answer", "schema": dict(constraint.json_schema)}
        payload["response_format"] = {"type": "json_schema", "json_schema": schema}
    return payload


def _useful_logprobs(
    found: tuple[TokenPosition, ...] | str | None, request: Request
) -> tuple[TokenPosition, ...] | str | None:
    """Return of the many log-probabilities the first few and those that start a choice."""
    if request.constraint is None or not isinstance(found, tuple):
        return found
    choices = "\n".join(request.constraint.choices).casefold()

    def useful(position: TokenPosition) -> tuple[tuple[str, float], ...]:
        last = len(position.alternatives) - 2  # the least likely tell how unlikely those are that are not listed
        return tuple(
            (token, log)
            for place, (token, log) in enumerate(position.alternatives)
            if not request.logprobs <= place < last or token == position.token or _in_some(token, choices)
        )

    return tuple(position._replace(alternatives=useful(position)) for position in found)


def _in_some(token: str, choices: str) -> bool:
    return bool(token.strip()) and token.strip().casefold() in choices
