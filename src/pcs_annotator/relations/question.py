"""The question put differently: other orders or words, one message, examples, definitions or a suggestion."""

import re
from dataclasses import dataclass, replace
from hashlib import blake2b
from math import factorial
from typing import ClassVar, Literal

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.task import Part, Phrasing, Task, enumerated
from pcs_annotator.relations.base import Need, Unchanged, relations
from pcs_annotator.relations.phrases import PLACE, phrases_around

Which = Literal["reversed", "rotated"] | int  # reversed, rotated by one, or the permutation of a number from 2 on
LABELS_WITH_MANY_ORDERS = 5


@dataclass(frozen=True, slots=True)
class LabelOrder(Unchanged):
    """The labels in another order."""

    name: str = "order"
    which: Which = "reversed"  # which order

    def rephrase(self, question: Phrasing) -> Phrasing:
        """Return the question with its labels in the other order, also in its instruction, or the texts of its pair."""
        task = question.task
        if task.number or (task.extraction and len(task.labels) < 2):
            what = "a number" if task.number else "what is quoted"
            raise ConfigError(f"relation {self.name!r}: {what} is not chosen from a list: leave it out")
        if task.pair:
            if self.which != "reversed":
                raise ConfigError(f"relation {self.name!r}: a pair has one other order, which is 'order': leave it out")
            return replace(question, task=replace(task, pair=task.pair[::-1]))
        labels = [task.labels[at] for at in self.permutation(len(task.labels))]
        listed = rf"(?<!\w){re.escape(enumerated(task.labels))}(?!\w)"
        instruction = re.sub(listed, lambda _: enumerated(labels), task.instruction)
        together = task.together and task.together._replace(
            parts=tuple(map(self._reordered, task.together.parts[::-1]))
        )
        return replace(question, task=replace(task, labels=labels, instruction=instruction, together=together))

    def _reordered(self, part: Part) -> Part:
        """Return one of several questions with its labels in another order; few labels are reversed."""
        few = isinstance(self.which, int) and len(part.labels) < LABELS_WITH_MANY_ORDERS
        order = LabelOrder() if few else self
        return part._replace(labels=tuple(part.labels[at] for at in order.permutation(len(part.labels))))

    def permutation(self, size: int) -> tuple[int, ...]:
        """Return the place of each listed label in the task's list; that few labels have no such order is an error."""
        same = tuple(range(size))
        if self.which == "reversed":
            return same[::-1]
        rotated = (*same[1:], 0)
        if self.which == "rotated":
            return rotated
        taken = {same, same[::-1], rotated}
        if self.which - 1 > factorial(size) - len(taken):
            raise ConfigError(f"relation {self.name!r}: {_orders_of(size)}: leave {self.name!r} out")
        attempt = 0
        for _ in range(self.which - 1):
            while (drawn := _shuffled(size, attempt)) in taken:
                attempt += 1
            taken.add(drawn)
        return drawn


def _shuffled(size: int, attempt: int) -> tuple[int, ...]:
    # By hashes, because another version of Python may shuffle differently, and answers in ledgers would be lost.
    def hash_of(number: int) -> bytes:
        return blake2b(f"{size} {attempt} {number}".encode(), digest_size=8).digest()

    return tuple(sorted(range(size), key=hash_of))


def _orders_of(size: int) -> str:
    if size == 2:
        return "two labels have only one other order, which is 'order'"
    last = "" if size < 3 else f" to 'order:{factorial(size) - 2}'"
    return f"{size} labels have no more orders than 'order', 'order:rotated' and 'order:2'{last}"


def wordings_of(task: Task) -> tuple[str, ...]:
    """Return all other instructions: those of the task, then one per template in the instruction's language."""
    templates = phrases_around(task.instruction, task.labels).wordings
    return (*task.wordings, *(template.replace(PLACE, task.instruction.strip()) for template in templates))


