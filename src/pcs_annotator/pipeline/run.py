"""`pcs run` and `pcs fit`: rewrite, ask, learn, label and report in a run folder; each step writes one file."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from pcs_annotator.asking.engine.budget import Budget
from pcs_annotator.asking.engine.job import job_digest
from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.asking.ledger.lock import Say, lock_ledger, warn_user
from pcs_annotator.core.bill import Plan
from pcs_annotator.core.concurrency import run_sync
from pcs_annotator.core.tabular import table_stem
from pcs_annotator.core.task import Item
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.votes import Votes
from pcs_annotator.errors import ConfigError, MismatchError, PcsWarning, TableError
from pcs_annotator.files import sources, tables
from pcs_annotator.files.config import Config, LearnSettings, config_to_dict
from pcs_annotator.files.runs import RunFolder, clear_leftovers, expecting, read_json, write_json
from pcs_annotator.files.table_stream import Shard, TableStream
from pcs_annotator.pipeline import ask, folder_votes, human_review, learn, ledgers, resolve_config
from pcs_annotator.pipeline.batch.batches import BatchSettings
from pcs_annotator.pipeline.batch.waves import check_batches
from pcs_annotator.pipeline.batch.ways_to_ask import WayToAsk, ways_to_run
from pcs_annotator.pipeline.default_panel import DefaultPanel, Support
from pcs_annotator.pipeline.large.large_table import LargeTable, is_large, label_whole, open_large, relabel_whole
from pcs_annotator.pipeline.other_work import data_hash, other_work
from pcs_annotator.pipeline.report.page import write_report
from pcs_annotator.pipeline.run_folder import REFIT, SAMPLED, Recorded, RunResult, settings_of_fits, started
from pcs_annotator.version import __version__


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What to run.

    Attributes:
        data: The user's table: a path, a pattern or an address.
        folder: The run folder.
        config: Settings, including those of the command line.
        limit: Maximum number of rows; None for all.
        fresh: Whether to ask everything again; the ledger is kept under another name.
        wait: Whether to wait while another process asks with the same ledger; otherwise that is an error.
        progress: Whether to show progress.
        to_label: How many rows to write for a person to label, as long as there is no promise.
        spreadsheet_safe: Whether labels are written so that a spreadsheet runs no cell as a formula.
        replace: Whether to set aside what the folder has of other data, labels or instruction.
        gold_wins: Whether to accept gold labels that contradict each other; those of people override the data's.
        shard: Which part of the rows, such as `2/8`; empty for all.
        ask: Whether models may be called; otherwise, only answers in the ledger are used.
        environment: Keys and base URLs; None for those of the process and of `.env`.
        announce: Called with the questions that were chosen, before they are asked.
        say: Called with whom the run waits for, and where an earlier ledger is kept.
    """

    data: Path | str
    folder: Path
    config: Config
    limit: int | None = None
    fresh: bool = False
    wait: bool = True
    progress: bool = False
    to_label: int = human_review.ROWS_TO_LABEL
    spreadsheet_safe: bool = False
    replace: bool = False
    gold_wins: bool = False
    shard: str = ""
    ask: bool = True
    environment: Mapping[str, str] | None = field(default=None, repr=False)
    announce: Callable[[DefaultPanel], None] | None = None
    say: Say = warn_user

    def batches(self, executor: str) -> BatchSettings | None:
        """Return how to ask in batches; None if another executor asks."""
        if executor != "batch":
            return None
        records = RunFolder(self.folder).batches
        return BatchSettings(records=records, say=self.say, environment=self.environment)

    def open_data(self) -> TableStream:
        """Open the user's table, to be read in chunks."""
        shard = Shard.parse(self.shard) if self.shard else None
        return sources.open_stream(self.data, resolve_config.columns_of(self.config), self.limit, shard)

    def read_data(self, stream: TableStream | None = None) -> tables.Dataset:
        """Read all rows of the user's table."""
        stream = stream or self.open_data()
        return tables.dataset_of(stream.table(), stream.name, resolve_config.columns_of(self.config))


def default_folder(data: Path | str) -> Path:
    """Return the run folder to use if none is given."""
    return Path("runs") / table_stem(data)


