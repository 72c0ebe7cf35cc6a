"""`pcs label`: labels new texts with a fitted run, asking only the questions that the labels need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from pcs_annotator.core.votes import Votes
from pcs_annotator.errors import ConfigError
from pcs_annotator.files import runs, tables
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.spending.frugal import Frugal, Spending, graded_annotators, learn_frugal
from pcs_annotator.pipeline import ask, learn, resolve_config
from pcs_annotator.pipeline.run import RunRequest
from pcs_annotator.pipeline.run_folder import Recorded

# The prices of models are compared on a question and an answer of typical length.
TYPICAL_TOKENS = (500, 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """How to spend less on new texts.

    Attributes:
        ask_all: Ask every question, even if it cannot change the label.
        cascade: Ask cheap models first, and expensive ones only about texts whose label they can still change.
        max_calls: Maximum number of calls; None for no limit.
        budget_usd: Maximum cost in dollars; None for the budget of the run's settings.
    """

    ask_all: bool = False
    cascade: bool = False
    max_calls: int | None = None
    budget_usd: float | None = None


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
    """

    dataset: tables.Dataset
    votes: Votes
    outcomes: Sequence[Outcome]
    tally: Tally
    out: Path
    model: Model
    frugal: Frugal | None = None

    @property
    def unlabelled(self) -> int:
        """Number of rows without a label."""
        return sum(outcome.label is None for outcome in self.outcomes)


def default_out(data: Path) -> Path:
    """Return the default output file for the labels of a data file."""
    return data.with_name(f"{data.name.split('.')[0]}-labels.csv")


def label(request: RunRequest, out: Path, saving: Saving | None = None) -> Labelled:
    """Ask the models of a fitted run about new texts and label them; of `request.config`, only columns are used."""
    saving = saving or Saving()
    recorded = Recorded.read(runs.RunFolder(request.folder))
    dataset = _new_texts(request)
    tally = Tally(rows_expected=len(dataset.items))
    settings = _within_budget(resolve_config.collect_settings_of(recorded.config, request.environment), saving)
    settings = replace(settings, progress=request.progress, tally=tally)
    job = _job(recorded, settings)
    fitted = recorded.model_in_force()
    frugal = _frugal(recorded, fitted, job, settings, saving)
    model = fitted if frugal is None else _unless_revoked(frugal.model, fitted)
    strategy = None if frugal is None else frugal.strategy
    votes = run_sync(lambda: ask.ask_job(job, dataset.items, recorded.folder.ledger, settings, strategy))
    model = model.with_coverage(votes)
    learn.warn_of_drift(model, votes)
    outcomes = list(model.judge(votes))
    tables.write_table(out, tables.with_outcomes(dataset.table, outcomes, votes.labels))
    return Labelled(dataset=dataset, votes=votes, outcomes=outcomes, tally=tally, out=out, model=model, frugal=frugal)


class LabelPlan(NamedTuple):
    """The cost of labelling new texts: with every question, and with stopping early.

    Attributes:
        everything: All questions.
        frugal: The expected cost with stopping early; None when nothing was learned to decide when to stop.
        spending: The share of questions that is expected.
    """

    everything: Plan
    frugal: Plan | None
    spending: Spending | None


def plan_labelling(request: RunRequest, saving: Saving | None = None) -> LabelPlan:
    """Return what labelling new texts with a fitted run would ask and cost; no model is called."""
    recorded = Recorded.read(runs.RunFolder(request.folder))
    dataset = _new_texts(request)
    settings = resolve_config.collect_settings_of(recorded.config, request.environment)
    job = _job(recorded, settings)
    everything = ask.plan_job(job, dataset.items, settings)
    frugal = _frugal(recorded, recorded.model_in_force(), job, settings, saving or Saving())
    if frugal is None:
        return LabelPlan(everything, None, None)
    return LabelPlan(everything, _scaled(everything, job, frugal.spending), frugal.spending)


def _new_texts(request: RunRequest) -> tables.Dataset:
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
    usd = settings.budget.usd if saving.budget_usd is None else saving.budget_usd
    return replace(settings, budget=Budget(usd=usd, calls=saving.max_calls))


def _frugal(
    recorded: Recorded, fitted: Model, job: Job, settings: ask.CollectSettings, saving: Saving
) -> Frugal | None:
    """Return how to save questions; None when all are requested, or when nothing is calibrated."""
    if saving.ask_all or fitted.calibrator is None:
        return None
    prices = _prices(job, settings) if saving.cascade else None
    gold = recorded.gold
    how = replace(learn.learning_of(recorded.settings), resamples=0)
    with learn.one_thread():
        return learn_frugal(recorded.votes, gold_codes(recorded.votes, gold.labels), how, prices, gold.random_sample)


def _unless_revoked(model: Model, fitted: Model) -> Model:
    """Return the model with the run's audit if that revoked the run's promise: then this one cannot hold either."""
    earlier = fitted.certificate
    if model.certificate is None or earlier is None or not earlier.revoked:
        return model
    return replace(model, certificate=replace(model.certificate, audit=earlier.audit))


def _prices(job: Job, settings: ask.CollectSettings) -> Mapping[str, float]:
    price_of = ask.pricing(settings.prices)
    prices = {annotator.name: price_of(model.name, *TYPICAL_TOKENS) for annotator, model in job.annotators}
    for name, price in prices.items():
        if price is None:
            raise ConfigError(f"a cascade needs the price of {name}: put it into [ask.prices]")
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
