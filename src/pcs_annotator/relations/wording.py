"""The question put otherwise: in the user's words or a template's, in one message, or with examples."""

from dataclasses import dataclass, replace
from typing import ClassVar

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.task import Part, Phrasing, Task
from pcs_annotator.relations.base import Need, Unchanged, relations
from pcs_annotator.relations.phrases import PLACE, phrases_around


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


relations.register("wording")(Wording)
relations.register("layout")(Layout)
relations.register("examples")(WithExamples)
