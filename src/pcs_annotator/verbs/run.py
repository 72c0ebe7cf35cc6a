"""`pcs run`: rewrite, ask, learn, label and report in a run folder; each step writes one file."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from pcs_annotator.asking.engine.job import job_digest
from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.base.concurrency import run_sync
from pcs_annotator.base.errors import ConfigError, warn_user
from pcs_annotator.core.task import Item
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.label_shape import LabelShape
from pcs_annotator.relations.limits import languages_of
from pcs_annotator.runs import ask, folder_votes, learn, ledgers, resolve_config
from pcs_annotator.runs.book import open_parts
from pcs_annotator.runs.book_result import BookResult
from pcs_annotator.runs.columns import groups_of, refuse_many
from pcs_annotator.runs.executors import check_executor
from pcs_annotator.runs.fits import settings_of_fits
from pcs_annotator.runs.gold_in_prompts import (
    about_definitions,
    as_if_defined,
    lacks_definitions,
    with_definitions,
    with_gold_examples,
    with_known_texts,
)
from pcs_annotator.runs.gold_labels import check_gold, gold_of, without_examples
from pcs_annotator.runs.label_table import label_whole
from pcs_annotator.runs.ledgers import refuse_lost_ledger
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.passage_run import PassageRun
from pcs_annotator.runs.paths import SAMPLED, RunFolder, parts_in, write_start
from pcs_annotator.runs.quotations import windows_of
from pcs_annotator.runs.run_request import RunRequest, earlier_run
from pcs_annotator.runs.run_result import RunResult
from pcs_annotator.runs.run_table import RunTable, open_table, refuse_other_work
from pcs_annotator.runs.settings import Config, LearnSettings
from pcs_annotator.runs.toml import config_to_dict
from pcs_annotator.runs.watch import Watch
from pcs_annotator.tables import write
from pcs_annotator.tables.chunks import Dataset
from pcs_annotator.tables.files import clear_leftovers
from pcs_annotator.verbs.fit import written
from pcs_annotator.version import __version__

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One variable that is to be run; everything about it that can be checked before the first call was checked."""

    request: RunRequest
    config: Config
    table: RunTable
    replacing: bool = False  # whether results of other work are to be set aside


def run(request: RunRequest, announce: Callable[[str], None] = lambda part: None) -> BookResult:
    """Rewrite, ask, learn, label and report, one variable after the other; a second run asks only what is missing.

    Only one run at a time changes a folder: the lock of its ledger is held until all files are written. `announce` is
    called with the name of each variable before it is asked about.
    """
    started, folder = time.perf_counter(), RunFolder(request.folder)
    folder.refuse_file()
    ledgers.check_ledger(request.config, fresh=request.fresh)
    _refuse_other_variables(folder, request.config)
    parts = {name: _prepared(part) for name, part in open_parts(request).items()}
    first = next(iter(parts.values()))
    tally = Tally(rows_expected=len(first.table.sample.items))
    watch = Watch(folder, f"run {request.data_name}", tally)
    address = ledgers.ledger_of(folder, first.config)
    with ledgers.lock_run(folder, address, wait=request.wait, say=request.say), watch:
        clear_leftovers(folder.path, *(part.request.run_folder.own_folder for part in parts.values()))
        parts = {name: _begun(part) for name, part in parts.items()}
        if any(part.replacing for part in parts.values()):
            request.say(f"the old results are kept in {folder.set_results_aside()}")
        if request.fresh and folder.ledger.exists():
            request.say(f"the answers so far are kept in {ledgers.set_ledger_aside(folder.ledger)}")
        follow, results = watch.begin(), dict[str, RunResult]()
        # labels of one variable are learned about together
        for _, names in groupby(parts, lambda name: name.partition("=")[0]):
            asked = dict[str, _Asked]()
            for name in names:
                announce(name)
                following = replace(parts[name], request=replace(parts[name].request, follow=follow))
                counted = Tally(rows_expected=tally.rows_expected) if results or asked else tally
                asked[name] = _ask(following, [*parts], counted, started)
            runs = {name: each.run for name, each in asked.items()}
            results |= {name: _learned(each, runs) for name, each in asked.items()}
        with request.working("writing labels and report"):
            return written(folder, results, spreadsheet_safe=request.spreadsheet_safe)


