"""`pcs label`: labels new texts with a fitted run, asking only the questions that the labels need."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from pcs_annotator.asking.engine.budget import Budget
from pcs_annotator.asking.engine.job import Job
from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.base.concurrency import run_sync
from pcs_annotator.base.errors import ConfigError, TableError
from pcs_annotator.core.bill import Bill, Plan
from pcs_annotator.core.gold import gold_codes
from pcs_annotator.core.outcome import Counts, Outcomes
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.evaluation.scored import one_thread
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promising.drift import Drift
from pcs_annotator.judging.spending.frugal import Frugal, Spending, learn_frugal, rounds_of
from pcs_annotator.models.provider import unasked
from pcs_annotator.runs import ask, label_files, learn, ledgers, resolve_config
from pcs_annotator.runs.batch.ways_to_ask import WayToAsk, ways_to_label
from pcs_annotator.runs.cluster import ray_cluster
from pcs_annotator.runs.drift_text import warn_if_unlike
from pcs_annotator.runs.files import runs
from pcs_annotator.runs.fitted import FittedRun, job_of
from pcs_annotator.runs.large.large_table import is_large, with_counted_coverage
from pcs_annotator.runs.large.stream import (
    OutFiles,
    RowMaker,
    Written,
    data_hash_of,
    joined,
    label_locally,
    write_all,
)
from pcs_annotator.runs.large.survey import sampled_rows, survey
from pcs_annotator.runs.own_objects import OwnObjects
from pcs_annotator.runs.run_folder import Recorded, refuse_lost_ledger, started
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.tables import tables
from pcs_annotator.tables.result_columns import with_outcomes
from pcs_annotator.tables.table_files import STDIO, ending_of
from pcs_annotator.tables.table_stream import TableStream
from pcs_annotator.tables.table_writer import WRITTEN
from pcs_annotator.tables.tabular import has_wildcards, table_stem
from pcs_annotator.tables.workbook import WORKBOOK, refuse_too_many_rows

_LOG = logging.getLogger(__name__)
# The prices of models are compared on a question and an answer of typical length.
TYPICAL_TOKENS = (500, 20)
ON_DRIFT = ("review", "accept")


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """How to spend less on new texts.

    Attributes:
        ask_all: Ask every question, even if it cannot change the label.
        cascade: Ask cheap models first, and expensive ones only about texts whose label they can still change.
        max_calls: Maximum number of calls; None for no limit.
        max_tokens: Maximum number of tokens, in and out; None for no limit.
        budget_usd: Maximum cost of the run's folder in dollars; None for the budget of the run's settings.
        budget_per_day_usd: Maximum cost per day (UTC), likewise.
        prices: Prices of models, in dollars per million tokens in and out; others are those of the run's settings.
        executor: Where calls are made; None for that of the run's settings.
        workers: Number of workers on a cluster, likewise.
        ray_address: Address of the cluster, likewise.
        max_per_second: Maximum number of calls per second, likewise.
        on_drift: What becomes of labels for texts that differ from the gold rows the promise was made on: `review`
            leaves all of them for review, `accept` decides as if nothing had changed.
    """

    ask_all: bool = False
    cascade: bool = False
    max_calls: int | None = None
    max_tokens: int | None = None
    budget_usd: float | None = None
    budget_per_day_usd: float | None = None
    prices: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    executor: str | None = None
    workers: int | None = None
    ray_address: str | None = None
    max_per_second: float | None = None
    on_drift: str = "review"

    def __post_init__(self) -> None:
        if self.on_drift not in ON_DRIFT:
            raise ConfigError(f"on_drift is {self.on_drift!r}: use one of {', '.join(ON_DRIFT)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """New texts with labels from a fitted run.

    Attributes:
        dataset: The texts.
        votes: The votes on them.
        outcomes: A label for every text.
        tally: Counts of calls, answers and failures.
        out: The file with the labels; None if none was written.
        model: The model that judged them; its certificate is about these texts.
        frugal: How questions were saved; None when everything was asked.
        drift: Whether the answers differ from those of the run; None when the run kept nothing to compare with.
        whole: Exact counts of a large table; texts, votes and outcomes are then those of a sample.
    """

    dataset: tables.Dataset
    votes: Votes
    outcomes: Outcomes
    tally: Tally
    out: Path | str | None
    model: Model
    frugal: Frugal | None = None
    drift: Drift | None = None
    whole: Counts | None = None

    @property
    def counts(self) -> Counts:
        """How many rows have which label, of all rows."""
        return self.whole or Counts.of(self.outcomes, [item.text for item in self.dataset.items])

    @property
    def unlabelled(self) -> int:
        """Number of rows without a label."""
        return self.counts.unlabelled


def default_out(data: Path | str) -> Path:
    """Return the default output file for the labels of a table: beside it, or in this folder if it is elsewhere."""
    name = f"{table_stem(data)}-labels.csv"
    if isinstance(data, str):
        return Path(name)
    whole = next((one for one in (data, *data.parents) if not has_wildcards(one.name)), data)
    return whole.with_name(name) if whole.name else whole / name


def label(request: RunRequest, out: Path | str | None, saving: Saving | None = None) -> Labelled:
    """Ask the models of a fitted run about new texts and label them; of `request.config`, only columns are used.

    A file that this run did not write, or that has other rows, is an error; with `request.replace`, it is kept under a
    dated name. Without `out`, no file is written.
    """
    folder = runs.RunFolder(request.folder)
    if out is not None and out != STDIO:
        runs.check_ending(out, WRITTEN)
    # raises if this is no run folder, before a lock is put there
    config, _ = started(folder, request.config.ask.ledger)
    request = _without_gold(request)
    stream = request.open_data()
    dataset = None if is_large(stream) else request.read_data(stream)
    ledgers.check_ledger(config)
    refuse_lost_ledger(folder, config)
    with ledgers.lock_run(folder, ledgers.ledger_of(folder, config), wait=request.wait, say=request.say):
        if dataset is None:
            if out is None:
                raise ConfigError(f"{stream.name} is too large to be labelled in memory: name a file with out=…")
            return _label_large(request, stream, out, saving or Saving())
        return _label(request, stream, dataset, out, saving or Saving())


def _label(
    request: RunRequest, stream: TableStream, dataset: tables.Dataset, out: Path | str | None, saving: Saving
) -> Labelled:
    recorded = Recorded.read(runs.RunFolder(request.folder), request.config.ask.ledger)
    in_the_way = ""
    if out is not None:
        in_the_way = label_files.in_the_way(out, recorded.folder, dataset)
        _refuse(request, out, in_the_way, len(dataset.items))
    opened = _opened(request, recorded, saving, len(dataset.items))
    ledger, tally = ledgers.ledger_of(recorded.folder, recorded.config), opened.settings.tally
    asking = partial(ray_cluster.ask_job, opened.job, dataset.items, ledger, opened.settings, opened.strategy)
    with ledgers.noting_payments(recorded.folder, recorded.config, tally, "label"):
        votes = run_sync(asking)
    found = learn.check_drift(opened.model, votes, [item.text for item in dataset.items])
    warn_if_unlike(found, opened, ledger, recorded.folder, request.data)
    model = opened.model.facing(found, saving.on_drift).with_coverage(votes)
    outcomes = Outcomes(model.judge(votes))
    _LOG.info("%d texts labelled: %s, %d calls", len(outcomes), Counts.of(outcomes).decisions, tally.calls)
    labels = with_outcomes(dataset.table, outcomes, votes.labels)
    if out is not None:
        if in_the_way:
            request.say(f"{out} is kept as {runs.keep_earlier(out)}")
        tables.write_table(out, labels, label_files.style_of(request, stream, out, model))
        label_files.note_written(recorded.folder, out)
    return Labelled(
        dataset=dataset,
        votes=votes,
        outcomes=outcomes,
        tally=tally,
        out=out,
        model=model,
        frugal=opened.frugal,
        drift=found,
    )


def _opened(request: RunRequest, recorded: Recorded, saving: Saving, rows: int) -> FittedRun:
    """Open a fitted run that shows its progress, and asks in batches if wanted."""
    opened = open_fitted(recorded, saving, request.environment, request.own)
    batches = request.batches(saving.executor or recorded.config.ask.executor)
    tally = Tally(rows_expected=rows)
    return replace(opened, settings=replace(opened.settings, progress=request.progress, tally=tally, batches=batches))


def _refuse(request: RunRequest, out: Path | str, in_the_way: str, rows: int) -> None:
    if ending_of(str(out)).kind == WORKBOOK:
        refuse_too_many_rows(rows, str(out))
    if in_the_way and not request.replace:
        raise TableError(
            f"{out} {in_the_way}: name another file with -o, or add --replace, which keeps it under a dated name"
        )


def _label_large(request: RunRequest, stream: TableStream, out: Path | str, saving: Saving) -> Labelled:
    """Label a table that is larger than memory in chunks; drift is looked for in a sample of its rows.

    If it is found, the table is gone through once more for other decisions, with the answers in the ledger.
    """
    recorded = Recorded.read(runs.RunFolder(request.folder), request.config.ask.ledger)
    rows, data = stream.check_ids(), data_hash_of(stream)
    in_the_way = label_files.large_in_the_way(out, recorded.folder, data)
    _refuse(request, out, in_the_way, rows)
    opened = _opened(request, recorded, saving, rows)
    ledger = ledgers.ledger_of(recorded.folder, recorded.config)

    def write(fitted: FittedRun, to: Path | str) -> Written:
        maker = RowMaker(model=fitted.model, is_sampled=partial(sampled_rows, of=rows))
        files = OutFiles(to, None, label_files.style_of(request, stream, out, fitted.model))
        return run_sync(lambda: write_all(label_locally(stream, fitted, ledger, maker), files, stream, data))

    if in_the_way:
        request.say(f"{out} is kept as {runs.keep_earlier(out)}")
    with TemporaryDirectory() as scratch:
        # what is on standard output cannot be taken back
        first = Path(scratch, "labels.csv") if out == STDIO and saving.on_drift == "review" else out
        with ledgers.noting_payments(recorded.folder, recorded.config, opened.settings.tally, "label"):
            written = write(opened, first)
    dataset, votes = joined(written.sample)
    found = learn.check_drift(opened.model, votes, [item.text for item in dataset.items])
    warn_if_unlike(found, opened, ledger, recorded.folder, request.data)
    model = opened.model.facing(found, saving.on_drift)
    if first != out or model is not opened.model:
        written = write(_from_ledger(recorded, replace(opened, model=model)), out)
    label_files.note_written(recorded.folder, out, data)
    model = with_counted_coverage(model, written.counts)
    return Labelled(
        dataset=dataset,
        votes=votes,
        outcomes=Outcomes(model.judge(votes)),
        tally=opened.settings.tally,
        out=out,
        model=model,
        frugal=opened.frugal,
        drift=found,
        whole=written.counts,
    )


def _from_ledger(recorded: Recorded, fitted: FittedRun) -> FittedRun:
    """Return a run that finds all answers in the ledger, and makes no call."""
    settings = replace(
        fitted.settings, tally=Tally(), budget=Budget(calls=0), batches=None, cluster=None, progress=False
    )
    return replace(fitted, job=job_of(recorded, settings), settings=settings)


def open_fitted(
    recorded: Recorded, saving: Saving, environment: Mapping[str, str] | None, own: OwnObjects | None = None
) -> FittedRun:
    """Open the models of a fitted run, and learn when to stop asking."""
    given = {name: getattr(saving, name) for name in resolve_config.EXECUTION}
    how = replace(recorded.config.ask, **{name: value for name, value in given.items() if value is not None})
    settings = resolve_config.collect_settings_of(replace(recorded.config, ask=how), environment, own)
    settings = _within_budget(settings, saving)
    fitted = recorded.model_in_force()
    job = job_of(recorded, settings)
    frugal = _frugal(recorded, fitted, job, settings, saving)
    model = fitted if frugal is None else _like_the_run(frugal.model, fitted)
    return FittedRun(job=job, settings=settings, model=model, frugal=frugal, on_drift=saving.on_drift)


class LabelPlan(NamedTuple):
    """The cost of labelling new texts: with every question, and with stopping early.

    Attributes:
        everything: All questions.
        frugal: The expected cost with stopping early; None when nothing was learned to decide when to stop.
        spending: The share of questions that is expected.
        ways: Cost and time of asking live and in batches.
    """

    everything: Plan
    frugal: Plan | None
    spending: Spending | None
    ways: Sequence[WayToAsk] = ()


def plan_labelling(request: RunRequest, saving: Saving | None = None) -> LabelPlan:
    """Return what labelling new texts with a fitted run would ask and cost; no model is called."""
    recorded = Recorded.read(runs.RunFolder(request.folder), request.config.ask.ledger)
    stream = _without_gold(request).open_data()
    found = survey(stream)  # a smaller table is the whole sample
    rows, items = found.rows, found.sample.items
    settings = resolve_config.collect_settings_of(recorded.config, unasked(request.environment), request.own)
    settings = _within_budget(settings, saving or Saving())
    job = job_of(recorded, settings)
    everything = ask.plan_job(job, items, settings).for_rows(rows)
    frugal = _frugal(recorded, recorded.model_in_force(), job, settings, saving or Saving())
    if frugal is None:
        return LabelPlan(everything, None, None, ways_to_label(job, everything, None, (), settings.in_flight))
    fewer = _scaled(everything, job, frugal.spending)
    rounds = rounds_of(recorded.votes, frugal.strategy)
    return LabelPlan(
        everything, fewer, frugal.spending, ways_to_label(job, everything, fewer, rounds, settings.in_flight)
    )


def new_texts(request: RunRequest) -> tables.Dataset:
    """Read the texts to label; they need no gold column, even if the settings name one for the run's own data."""
    return _without_gold(request).read_data()


