"""The interface to a model: a `Request` with messages in, a `Reply` out.

Every model implements `ChatModel`; `sendable` cleans a text before it is sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

Role = Literal["system", "user", "assistant"]
Finish = Literal["stop", "length", "filter", "other"]

# Thinking counts towards the same token limit as the answer: without room for it, the answer would be empty.
THINKING_TOKENS = 4096


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How the model samples its answer; None leaves a setting to the server."""

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """The form that the answer must have, for models that can enforce one.

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
    """Tokens paid for; None where the server did not report them."""

    input_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RateHint:
    """The rate limit that a server reported with a reply.

    Attributes:
        remaining: Requests left until the reset.
        reset_after: Seconds until the limit resets.
    """

    remaining: int
    reset_after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model answered.

    Attributes:
        text: The answer, unchanged.
        finish: Why it ended; `length` means that it was cut off.
        usage: Tokens paid for.
        latency: Seconds from sending to the last byte.
        logprobs: Token → log-probability at the first token of the answer; None unless requested and returned.
        rate_hint: The rate limit that the server reported; None if it reported none.
    """

    text: str
    finish: Finish = "stop"
    usage: Usage = field(default_factory=Usage)
    latency: float = 0.0
    logprobs: Mapping[str, float] | None = None
    rate_hint: RateHint | None = None


class ChatModel(Protocol):
    """A black-box model behind one method.

    A model that adds tokens for thinking to the request's limit gives their number in an attribute `thinking_tokens`,
    so that budgets count them.

    Attributes:
        name: `provider:model`, the same for the same model wherever it runs; part of a ledger entry's key.
        context_tokens: Maximum number of tokens of a question and its answer together; None when unknown.
        can_constrain: Whether the model enforces `Request.constraint`; if not, none is sent.
    """

    @property
    def name(self) -> str:
        """Return `provider:model`."""
        ...

    @property
    def context_tokens(self) -> int | None:
        """Return the size of the context in tokens, or None."""
        ...

    @property
    def can_constrain(self) -> bool:
        """Return whether the model enforces constraints."""
        ...

    async def ask(self, request: Request) -> Reply:
        """Return the answer, or raise a `ModelError` whose `retryable` says whether asking again can help.

        A call is a single attempt: the engine waits, retries and counts.
        """
        ...

    async def close(self) -> None:
        """Release connections and memory; the model can be used again afterwards."""
        ...


def sendable(text: str) -> str:
    """Return the text with lone surrogates and NUL, which no server accepts, replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\0", "\ufffd")
