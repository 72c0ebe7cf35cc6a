"""The interface of elicitations: ways to ask for a label together with its probability."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pcs_annotator.asking.annotators.prompt import OtherAnswer, PromptStyle, build_messages
from pcs_annotator.core.chat import Message
from pcs_annotator.core.elicitations import elicitations, guesses_of, top_k_kind
from pcs_annotator.core.task import Task

Messages = tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Stated:
    """Probabilities that a model stated in its reply."""

    # label → probability, for the labels it named, in the order of its guesses; each is between 0 and 1, and so is
    # their sum
    probabilities: Mapping[str, float]

    def __post_init__(self) -> None:
        total = sum(self.probabilities.values())
        if total > 1:
            shares = {label: value / total for label, value in self.probabilities.items()}
            object.__setattr__(self, "probabilities", shares)

    @property
    def guess(self) -> str:
        """The likeliest label; the first of equally likely ones."""
        return max(self.probabilities, key=self.probabilities.__getitem__)

    def over(self, labels: Sequence[str]) -> tuple[float, ...]:
        """Return a row of `Votes.stated`: the probability of every label, nan for labels that were not named."""
        return tuple(self.probabilities.get(label, float("nan")) for label in labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class Elicitation(ABC):
    """A conversation of one or two questions that ends with probabilities or a silence.

    `style` is `plain` without a system role. Users' own may be any class with `name`, `first` and `next`.
    """

    style: PromptStyle = "chat"

    @property
    @abstractmethod
    def name(self) -> str:
        """Return the kind, as in `core.elicitations`."""

    @abstractmethod
    def first(self, task: Task, text: str) -> Messages:
        """Return the first question about a text."""

    @abstractmethod
    def read(self, task: Task, text: str, question: Messages, replies: Sequence[str]) -> Messages | Stated | str:
        """Return what `next` does after at least one reply; what replies only repeat does not count."""

    def next(self, task: Task, text: str, replies: Sequence[str]) -> Messages | Stated | str:
        """Return the next question after some replies, the stated probabilities, or why there are none."""
        question = self.first(task, text)
        return self.read(task, text, question, replies) if replies else question


elicitation = elicitations.register  # decorator: register an elicitation class under a name


def elicitation_of(kind: str) -> Elicitation:
    """Return the elicitation of a kind such as `1s-top-4`, or of a registered name.

    >>> elicitation_of("1s-top-4").name
    '1s-top-4'
    """
    k = guesses_of(kind)
    several = kind in (top_k_kind(1, k), top_k_kind(2, k))
    elicitation: Any = elicitations.create(f"{kind[0]}s-top-k" if several else kind)
    made: Elicitation = replace(elicitation, k=k) if several else elicitation
    return made


def opening(task: Task, text: str, *, wanted: str, last: str, style: PromptStyle) -> Messages:
    """Return a question like the one for a plain label, but with another form of answer, as in `OtherAnswer`."""
    return build_messages(task, text, style=style, answer=OtherAnswer(wanted, last))


def followed_up(question: Messages, answer: str, asked: str) -> Messages:
    """Return the conversation so far, followed by the next question."""
    return (*question, Message("assistant", answer), Message("user", asked))
