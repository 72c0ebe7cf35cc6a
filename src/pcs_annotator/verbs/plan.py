"""`pcs plan`: what a run would ask, and the most that it can cost."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from pcs_annotator.core.bill import Plan
from pcs_annotator.core.task import Item
from pcs_annotator.judging.fit_weights import optimisers
from pcs_annotator.models.provider import unasked
from pcs_annotator.relations.limits import Languages, languages_of
from pcs_annotator.runs import ask, ledgers, resolve_config
from pcs_annotator.runs.book import open_parts
from pcs_annotator.runs.default_panel import DefaultPanel, about_candidates
from pcs_annotator.runs.gold_in_prompts import (
    about_examples,
    as_if_defined,
    lacks_definitions,
    with_gold_examples,
    with_known_texts,
)
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.run_table import open_table
from pcs_annotator.runs.settings import Config


class RunPlan(NamedTuple):
    """What a run would ask."""

    plan: Plan  # calls and the most that they can cost
    languages: Languages  # the languages of the texts, and relations that can do nothing with them
    panel: DefaultPanel | None = None  # the questions that were chosen; None when the user named them
    examples: str = ""  # which examples prompts show; empty if they show none
    candidates: str = ""  # how many labels each text is asked about; empty if it is all of them
    defines: bool = False  # whether a model is first asked once for a sentence about each label


def plan(request: RunRequest, seen: set[object] | None = None) -> RunPlan:
    """Return what a run would ask and the most that it costs, without calls in `seen`; no model is called."""
    request = replace(request, environment=unasked(request.environment))
    optimisers.check(request.config.learn.optimiser)
    if request.config.variables and not request.config.part:
        return _plan_of_all(request)
    table = open_table(request.open_data(), request.run_folder, request.config)
    dataset, rows = table.sample, table.rows
    config = with_gold_examples(request, resolve_config.resolve(request.config, dataset), dataset)
    config = with_known_texts(request, config, dataset)
    candidates = about_candidates(config, [item.text for item in dataset.items], dataset.gold)
    panel = None if config.relations.use else request.panel(config, dataset.items)
    config = config if panel is None else panel.applied_to(config)
    planned = _planned(request, as_if_defined(config), dataset.items, rows, seen)
    return planned._replace(candidates=candidates, panel=panel, defines=lacks_definitions(config))


def _plan_of_all(request: RunRequest) -> RunPlan:
    """Return the plan of all variables: a call that is about several parts is counted with the first of them."""
    seen = set[object]()
    plans = [plan(part, seen) for part in open_parts(request).values()]
    paid = [part for part in plans if part.plan.calls] or plans[:1]
    if len(paid) == 1:
        return paid[0]
    models = tuple(bill for part in paid for bill in part.plan.models)
    return paid[0]._replace(plan=replace(paid[0].plan, models=models, known={}))


def _planned(
    request: RunRequest, config: Config, items: Sequence[Item], rows: int, seen: set[object] | None
) -> RunPlan:
    settings = resolve_config.collect_settings_of(config, request.environment, request.own)
    job = ask.open_job(resolve_config.task_of(config), config.ask.models, config.relations.use, settings)
    ledger = ledgers.ledger_of(request.run_folder, config)
    existing = ledger if ledgers.ledger_exists(ledger) else None
    planned = ask.plan_job(job, items, settings, existing, seen).for_rows(rows)
    languages = languages_of([item.text for item in items], job.relations)
    return RunPlan(planned, languages, examples=about_examples(config))
