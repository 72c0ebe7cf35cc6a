"""Asking models: from a task, items and names of models to votes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from pcs_annotator.asking.annotators.annotator import Annotator
from pcs_annotator.asking.annotators.grading import NOT_GIVEN
from pcs_annotator.asking.batches.waves import BatchSettings
from pcs_annotator.asking.engine.budget import AnswerLengths, Budget, BudgetTracker, LedgerSpending
from pcs_annotator.asking.engine.call import Asker, Patience
from pcs_annotator.asking.engine.collect import in_blocks
from pcs_annotator.asking.engine.item_asker import ItemAsker, PreparedJob
from pcs_annotator.asking.engine.job import Job, OnVariant, make_plan, models_of
from pcs_annotator.asking.engine.pace import MAX_IN_FLIGHT, CallsPerSecond
from pcs_annotator.asking.engine.progress import Tally, bills_of
from pcs_annotator.asking.ledger.admin import PriceOf
from pcs_annotator.asking.ledger.lock import SharedCalls
from pcs_annotator.asking.ledger.open_ledger import AnyLedger, open_ledger
from pcs_annotator.base.concurrency import run_sync
from pcs_annotator.base.display import brief
from pcs_annotator.base.errors import ConfigError, LedgerError, warn_user
from pcs_annotator.core.bill import Plan
from pcs_annotator.core.chat import Answers, ChatModel, Usage, gets_no_examples
from pcs_annotator.core.ledger_address import LedgerAddress
from pcs_annotator.core.task import Item, Task
from pcs_annotator.models.catalog import price_of
from pcs_annotator.models.provider import read_environment
from pcs_annotator.models.resolve import KnownAs, resolve_model
from pcs_annotator.relations.combine import RelationOptions, choose_relations
from pcs_annotator.runs.own_objects import OwnObjects, RelationLike, as_relations, name_annotators

LOOKED_UP = 1_000  # texts that are looked up in a ledger at a time

Follow = Callable[[Tally, BudgetTracker], None]  # is told which counters are those of what is asked next
OwnPrices = Mapping[str, tuple[float, float]]  # model → US dollars per million tokens in and out


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """Which cluster to use."""

    address: str = ""  # its address; empty for that in `RAY_ADDRESS`, or a cluster of this machine's own
    workers: int | None = None  # None for one per CPU of the cluster, or per GPU where models run on these


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectSettings:
    """How to ask.

    Attributes:
        draws: How often each question is asked.
        rewriter: The model that rewrites texts, or an `Annotator` that says its version; None when no relation needs
            one.
        in_flight: Maximum number of concurrent calls per model; the actual number adapts to the model's answers.
        patience: When to give up on a call.
        wait: Whether to wait while another process or thread asks with the same ledger; otherwise that is an error.
        budget: What may be spent.
        prices: Your own prices; they take precedence over the catalogue's.
        environment: Keys and base URLs; None for those of the process and of `.env` in the working folder.
        choosing: How names of relations are understood, and how rewrites are checked.
        questions: Annotator → the relations it is asked under; an annotator that is not listed is asked under all.
        answers: Whether to ask for log-probabilities; an annotator that says so itself takes precedence.
        on_variant: Called with every variant, in no particular order.
        progress: Whether to show progress.
        follow: Called with the counters of what is asked next.
        tally: Counts calls, answers and failures.
        batches: Where batches are kept track of, if models are to be asked in batches; None to ask live.
        max_per_second: Maximum number of calls per second, to all models together; None for no limit.
        cluster: The cluster that asks; None for this machine.
        own: Models and relations that are given as objects, for names that stand for them.
    """

    draws: int = 1
    rewriter: object | None = None
    in_flight: int = MAX_IN_FLIGHT
    patience: Patience = field(default_factory=Patience)
    wait: bool = True
    budget: Budget = field(default_factory=Budget)
    prices: OwnPrices = field(default_factory=dict)
    environment: Mapping[str, str] | None = field(default=None, repr=False)
    choosing: RelationOptions = field(default_factory=RelationOptions)
    questions: Mapping[str, Sequence[str]] = field(default_factory=dict)
    answers: Answers = "auto"
    on_variant: OnVariant | None = None
    progress: bool = False
    follow: Follow | None = None
    tally: Tally = field(default_factory=Tally)
    batches: BatchSettings | None = None
    max_per_second: float | None = None
    cluster: ClusterSettings | None = None
    own: OwnObjects = field(default_factory=OwnObjects)

    def __repr__(self) -> str:
        return brief(self, but=type(self)())


def open_asker(ledger: AnyLedger, settings: CollectSettings, shared: SharedCalls | None = None) -> Asker:
    """Return what asks as these settings say, and stores replies in a ledger."""
    prices, budget = pricing(settings.prices), settings.budget
    others_pay = budget.in_dollars or (ledger.run and budget != Budget())
    tracker = BudgetTracker(budget, LedgerSpending(ledger, prices).now) if others_pay else BudgetTracker(budget)
    if settings.follow is not None:
        settings.follow(settings.tally, tracker)
    # what calls are expected to take matters only if it is limited
    lengths = AnswerLengths(ledger.mean_answers() if budget.in_dollars or budget.tokens is not None else {})
    how = (settings.patience, settings.in_flight, lengths, shared or SharedCalls())
    limit = None if settings.max_per_second is None else CallsPerSecond(settings.max_per_second)
    return Asker(ledger, tracker, settings.tally, prices, *how, limit=limit)


def warn_about_hard_models(job: Job) -> None:
    """Say which models give no log-probabilities although graded answers were asked for."""
    wanted = [model for annotator, model in job.annotators if annotator.answers == "graded"]
    names = dict.fromkeys(model.name for model in wanted if not model.can_grade)
    if names:
        warn_user(f"no log-probabilities come from {', '.join(names)}: their votes are hard")


def warn_about_grades(tally: Tally) -> None:
    """Say once, after a run, which answers are not graded although they should be, and which grades are bounds."""
    wanted = tally.graded + tally.hard.total()
    # a model that gives no log-probabilities at all is named when its first answer comes
    reasons = {reason: count for reason, count in tally.hard.most_common() if reason != NOT_GIVEN}
    if reasons:
        why = "; ".join(f"{reason} ({count:,})" for reason, count in reasons.items())
        warn_user(f"{sum(reasons.values()):,} of {wanted:,} answers count as hard votes: {why}")
    if tally.bounded:
        warn_user(
            f"in {tally.bounded:,} of {tally.graded:,} graded answers, a label was not among the tokens that the "
            "server listed and may have more than 1 %; it is given the most that it can have"
        )


def plan_job(
    job: Job,
    items: Sequence[Item],
    settings: CollectSettings,
    ledger: LedgerAddress | None = None,
    seen: set[object] | None = None,
) -> Plan:
    """Return what a job would ask, less what a ledger has, and the most that it can cost; no model is called."""
    try:
        planned = make_plan(job, items, pricing(settings.prices), seen)
        if ledger is None:
            return planned
        return replace(planned, known=run_sync(lambda: _answered_in(ledger, job, items, settings)))
    except LedgerError as error:
        warn_user(f"which answers there are already is not known: {error}")
        return planned
    finally:
        run_sync(lambda: close_models(job))


async def _answered_in(
    ledger: LedgerAddress, job: Job, items: Sequence[Item], settings: CollectSettings
) -> dict[tuple[str, str], int]:
    """Return how many calls per model and purpose a ledger has answers to, without rewriting a text."""
    tally = Tally()
    asking = replace(settings, tally=tally, budget=Budget(calls=0))
    with open_ledger(ledger) as opened:
        asker = open_asker(opened, asking)
        prepared = PreparedJob.of(replace(job, on_variant=None), opened)
        for some in in_blocks(items, LOOKED_UP):
            await ItemAsker(prepared, asker).look_up(some)
    return {(bill.model, bill.purpose): bill.calls for bill in bills_of(tally.reused, pricing({}))}


def open_job(
    task: Task, annotators: Sequence[object], relations: Sequence[RelationLike], settings: CollectSettings
) -> Job:
    """Return the job with all names resolved; what is missing or unknown is an error here, before any call."""
    environment = settings.environment
    if environment is None:
        environment = read_environment(Path.cwd())
    # Annotators that differ only in how they ask share one model, because it may be large.
    own_objects, named = settings.own, cache(lambda name: resolve_model(name, environment))
    bound = []
    for named_annotator in name_annotators(annotators):
        annotator = own_objects.annotator(named_annotator)
        annotator = replace(annotator, answers=annotator.answers or settings.answers)  # which it may leave to the run
        spec = annotator.model
        bound.append((annotator, named(spec) if isinstance(spec, str) else resolve_model(spec, environment)))
    rewriter = None if settings.rewriter is None else _rewriter(own_objects.model(settings.rewriter), environment)
    choosing = settings.choosing
    own_relations = {**choosing.own, **own_objects.relations}
    chosen = choose_relations(
        as_relations(relations), replace(choosing, own=own_relations, rewriter=rewriter is not None)
    )
    for annotator, model in bound if task.examples else ():
        if gets_no_examples(model):
            _say_without_examples(annotator.name)
    return Job(
        task=task,
        annotators=bound,
        relations=chosen,
        rewriter=rewriter,
        draws=settings.draws,
        on_variant=settings.on_variant,
        questions=settings.questions,
    )


@cache
def _say_without_examples(name: str) -> None:
    warn_user(f"{name} gets no examples, because it repeats their labels")


def _rewriter(rewriter: object, environment: Mapping[str, str]) -> ChatModel:
    if not isinstance(rewriter, Annotator):
        return resolve_model(rewriter, environment)
    model = resolve_model(rewriter.model, environment)
    return KnownAs(rewriter.identity(model), model) if rewriter.version else model


def pricing(own_prices: OwnPrices) -> PriceOf:
    """Return a function for the cost of tokens, by the user's own prices or else the catalogue's."""
    price_of_model = cache(lambda model: price_of(model, own_prices))

    def cost(model: str, tokens_in: int, tokens_out: int) -> float | None:
        price = price_of_model(model)
        return price.cost(Usage(input_tokens=tokens_in, output_tokens=tokens_out)) if price else None

    return cost


def refuse_unknown_prices(job: Job, prices: PriceOf, budget: Budget) -> None:
    """Raise if there is a budget in dollars and a price is unknown."""
    if not budget.in_dollars:
        return
    for model in models_of(job):
        if prices(model.name, 1, 1) is None:
            raise ConfigError(
                f"the price of {model.name} is unknown, so a budget in dollars cannot be kept: "
                f"give it in US dollars per million tokens, with --price {model.name}=IN,OUT or in [ask.prices], or "
                "use --max-calls or --max-tokens instead"
            )


async def close_models(job: Job) -> None:
    """Release connections and memory."""
    for model in models_of(job):
        await model.close()
