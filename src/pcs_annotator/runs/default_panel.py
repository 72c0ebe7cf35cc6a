"""What to ask when the user names no relations: which questions each model gets, and why.

One answer with log-probabilities says more than many labels, so models that give them are asked twice: the second
question lists the labels in another order, and disagreement shows overconfidence. Other models are asked the question
in several ways, which works for every text in every language; the paper's rewrites join where a model writes them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pcs_annotator.asking.annotators.annotator import Annotator
from pcs_annotator.asking.engine.job import Job
from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.asking.ledger.lock import lock_ledger
from pcs_annotator.asking.ledger.open_ledger import open_ledger
from pcs_annotator.base.concurrency import run_sync
from pcs_annotator.base.text import series
from pcs_annotator.core.elicitations import kind_of
from pcs_annotator.core.ledger_address import LedgerAddress
from pcs_annotator.core.task import Item, Task
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.relations.limits import usual_text_relation
from pcs_annotator.runs import ask
from pcs_annotator.runs.executors import ask_job
from pcs_annotator.runs.ledgers import ledger_exists
from pcs_annotator.runs.resolve_config import DEFAULT as PAPER
from pcs_annotator.runs.settings import Config

GRADED = (ORIGINAL, "order")
HARD = (ORIGINAL, "order", "order:rotated", "wording", "case")
# Two labels have only one other order, so another wording takes the place of the second one.
HARD_TWO_LABELS = (ORIGINAL, "order", "wording", "wording:2", "case")
# Every wording with the two texts in both orders, so that none of them favours the first one.
PAIR = (ORIGINAL, "order", "wording", "wording+order")
NUMBER = (ORIGINAL, "wording", "wording:2", "layout")


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultPanel:
    """The questions that were chosen."""

    relations: tuple[str, ...]  # all relations that some model is asked under
    questions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # model → its relations, if not all
    reasons: tuple[str, ...] = ()  # why, a sentence per group of models
    graded: bool = False  # whether some model is asked for log-probabilities
    unsure: tuple[str, ...] = ()  # models of which only an answer tells whether they give log-probabilities

    def applied_to(self, config: Config) -> Config:
        """Return the settings with these questions."""
        own = {**config.ask.questions, **self.questions}
        return replace(
            config, relations=replace(config.relations, use=self.relations), ask=replace(config.ask, questions=own)
        )


def default_panel(
    gives: Mapping[str, bool],
    labels: int,
    *,
    rewriter: bool,
    text_relation: str = HARD[-1],
    unsure: Sequence[str] = (),
    only: Sequence[str] = (),
) -> DefaultPanel:
    """Return what to ask each model, given which models give log-probabilities, `unsure` ones among them.

    `labels` is the number of labels, `rewriter` whether a model that rewrites texts is named, and `text_relation` the
    last of the questions to models that give labels only: a rule that can change these texts. `only` are
    the questions that can be asked, if not all can.
    """
    usual = HARD if labels > 2 else HARD_TWO_LABELS
    hard = tuple(only) or (*usual[:-1], text_relation, *(PAPER if rewriter else ()))
    graded = [model for model, gives_them in gives.items() if gives_them]
    others = [model for model in gives if model not in graded]
    # an elicited annotator is compared with the plain answers of its model, so it does not count as a model of its own
    needs_all = [model for model in others if not kind_of(model)]
    reasons = _reasons([model for model in graded if model not in unsure], needs_all, unsure, hard)
    if not needs_all:
        return DefaultPanel(relations=GRADED, reasons=reasons, graded=True, unsure=tuple(unsure))
    own = dict.fromkeys(graded, GRADED)
    return DefaultPanel(relations=hard, questions=own, reasons=reasons, graded=bool(graded), unsure=tuple(unsure))


def _reasons(
    graded: Sequence[str], needs_all: Sequence[str], unsure: Sequence[str], hard: Sequence[str]
) -> tuple[str, ...]:
    few = f"{len(GRADED)} graded questions: {', '.join(GRADED)}"
    many = f"the question is put in {len(hard)} ways: {', '.join(hard)}"
    reasons = []
    if graded:
        asked = "they are asked" if len(graded) > 1 else "it is asked"
        reasons.append(f"{series(graded)} {_verb('give', graded)} log-probabilities, so {asked} {few}")
    if unsure:
        answer, asked = ("their first answers", "such a model is") if len(unsure) > 1 else ("its first answer", "it is")
        reasons.append(
            f"only {answer} will tell whether {series(unsure)} {_verb('give', unsure)} log-probabilities: if so, "
            f"{asked} asked {few}; if not, {many}"
        )
    if needs_all:
        reasons.append(f"{series(needs_all)} {_verb('give', needs_all)} labels only, so {many}")
    return tuple(reasons)


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """Finds out which models give log-probabilities."""

    task: Task  # what to decide
    annotators: Sequence[object]  # `Annotator`s, or anything that names a model
    ledger: LedgerAddress  # the ledger, which remembers it; it need not exist
    settings: ask.CollectSettings  # how to ask
    texts: Sequence[str] = ()  # the texts to ask about, for a rule that can change them; empty if not known yet

    def panel(self, probe: Item | None = None, tally: Tally | None = None, *, unsure_give: bool = True) -> DefaultPanel:
        """Return what to ask.

        `probe` is a first text to ask about if only its answer can tell; the answer is not lost, and `tally` counts the
        calls for it. `unsure_give` says whether models of which only an answer can tell are taken to give
        log-probabilities.
        """
        job = self._job(self.annotators)
        run_sync(lambda: ask.close_models(job))
        able = {
            one.name: model.name
            for one, model in job.annotators
            if not kind_of(one.name) and one.alternatives(self.task, model)
        }
        remembered = self._remembered()
        unknown = [one for one, _ in job.annotators if one.name in able and able[one.name] not in remembered]
        if unknown and probe is not None:
            self._ask_about(probe, unknown, tally or Tally())
            remembered = self._remembered()
        unsure = [
            one.name
            for one, model in job.annotators
            if one.name in able and model.name not in remembered and getattr(model, "may_not_grade", False)
        ]
        gives = {
            one.name: one.name in able and remembered.get(model.name, unsure_give or one.name not in unsure)
            for one, model in job.annotators
        }
        return default_panel(
            gives,
            len(self.task.labels),
            rewriter=self.settings.rewriter is not None,
            text_relation=usual_text_relation(self.texts),
            unsure=unsure if unsure_give else (),
            only=PAIR if self.task.pair else NUMBER if self.task.number else (),
        )

    def _ask_about(self, item: Item, annotators: Sequence[Annotator], tally: Tally) -> None:
        job = self._job(annotators)
        # a server that does not answer is the run's to report, which notices it sooner with many calls in flight
        patience = replace(self.settings.patience, attempts=1)
        settings = replace(self.settings, tally=Tally(), patience=patience, cluster=None)
        with lock_ledger(self.ledger, wait=settings.wait, say=lambda _: None):
            run_sync(lambda: ask_job(job, [item], self.ledger, settings))
        # the run will find these answers in the ledger, but it has paid for them
        tally.calls += settings.tally.calls
        tally.from_ledger -= settings.tally.calls
        tally.paid.update(settings.tally.paid)
        tally.reused.subtract(settings.tally.paid)

    def _job(self, annotators: Sequence[object]) -> Job:
        settings = replace(self.settings, questions={}, rewriter=None)
        return ask.open_job(self.task, annotators, (ORIGINAL,), settings)

    def _remembered(self) -> dict[str, bool]:
        if not ledger_exists(self.ledger):
            return {}
        with open_ledger(self.ledger) as ledger:
            return ledger.graded_models()


def _verb(verb: str, names: Sequence[str]) -> str:
    return verb if len(names) > 1 else f"{verb}s"
