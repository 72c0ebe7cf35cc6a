"""The interface to a model: a `Request` with messages in, a `Reply` out; models answer at temperature 0.

Every model implements `ChatModel`; `sendable` cleans a text before it is sent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

Role = Literal["system", "user", "assistant"]
Finish = Literal["stop", "length", "filter", "other"]
Answers = Literal["auto", "graded", "hard"]
"""Whether log-probabilities are asked for: never (`hard`), or of every model that gives them. `auto` keeps the hard
answers that the ledger already has; `graded` asks for those again."""

# Thinking counts towards the same token limit as the answer: without room for it, the answer would be empty.
THINKING_TOKENS = 4096
LONGEST_ANSWER = 50_000  # characters of the longest answer that is read; none is nearly as long, even with reasoning
MOST_TOKENS = 10**9  # more tokens than this in one call are a mistake of the server


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Role  # who speaks
    content: str  # what is said
    # how many characters at its start are the same for every text of a task, so that a model can keep what it read of
    # them; 0 if turns before it differ
    shared: int = field(default=0, compare=False, repr=False)


class QuestionParts(NamedTuple):
    """What the messages that ask for a label say, for models that put the question in words of their own."""

    instruction: str  # what to decide
    menu: str  # the labels with their meanings, one per line; "" if they are not listed
    text: str  # the text to label


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """The form that the answer must have, for models that can enforce one."""

    choices: Sequence[str] = ()  # the answer is exactly one of these texts
    json_schema: Mapping[str, object] | None = None  # the answer is JSON of this schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One question to a model."""

    messages: tuple[Message, ...]  # the conversation so far
    max_tokens: int | None = None  # maximum length of the answer; None leaves it to the server
    constraint: Constraint | None = None  # the form of the answer; None for any
    logprobs: int = 0  # how many alternatives of each answer token to give with their log-probabilities; 0 for none
    # what the messages were made from, if they ask for a label. They do not count for a ledger entry's key
    parts: QuestionParts | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens paid for; None where the server did not report them, or reported what cannot be a number of tokens."""

    input_tokens: int | None = None
    output_tokens: int | None = None

    def __post_init__(self) -> None:
        for name in ("input_tokens", "output_tokens"):
            tokens: object = getattr(self, name)
            if type(tokens) is not int or not 0 <= tokens <= MOST_TOKENS:
                object.__setattr__(self, name, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RateHint:
    """The rate limit that a server reported with a reply."""

    remaining: int  # requests left until the reset
    reset_after: float  # seconds until the limit resets


class TokenPosition(NamedTuple):
    """One token of an answer, and the tokens that could have been in its place.

    A token may cut a character: its bytes are then lone surrogates, as Python's `surrogateescape` writes them. An empty
    token ends the answer.
    """

    token: str  # the token as sampled
    alternatives: tuple[tuple[str, float], ...]  # the likeliest tokens, also the sampled one, and their logarithms


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model answered."""

    text: str  # the answer, unchanged; of one that is too long to be read, the start
    finish: Finish = "stop"  # why it ended; `length` means that it was cut off
    usage: Usage = field(default_factory=Usage)  # tokens paid for
    latency: float = 0.0  # seconds from sending to the last byte
    # the tokens of the answer and their alternatives, from the first that belongs to the answer itself: not those of
    # `<label>` or of JSON before it. A text if what the server returned is of no use: it says why. None unless
    # requested and returned
    logprobs: tuple[TokenPosition, ...] | str | None = None
    rate_hint: RateHint | None = None  # the rate limit that the server reported; None if it reported none
    thought: bool = False  # whether the server says that the model thought before it answered

    def __post_init__(self) -> None:
        if self.too_long:
            object.__setattr__(self, "text", self.text[: LONGEST_ANSWER + 1])

    @property
    def too_long(self) -> bool:
        """Whether the answer is too long to be read."""
        return len(self.text) > LONGEST_ANSWER


class ChatModel(Protocol):
    """A black-box model behind one method.

    A model that adds tokens for thinking to the request's limit gives their number in an attribute `thinking_tokens`,
    so that budgets count them. A model that works in this process has an attribute `in_process = True`: its answers
    are waited for without a timeout. One that may return log-probabilities, or not, has `may_not_grade = True`: plans
    show both cases. One that gets no examples has `without_examples = True`. A model whose name does not say everything
    that shapes its answers, such as a function, has an attribute `identity` that does: ledger keys contain it instead
    of the name.
    """

    @property
    def name(self) -> str:
        """`provider:model`, the same for the same model wherever it runs; part of a ledger entry's key."""
        ...

    @property
    def context_tokens(self) -> int | None:
        """Maximum number of tokens of a question and its answer together; None when unknown."""
        ...

    @property
    def can_constrain(self) -> bool:
        """Whether the model enforces `Request.constraint`; if not, none is sent."""
        ...

    @property
    def can_grade(self) -> bool:
        """Whether the model may return log-probabilities; if not, none are requested."""
        ...

    async def ask(self, request: Request) -> Reply:
        """Return the answer, or raise a `ModelError`: `RateLimited` or `ServerTrouble` if asking again can help.

        A call is a single attempt: the engine waits, retries and counts.
        """
        ...

    async def close(self) -> None:
        """Release connections and memory; the model can be used again afterwards."""
        ...


def gets_no_examples(model: ChatModel) -> bool:
    """Return whether a model is asked without examples."""
    return getattr(model, "without_examples", False)


def identity_of(model: ChatModel) -> str:
    """Return what ledger keys call a model: its `identity` if it has one, else its name."""
    return str(getattr(model, "identity", model.name))


def sendable(text: str) -> str:
    """Return the text with lone surrogates and NUL, which no server accepts, replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\0", "\ufffd")
