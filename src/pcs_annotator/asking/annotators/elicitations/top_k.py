"""1S top-k and 2S top-k of Tian et al. 2023: k guesses, each with a probability, in one step or two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pcs_annotator.asking.annotators.elicitations.base import Messages, Stated, elicitation, followed_up, opening
from pcs_annotator.asking.annotators.elicitations.guesses import (
    read_guesses,
    read_probabilities,
    read_probabilities_of,
)
from pcs_annotator.asking.annotators.prompt import PromptStyle
from pcs_annotator.core.elicitations import top_k_kind
from pcs_annotator.core.task import Task

_ONLY = "Write only these lines:"
_LAST = "Answer with these lines and nothing else."


@dataclass(frozen=True, slots=True, kw_only=True)
class _TopK:
    """What both ways share.

    Attributes:
        k: How many guesses; no more than there are labels.
        style: `plain` for models that know no system role.
        steps: How many questions there are.
        also: What is wanted in the first reply besides guesses.
        line: What that reply says of the n-th guess.
    """

    k: int = 2
    style: PromptStyle = "chat"
    steps: ClassVar[int]
    also: ClassVar[str]
    line: ClassVar[str]

    @property
    def name(self) -> str:
        """Return the kind."""
        return top_k_kind(self.steps, self.k)

    def first(self, task: Task, text: str) -> Messages:
        """Return the first question."""
        size = min(self.k, len(task.labels))
        wanted = f"{_likeliest(size)}{self.also}. {_ONLY}\n{_numbered(self.line, size)}"
        return opening(task, text, wanted=wanted, last=_LAST, style=self.style)


@elicitation("1s-top-k")
@dataclass(frozen=True, slots=True, kw_only=True)
class OneStepTopK(_TopK):
    """k guesses and their probabilities in one reply."""

    steps: ClassVar[int] = 1
    also: ClassVar[str] = ", each with the probability from 0 to 1 that it is right"
    line: ClassVar[str] = "G{n}: <label>\nP{n}: <probability>"

    def next(self, task: Task, text: str, replies: Sequence[str]) -> Messages | Stated | str:
        """Return what the reply states."""
        return read_probabilities(replies[0], task.labels) if replies else self.first(task, text)


@elicitation("2s-top-k")
@dataclass(frozen=True, slots=True, kw_only=True)
class TwoStepTopK(_TopK):
    """k guesses in the first reply, their probabilities in the second."""

    steps: ClassVar[int] = 2
    also: ClassVar[str] = ""
    line: ClassVar[str] = "G{n}: <label>"

    def next(self, task: Task, text: str, replies: Sequence[str]) -> Messages | Stated | str:
        """Return the question for the probabilities, then what the replies state."""
        if not replies:
            return self.first(task, text)
        guesses = read_guesses(replies[0], task.labels)[: self.k]
        if not guesses:
            return "no label in reply"
        if len(replies) > 1:
            return read_probabilities_of(replies[1], guesses, task.labels)
        made = "\n".join(f"G{n}: {label}" for n, label in enumerate(guesses, start=1))
        lines = _numbered("P{n}: <probability>", len(guesses))
        asked = f"What is the probability, from 0 to 1, that each of your guesses is right? {_ONLY}\n{lines}"
        return followed_up(self.first(task, text), made, asked)


def _numbered(line: str, size: int) -> str:
    return "\n".join(line.format(n=n) for n in range(1, size + 1))


def _likeliest(size: int) -> str:
    return "Name the likeliest label" if size == 1 else f"Name the {size} likeliest labels in order"