def _refuse_other_variables(folder: RunFolder, config: Config) -> None:
    before = parts_in(folder.path)
    if before and (before == [""]) != (not config.variables):
        what = "one variable" if before == [""] else "several variables"
        raise ConfigError(f"{folder.path} has a run with {what}: name another folder with -o")


def _prepared(request: RunRequest) -> _Part:
    """Check settings and gold of a variable: before the first call, not after the last."""
    folder = request.run_folder
    table = open_table(request.open_data(), folder, request.config)
    sample, quoting = (
        table.sample,
        request.config.task.extraction is not None,
    )  # errors in its gold name the user's file
    config = resolve_config.resolve(request.config, replace(sample, name=request.data_name) if quoting else sample)
    reading = {**asdict(request.reading()), "id_column": table.stream.columns.id_setting}
    config = with_gold_examples(request, replace(config, data=replace(config.data, **reading)), sample)
    config = _with_gold_sample(request, with_known_texts(request, config, sample), sample)
    learn.learning_of(config.learn, shape=LabelShape.of(config.task.kind, config.task.labels))
    texts = [item.text for item in sample.items]
    refuse_many(config.learn.by, groups_of(config.learn.by, sample.table, texts, table.stream.name) or ())
    _check_models(request, config)
    if not (request.gold_wins or request.folder.exists()):  # before the lock makes the folder
        check_gold(None, sample)
    refuse_lost_ledger(folder, config)
    return _Part(request=request, config=config, table=table)


def _begun(part: _Part) -> _Part:
    """Check the results that the folder has, which nobody else changes from now on, and choose the questions."""
    request, sample = part.request, part.table.sample
    replacing = refuse_other_work(request, part.config, part.table)
    if not request.gold_wins:
        check_gold(None if replacing else request.run_folder, sample)
    config, named = _with_panel(request, part.config, sample.items), bool(part.config.relations.use)
    to_define = lacks_definitions(config)
    config = with_definitions(replace(request, fresh=request.fresh or replacing), config, sample, named=named)
    if to_define and request.announce is not None and (reason := about_definitions(config)):
        request.announce([reason])
    return replace(part, replacing=replacing, config=config)


class _Asked(NamedTuple):
    part: _Part
    run: Run
    fits: Mapping[str, Any]  # what `pcs fit` was given
    tally: Tally
    seconds: Mapping[str, float]


def _ask(part: _Part, parts: Sequence[str], tally: Tally, started: float) -> _Asked:
    """Rewrite, and ask about one variable; `parts` are all of the run."""
    folder, dataset, config = part.request.run_folder, part.table.sample, part.config
    fits = {} if part.replacing else _kept_from_fits(folder, config)
    gold = gold_of(None if part.replacing else folder, dataset).taken_as(config.learn.gold_sample)
    gold = without_examples(gold, [item.text for item in dataset.items], config.task)
    asking = time.perf_counter()
    votes = _asked(part, parts, tally)
    settings = {"sampled": part.table.sampled, "by": config.learn.by, "gold_sample": config.learn.gold_sample}
    recorded = Run(folder, config, dataset=dataset, gold=gold, **settings)
    if config.task.extraction:
        recorded = PassageRun.asked(recorded, votes, part.request.own)
    else:
        recorded = recorded.having(answers=votes)
    if not part.table.sampled:
        part.request.paid.add(tally)
    seconds = {"prepare": asking - started, "ask": time.perf_counter() - asking}
    return _Asked(part, recorded, fits, tally, seconds)


def _learned(asked: _Asked, parts: Mapping[str, Run]) -> RunResult:
    part, recorded, fits, tally, seconds = asked
    request, config, learning = part.request, part.config, time.perf_counter()
    recorded = recorded.having(parts=parts)
    with request.working("learning from gold"):
        learned = recorded.learn(config.learn, say=request.say)
    writing = time.perf_counter()
    recorded.write_learned(learned, config.learn, fits)
    if part.table.sampled:
        settings = _settings(request, config, tally)
        learned = label_whole(recorded, learned, part.table, settings, spreadsheet_safe=request.spreadsheet_safe)
        recorded.write_learned(learned, config.learn, fits)
        request.paid.add(tally)
    to_label = recorded.hand_out(learned, request.to_label)
    seconds = {**seconds, "learn": writing - learning, "write": time.perf_counter() - writing}
    result = recorded.result(learned, tally=tally, seconds=seconds, to_label=to_label, own=request.own)
    _LOG.info("%r, %d calls, %d answers from the ledger", result, tally.calls, tally.from_ledger)
    return result


