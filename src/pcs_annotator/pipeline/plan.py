"""`pcs plan`: what a run would ask, and the most that it can cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from pcs_annotator.core.bill import Plan
from pcs_annotator.core.task import Item
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.files.config import Config
from pcs_annotator.files.runs import RunFolder
from pcs_annotator.pipeline import ask, resolve_config
from pcs_annotator.pipeline.batch.ways_to_ask import WayToAsk, ways_to_run
from pcs_annotator.pipeline.default_panel import DefaultPanel
from pcs_annotator.pipeline.languages import Languages, languages_of
from pcs_annotator.pipeline.large.large_table import is_large, open_large
from pcs_annotator.pipeline.relations import relation_options_of
from pcs_annotator.pipeline.run_request import RunRequest
from pcs_annotator.relations.choose import choose_relations


class RunPlan(NamedTuple):
    """What a run would ask.

    Attributes:
        plan: Calls and the most that they can cost.
        panel: The questions that were chosen; None when the user named them.
        alternatives: Option that would ask otherwise → its plan.
        ways: Cost and time of asking live and in batches.
        languages: The languages of the texts, and relations that can do nothing with them; None if unknown.
    """

    plan: Plan
    panel: DefaultPanel | None = None
    alternatives: Mapping[str, Plan] = MappingProxyType({})
    ways: Sequence[WayToAsk] = ()
    languages: Languages | None = None


def plan(request: RunRequest) -> RunPlan:
    """Return what a run would ask and the most that it can cost; no model is called."""
    stream = request.open_data()
    if is_large(stream):
        large = open_large(stream, RunFolder(request.folder), request.config)
        dataset, rows = large.sample, large.rows
    else:
        dataset = request.read_data(stream)
        rows = len(dataset.items)
    config = resolve_config.resolve(request.config, dataset)
    if config.relations.use:
        planned, ways = _planned(request, config, dataset.items, rows)
        return RunPlan(planned, ways=ways, languages=_languages(config, dataset.items))
    panel = request.recorded_panel(config)
    if panel is None:
        panel = request.support(config, dataset.items).panel()
    papers = resolve_config.with_papers_relations(config)
    others = {
        f"--relations {','.join(other)}": replace(config, relations=replace(config.relations, use=other))
        for other in ((ORIGINAL,), papers.relations.use)
        if other != panel.relations
    }
    if _languages(papers, dataset.items).warning:
        others.pop(f"--relations {','.join(papers.relations.use)}", None)
    if config.ask.answers != "hard" and panel.graded:
        hard = replace(config, ask=replace(config.ask, answers="hard"))
        others["--answers hard"] = request.support(hard, dataset.items).panel().applied_to(hard)
    chosen = panel.applied_to(config)
    planned, ways = _planned(request, chosen, dataset.items, rows)
    alternatives = {option: _planned(request, other, dataset.items, rows)[0] for option, other in others.items()}
    return RunPlan(planned, panel, alternatives, ways, _languages(chosen, dataset.items))


def _languages(config: Config, items: Sequence[Item]) -> Languages:
    """Return the languages of the texts, and what the relations of these settings can do with them."""
    options = relation_options_of(config.relations, rewriter=bool(config.relations.rewriter))
    return languages_of((item.text for item in items), choose_relations(config.relations.use, options))


def _planned(request: RunRequest, config: Config, items: Sequence[Item], rows: int) -> tuple[Plan, list[WayToAsk]]:
    """Return the plan for a table of so many rows, given all of them or a sample."""
    settings = resolve_config.collect_settings_of(config, request.environment, request.own)
    job = ask.open_job(resolve_config.task_of(config), config.ask.models, config.relations.use, settings)
    planned = ask.plan_job(job, items, settings).for_rows(rows)
    return planned, ways_to_run(job, planned, settings.in_flight)
