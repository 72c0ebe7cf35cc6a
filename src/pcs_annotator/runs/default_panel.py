"""What to ask when the user names no relations: which questions each model gets, and why.

Models that give log-probabilities are asked twice: the second question lists the labels in another order, and
disagreement shows overconfidence. Others are asked with a sentence about each label, and with each label suggested
once: that was worth 7 points of accuracy more than other orders and wordings at the same price.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pcs_annotator.asking.ledger.open_ledger import open_ledger
from pcs_annotator.base.concurrency import run_sync
from pcs_annotator.base.text import series, short_names
from pcs_annotator.core.elicitations import kind_of
from pcs_annotator.core.ledger_address import LedgerAddress
from pcs_annotator.core.ngrams import recall_of, text_key
from pcs_annotator.core.task import Task
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.judging.metrics.figures import exact_interval
from pcs_annotator.relations.limits import usual_text_relation
from pcs_annotator.runs import ask
from pcs_annotator.runs.ledgers import ledger_exists
from pcs_annotator.runs.resolve_config import DEFAULT as PAPER
from pcs_annotator.runs.resolve_config import asked_alone, task_of
from pcs_annotator.runs.settings import Config

GRADED = (ORIGINAL, "order")
MOST_SUGGESTED, MOST_DEFINED = 4, 12  # labels
# Every wording with the two texts in both orders, so that none of them favours the first one.
PAIR = (ORIGINAL, "order", "wording", "wording+order")
ENOUGH = 0.9  # candidates that have the right label less often are a reason to do something
NUMBER = (ORIGINAL, "wording", "wording:2", "layout")  # also for a value, and passages of one type
PASSAGES = (ORIGINAL, "order", "wording", "layout")


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultPanel:
    """The questions that were chosen."""

    relations: tuple[str, ...]  # all relations that some model is asked under
    questions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # model → its relations, if not all
    reasons: tuple[str, ...] = ()  # why, a sentence per group of models
    graded: bool = False  # whether some model is asked for log-probabilities

    def applied_to(self, config: Config) -> Config:
        """Return the settings with these questions."""
        asked = replace(config.ask, questions={**config.ask.questions, **self.questions})
        return replace(config, relations=replace(config.relations, use=self.relations), ask=asked)


def default_panel(
    gives: Mapping[str, bool], hard: Sequence[str], *, rewriter: bool, unsure: Sequence[str] = ()
) -> DefaultPanel:
    """Return what to ask each model, by who gives log-probabilities; `unsure` ones may or may not."""
    hard = (*hard, *(PAPER if rewriter else ()))
    graded = [model for model, gives_them in gives.items() if gives_them]
    others = [model for model in gives if model not in graded]
    # an elicited annotator is compared with the plain answers of its model, so it does not count as a model of its own
    needs_all = [model for model in others if not kind_of(model)]
    reasons = _reasons(graded, needs_all, unsure, hard)
    if not needs_all:
        return DefaultPanel(relations=GRADED, reasons=reasons, graded=True)
    relations = tuple(dict.fromkeys([*hard, *(GRADED if graded else ())]))
    questions = dict.fromkeys(graded, GRADED) | (dict.fromkeys(needs_all, hard) if relations != hard else {})
    return DefaultPanel(relations=relations, questions=questions, reasons=reasons, graded=bool(graded))


def hard_questions(task: Task, text_relation: str = "case") -> tuple[str, ...]:
    """Return the questions to models that give labels only; definitions are worth most, then suggestions."""
    if task.pair or task.number or task.extraction:
        return PAIR if task.pair else PASSAGES if task.extraction and len(task.labels) > 1 else NUMBER
    labels, alone = len(task.labels), task.together is None
    defined = task.meanings.keys() >= set(task.labels) or labels > MOST_DEFINED
    first = (ORIGINAL, "definitions") if alone and not defined else (ORIGINAL,)
    if alone and labels <= MOST_SUGGESTED:
        return (*first, "suggestion", *(f"suggestion:{number}" for number in range(2, labels + 1)))
    return (*first, "order", *(["order:rotated"] if labels > 2 else []), text_relation)


def _reasons(
    graded: Sequence[str], needs_all: Sequence[str], unsure: Sequence[str], hard: Sequence[str]
) -> tuple[str, ...]:
    few = f"{len(GRADED)} graded questions: {', '.join(GRADED)}"
    many = f"the question is put in {len(hard)} ways: {', '.join(hard)}"
    reasons = []
    if graded:
        asked = "they are asked" if len(graded) > 1 else "it is asked"
        reasons.append(f"{series(short_names(graded))} {_verb('give', graded)} log-probabilities, so {asked} {few}")
    if certain := [model for model in needs_all if model not in unsure]:
        reasons.append(f"{series(short_names(certain))} {_verb('give', certain)} labels only, so {many}")
    if unsure:
        reasons.append(f"{series(short_names(unsure))} may give labels only, so {many}; with --answers graded, {few}")
    return tuple(reasons)


def panel_for(
    task: Task,
    annotators: Sequence[object],
    ledger: LedgerAddress,
    settings: ask.CollectSettings,
    texts: Sequence[str] = (),
) -> DefaultPanel:
    """Return what to ask `annotators`; a server that may give log-probabilities counts if the ledger says it has."""
    job = ask.open_job(task, annotators, (ORIGINAL,), replace(settings, questions={}, rewriter=None))
    run_sync(lambda: ask.close_models(job))
    remembered, gives, unsure = dict[str, bool](), dict[str, bool](), list[str]()
    if ledger_exists(ledger):
        with open_ledger(ledger) as opened:
            remembered = opened.graded_models()
    for annotator, model in job.annotators:
        able = not kind_of(annotator.name) and bool(annotator.alternatives(task, model))
        doubtful = getattr(model, "may_not_grade", False) and settings.answers != "graded"
        gives[annotator.name] = able and remembered.get(model.name, not doubtful)
        if able and doubtful and model.name not in remembered:
            unsure.append(annotator.name)
    rewriter = settings.rewriter is not None and not (task.pair or task.number or task.extraction)
    hard = hard_questions(task, usual_text_relation(texts))
    return default_panel(gives, hard, rewriter=rewriter, unsure=unsure)


def _verb(verb: str, names: Sequence[str]) -> str:
    return verb if len(names) > 1 else f"{verb}s"


def about_candidates(config: Config, texts: Sequence[str], gold: Sequence[str | None]) -> str:
    """Return how many labels each text is asked about, and how often that is known to be enough; empty for all."""
    task, labels = config.task, {label.casefold(): label for label in config.task.labels}
    if not asked_alone(task) or task.kind == "number" or task.extraction:
        return ""
    rows = {text_key(text): (text, labels[label.casefold()]) for text, label in zip(texts, gold, strict=False) if label}
    asked = f"Each text is asked about {task.candidates} of {len(labels):,} labels"
    if not rows:
        return f"{asked}; gold rows would tell how often the right one is among them."
    share = recall_of(task_of(config), *zip(*rows.values(), strict=True))
    low, high = exact_interval(round(share * len(rows)), len(rows)).rounded(2)
    among = f"the right one is among them for {share:.0%} of {len(rows):,} gold rows [{low:.0%}, {high:.0%}]"
    remedy = "" if low >= ENOUGH else "; say what labels mean, label more rows before the run, or set more candidates"
    return f"{asked}: {among}, and no more labels can be right{remedy}."
