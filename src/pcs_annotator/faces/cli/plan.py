"""`pcs plan`: what a run, or labelling new texts, would ask and cost; asks nobody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pcs_annotator.errors import ConfigError
from pcs_annotator.faces.cli.design_view import design_json, print_design
from pcs_annotator.faces.cli.label_view import label_plan_json, print_label_plan
from pcs_annotator.faces.cli.options import (
    JSON,
    LIMIT,
    PATH,
    echo_json,
    flags_of,
    saving_of,
    settings_options,
    stopping_options,
)
from pcs_annotator.faces.cli.run import default_folder
from pcs_annotator.faces.cli.run_view import plan_json, print_plan
from pcs_annotator.pipeline.designing import DesignRequest, design
from pcs_annotator.pipeline.labelling import plan_labelling
from pcs_annotator.pipeline.run import RunRequest, plan
from pcs_annotator.pipeline.settling import read_settings

DEFAULT_CALLS = 8.0


@click.command("plan")
@click.argument("data", type=PATH)
@settings_options
@click.option("--run", "folder", type=PATH, help="Plan labelling DATA with this fitted run, both ways.")
@stopping_options
@click.option("--design", "designing", is_flag=True, help="Design a panel from DATA: votes with gold, or a run.")
@click.option("--calls", type=float, help="With --design: what one text may cost, in calls; 8 by default.")
@click.option("--price", "prices", multiple=True, metavar="NAME=COST", help="With --design: what a question costs.")
@click.option("--free", multiple=True, metavar="RELATION", help="With --design: a relation that costs no rewriting.")
@LIMIT
@JSON
def command(
    *, data: Path, folder: Path | None, designing: bool, config: Path | None, limit: int | None, **options: Any
) -> None:
    """Show calls, tokens and price of a run over DATA; asks nobody.

    With --run, of labelling DATA with a fitted run: asking everything, and asking until labels are settled. With
    --design, which of the recorded questions are worth asking within a budget.
    """
    to_json = options.pop("to_json")
    saving = saving_of({**options, "budget_usd": None})
    settings = read_settings(config, Path.cwd(), flags_of(options))
    if designing:
        _design(data, settings.learn.seed, options, to_json=to_json)
        return
    request = RunRequest(data=data, folder=folder or default_folder(data), config=settings, limit=limit)
    if folder is not None:
        planned = plan_labelling(request, saving)
        _show(planned, label_plan_json, print_label_plan, to_json)
    else:
        _show(plan(request), plan_json, print_plan, to_json)


def _design(data: Path, seed: int, options: dict[str, Any], *, to_json: bool) -> None:
    prices = dict(_price(given) for given in options["prices"])
    budget = DEFAULT_CALLS if options["calls"] is None else options["calls"]
    found = design(DesignRequest(source=data, budget=budget, prices=prices, free=options["free"], seed=seed))
    _show(found, design_json, print_design, to_json)


def _price(given: str) -> tuple[str, float]:
    name, _, cost = given.rpartition("=")
    try:
        return name, float(cost)
    except ValueError:
        raise ConfigError(f"--price {given!r}: write NAME=COST, such as gpt-4o-mini=0.3") from None


def _show(found: Any, as_json: Any, show: Any, to_json: bool) -> None:
    if to_json:
        echo_json(as_json(found))
    else:
        show(found)
