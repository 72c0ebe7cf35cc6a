"""A fitted run with its models open, ready to be asked about new texts."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pcs_annotator.asking.annotators.annotator import Annotator
from pcs_annotator.asking.engine.job import Job
from pcs_annotator.base.errors import ConfigError, PcsWarning
from pcs_annotator.core.elicitations import kind_of
from pcs_annotator.core.gold import gold_codes
from pcs_annotator.core.ledger_address import LedgerAddress, without_password
from pcs_annotator.core.outcome import UNLIKE_GOLD
from pcs_annotator.core.vote import Strategy
from pcs_annotator.judging.evaluation.scored import one_thread
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promising.drift import Drift
from pcs_annotator.judging.spending.frugal import Frugal, graded_annotators, learn_frugal
from pcs_annotator.runs import ask, learn, resolve_config
from pcs_annotator.runs.ledgers import ledger_of
from pcs_annotator.runs.own_objects import OwnObjects
from pcs_annotator.runs.run import Run
from pcs_annotator.runs.settings import Saving
from pcs_annotator.tables.table_files import STDIO

TYPICAL_TOKENS = (500, 20)
"""The prices of models are compared on a question and an answer of typical length."""
LEAST_GOLD = 200
"""Gold rows for texts of a new kind, if the run has fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """How a loaded run labels.

    Attributes:
        text_column: The column of texts; None to look for one with a usual name, or take the only column.
        in_flight: Maximum number of concurrent calls per model, in each process; None for that of the run.
        ledger: Where paid calls are kept, a file or `postgresql://…`; None for the run's own ledger.
        environment: Keys and base URLs; None for those of the process and of `.env`, wherever tables are labelled.
        saving: When to stop asking, and what may be spent by each process.
        own: Models and relations that the run was given as objects.
    """

    text_column: str | None = None
    in_flight: int | None = None
    ledger: LedgerAddress | None = field(default=None, repr=False)  # it may have a password
    environment: Mapping[str, str] | None = field(default=None, repr=False)
    saving: Saving = field(default_factory=Saving)
    own: OwnObjects = field(default_factory=OwnObjects, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedRun:
    """A fitted run, ready to be asked about texts.

    Attributes:
        job: Its questions, with its models open.
        settings: How to ask, and what may be spent.
        model: What judges the votes.
        frugal: How questions are saved; None when everything is asked.
        on_drift: What becomes of labels for texts that differ from the gold rows: `review` or `accept`.
        folder: The run folder.
        ledger: Where its paid calls are kept.
    """

    job: Job
    settings: ask.CollectSettings
    model: Model
    frugal: Frugal | None
    on_drift: str = "review"
    folder: Path
    ledger: LedgerAddress

    @property
    def strategy(self) -> Strategy | None:
        """What to ask next, and when to stop; None to ask everything."""
        return None if self.frugal is None else self.frugal.strategy

    def warn_if_unlike(self, found: Drift | None, data: object = None) -> None:
        """Warn if texts differ from the gold rows."""
        if found is not None and found.found:
            warnings.warn(self.texts_differ(found, data), PcsWarning, stacklevel=3)

    def texts_differ(self, found: Drift, data: object = None) -> str:
        """Return that texts differ, what becomes of their labels, and the commands after which they are accepted."""
        if self.model.facing(found, self.on_drift).unlike_gold:
            done = (
                "so nothing is accepted and all of them are for review (--on-drift accept decides as if they did not)"
            )
        else:
            done = "so confidence and promise may not hold for them"
        certificate = self.model.certificate
        rows = max(LEAST_GOLD, certificate.gold_rows if certificate else 0)
        table = str(data) if isinstance(data, str | Path) and data != STDIO else "TEXTS.csv"
        ledger = without_password(str(self.ledger))  # answers that were paid for are used again
        settings = ["--config", str(self.folder), "--ledger", ledger, "--gold-column", "gold"]
        return "\n".join(
            [
                f"{UNLIKE_GOLD}: {found.sentence}; {done}",
                "to have labels of such texts accepted again, give them gold rows and a promise of their own:",
                f"  write the right labels of {rows} rows, drawn at random, into a column gold of {table}",
                f"  {shlex.join(['pcs', 'run', table, *settings, '--out', f'{self.folder}-new'])}",
            ]
        )


def open_fitted(recorded: Run, options: LoadOptions) -> FittedRun:
    """Open the models of a fitted run, and learn when to stop asking."""
    saving = options.saving
    config = resolve_config.with_saving(recorded.config, saving)
    settings = resolve_config.collect_settings_of(config, options.environment, options.own)
    if options.in_flight is not None:
        settings = replace(settings, in_flight=options.in_flight)
    fitted = recorded.model_in_force()
    job = job_of(recorded, settings)
    frugal = _frugal(recorded, fitted, job, settings, saving)
    return FittedRun(
        job=job,
        settings=settings,
        model=fitted if frugal is None else _like_the_run(frugal.model, fitted),
        frugal=frugal,
        on_drift=saving.on_drift,
        folder=recorded.folder.path,
        ledger=options.ledger or ledger_of(recorded.folder, recorded.config),
    )


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


def _frugal(recorded: Run, fitted: Model, job: Job, settings: ask.CollectSettings, saving: Saving) -> Frugal | None:
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
