"""`pcs plan`: what a run would ask, and the most that it can cost."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from pcs_annotator.asking.batches.waves import ways_to_run
from pcs_annotator.base.errors import UserError
from pcs_annotator.core.bill import Plan, WayToAsk
from pcs_annotator.core.task import Item
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.judging.weighing.optimiser import optimisers
from pcs_annotator.models.provider import unasked
from pcs_annotator.relations.limits import Languages, languages_of
from pcs_annotator.runs import ask, ledgers, resolve_config
from pcs_annotator.runs.about_candidates import about_candidates
from pcs_annotator.runs.codebook import open_codebook
from pcs_annotator.runs.default_panel import GRADED, DefaultPanel
from pcs_annotator.runs.examples import about_examples, with_gold_examples, with_known_texts
from pcs_annotator.runs.files.runs import RunFolder
from pcs_annotator.runs.labelling.run_table import open_table
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.settings import Config
from pcs_annotator.runs.trial import AGAIN

TRIED = 30  # texts of a trial whose price is shown if none is wanted yet
LEAST_GOLD = 50  # with fewer gold rows, the nearest are not near enough to be worth asking with


class RunPlan(NamedTuple):
    """What a run would ask."""

    plan: Plan  # calls and the most that they can cost
    ways: Sequence[WayToAsk]  # cost and time of asking live and in batches
    languages: Languages  # the languages of the texts, and relations that can do nothing with them
    panel: DefaultPanel | None = None  # the questions that were chosen; None when the user named them
    alternatives: Mapping[str, Plan] = MappingProxyType({})  # what would ask otherwise → its plan
    examples: str = ""  # which examples prompts show; empty if they show none
    candidates: str = ""  # how many labels each text is asked about; empty if it is all of them


def plan(request: RunRequest, seen: set[object] | None = None) -> RunPlan:
    """Return what a run would ask and the most that it can cost; no model is called, so no key is needed.

    Calls in `seen`, which other variables pay for, are not counted; those of this run are added.
    """
    request = replace(request, environment=unasked(request.environment))
    optimisers.check(request.config.learn.optimiser)
    if request.config.variables and not request.config.part:
        return _codebook_plan(request)
    table = open_table(request.open_data(), RunFolder(request.folder), request.config)
    dataset, rows = table.sample, table.rows
    config = with_gold_examples(request, resolve_config.resolve(request.config, dataset), dataset)
    config = with_known_texts(request, config, dataset)
    candidates = about_candidates(config, [item.text for item in dataset.items], dataset.gold)

    def planned(config: Config, seen: set[object] | None = None) -> RunPlan:
        return _planned(request, config, dataset.items, rows, seen)._replace(candidates=candidates)

    if config.relations.use:
        return planned(config, seen)
    panel = request.recorded_panel(config)
    if panel is None:
        panel = request.support(config, dataset.items).panel()
    others = {
        f"--relations {','.join(other)}": replace(config, relations=replace(config.relations, use=other))
        for other in ((ORIGINAL,), resolve_config.with_papers_relations(config).relations.use)
        if other != panel.relations
    }
    most = panel
    if panel.unsure:  # models that turn out to give labels only are asked more questions
        most = request.support(config, dataset.items).panel(unsure_give=False)
        others["with log-probabilities"] = panel.applied_to(config)
    if config.ask.answers != "hard" and panel.graded:
        hard = replace(config, ask=replace(config.ask, answers="hard"))
        others["--answers hard"] = request.support(hard, dataset.items).panel().applied_to(hard)
    chosen, plans = planned(most.applied_to(config), seen), {option: planned(one) for option, one in others.items()}
    alternatives = {option: other.plan for option, other in plans.items() if not other.languages.warning}
    if panel.relations != GRADED and not config.task.examples and sum(map(bool, dataset.gold)) >= LEAST_GOLD:
        other = replace(config, relations=replace(config.relations, use=(ORIGINAL, "examples")))
        with suppress(UserError), warnings.catch_warnings():  # gold of one label, or a model that gets no examples
            warnings.simplefilter("ignore")
            alternatives[f"--relations {ORIGINAL},examples"] = planned(with_gold_examples(request, other, dataset)).plan
    return chosen._replace(panel=panel, alternatives=alternatives)


def _codebook_plan(request: RunRequest) -> RunPlan:
    """Return the plan of a codebook: a call that is about several parts is counted with the first of them."""
    parts, asked = open_codebook(request)[1], request.config.ask
    shared = [
        name for name in parts if not resolve_config.asked_alone(request.config.variables[name.partition("=")[0]])
    ]

    def planned(names: Iterable[str], *, together: bool, **use: Any) -> list[RunPlan]:
        seen, plans = set[object](), []
        for name in names:
            config = parts[name].config
            asking, relations = replace(config.ask, together=together), replace(config.relations, **use)
            plans.append(plan(replace(parts[name], config=replace(config, ask=asking, relations=relations)), seen))
        return [one for one in plans if one.plan.calls] or plans[:1]

    def added(plans: Sequence[RunPlan]) -> Plan:
        several = replace(plans[0].plan, models=tuple(bill for one in plans for bill in one.plan.models), known={})
        return plans[0].plan if len(plans) == 1 else several

    joint, each = planned(parts, together=True), planned(parts, together=False)
    if not asked.together:
        return each[0]._replace(plan=added(each), ways=(), alternatives={"without --separately": added(joint)})
    whole, others = added(joint), {"--separately": added(each)}
    if len({name.partition("=")[0] for name in shared}) > 1:  # one call for all of them may be tried
        texts = min(asked.trial or TRIED, whole.rows)
        alone = added(planned(shared, together=False, use=AGAIN)).for_rows(texts)
        tried = replace(whole, models=whole.models + alone.models)
        others["without --trial" if asked.trial else f"--trial {texts}"] = whole if asked.trial else tried
        whole = tried if asked.trial else whole
    return joint[0]._replace(plan=whole, alternatives=others)


def _planned(
    request: RunRequest, config: Config, items: Sequence[Item], rows: int, seen: set[object] | None
) -> RunPlan:
    """Return the plan for a table with this number of rows, given all of them or a sample."""
    settings = resolve_config.collect_settings_of(config, request.environment, request.own)
    job = ask.open_job(resolve_config.task_of(config), config.ask.models, config.relations.use, settings)
    ledger = ledgers.ledger_of(RunFolder(request.folder), config)
    known = ledger if ledgers.ledger_exists(ledger) else None
    planned = ask.plan_job(job, items, settings, known, seen).for_rows(rows)
    languages = languages_of([item.text for item in items], job.relations)
    ways = ways_to_run(job, planned, settings.in_flight)
    return RunPlan(planned, ways, languages, examples=about_examples(config))
