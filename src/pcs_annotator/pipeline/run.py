"""A whole run over a folder: rewrite, ask, learn, label. Each step leaves one file."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pcs_annotator.asking.engine.bridge import run_sync
from pcs_annotator.asking.engine.budget import Bill
from pcs_annotator.asking.engine.plan import Plan, make_plan
from pcs_annotator.asking.engine.tally import Tally
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.votes import Votes
from pcs_annotator.errors import ConfigError
from pcs_annotator.files.config import Config, config_from_dict, config_to_dict
from pcs_annotator.files.recorded import Axes, read_votes, write_votes, writing_variants
from pcs_annotator.files.runs import RunFolder, read_json, write_json
from pcs_annotator.files.tables import Dataset, read_dataset, with_outcomes, write_table
from pcs_annotator.judging.evaluation.compare import Figures
from pcs_annotator.judging.model import Model
from pcs_annotator.pipeline.collecting import ask_job, close_models, open_job, pricing
from pcs_annotator.pipeline.ledgers import ledger_sizes
from pcs_annotator.pipeline.settling import collecting_of, columns_of, settled, task_of
from pcs_annotator.pipeline.steps import Learned, LearnSettings, learn_if_possible, model_file
from pcs_annotator.version import __version__

__all__ = ["Labelled", "Plan", "RunRequest", "RunResult", "fit_run", "label", "open_run", "plan", "run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What to run.

    Attributes:
        data: The user's file.
        folder: Where everything goes.
        config: Settings, those of the command line included.
        limit: How many rows to take; None for all.
        fresh: Whether to ask again what the ledger holds.
        progress: Whether to show how far it is.
        environment: Keys and base URLs; None for those of the process and of `.env`.
    """

    data: Path
    folder: Path
    config: Config
    limit: int | None = None
    fresh: bool = False
    progress: bool = False
    environment: Mapping[str, str] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What came of a run.

    Attributes:
        folder: Where everything is.
        config: The settings, with nothing left open.
        dataset: What was labelled.
        votes: What everybody said.
        learned: What the votes are worth.
        outcomes: A label for every row.
        tally: What happened on the way.
        bills: What the calls of this folder cost, model by model.
        seconds: How long each step took.
    """

    folder: RunFolder
    config: Config
    dataset: Dataset
    votes: Votes
    learned: Learned
    outcomes: Sequence[Outcome]
    tally: Tally
    bills: Sequence[Bill]
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def unlabelled(self) -> int:
        """Number of rows without a label."""
        return sum(outcome.label is None for outcome in self.outcomes)


def run(request: RunRequest) -> RunResult:
    """Rewrite, ask, learn and label; a second run asks only what is missing."""
    started = time.perf_counter()
    dataset = read_dataset(request.data, columns_of(request.config), request.limit)
    config = settled(request.config, dataset)
    folder = RunFolder(request.folder)
    tally = Tally(rows_expected=len(dataset.items))
    asking = time.perf_counter()
    votes = _asked(request, config, dataset, tally)
    learning = time.perf_counter()
    learned = learn_if_possible(votes, dataset.gold, config.learn)
    writing = time.perf_counter()
    outcomes = _finish(folder, dataset, votes, learned, config.learn)
    steps = {"prepare": asking - started, "ask": learning - asking, "learn": writing - learning}
    return RunResult(
        folder=folder,
        config=config,
        dataset=dataset,
        votes=votes,
        learned=learned,
        outcomes=outcomes,
        tally=tally,
        bills=ledger_sizes(folder.ledger),
        seconds={**steps, "write": time.perf_counter() - writing},
    )


def plan(request: RunRequest) -> Plan:
    """Return what a run would ask and what that costs at the most; asks nobody."""
    dataset = read_dataset(request.data, columns_of(request.config), request.limit)
    config = settled(request.config, dataset)
    settings = collecting_of(config, request.environment)
    job = open_job(task_of(config), config.ask.models, config.relations.use, settings)
    try:
        return make_plan(job, dataset.items, pricing(settings.prices))
    finally:
        run_sync(lambda: close_models(job))


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """New texts with labels from a fitted run."""

    dataset: Dataset
    votes: Votes
    outcomes: Sequence[Outcome]
    tally: Tally
    out: Path

    @property
    def unlabelled(self) -> int:
        """Number of rows without a label."""
        return sum(outcome.label is None for outcome in self.outcomes)


def label(request: RunRequest, out: Path) -> Labelled:
    """Ask the models of a fitted run about new texts and label them; `request.config` may name columns."""
    folder = RunFolder(request.folder)
    config = _started(folder)[0]
    model = Model.from_dict(read_json(folder.model))
    dataset = read_dataset(request.data, columns_of(request.config), request.limit)
    tally = Tally(rows_expected=len(dataset.items))
    settings = replace(collecting_of(config, request.environment), progress=request.progress, tally=tally)
    job = open_job(task_of(config), config.ask.models, config.relations.use, settings)
    votes = run_sync(lambda: ask_job(job, dataset.items, folder.ledger, settings))
    outcomes = list(model.judge(votes))
    write_table(out, with_outcomes(dataset.table, outcomes, votes.labels))
    return Labelled(dataset=dataset, votes=votes, outcomes=outcomes, tally=tally, out=out)


def fit_run(path: Path, settings: LearnSettings) -> RunResult:
    """Learn again from the votes of a run folder, free of charge."""
    recorded = _Recorded.read(RunFolder(path))
    learned = learn_if_possible(recorded.votes, recorded.dataset.gold, settings)
    return recorded.result(learned, _finish(recorded.folder, recorded.dataset, recorded.votes, learned, settings))


def open_run(path: Path) -> RunResult:
    """Return a finished run as it lies in its folder."""
    recorded = _Recorded.read(RunFolder(path))
    evaluation = read_json(recorded.folder.evaluation)
    learned = Learned(
        model=Model.from_dict(read_json(recorded.folder.model)),
        figures=[Figures.from_dict(values) for values in evaluation["figures"]],
        no_figures=evaluation["no_figures"],
    )
    return recorded.result(learned, list(learned.model.judge(recorded.votes)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recorded:
    """What a run folder holds before anything is learned."""

    folder: RunFolder
    config: Config
    dataset: Dataset
    votes: Votes

    @classmethod
    def read(cls, folder: RunFolder) -> _Recorded:
        config, start = _started(folder)
        dataset = read_dataset(folder.items, columns_of(config))
        ids = [item.id for item in dataset.items]
        axes = Axes(ids, start["annotators"], start["relations"], config.task.labels, config.ask.draws)
        return cls(folder=folder, config=config, dataset=dataset, votes=read_votes(folder.votes, axes))

    def result(self, learned: Learned, outcomes: Sequence[Outcome]) -> RunResult:
        return RunResult(
            folder=self.folder,
            config=self.config,
            dataset=self.dataset,
            votes=self.votes,
            learned=learned,
            outcomes=outcomes,
            tally=Tally(),
            bills=ledger_sizes(self.folder.ledger),
        )


def _started(folder: RunFolder) -> tuple[Config, Mapping[str, Any]]:
    """Return the settings of a run, and all of its `run.json`."""
    if not folder.settings.exists():
        raise ConfigError(f"{folder.path} is no run folder (it has no {folder.settings.name}): pcs run makes one")
    start = read_json(folder.settings)
    return config_from_dict(start["config"]), start


def _asked(request: RunRequest, config: Config, dataset: Dataset, tally: Tally) -> Votes:
    """Ask everybody about everything; settings and rows are written first, so that a stop leaves a folder to go on."""
    folder = RunFolder(request.folder)
    settings = replace(collecting_of(config, request.environment), progress=request.progress, tally=tally)
    job = open_job(task_of(config), config.ask.models, config.relations.use, settings)
    if request.fresh:
        for leftover in (folder.ledger, *folder.path.glob(f"{folder.ledger.name}-*")):
            leftover.unlink(missing_ok=True)
    start = {
        "version": __version__,
        "data": str(request.data),
        "annotators": [annotator.name for annotator, _ in job.annotators],
        "relations": [relation.name for relation in job.relations],
        "config": config_to_dict(config),
    }
    write_json(folder.settings, start)
    write_table(folder.items, dataset.table)
    with writing_variants(folder.variants) as note:
        noting = replace(job, on_variant=note)
        votes = run_sync(lambda: ask_job(noting, dataset.items, folder.ledger, settings))
    write_votes(folder.votes, votes)
    return votes


def _finish(
    folder: RunFolder, dataset: Dataset, votes: Votes, learned: Learned, settings: LearnSettings
) -> list[Outcome]:
    write_json(folder.model, model_file(learned, settings, votes.labels))
    figures = [figures.to_dict() for figures in learned.figures]
    write_json(folder.evaluation, {"figures": figures, "no_figures": learned.no_figures})
    outcomes = list(learned.model.judge(votes))
    write_table(folder.labels, with_outcomes(dataset.table, outcomes, votes.labels))
    return outcomes