def _without_gold(request: RunRequest) -> RunRequest:
    config = request.config
    return replace(request, config=replace(config, data=replace(config.data, gold_column="")))


def _within_budget(settings: ask.CollectSettings, saving: Saving) -> ask.CollectSettings:
    of_run = settings.budget
    budget = Budget(
        usd=of_run.usd if saving.budget_usd is None else saving.budget_usd,
        usd_per_day=of_run.usd_per_day if saving.budget_per_day_usd is None else saving.budget_per_day_usd,
        calls=saving.max_calls,
        tokens=saving.max_tokens,
    )
    return replace(settings, budget=budget, prices={**settings.prices, **resolve_config.own_prices(saving.prices)})


def _frugal(
    recorded: Recorded, fitted: Model, job: Job, settings: ask.CollectSettings, saving: Saving
) -> Frugal | None:
    """Return how to save questions; None when all are requested, or when nothing is calibrated."""
    if saving.ask_all or fitted.calibrator is None:
        return None
    prices = _prices(job, settings) if saving.cascade else None
    votes, gold = recorded.votes, recorded.gold
    codes = gold_codes(votes, gold.labels)
    once = learn.counted_once(votes, codes, recorded.texts, gold.random_sample)
    how = replace(learn.learning_of(recorded.settings, recorded.looked(recorded.settings)), resamples=0)
    with one_thread():
        return learn_frugal(votes, codes, how, prices, gold.random_sample, once.distinct)


