"""`pcs plan`: show the calls and the cost of a run, or of labelling new texts; no model is called."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from pcs_annotator.core.result_table import Content, ResultTable
from pcs_annotator.errors import ConfigError
from pcs_annotator.faces.cli import label, options, result_view, run_view
from pcs_annotator.pipeline import panel_design, resolve_config
from pcs_annotator.pipeline import plan as planning
from pcs_annotator.pipeline.label import Saving, plan_labelling
from pcs_annotator.pipeline.run_request import RunRequest, default_folder

DEFAULT_CALLS = 8.0


@click.command("plan")
@click.argument("data", type=options.TABLE)
@options.settings_options
@click.option("--run", "folder", type=options.PATH, help="Plan to label DATA with this fitted run.")
@options.stopping_options
@click.option("--design", "designing", is_flag=True, help="Design a panel from DATA: votes with gold, or a run folder.")
@click.option(
    "--calls",
    type=float,
    metavar="N",
    help="With --design: budget per text, in calls or in the unit of --price NAME=COST; default: 8.",
)
@click.option(
    "--free", multiple=True, metavar="RELATION", help="With --design: relation whose rewrites are free; repeatable."
)
@options.LIMIT
@options.JSON
def command(
    *, data: Path | str, folder: Path | None, designing: bool, config: Path | None, limit: int | None, **given: Any
) -> None:
    """Show calls, tokens and cost of a run over DATA; no model is called.

    With --run, the same for labelling DATA with a fitted run: asking all questions, and stopping when labels are
    settled. With --design, the recorded questions that are worth asking within a budget.
    """
    to_json = given.pop("to_json")
    costs = _costs(given.pop("prices")) if designing else {}
    saving = options.take(Saving, dict(given))
    settings = resolve_config.read_settings(config, Path.cwd(), options.take(resolve_config.Flags, given))
    if designing:
        request = panel_design.DesignRequest(
            source=Path(data),
            budget=DEFAULT_CALLS if given["calls"] is None else given["calls"],
            prices=costs,
            free=given["free"],
            seed=settings.learn.seed,
        )
        options.show(design_json, print_design, panel_design.design(request), to_json=to_json)
        return
    planned = RunRequest(data=data, folder=folder or default_folder(data), config=settings, limit=limit)
    if folder is not None:
        both = plan_labelling(planned, saving)
        options.show(label.label_plan_json, label.print_label_plan, both, to_json=to_json)
    else:
        options.show(run_view.plan_json, run_view.print_plan, planning.plan(planned), to_json=to_json)


def _costs(given: Mapping[str, tuple[float, ...]]) -> dict[str, float]:
    wrong = next((name for name, numbers in given.items() if len(numbers) != 1), None)
    if wrong is not None:
        raise ConfigError(f"--price {wrong}: with --design, write NAME=COST, such as {wrong}=0.3")
    return {name: numbers[0] for name, numbers in given.items()}


def design_json(found: panel_design.PanelDesign) -> dict[str, Any]:
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


def _cells_json(found: panel_design.PanelDesign, panel: Any) -> list[dict[str, Any]]:
    return [
        {"annotator": annotator, "relation": relation, "draws": draws}
        for (annotator, relation), draws in found.cells(panel).items()
    ]


def print_design(found: panel_design.PanelDesign) -> None:
    """Print the quality–cost curve and the panel to ask."""
    console = Console(highlight=False)
    columns = ("cost per text", "class AUROC", "95 % interval", "questions")
    rows: list[list[Content]] = []
    for panel in found.designed.curve:
        low, high = panel.auroc.interval.rounded(2)
        rows.append([f"{panel.cost:g}", f"{panel.auroc.value:.3f}", f"{low:.2f} – {high:.2f}", len(panel.cells)])
    console.print(f"designed on {found.gold_rows:,} gold rows; class AUROC on held-out rows")
    result_view.print_rows(ResultTable(name="", title="", columns=columns, rows=rows), console)
    console.print(f"\n[bold]ask about each text[/] (optimiser: {found.designed.optimiser}):")
    cells = found.cells(found.designed.chosen)
    names = result_view.ShortNames((name for cell in cells for name in cell), result_view.room_for_names(console))
    asked: list[list[Content]] = [
        [names(annotator), names(relation), draws] for (annotator, relation), draws in cells.items()
    ]
    panel_table = ResultTable(name="", title="", columns=("annotator", "relation", "times"), rows=asked)
    result_view.print_rows(panel_table, console)
    names.explain(console)
