"""`pcs run` and `pcs fit`: rewrite, ask, learn, label and report in a run folder; each step writes one file."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.core.bill import Plan
from pcs_annotator.core.concurrency import run_sync
from pcs_annotator.core.task import Item
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.votes import Votes
from pcs_annotator.files import sources, tables, vote_files
from pcs_annotator.files.config import Config, config_to_dict
from pcs_annotator.files.runs import RunFolder, read_json, write_json
from pcs_annotator.pipeline import ask, human_review, learn, resolve_config
from pcs_annotator.pipeline.default_panel import DefaultPanel, Support
from pcs_annotator.pipeline.report.page import write_report
from pcs_annotator.pipeline.run_folder import Recorded, RunResult, started
from pcs_annotator.version import __version__


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What to run.

    Attributes:
        data: The user's file.
        folder: The run folder.
        config: Settings, including those of the command line.
        limit: Maximum number of rows; None for all.
        fresh: Whether to delete the ledger and ask everything again.
        progress: Whether to show progress.
        to_label: How many rows to write for a person to label, as long as there is no promise.
        environment: Keys and base URLs; None for those of the process and of `.env`.
        announce: Called with the questions that were chosen, before they are asked.
    """

    data: Path
    folder: Path
    config: Config
    limit: int | None = None
    fresh: bool = False
    progress: bool = False
    to_label: int = human_review.ROWS_TO_LABEL
    environment: Mapping[str, str] | None = field(default=None, repr=False)
    announce: Callable[[DefaultPanel], None] | None = None

    def read_data(self) -> tables.Dataset:
        """Read the rows of the user's file."""
        return sources.read_source(self.data, resolve_config.columns_of(self.config), self.limit)


def default_folder(data: Path) -> Path:
    """Return the run folder to use if none is given."""
    return Path("runs") / data.name.split(".")[0]


def run(request: RunRequest) -> RunResult:
    """Rewrite, ask, learn, label and report; a second run asks only what is missing."""
    started = time.perf_counter()
    dataset = request.read_data()
    config = resolve_config.resolve(request.config, dataset)
    # Settings and gold are checked before the first call, not after the last.
    learn.check_learning(config.learn)
    folder = RunFolder(request.folder)
    gold = human_review.gold_of(folder, dataset.items, dataset.gold)
    tally = Tally(rows_expected=len(dataset.items))
    asking = time.perf_counter()
    config = _with_panel(request, config, dataset.items, tally)
    votes, config = _asked(request, config, dataset, tally)
    recorded = Recorded(folder=folder, config=config, dataset=dataset, answers=votes, gold=gold)
    learning = time.perf_counter()
    learned = recorded.learn(config.learn)
    writing = time.perf_counter()
    outcomes = recorded.write(learned, config.learn)
    to_label = recorded.hand_out(learned, request.to_label)
    steps = {"prepare": asking - started, "ask": learning - asking, "learn": writing - learning}
    seconds = {**steps, "write": time.perf_counter() - writing}
    result = recorded.result(learned, outcomes, tally=tally, seconds=seconds, to_label=to_label)
    write_report(result)
    return result


def fit_run(
    path: Path, changes: Mapping[str, Any] | None = None, people: human_review.FromPeople | None = None
) -> RunResult:
    """Learn again from the votes of a run folder, with the labels and verdicts that people gave; no model is called.

    Learning uses the settings of the last fit, with `changes`.
    """
    people = people or human_review.FromPeople()
    recorded = Recorded.read(RunFolder(path))
    settings = replace(recorded.settings, **(changes or {}))
    items = recorded.dataset.items
    if people.gold is not None:
        recorded = recorded.with_gold(people.gold)
    learned = recorded.learn(settings)
    if people.verdicts is not None:
        outcomes = list(learned.model.judge(recorded.votes))
        learned = replace(learned, model=human_review.with_verdicts(learned.model, people.verdicts, outcomes))
        if not (learned.model.certificate and learned.model.certificate.holds):
            learned = replace(learned, model=learned.model.with_coverage(recorded.votes))
    outcomes = recorded.write(learned, settings)
    audited = 0
    if people.audit:
        audited = human_review.hand_out_audit(recorded.folder, items, outcomes, recorded.gold, people.audit)
    to_label = recorded.hand_out(learned, people.to_label)
    result = recorded.result(learned, outcomes, to_label=to_label, to_audit=audited)
    write_report(result)
    return result


def open_run(path: Path) -> RunResult:
    """Return the result of a finished run from its folder."""
    recorded = Recorded.read(RunFolder(path))
    learned = learn.learned_from(recorded.model_in_force(), read_json(recorded.folder.evaluation))
    return recorded.result(learned, list(learned.model.judge(recorded.votes)))


