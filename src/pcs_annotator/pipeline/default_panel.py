"""What to ask when the user names no relations: which questions each model gets, and why.

One answer with log-probabilities says more than many labels, so models that give them are asked twice: the second
question lists the labels in another order, and disagreement shows overconfidence. Other models are asked the question
in several ways, which works for every text in every language; the paper's rewrites join where a model writes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pcs_annotator.asking.engine.job import Job
from pcs_annotator.asking.engine.ledger import Ledger
from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.core.concurrency import run_sync
from pcs_annotator.core.elicitations import kind_of
from pcs_annotator.core.task import Item
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.files.config import Config
from pcs_annotator.pipeline import ask, resolve_config
from pcs_annotator.pipeline.relations import DEFAULT as PAPER

GRADED = (ORIGINAL, "order")
HARD = (ORIGINAL, "order", "order:rotated", "wording", "case")
# Two labels have only one other order, so another wording takes the place of the second one.
HARD_TWO_LABELS = (ORIGINAL, "order", "wording", "wording:2", "case")


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultPanel:
    """The questions that were chosen.

    Attributes:
        relations: All relations that some model is asked under.
        questions: Model → its relations, where they are not all.
        reasons: Why, a sentence per group of models.
        graded: Whether some model is asked for log-probabilities.
    """

    relations: tuple[str, ...]
    questions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    graded: bool = False

    def applied_to(self, config: Config) -> Config:
        """Return the settings with these questions."""
        own = {**config.ask.questions, **self.questions}
        return replace(
            config,
            relations=replace(config.relations, use=self.relations),
            ask=replace(config.ask, questions=own),
        )


def default_panel(gives: Mapping[str, bool], labels: int, *, rewriter: bool) -> DefaultPanel:
    """Return what to ask each model.

    Args:
        gives: Model → whether it gives log-probabilities; they are then asked for.
        labels: Number of labels.
        rewriter: Whether a model that rewrites texts is named.
    """
    hard = (*(HARD if labels > 2 else HARD_TWO_LABELS), *(PAPER if rewriter else ()))
    graded = [model for model, gives_them in gives.items() if gives_them]
    others = [model for model in gives if model not in graded]
    # an elicited annotator is compared with the plain answers of its model, so it does not count as a model of its own
    needs_all = [model for model in others if not kind_of(model)]
    reasons = []
    if graded:
        asked = "they are asked" if len(graded) > 1 else "it is asked"
        reasons.append(
            f"{_listed(graded)} {_verb('give', graded)} log-probabilities, so {asked} {len(GRADED)} graded questions: "
            f"{', '.join(GRADED)}"
        )
    if needs_all:
        reasons.append(
            f"{_listed(needs_all)} {_verb('give', needs_all)} labels only, so the question is put in {len(hard)} ways: "
            f"{', '.join(hard)}"
        )
    if not needs_all:
        return DefaultPanel(relations=GRADED, reasons=tuple(reasons), graded=True)
    own = dict.fromkeys(graded, GRADED)
    return DefaultPanel(relations=hard, questions=own, reasons=tuple(reasons), graded=bool(graded))


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """Finds out which models give log-probabilities.

    Attributes:
        config: Complete settings, except for relations.
        ledger: The ledger of the run, which remembers it; it need not exist.
        environment: Keys and base URLs; None for those of the process.
    """

    config: Config
    ledger: Path
    environment: Mapping[str, str] | None

    def known(self) -> dict[str, bool]:
        """Return model → whether it gives log-probabilities, as far as that is known without a call."""
        remembered = self._remembered()
        found = {annotator: remembered.get(model, True) for annotator, model in self._able().items()}
        return {name: found.get(name, False) for name in self.config.ask.models}

    def probed(self, item: Item, tally: Tally) -> dict[str, bool]:
        """Return the same, after asking models about a first text if only its answer can tell; it is not lost."""
        remembered = self._remembered()
        unknown = [annotator for annotator, model in self._able().items() if model not in remembered]
        if unknown:
            job, settings = self._job(unknown), self._settings()
            run_sync(lambda: ask.ask_job(job, [item], self.ledger, settings))
            # the run will find these answers in the ledger, but it has paid for them
            tally.calls += settings.tally.calls
            tally.from_ledger -= settings.tally.calls
        return self.known()

    def _able(self) -> dict[str, str]:
        """Return annotator → its model's name in the ledger, for those that may give log-probabilities."""
        if self.config.ask.answers == "hard":
            return {}
        job = self._job(self.config.ask.models)
        run_sync(lambda: ask.close_models(job))
        able = [(annotator.name, model.name) for annotator, model in job.annotators if model.can_grade]
        return {annotator: model for annotator, model in able if not kind_of(annotator)}

    def _job(self, models: Sequence[str]) -> Job:
        return ask.open_job(resolve_config.task_of(self.config), models, (ORIGINAL,), self._settings())

    def _settings(self) -> ask.CollectSettings:
        settings = resolve_config.collect_settings_of(self.config, self.environment)
        return replace(settings, questions={}, rewriter=None, tally=Tally())

    def _remembered(self) -> dict[str, bool]:
        if not self.ledger.exists():
            return {}
        with Ledger(self.ledger) as ledger:
            return ledger.graded_models()


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _verb(verb: str, names: Sequence[str]) -> str:
    return verb if len(names) > 1 else f"{verb}s"
