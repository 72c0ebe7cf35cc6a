"""`pcs gold`: how many gold rows are needed, and drawing them."""

from dataclasses import asdict
from pathlib import Path
from shlex import join
from typing import Any

import click

from pcs_annotator.base.text import counted
from pcs_annotator.core.result_table import ResultTable
from pcs_annotator.faces.cli import options
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.formats import count, label_name, percent
from pcs_annotator.studies.estimating import gold_plan


@click.command("gold")
@click.argument("folder", type=options.PATH)
@click.option("--n", "rows", type=click.IntRange(1), metavar="N", help="Draw N texts and write them to to_label.csv.")
@click.option(
    "--draw",
    type=click.Choice(gold_plan.DRAWINGS),
    default="simple",
    show_default=True,
    help="Every row is as likely; as many of each machine label or group; or doubtful rows more often.",
)
@options.options_in(gold_plan.GoldGoal)
@options.JSON
def command(*, folder: Path, rows: int | None, draw: Any, by: str | None, **wish: Any) -> None:
    """Show how many gold rows the run in FOLDER needs, before anybody labels them; with --n, draw them.

    The design is kept in the run folder, and pcs estimate uses it. Fill in to_label.csv, and pass it to pcs fit --gold.
    """
    if rows is not None:
        written, file = gold_plan.draw_gold(folder, rows, draw, by or "")
        counted_too = f"the texts of {rows - written} of {rows} rows have gold, or were drawn twice: they count, too"
        wrote = f"wrote {written} rows to {file}: fill in the column gold, then pcs fit {folder} --gold {file}"
        lines = (counted_too if written < rows else "", wrote if written else "")
        options.tell({"rows": written, "drawn": rows, "file": str(file)}, *filter(None, lines))
        return
    plan = gold_plan.plan_gold(folder, options.take(gold_plan.GoldGoal, {"by": by, **wish}))
    needed = [each.get("simple") or each.get("gold only") for each in plan.needed.values()]  # in a simple sample
    most = max((n or 0 for n in needed), default=0)
    if most and None not in needed and most <= plan.gold_rows and not plan.more:
        options.tell(asdict(plan), f"You have {counted(plan.gold_rows, 'gold row')}; {count(most)} are enough.")
        return
    short = [n - plan.gold_rows for n in needed if n and n > plan.gold_rows]
    to_draw = min(100, plan.left, *short) if short else 0  # what the nearest goal needs
    following = b.strong(join(["pcs", "gold", str(folder), "--n", str(to_draw)]))
    ending = b.Answer([("next", following)]) if to_draw else None
    options.show(lambda: asdict(plan), lambda: [_plan_shown(plan), ending])


def _plan_shown(plan: gold_plan.GoldPlan) -> ResultTable:
    ways = [*dict.fromkeys(way for ways in plan.needed.values() for way in ways)]
    has = counted(plan.gold_rows, "row has", "rows have")
    notes = [f"The share of {label_name(plan.of)} is about {100 * plan.share:.1f} %; {has} gold."]
    if plan.assumed is not None:
        notes.append(f"That is too little: {percent(plan.assumed, 1)} of labels are assumed to be right (--accuracy).")
    notes.append(f"Numbers are totals, with the gold rows at hand; {counted(plan.left, 'more row')} can be drawn.")
    if any(n is None for ways in plan.needed.values() for n in ways.values()):
        notes.append("too many: more rows than there are, or thousands.")
    if plan.more:
        notes.append(f"finish: people label about {counted(plan.more, 'more row')}, random gold rows among them.")
    if plan.now is not None and plan.now != plan.more:
        notes.append(f"pcs finish at once, without more random gold rows: {counted(plan.now, 'more row')}.")
    return ResultTable(
        name="goals",
        title="Gold rows for each goal, by the way of drawing; in four cases out of five they are enough",
        columns=["goal", *ways],
        rows=[
            [goal, *("too many" if n.get(way, "") is None else n.get(way, "") for way in ways)]
            for goal, n in plan.needed.items()
        ],
        notes=notes,
    )