@dataclass(frozen=True, slots=True)
class Wording(Unchanged):
    """Another instruction: one of the task's, else a template around the task's instruction."""

    name: str = "wording"
    number: int = 1  # which one, from 1 on

    def rephrase(self, question: Phrasing) -> Phrasing:
        """Return the question with the other instruction; that there are not so many is an error."""
        task = question.task
        wordings = wordings_of(task)
        built_in = len(wordings) - len(task.wordings)
        if self.number > len(wordings):
            raise ConfigError(
                f"relation {self.name!r}: there are only {len(wordings)} wordings, {len(task.wordings)} of your own "
                f"and {built_in} built in: leave it out, or add your own to `wordings` of the task"
            )
        together = task.together and task.together._replace(parts=tuple(map(self._reworded, task.together.parts)))
        return replace(question, task=replace(task, instruction=wordings[self.number - 1], together=together))

    def _reworded(self, part: Part) -> Part:
        """Return one of several questions with another instruction, the same whichever of them is answered."""
        wordings = wordings_of(Task(part.instruction, part.labels))
        return part._replace(instruction=wordings[min(self.number, len(wordings)) - 1])


@dataclass(frozen=True, slots=True)
class Layout(Unchanged):
    """Instructions and text in one user message, without a system message."""

    name: str = "layout"

    def rephrase(self, question: Phrasing) -> Phrasing:
        """Return the question as one message."""
        return replace(question, one_message=True)


@dataclass(frozen=True, slots=True)
class WithExamples(Unchanged):
    """The question with the task's examples."""

    name: str = "examples"
    number: int = 1  # which set of them, from 1 on: those nearest to the text, the next ones, and so on
    needs: ClassVar[frozenset[Need]] = frozenset({"examples"})

    def rephrase(self, question: Phrasing) -> Phrasing:
        """Return the question with these examples; that there are none, or not so many, is an error."""
        task = question.task
        there = len(task.examples)
        if not there:
            raise ConfigError(
                f"relation {self.name!r}: there are no examples: label rows in a column gold, give a table with "
                "--examples FILE, or write [[task.examples]] into pcs.toml"
            )
        if self.number > 1 and not 0 < task.nearest * (self.number - 1) < there - 1:
            sets = "all of them are in every prompt" if not task.nearest else f"that is one set of {task.nearest}"
            remedy = "--examples gold takes the nearest of all gold rows"
            raise ConfigError(f"relation {self.name!r}: of {there} examples, {sets}: leave it out; {remedy}")
        return replace(question, examples=self.number)


@dataclass(frozen=True, slots=True)
class Definitions(Unchanged):
    """The question with a sentence about each label that has no meaning yet."""

    name: str = "definitions"

    def rephrase(self, question: Phrasing) -> Phrasing:
        """Return the question with the sentences; that there are none is an error."""
        task = question.task
        if not task.definitions or task.together:
            what = "needs a call of its own for each variable" if task.together else "has no sentence about any label"
            remedy = "leave it out, or ask --separately" if task.together else "write some in [task.definitions]"
            raise ConfigError(f"relation {self.name!r} {what}: {remedy}")
        return replace(question, task=replace(task, meanings={**task.definitions, **task.meanings}))


@dataclass(frozen=True, slots=True)
class Suggestion(Unchanged):
    """The question with the remark that somebody else gave one of the labels: does the model follow?"""

    name: str = "suggestion"
    number: int = 1  # which label, from 1 on

    def rephrase(self, question: Phrasing) -> Phrasing:
        """Return the question with the remark; that there is no such label is an error."""
        task = question.task
        if task.number or task.together or task.asked or task.extraction:
            why = "it is for one question with the same labels for every text"
            raise ConfigError(f"relation {self.name!r}: {why}: leave it out")
        if self.number > len(task.labels):
            raise ConfigError(f"relation {self.name!r}: there are only {len(task.labels)} labels: leave it out")
        return replace(question, task=replace(task, suggested=task.labels[self.number - 1]))


relations.register("order")(LabelOrder)
relations.register("order:rotated")(lambda: LabelOrder("order:rotated", "rotated"))
relations.register("wording")(Wording)
relations.register("layout")(Layout)
relations.register("examples")(WithExamples)
relations.register("definitions")(Definitions)
relations.register("suggestion")(Suggestion)