def _like_the_run(model: Model, fitted: Model) -> Model:
    """Return the model with what is known about the run's promise: if that does not hold, this one cannot hold."""
    earlier = fitted.certificate
    if model.certificate is None or earlier is None:
        return model
    if not earlier.thresholds:  # there was none, or votes, gold or code have changed since
        return replace(model, certificate=earlier)
    audit = earlier.audit if earlier.revoked else None
    certificate = replace(model.certificate, audit=audit, assumed_rows=earlier.assumed_rows)
    return replace(model, certificate=certificate)


def _prices(job: Job, settings: ask.CollectSettings) -> Mapping[str, float]:
    price_of = ask.pricing(settings.prices)
    prices = {annotator.name: price_of(model.name, *TYPICAL_TOKENS) for annotator, model in job.annotators}
    for name, price in prices.items():
        if price is None:
            raise ConfigError(
                f"a cascade needs the price of {name}: give it with --price {name}=IN,OUT, or in [ask.prices]"
            )
    return {name: price or 0.0 for name, price in prices.items()}


def _scaled(plan: Plan, job: Job, spending: Spending) -> Plan:
    """Return the plan with every model's calls reduced to the share that is expected."""
    shares: dict[str, list[float]] = {}
    for annotator, model in job.annotators:
        shares.setdefault(model.name, []).append(spending.by_annotator[annotator.name])
    rewritten = [spending.by_relation[relation.name] for relation in job.relations if "rewriter" in relation.needs]

    def scaled(bill: Bill) -> Bill:
        parts = rewritten if bill.purpose == "rewrite" else shares[bill.model]
        share = sum(parts) / len(parts)
        return replace(
            bill,
            calls=round(bill.calls * share),
            input_tokens=round(bill.input_tokens * share),
            output_tokens=round(bill.output_tokens * share),
            usd=None if bill.usd is None else bill.usd * share,
        )

    return replace(plan, models=tuple(scaled(bill) for bill in plan.models))
