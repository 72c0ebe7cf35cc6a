"""`pcs plan`: what a run, or labelling new texts, would ask and cost; asks nobody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pcs_annotator.errors import ConfigError
from pcs_annotator.faces.cli.label import label_plan_json, print_label_plan
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
from pcs_annotator.pipeline.label import plan_labelling
from pcs_annotator.pipeline.panel_design import DesignRequest, PanelDesign, design
from pcs_annotator.pipeline.resolve_config import read_settings
from pcs_annotator.pipeline.run import RunRequest, plan

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


def design_json(found: PanelDesign) -> dict[str, Any]:
    """Return a design as plain values."""
    return {
        "budget": found.designed.budget,
        "gold_rows": found.gold_rows,
        "optimiser": found.designed.optimiser,
        "panel": _cells_json(found, found.designed.chosen),
        "curve": [
            {
                "cost": panel.cost,
                "auroc": panel.auroc.value,
                "low": panel.auroc.interval.low,
                "high": panel.auroc.interval.high,
                "n": panel.auroc.n,
                "panel": _cells_json(found, panel),
            }
            for panel in found.designed.curve
        ],
    }


def _cells_json(found: PanelDesign, panel: Any) -> list[dict[str, Any]]:
    return [
        {"annotator": annotator, "relation": relation, "draws": draws}
        for (annotator, relation), draws in found.cells(panel).items()
    ]


def print_design(found: PanelDesign, console: Console | None = None) -> None:
    """Print the quality–cost curve and the panel to ask."""
    console = console or Console(highlight=False)
    curve = Table(box=None, padding=(0, 1), show_edge=False)
    for title in ("cost of a text", "AUROC", "95 % interval", "questions"):
        curve.add_column(title, justify="right")
    for panel in found.designed.curve:
        low, high = panel.auroc.interval
        curve.add_row(f"{panel.cost:g}", f"{panel.auroc.value:.3f}", f"{low:.2f} – {high:.2f}", str(len(panel.cells)))
    console.print(f"designed on {found.gold_rows:,} gold rows; AUROC on rows that the design did not see")
    console.print(curve)
    console.print(f"\n[bold]ask about each text[/], and learn by {found.designed.optimiser}:")
    for (annotator, relation), draws in found.cells(found.designed.chosen).items():
        console.print(Text(f"  {annotator}  {relation}" + (f"  × {draws}" if draws > 1 else "")))
