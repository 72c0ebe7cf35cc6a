"""The question put otherwise: in the user's words, a template's or a model's, in one message, or with examples."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.task import MANY_LABELS, Part, Phrasing, Task
from pcs_annotator.core.variant import Expectation
from pcs_annotator.relations.base import AskRewriter, Need, Unchanged, relations
from pcs_annotator.relations.checks.negation import negation
from pcs_annotator.relations.checks.reading import Rewrite, length, numbers, quoted, words
from pcs_annotator.relations.language import language_of, other_language
from pcs_annotator.relations.phrases import PLACE, phrases_around
from pcs_annotator.relations.prompted.cleaning import Refused
from pcs_annotator.relations.prompted.prompted import PromptedRelation, prompt_file

_LABEL_TAG = re.compile(r"<\s*/?\s*label\s*>", re.IGNORECASE)
_WRITTEN = Expectation(reorders=True, shortest=0.4, longest=2.5, renumbers=True)


def wordings_of(task: Task) -> tuple[str, ...]:
    """Return all other instructions: those of the task, then one per template in the instruction's language.

    The instruction stays as it is, whatever it says.
    """
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
class WrittenWording(Unchanged):
    """Another instruction, which a model wrote; it is written once per task, before the first question."""

    name: str = "llm:wording"
    needs: ClassVar[frozenset[Need]] = frozenset({"wording"})

    def rephrase(self, question: Phrasing) -> Phrasing:
        """Return the question with the instruction that a model wrote; that none is written yet is an error."""
        written = question.task.written_wording
        if not written:
            raise ConfigError(f"relation {self.name!r}: the task has no `written_wording` yet: name a rewriter")
        return replace(question, task=replace(question.task, instruction=written))


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


async def write_wording(task: Task, ask: AskRewriter) -> str:
    """Return the task's instruction in a model's words; a rejected one is tried once more, with the reason."""
    version, prompt = prompt_file("_wording")
    listed = "\n".join(f"- {label}" for label in task.labels[:MANY_LABELS])
    asked = f"{prompt}\n\nThe labels:\n{listed}"
    relation = PromptedRelation("llm:wording", asked, version, _WRITTEN, keeps_language=True)
    complaint = ""
    for _ in range(2):
        written = await relation.rewrite_window(task.instruction, ask, complaint)
        complaint = written.reason if isinstance(written, Refused) else wording_complaint(task, written)
        if not complaint and isinstance(written, str):
            return written
    raise ConfigError(
        f"relation 'llm:wording': the rewriter's wording of the instruction cannot be used: {complaint}. Use 'wording' "
        "instead, with an instruction of your own in `wordings` of the task"
    )


def wording_complaint(task: Task, written: str) -> str:
    """Return what is wrong with another wording of a task's instruction; empty if nothing was found.

    >>> feeling = Task("How does the writer feel?", ["positive", "neutral", "negative"])
    >>> wording_complaint(feeling, "Which feeling does the author express?")
    ''
    >>> wording_complaint(feeling, "Does the writer feel positive or negative?")
    'it names "positive", "negative" but not all labels; name no label, or all of them'
    """
    rewrite = Rewrite(task.instruction, written, _WRITTEN)
    if words(task.instruction) == words(written):
        return "it is the same as the instruction; put it in other words"
    if _LABEL_TAG.search(written) and not _LABEL_TAG.search(task.instruction):
        return "it has label tags; write none"
    named = _named(task.labels, written)
    if named and named not in (list(task.labels), _named(task.labels, task.instruction)):
        return f"it names {quoted(named)} but not all labels; name no label, or all of them"
    other = other_language(task.instruction, written)
    if other:
        before = language_of(task.instruction)
        return f"the instruction is in one language ({before}), this in another ({other}); keep the language"
    return length(rewrite) or numbers(rewrite) or negation(rewrite)


def _named(labels: Sequence[str], text: str) -> list[str]:
    return [label for label in labels if re.search(rf"(?<!\w){re.escape(label)}(?!\w)", text, re.IGNORECASE)]


relations.register("wording")(Wording)
relations.register("llm:wording")(WrittenWording)
relations.register("layout")(Layout)
relations.register("examples")(WithExamples)