def _with_gold_sample(request: RunRequest, config: Config, sample: Dataset) -> Config:
    """Return the settings with how the gold rows of the data were chosen, if a person who is asked knows it."""
    gold, learn = sum(label is not None for label in sample.gold), config.learn
    if learn.gold_sample != "unknown" or learn.max_error is None or not gold:
        return config
    if (before := earlier_run(request.run_folder)) is not None:  # it was asked then
        return replace(config, learn=replace(learn, gold_sample=before.gold_sample))
    sample_kind = request.ask_gold_sample(gold) if request.ask_gold_sample else "unknown"
    return replace(config, learn=replace(learn, gold_sample=sample_kind))


def learn_defaults(folder: Path) -> LearnSettings:
    """Return the defaults of `[learn]` for a run in a folder: what `pcs fit` was given there, else the usual ones."""
    return LearnSettings(**settings_of_fits(RunFolder(folder)))


def _kept_from_fits(folder: RunFolder, config: Config) -> dict[str, Any]:
    kept = {name: value for name, value in settings_of_fits(folder).items() if getattr(config.learn, name) == value}
    if listed := ", ".join(f"{name} = {value}" for name, value in kept.items()):
        warn_user(f"as in the last pcs fit of {folder.home}: {listed}; pcs.toml and options override this")
    return kept


def _check_models(request: RunRequest, config: Config) -> None:
    """Raise for a model, key, price or relation that cannot be used, before the run folder is changed."""
    config = as_if_defined(config)
    settings = resolve_config.collect_settings_of(config, request.environment, request.own)
    models, relations = config.ask.models, config.relations.use or (ORIGINAL,)
    settings = replace(settings, questions=settings.questions if config.relations.use else {})
    job = ask.open_job(resolve_config.task_of(config), models, relations, settings)
    run_sync(lambda: ask.close_models(job))
    check_executor(config.ask.executor, job, config.ask.ledger)
    ask.refuse_unknown_prices(job, ask.pricing(settings.prices), settings.budget)


def _with_panel(request: RunRequest, config: Config, items: Sequence[Item]) -> Config:
    """Return the settings with the questions to ask: those that the user named, that the run had, or the usual ones."""
    if config.relations.use:
        return config
    panel = request.panel(config, items)
    _LOG.info("questions: %s", "; ".join(panel.reasons))
    if request.announce is not None:
        request.announce(panel.reasons)
    return panel.applied_to(config)


def _settings(request: RunRequest, config: Config, tally: Tally) -> ask.CollectSettings:
    settings, batches = request.how_to_ask(config), request.batches(config.ask.executor)
    settings = replace(settings, progress=request.progress, tally=tally, batches=batches)
    return replace(settings, budget=settings.budget.after(*tally.spent))


def _asked(part: _Part, parts: Sequence[str], tally: Tally) -> Votes:
    """Ask all questions; settings and rows are written first, so that an interrupted run can be resumed."""
    request, config, table, folder = part.request, part.config, part.table, part.request.run_folder
    dataset, ledger = table.sample, ledgers.ledger_of(folder, config)
    items = [window.item for window in windows_of(dataset.items)] if config.task.extraction else dataset.items
    settings = _settings(request, config, tally)
    job = ask.open_job(resolve_config.task_of(config), config.ask.models, config.relations.use, settings)
    if limits := languages_of((item.text for item in dataset.items), job.relations).warning:
        request.say(limits)
    digest = job_digest(job, items)
    votes = folder_votes.reusable_votes(folder, ledger, job, items, digest, tally)
    start: dict[str, Any] = {
        "version": __version__,
        "data": request.data_name,
        "data_hash": table.data,
        "annotators": [annotator.name for annotator, _ in job.annotators],
        "relations": [relation.name for relation in job.relations],
        "config": config_to_dict(config),
        "asked": digest,
    }
    if table.sampled:
        start |= {SAMPLED: table.rows, "limit": request.limit}
    write_start(folder, start, parts)
    write.write_table(folder.items, dataset.table if request.whole_table is None else request.whole_table)
    folder.own_folder.mkdir(parents=True, exist_ok=True)
    if votes is None:
        votes = folder_votes.ask_for_folder(folder, ledger, job, items, settings, digest)
    return votes