def run(request: RunRequest) -> RunResult:
    """Rewrite, ask, learn, label and report; a second run asks only what is missing.

    Only one run at a time changes a folder: the lock of its ledger is held until all files are written.
    """
    started = time.perf_counter()
    ledgers.check_ledger(request.config, fresh=request.fresh)
    stream = request.open_data()
    large = None
    if is_large(stream):
        large = open_large(stream, RunFolder(request.folder), request.config)
    dataset = request.read_data(stream) if large is None else large.sample
    config = resolve_config.resolve(request.config, dataset)
    if large is not None:
        config = replace(config, data=replace(config.data, id_column=stream.columns.id or ""))
    # Settings and gold are checked before the first call, not after the last.
    learn.check_learning(config.learn)
    _check_models(request, config)
    if not (request.gold_wins or request.folder.exists()):  # before the lock makes the folder
        human_review.check_gold(None, dataset)
    folder = RunFolder(request.folder)
    with ledgers.lock_run(folder, ledgers.ledger_of(folder, config), wait=request.wait, say=request.say):
        return _run(request, config, dataset, started, large)


def _run(
    request: RunRequest, config: Config, dataset: tables.Dataset, started: float, large: LargeTable | None
) -> RunResult:
    folder = RunFolder(request.folder)
    fits = _kept_from_fits(folder, config)
    replacing = _refuse_other_work(request, config, dataset, large)
    kept = None if replacing else folder
    if not request.gold_wins:
        human_review.check_gold(kept, dataset)
    gold = human_review.gold_of(kept, dataset)
    if request.fresh and folder.ledger.exists():
        request.say(f"the answers so far are kept in {ledgers.set_ledger_aside(folder.ledger)}")
    tally = Tally(rows_expected=len(dataset.items))
    asking = time.perf_counter()
    config = _with_panel(request, config, dataset.items, tally)
    votes, config = _asked(request, config, dataset, tally, replacing=replacing, large=large)
    recorded = Recorded(
        folder=folder, config=config, dataset=dataset, answers=votes, gold=gold, sampled=large is not None
    )
    learning = time.perf_counter()
    learned = recorded.learn(config.learn)
    writing = time.perf_counter()
    if large is None:
        outcomes = recorded.write(learned, config.learn, fits, spreadsheet_safe=request.spreadsheet_safe)
    else:
        recorded.write_learned(learned, config.learn, fits)
        how = replace(_settings(request, config, tally), progress=request.progress)
        learned = label_whole(recorded, learned, large, how, spreadsheet_safe=request.spreadsheet_safe)
        recorded.write_learned(learned, config.learn, fits)
        outcomes = list(learned.model.judge(recorded.votes))
    to_label = recorded.hand_out(learned, request.to_label)
    steps = {"prepare": asking - started, "ask": learning - asking, "learn": writing - learning}
    seconds = {**steps, "write": time.perf_counter() - writing}
    result = recorded.result(learned, outcomes, tally=tally, seconds=seconds, to_label=to_label)
    write_report(result)
    return result


def learn_defaults(folder: Path) -> LearnSettings:
    """Return the defaults of `[learn]` for a run in a folder: what `pcs fit` was given there, else the usual ones."""
    return LearnSettings(**settings_of_fits(RunFolder(folder)))


def _kept_from_fits(folder: RunFolder, config: Config) -> dict[str, Any]:
    """Return the settings of `pcs fit` that this run keeps, and say so."""
    kept = {name: value for name, value in settings_of_fits(folder).items() if getattr(config.learn, name) == value}
    if kept:
        listed = ", ".join(f"{name} = {value}" for name, value in kept.items())
        warnings.warn(
            f"as in the last pcs fit of {folder.path}: {listed}; pcs.toml and options override this",
            PcsWarning,
            stacklevel=3,
        )
    return kept


