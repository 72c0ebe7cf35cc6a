"""`pcs label`: labels new texts with a fitted run, asking only the questions that the labels need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from pcs_annotator.asking.annotators.annotator import Annotator
from pcs_annotator.asking.engine.budget import Budget
from pcs_annotator.asking.engine.job import Job
from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.core.bill import Bill, Plan
from pcs_annotator.core.concurrency import run_sync
from pcs_annotator.core.elicitations import kind_of
from pcs_annotator.core.gold import gold_codes
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.strategy import Strategy
from pcs_annotator.core.tabular import has_wildcards, table_stem
from pcs_annotator.core.votes import Votes
from pcs_annotator.errors import ConfigError, TableError
from pcs_annotator.files import runs, tables
from pcs_annotator.files.table_writer import WRITTEN
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promising.drift import Drift
from pcs_annotator.judging.spending.frugal import Frugal, Spending, graded_annotators, learn_frugal, rounds_of
from pcs_annotator.pipeline import ask, learn, ledgers, ray_cluster, resolve_config
from pcs_annotator.pipeline.other_work import lost_rows
from pcs_annotator.pipeline.run import RunRequest
from pcs_annotator.pipeline.run_folder import Recorded, started
from pcs_annotator.pipeline.ways_to_ask import WayToAsk, ways_to_label

# The prices of models are compared on a question and an answer of typical length.
TYPICAL_TOKENS = (500, 20)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """New texts with labels from a fitted run.

    Attributes:
        dataset: The texts.
        votes: The votes on them.
        outcomes: A label for every text.
        tally: Counts of calls, answers and failures.
        out: The file with the labels.
        model: The model that judged them; its certificate is about these texts.
        frugal: How questions were saved; None when everything was asked.
        drift: Whether the answers differ from those of the run; None when the run kept nothing to compare with.
    """

    dataset: tables.Dataset
    votes: Votes
    outcomes: Sequence[Outcome]
    tally: Tally
    out: Path
    model: Model
    frugal: Frugal | None = None
    drift: Drift | None = None

    @property
    def unlabelled(self) -> int:
        """Number of rows without a label."""
        return sum(outcome.label is None for outcome in self.outcomes)


def default_out(data: Path | str) -> Path:
    """Return the default output file for the labels of a table: beside it, or in this folder if it is elsewhere."""
    name = f"{table_stem(data)}-labels.csv"
    if isinstance(data, str):
        return Path(name)
    whole = next((one for one in (data, *data.parents) if not has_wildcards(one.name)), data)
    return whole.with_name(name) if whole.name else whole / name


def label(request: RunRequest, out: Path, saving: Saving | None = None) -> Labelled:
    """Ask the models of a fitted run about new texts and label them; of `request.config`, only columns are used.

    A file that this run did not write, or that has other rows, is an error; with `request.replace`, it is kept under a
    dated name.
    """
    folder = runs.RunFolder(request.folder)
    runs.check_ending(out, WRITTEN)
    # raises if this is no run folder, before a lock is put there
    config, _ = started(folder, request.config.ask.ledger)
    dataset = new_texts(request)
    ledgers.check_ledger(config)
    with ledgers.lock_run(folder, ledgers.ledger_of(folder, config), wait=request.wait, say=request.say):
        return _label(request, dataset, out, saving or Saving())


def _label(request: RunRequest, dataset: tables.Dataset, out: Path, saving: Saving) -> Labelled:
    recorded = Recorded.read(runs.RunFolder(request.folder), request.config.ask.ledger)
    in_the_way = _in_the_way(out, recorded.folder, dataset)
    if in_the_way and not request.replace:
        raise TableError(
            f"{out} {in_the_way}: name another file with -o, or add --replace, which keeps it under a dated name"
        )
    tally = Tally(rows_expected=len(dataset.items))
    opened = open_fitted(recorded, saving, request.environment)
    executor = saving.executor or recorded.config.ask.executor
    settings = replace(opened.settings, progress=request.progress, tally=tally, batches=request.batches(executor))
    ledger, frugal = ledgers.ledger_of(recorded.folder, recorded.config), opened.frugal
    votes = run_sync(lambda: ray_cluster.ask_job(opened.job, dataset.items, ledger, settings, opened.strategy))
    model = opened.model.with_coverage(votes)
    found = learn.check_drift(model, votes, [item.text for item in dataset.items])
    outcomes = list(model.judge(votes))
    labels = tables.with_outcomes(dataset.table, outcomes, votes.labels)
    if in_the_way:
        request.say(f"{out} is kept as {runs.set_aside(out)}")
    tables.write_table(out, labels, spreadsheet_safe=request.spreadsheet_safe)
    written = {**_written(recorded.folder), **runs.signature(out, request.folder)}
    runs.write_json(recorded.folder.labelled, {"files": written})
    return Labelled(
        dataset=dataset,
        votes=votes,
        outcomes=outcomes,
        tally=tally,
        out=out,
        model=model,
        frugal=frugal,
        drift=found,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedRun:
    """A fitted run, ready to be asked about new texts.

    Attributes:
        job: Its questions, with its models open.
        settings: How to ask, and what may be spent.
        model: What judges the votes.
        frugal: How questions are saved; None when everything is asked.
    """

    job: Job
    settings: ask.CollectSettings
    model: Model
    frugal: Frugal | None

    @property
    def strategy(self) -> Strategy | None:
        """What to ask next, and when to stop; None to ask everything."""
        return None if self.frugal is None else self.frugal.strategy


def open_fitted(recorded: Recorded, saving: Saving, environment: Mapping[str, str] | None) -> FittedRun:
    """Open the models of a fitted run, and learn when to stop asking."""
    given = {name: getattr(saving, name) for name in resolve_config.EXECUTION}
    how = replace(recorded.config.ask, **{name: value for name, value in given.items() if value is not None})
    settings = resolve_config.collect_settings_of(replace(recorded.config, ask=how), environment)
    settings = _within_budget(settings, saving)
    fitted = recorded.model_in_force()
    job = _job(recorded, settings)
    frugal = _frugal(recorded, fitted, job, settings, saving)
    model = fitted if frugal is None else _like_the_run(frugal.model, fitted)
    return FittedRun(job=job, settings=settings, model=model, frugal=frugal)


def _written(folder: runs.RunFolder) -> Mapping[str, str]:
    """Return path → hash of the files of labels that a run has written."""
    if not folder.labelled.exists():
        return {}
    remedy = "remove it; files of labels that are there are then not overwritten without --replace"
    with runs.expecting(folder.labelled, remedy):
        return dict(runs.read_json(folder.labelled, remedy)["files"])


def _in_the_way(out: Path, folder: runs.RunFolder, dataset: tables.Dataset) -> str:
    """Return why a file must not be overwritten with the labels of these texts; empty if it may be."""
    if not out.exists():
        return ""
    if not runs.signature(out, folder.path).items() <= _written(folder).items():
        return "exists, and was not written by this run, or has been changed since"
    lost = lost_rows(tables.read_dataset(out, replace(dataset.columns, gold=None)).items, dataset)
    return lost and f"has labels {lost}"


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
    dataset = new_texts(request)
    settings = resolve_config.collect_settings_of(recorded.config, request.environment)
    settings = _within_budget(settings, saving or Saving())
    job = _job(recorded, settings)
    everything = ask.plan_job(job, dataset.items, settings)
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
    config = request.config
    return replace(request, config=replace(config, data=replace(config.data, gold_column=""))).read_data()


def _job(recorded: Recorded, settings: ask.CollectSettings) -> Job:
    """Return the run's questions; a model whose votes in the run are hard is asked for hard ones, as it was there."""
    config = recorded.config
    graded = graded_annotators(recorded.votes)
    annotators = [
        Annotator(model, answers=None if model in graded else "hard")
        for model in config.ask.models
        if not kind_of(model)
    ]
    return ask.open_job(resolve_config.task_of(config), annotators, config.relations.use, settings)


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
    how = replace(learn.learning_of(recorded.settings), resamples=0)
    with learn.one_thread():
        return learn_frugal(votes, codes, how, prices, gold.random_sample, once.distinct)


def _like_the_run(model: Model, fitted: Model) -> Model:
    """Return the model with what is known about the run's promise: if an audit revoked that, this one cannot hold."""
    earlier = fitted.certificate
    if model.certificate is None or earlier is None:
        return model
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
