"""`pcs gold`: how many gold rows are needed, and which."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from pcs_annotator.core.result_table import ResultTable
from pcs_annotator.faces.cli import options, result_view
from pcs_annotator.studies.estimating import gold

SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)


@click.command("gold")
@click.argument("folder", type=options.PATH)
@click.option("--n", "rows", type=click.IntRange(1), metavar="N", help="Draw N rows and write them to to_label.csv.")
@click.option(
    "--draw",
    type=click.Choice(gold.DRAWINGS),
    default="simple",
    show_default=True,
    help="All rows alike; equally many per machine label or group; or doubtful rows more often.",
)
@click.option("--by", default="", metavar="COLUMN", help="Column of groups, to draw from or to compare.")
@click.option("--of", default="", metavar="LABEL", help="Label, or several joined by +; default: the first.")
@click.option("--width", type=SHARE, metavar="X", help="Wanted: an interval of ± X, such as .03 for 3 points.")
@click.option("--difference", type=SHARE, metavar="X", help="Wanted: to find a difference of X between groups of --by.")
@click.option("--power", type=SHARE, default=0.8, show_default=True, help="How probable that should be.")
@options.JSON
def command(*, folder: Path, rows: int | None, draw: Any, by: str, to_json: bool, **wish: Any) -> None:
    """Show how many gold rows the run in FOLDER needs, before anybody labels them; with --n, draw them.

    The design is kept in the run folder, and pcs estimate uses it. Fill in to_label.csv, and pass it to pcs fit --gold.
    """
    if rows is not None:
        written, place = gold.draw_gold(folder, rows, draw, by)
        if to_json:
            options.echo_json({"rows": written, "drawn": rows, "file": str(place)})
            return
        if written < rows:
            click.echo(f"the texts of {rows - written} of {rows} rows have gold, or were drawn twice: they count, too")
        if written:
            click.echo(
                f"wrote {written} rows to {place}: fill in the column gold, then pcs fit {folder} --gold {place}"
            )
        return
    found = gold.plan_gold(folder, gold.GoldGoal(by=by, **wish))
    options.show(gold.GoldPlan.to_dict, print_plan, found, to_json=to_json)


def print_plan(found: gold.GoldPlan) -> None:
    """Print what gold rows would bring, and how many are needed."""
    console = Console(highlight=False)
    ways = list(found.outlook[0].widths) if found.outlook else []
    notes = [f"The share is about {100 * found.share:.1f} %; {found.gold_rows:,} rows have gold."]
    if found.guessed:
        notes.append("There is no calibrated confidence yet, so machine labels are not counted on.")
    table = ResultTable(
        name="outlook",
        title=f"Half the width of the 95 % interval of the share of {found.of}, percentage points",
        columns=["gold rows", *ways],
        rows=[[str(one.rows), *(100 * one.widths[way] for way in ways)] for one in found.outlook],
        notes=notes,
        digits=dict.fromkeys(ways, 1),
    )
    result_view.print_tables([table], console)
    for wanted, needed in (("that width", found.for_width), ("that difference", found.for_difference)):
        if needed:
            said = ", ".join(f"{way} {'more than there are' if n is None else f'{n:,}'}" for way, n in needed.items())
            console.print(Text(f"gold rows for {wanted}: {said}"))
    if found.for_promise is not None:
        console.print(Text(f"gold rows for the promise: about {found.for_promise:,}"))
