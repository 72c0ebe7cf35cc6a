"""What a model is, seen from outside: messages in, a reply out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

Role = Literal["system", "user", "assistant"]
Finish = Literal["stop", "length", "filter", "other"]

# Thinking is paid from the same allowance as the answer: without room for it, the answer would come back empty.
THINKING_TOKENS = 4096


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How the model draws its answer; None leaves a setting to the server."""

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """What the answer must look like, for models that can be held to it.

    Attributes:
        choices: The answer is exactly one of these texts.
        json_schema: The answer is JSON of this schema.
    """

    choices: Sequence[str] = ()
    json_schema: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One question to a model."""

    messages: tuple[Message, ...]
    sampling: Sampling = field(default_factory=Sampling)
    constraint: Constraint | None = None
    logprobs: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens that were paid for; None where the server did not say."""

    input_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RateHint:
    """What a server said about its limits with a reply.

    Attributes:
        remaining: Requests left until the reset.
        reset_after: Seconds until the allowance is full again.
    """

    remaining: int
    reset_after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model answered.

    Attributes:
        text: The answer, as it came.
        finish: Why it ended; `length` means that it was cut off.
        usage: Tokens paid for.
        latency: Seconds from sending to the last byte.
        logprobs: Token → log-probability of the first answer token, where asked for and given.
        rate_hint: The server's own word on its limits, where given.
    """

    text: str
    finish: Finish = "stop"
    usage: Usage = field(default_factory=Usage)
    latency: float = 0.0
    logprobs: Mapping[str, float] | None = None
    rate_hint: RateHint | None = None


class ChatModel(Protocol):
    """A black-box model behind one method.

    A model that asks for more tokens than the request says, to think with, has them in an attribute `thinking_tokens`,
    so that budgets count them.

    Attributes:
        name: `provider:model`, the same for the same model wherever it is asked; part of a ledger entry's key.
        context_tokens: Tokens that fit into one question and its answer; None when unknown.
        can_constrain: Whether `Request.constraint` is honoured; if not, it is not sent.
    """

    @property
    def name(self) -> str:
        """Return `provider:model`."""
        ...

    @property
    def context_tokens(self) -> int | None:
        """Return the size of the context, if known."""
        ...

    @property
    def can_constrain(self) -> bool:
        """Return whether answers can be held to a constraint."""
        ...

    async def ask(self, request: Request) -> Reply:
        """Return the answer, or raise a `ModelError` that says whether asking again can help.

        A call is one attempt: waiting, retrying and counting are the engine's business.
        """
        ...

    async def close(self) -> None:
        """Let go of connections and memory; the model may be used again afterwards."""
        ...


def sendable(text: str) -> str:
    """Return the text with lone surrogates and NUL, which no server takes, replaced by U+FFFD; else untouched."""
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\0", "\ufffd")