def fit_run(  # noqa: PLR0913  # options of pcs fit
    path: Path,
    changes: Mapping[str, Any] | None = None,
    people: human_review.FromPeople | None = None,
    *,
    spreadsheet_safe: bool = False,
    spare_looks: bool = False,
    ledger: str = "",
    say: Say = warn_user,
) -> RunResult:
    """Learn again from the votes of a run folder, with the labels and verdicts that people gave; no model is called.

    Learning uses the settings of the last fit, with `changes`. A run that is changing the folder is waited for. With
    `spare_looks`, a promise is tested for only when enough gold rows have come since the last test without one.
    `ledger` says where the run's answers are now, if that has changed.
    """
    folder = RunFolder(path)
    started(folder)  # raises if this is no run folder, before a lock is put there
    with lock_ledger(folder.ledger, say=say):
        clear_leftovers(folder.path)
        how = {"spreadsheet_safe": spreadsheet_safe, "spare_looks": spare_looks}
        return _fit_run(Recorded.read(folder, ledger), changes, people or human_review.FromPeople(), **how)


def _fit_run(
    recorded: Recorded,
    changes: Mapping[str, Any] | None,
    people: human_review.FromPeople,
    *,
    spreadsheet_safe: bool,
    spare_looks: bool,
) -> RunResult:
    settings = replace(recorded.settings, **(changes or {}))
    recorded = replace(recorded, config=replace(recorded.config, learn=settings))
    items = recorded.dataset.items
    if people.gold is not None:
        recorded = recorded.with_gold(people.gold, wins=people.gold_wins)
    learned = recorded.learn(settings, spare_looks=spare_looks)
    if people.verdicts is not None:
        outcomes = list(learned.model.judge(recorded.votes))
        model = human_review.with_verdicts(learned.model, people.verdicts, recorded.folder, items, outcomes)
        learned = replace(learned, model=model)
        if not (learned.model.certificate and learned.model.certificate.holds):
            learned = replace(learned, model=learned.model.with_coverage(recorded.votes))
    fits = {**settings_of_fits(recorded.folder), **(changes or {})}
    if recorded.sampled:
        learned = relabel_whole(recorded, learned, spreadsheet_safe=spreadsheet_safe)
        recorded.write_learned(learned, settings, fits)
        outcomes = list(learned.model.judge(recorded.votes))
    else:
        outcomes = recorded.write(learned, settings, fits, spreadsheet_safe=spreadsheet_safe)
    audited = 0
    if people.audit:
        audited = human_review.hand_out_audit(recorded.folder, items, outcomes, recorded.gold, people.audit)
    to_label = recorded.hand_out(learned, people.to_label)
    result = recorded.result(learned, outcomes, to_label=to_label, to_audit=audited)
    write_report(result)
    return result


def open_run(path: Path) -> RunResult:
    """Return the result of a run from its folder; where model and figures are missing or damaged, learn again."""
    recorded = Recorded.read(RunFolder(path))
    recorded = replace(recorded, config=replace(recorded.config, learn=recorded.settings))
    figures = recorded.folder.evaluation
    try:
        with expecting(figures, REFIT):
            learned = learn.learned_from(recorded.model_in_force(), read_json(figures))
        return recorded.result(learned, list(learned.model.judge(recorded.votes)))
    except (TableError, MismatchError):
        return fit_run(path)


class RunPlan(NamedTuple):
    """What a run would ask.

    Attributes:
        plan: Calls and the most that they can cost.
        panel: The questions that were chosen; None when the user named them.
        alternatives: Option that would ask otherwise → its plan.
        ways: Cost and time of asking live and in batches.
    """

    plan: Plan
    panel: DefaultPanel | None = None
    alternatives: Mapping[str, Plan] = MappingProxyType({})
    ways: Sequence[WayToAsk] = ()


def plan(request: RunRequest) -> RunPlan:
    """Return what a run would ask and the most that it can cost; no model is called."""
    stream = request.open_data()
    if is_large(stream):
        large = open_large(stream, RunFolder(request.folder), request.config)
        dataset, rows = large.sample, large.rows
    else:
        dataset = request.read_data(stream)
        rows = len(dataset.items)
    config = resolve_config.resolve(request.config, dataset)
    if config.relations.use:
        planned, ways = _planned(request, config, dataset.items, rows)
        return RunPlan(planned, ways=ways)
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
    planned, ways = _planned(request, panel.applied_to(config), dataset.items, rows)
    alternatives = {option: _planned(request, other, dataset.items, rows)[0] for option, other in others.items()}
    return RunPlan(planned, panel, alternatives, ways)


