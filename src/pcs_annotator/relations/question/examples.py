"""The question asked with examples, where other relations ask it without; or with other examples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.task import Phrasing
from pcs_annotator.relations.base import Need, Unchanged, relations


@dataclass(frozen=True, slots=True)
class WithExamples(Unchanged):
    """The question with the task's examples.

    Attributes:
        number: Which set of them, from 1 on: those nearest to the text, the next ones, and so on.
    """

    name: str = "examples"
    number: int = 1
    needs: ClassVar[frozenset[Need]] = frozenset({"examples"})

    def rephrase(self, question: Phrasing) -> Phrasing:
        """Return the question with these examples.

        Raises:
            ConfigError: There are none, or not that many.
        """
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


relations.register("examples")(WithExamples)
