"""A fitted run with its models open, ready to be asked about texts."""

from __future__ import annotations

from dataclasses import dataclass

from pcs_annotator.asking.annotators.annotator import Annotator
from pcs_annotator.asking.engine.job import Job
from pcs_annotator.core.elicitations import kind_of
from pcs_annotator.core.strategy import Strategy
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.spending.frugal import Frugal, graded_annotators
from pcs_annotator.runs import ask, resolve_config
from pcs_annotator.runs.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedRun:
    """A fitted run, ready to be asked about texts."""

    job: Job  # its questions, with its models open
    settings: ask.CollectSettings  # how to ask, and what may be spent
    model: Model  # what judges the votes
    frugal: Frugal | None  # how questions are saved; None when everything is asked
    on_drift: str = "review"  # what becomes of labels for texts that differ from the gold rows: `review` or `accept`

    @property
    def strategy(self) -> Strategy | None:
        """What to ask next, and when to stop; None to ask everything."""
        return None if self.frugal is None else self.frugal.strategy


def job_of(recorded: Run, settings: ask.CollectSettings) -> Job:
    """Return the run's questions; a model whose votes in the run are hard is asked for hard ones, as it was there."""
    config = recorded.config
    graded = graded_annotators(recorded.votes)
    annotators = [
        Annotator(model, answers=None if model in graded else "hard")
        for model in config.ask.models
        if not kind_of(model)
    ]
    return ask.open_job(resolve_config.task_of(config), annotators, config.relations.use, settings)
