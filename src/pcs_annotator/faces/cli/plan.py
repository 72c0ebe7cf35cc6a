"""`pcs plan`: what a run would ask and cost, as blocks and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from pcs_annotator.base.text import counted
from pcs_annotator.core.bill import Plan
from pcs_annotator.faces.cli import options
from pcs_annotator.runs import resolve_config
from pcs_annotator.runs.run_request import RunRequest, default_folder
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.formats import count, dollars
from pcs_annotator.verbs import plan as planning
from pcs_annotator.verbs.plan import RunPlan

NOT_CALLED = "No model was called. Answers in the ledger are reused; rejected rewrites are tried once more."
PRICE_MISSING = "The cost is unknown: give the missing price with --price MODEL=IN,OUT or in [ask.prices]."


@click.command("plan", cls=options.ManyOptions)
@click.argument("data", type=options.TABLE)
@options.settings_options
@options.options_for("limit")
@options.JSON
def command(*, data: Path | str, config: Path | None, limit: int | None, **choices: Any) -> None:
    """Show calls, tokens and cost of a run over DATA; no model is called."""
    settings = resolve_config.read_settings(config, Path.cwd(), options.take_settings(choices))
    request = RunRequest(data=data, folder=default_folder(data), config=settings, limit=limit)
    options.show(_plan_json, _then_run, planning.plan(request))


def _then_run(planned: RunPlan) -> Iterator[object]:
    yield from _plan_shown(planned)
    yield b.Answer([("next", b.strong(options.instead("run")))])


DEFINES = "First, a model writes a sentence about each label (definitions), which the report shows; you can change it."


def _plan_json(planned: RunPlan) -> dict[str, Any]:
    panel = planned.panel
    return {
        **_calls_json(planned.plan),
        "panel": panel and {"relations": panel.relations, "questions": panel.questions, "reasons": panel.reasons},
        "languages": {
            "texts_looked_at": len(planned.languages.sample),
            "texts": planned.languages.counts,
            "relations_that_do_not_apply": dict(planned.languages.limits),
            "warning": planned.languages.warning or None,
        },
        "examples": planned.examples or None,
        **({"candidates": planned.candidates} if planned.candidates else {}),
    }


def _calls_json(plan: Plan) -> dict[str, Any]:
    return {
        "rows": plan.rows,
        "calls": plan.calls,
        "usd": plan.usd,
        "models": [asdict(bill) for bill in plan.models],
        "known_already": plan.calls - plan.left.calls,
        "left": {"calls": plan.left.calls, "usd": plan.left.usd},
    }


def _plan_shown(planned: RunPlan) -> Iterator[b.Block]:
    languages = planned.languages
    yield from planned.panel.reasons if planned.panel is not None else ()
    yield planned.examples or None
    yield planned.candidates or None
    yield DEFINES if planned.defines else None
    if languages is not None and not languages.english:
        yield f"languages of {len(languages.sample):,} texts: {languages.shares}"
        yield b.text(languages.warning, kind="warning") if languages.warning else None
    yield from _calls_shown(planned.plan)


def _calls_shown(plan: Plan) -> Iterator[b.Block]:
    """Yield the calls of a plan per model and in total, what is missing for a price, and that it costs nothing."""
    yield b.text(b.strong(f"{count(plan.rows)} rows, {_calls_and_cost(plan)}"))
    yield b.Table(columns=b.bill_columns("max. "), rows=b.bill_rows(plan.models))
    if answered := plan.calls - plan.left.calls:
        cost = "cost unknown" if plan.left.usd is None else dollars(plan.left.usd)
        left = f"{counted(plan.left.calls, 'call is', 'calls are')} left, {cost}"
        yield f"the ledger already has the answers to {count(answered)} of them: {left}"
    yield PRICE_MISSING if plan.usd is None else None
    yield NOT_CALLED


def _calls_and_cost(plan: Plan) -> str:
    return f"{counted(plan.calls, 'call')}, {'cost unknown' if plan.usd is None else f'at most {dollars(plan.usd)}'}"
