"""What an elicitation is: a way to ask for a label together with how sure the model is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pcs_annotator.asking.annotators.prompt import PromptStyle, build_messages, task_prompt
from pcs_annotator.core.chat import Message
from pcs_annotator.core.task import Task
from pcs_annotator.registry import Registry

Messages = tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Stated:
    """Probabilities that a model stated itself.

    Attributes:
        probabilities: Label → probability, for the labels that it named, in the order of its guesses; each is between
            0 and 1, and so is their sum.
    """

    probabilities: Mapping[str, float]

    def __post_init__(self) -> None:
        total = sum(self.probabilities.values())
        if total > 1:
            shares = {label: value / total for label, value in self.probabilities.items()}
            object.__setattr__(self, "probabilities", shares)

    @property
    def guess(self) -> str:
        """The likeliest label, the first one of those that are equally likely."""
        return max(self.probabilities, key=self.probabilities.__getitem__)

    def over(self, labels: Sequence[str]) -> tuple[float, ...]:
        """Return a row of `Votes.stated`: the probability of every label, nan for those that were not named."""
        return tuple(self.probabilities.get(label, float("nan")) for label in labels)


class Elicitation(Protocol):
    """A conversation of one or two questions that ends with probabilities or a silence."""

    @property
    def name(self) -> str:
        """Return the kind, as in `core.elicitations`."""
        ...

    def first(self, task: Task, text: str) -> Messages:
        """Return the first question about a text."""
        ...

    def next(self, task: Task, text: str, replies: Sequence[str]) -> Messages | Stated | str:
        """Return the next question, what the replies state, or the reason why they state nothing; it never raises.

        Args:
            task: What to decide.
            text: The text that was asked about.
            replies: What the model replied to the questions so far, in their order.
        """
        ...


elicitations: Registry[Elicitation] = Registry("elicitation", "pcs_annotator.elicitations")
elicitation = elicitations.register
"""Decorator: make a class of elicitations known by a name."""


def opening(task: Task, text: str, *, wanted: str, last: str, style: PromptStyle) -> Messages:
    """Return a question like the one for a plain label, apart from what is to be answered.

    Args:
        task: What to decide.
        text: The text to label.
        wanted: What to answer, in the part that is the same for every text.
        last: What to answer, in few words, after the text.
        style: `plain` for models that know no system role.
    """
    # the last two paragraphs say what to answer, and that the text is data
    head, _, data = task_prompt(task, "bare").rsplit("\n\n", 2)
    fixed = f"{head}\n\n{wanted}\n\n{data}"
    fenced = build_messages(task, text, answer="bare")[-1].content.rpartition("\n\n")[0]
    asked = f"{fenced}\n\n{last}"
    if style == "plain":
        return (Message("user", f"{fixed}\n\n{asked}"),)
    return Message("system", fixed), Message("user", asked)


def followed_up(question: Messages, answer: str, asked: str) -> Messages:
    """Return the conversation so far and the next question."""
    return (*question, Message("assistant", answer), Message("user", asked))