def _planned(request: RunRequest, config: Config, items: Sequence[Item], rows: int) -> tuple[Plan, list[WayToAsk]]:
    """Return the plan for a table of so many rows, given all of them or a sample."""
    settings = resolve_config.collect_settings_of(config, request.environment)
    job = ask.open_job(resolve_config.task_of(config), config.ask.models, config.relations.use, settings)
    planned = ask.plan_job(job, items, settings).for_rows(rows)
    return planned, ways_to_run(job, planned, settings.in_flight)


def _check_models(request: RunRequest, config: Config) -> None:
    """Raise for a model, key, price or relation that cannot be used, before the run folder is changed."""
    settings = resolve_config.collect_settings_of(config, request.environment)
    models, relations = config.ask.models, config.relations.use or (ORIGINAL,)
    settings = replace(settings, questions=settings.questions if config.relations.use else {})
    job = ask.open_job(resolve_config.task_of(config), models, relations, settings)
    run_sync(lambda: ask.close_models(job))
    if config.ask.executor == "batch":
        check_batches(job)
    ask.refuse_unknown_prices(job, ask.pricing(settings.prices), settings.budget)


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
        ledger=ledgers.ledger_of(RunFolder(request.folder), config),
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


def _refuse_other_work(request: RunRequest, config: Config, dataset: tables.Dataset, large: LargeTable | None) -> bool:
    """Raise if the folder has results of other work; with `request.replace`, return whether it has."""
    folder = RunFolder(request.folder)
    if large is None:
        other = other_work(folder, config, dataset)
    else:
        other = other_work(folder, config, replace(dataset, items=large.known), large.data)
    if other and not request.replace:
        limit = "" if request.limit is None else ", leave out --limit"
        raise ConfigError(
            f"{request.folder} has results {other}: name another folder with -o{limit}, or add --replace, which keeps "
            "the old results under a dated name"
        )
    return bool(other)


def _settings(request: RunRequest, config: Config, tally: Tally) -> ask.CollectSettings:
    """Return how to ask, with what is left of the budget."""
    settings = resolve_config.collect_settings_of(config, request.environment)
    settings = replace(settings, progress=request.progress, tally=tally)
    if not request.ask:
        return replace(settings, budget=Budget(calls=0), cluster=None)
    budget = settings.budget.after(tally.calls)
    return replace(settings, budget=budget, batches=request.batches(config.ask.executor))


def _asked(
    request: RunRequest,
    config: Config,
    dataset: tables.Dataset,
    tally: Tally,
    *,
    replacing: bool,
    large: LargeTable | None,
) -> tuple[Votes, Config]:
    """Ask all questions, and return the settings with the wording that a model wrote for them, if one did.

    Settings and rows are written first, so that an interrupted run can be resumed. Results to be replaced are set aside
    once the run can begin.
    """
    folder = RunFolder(request.folder)
    ledger = ledgers.ledger_of(folder, config)
    settings = _settings(request, config, tally)
    job = ask.open_job(resolve_config.task_of(config), config.ask.models, config.relations.use, settings)
    clear_leftovers(folder.path)
    if replacing:
        request.say(f"the old results are kept in {folder.set_results_aside()}")
    digest = job_digest(job, dataset.items)
    found = folder_votes.reusable_votes(folder, ledger, job, dataset.items, digest, tally)
    if found is not None:
        config = replace(config, task=replace(config.task, written_wording=found.written_wording))
    start: dict[str, Any] = {
        "version": __version__,
        "data": str(request.data),
        "data_hash": data_hash(dataset.items) if large is None else large.data,
        "annotators": [annotator.name for annotator, _ in job.annotators],
        "relations": [relation.name for relation in job.relations],
        "config": config_to_dict(config),
        "asked": digest,
    }
    if large is not None:
        start |= {SAMPLED: large.rows, "limit": request.limit, "shard": request.shard}
    write_json(folder.settings, start)
    tables.write_table(folder.items, dataset.table)

    def note_wording(written: str) -> None:
        start["config"]["task"]["written_wording"] = written
        write_json(folder.settings, start)

    if found is None:
        job = replace(job, on_wording=note_wording)
        found = folder_votes.ask_for_folder(folder, ledger, job, dataset.items, settings, digest)
    return found.votes, replace(config, task=replace(config.task, written_wording=found.written_wording))