class RunPlan(NamedTuple):
    """What a run would ask.

    Attributes:
        plan: Calls and the most that they can cost.
        panel: The questions that were chosen; None when the user named them.
        alternatives: Option that would ask otherwise → its plan.
    """

    plan: Plan
    panel: DefaultPanel | None = None
    alternatives: Mapping[str, Plan] = {}


def plan(request: RunRequest) -> RunPlan:
    """Return what a run would ask and the most that it can cost; no model is called."""
    dataset = request.read_data()
    config = resolve_config.resolve(request.config, dataset)
    if config.relations.use:
        return RunPlan(_planned(request, config, dataset.items))
    panel = _recorded_panel(request, config)
    if panel is None:
        panel = _support(request, config).panel()
    others = {
        f"--relations {','.join(other)}": replace(config, relations=replace(config.relations, use=other))
        for other in ((ORIGINAL,), resolve_config.with_papers_relations(config).relations.use)
        if other != panel.relations
    }
    if config.ask.answers != "hard" and panel.graded:
        hard = replace(config, ask=replace(config.ask, answers="hard"))
        others["--answers hard"] = _support(request, hard).panel().applied_to(hard)
    return RunPlan(
        _planned(request, panel.applied_to(config), dataset.items),
        panel,
        {option: _planned(request, other, dataset.items) for option, other in others.items()},
    )


def _planned(request: RunRequest, config: Config, items: Sequence[Item]) -> Plan:
    settings = resolve_config.collect_settings_of(config, request.environment)
    job = ask.open_job(resolve_config.task_of(config), config.ask.models, config.relations.use, settings)
    return ask.plan_job(job, items, settings)


def _with_panel(request: RunRequest, config: Config, items: Sequence[Item], tally: Tally) -> Config:
    """Return the settings with the questions to ask: those that the user named, that the run had, or the usual ones."""
    if config.relations.use:
        return config
    panel = _recorded_panel(request, config)
    if panel is None:
        first = next((item for item in items if item.text.strip()), items[0])
        panel = _support(request, config).panel(first, tally)
    if request.announce is not None:
        request.announce(panel)
    return panel.applied_to(config)


def _support(request: RunRequest, config: Config) -> Support:
    return Support(
        task=resolve_config.task_of(config),
        annotators=config.ask.models,
        ledger=RunFolder(request.folder).ledger,
        settings=resolve_config.collect_settings_of(config, request.environment),
    )


def _recorded_panel(request: RunRequest, config: Config) -> DefaultPanel | None:
    """Return the questions of an earlier run in this folder, so that going on with it pays for nothing twice."""
    folder = RunFolder(request.folder)
    if request.fresh or not folder.settings.exists():
        return None
    earlier = started(folder)[0]
    same = (earlier.ask.models, earlier.task.labels) == (config.ask.models, config.task.labels)
    if not same or config.ask.answers not in ("auto", earlier.ask.answers) or not earlier.relations.use:
        return None
    reason = f"as in the earlier run in {request.folder}: {', '.join(earlier.relations.use)}"
    return DefaultPanel(relations=earlier.relations.use, questions=earlier.ask.questions, reasons=(reason,))


def _asked(request: RunRequest, config: Config, dataset: tables.Dataset, tally: Tally) -> tuple[Votes, Config]:
    """Ask all questions, and return the settings with the wording that a model wrote for them, if one did.

    Settings and rows are written first, so that an interrupted run can be resumed.
    """
    folder = RunFolder(request.folder)
    settings = resolve_config.collect_settings_of(config, request.environment)
    settings = replace(settings, progress=request.progress, tally=tally)
    job = ask.open_job(resolve_config.task_of(config), config.ask.models, config.relations.use, settings)
    if request.fresh:
        for leftover in (folder.ledger, *folder.path.glob(f"{folder.ledger.name}-*")):
            leftover.unlink(missing_ok=True)
    start: dict[str, Any] = {
        "version": __version__,
        "data": str(request.data),
        "annotators": [annotator.name for annotator, _ in job.annotators],
        "relations": [relation.name for relation in job.relations],
        "config": config_to_dict(config),
    }
    write_json(folder.settings, start)
    tables.write_table(folder.items, dataset.table)

    def note_wording(written: str) -> None:
        start["config"]["task"]["written_wording"] = written
        write_json(folder.settings, start)

    with vote_files.writing_variants(folder.variants) as note:
        noting = replace(job, on_variant=note, on_wording=note_wording)
        votes = run_sync(lambda: ask.ask_job(noting, dataset.items, folder.ledger, settings))
    vote_files.write_votes(folder.votes, votes)
    return votes, replace(config, task=replace(config.task, written_wording=start["config"]["task"]["written_wording"]))
