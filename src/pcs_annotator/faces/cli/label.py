"""`pcs label`: label new texts with a fitted run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from pcs_annotator.faces.cli.exit_codes import exit_code
from pcs_annotator.faces.cli.learned_view import print_notes, print_promise, promise_json
from pcs_annotator.faces.cli.options import (
    JSON,
    LIMIT,
    PATH,
    QUIET,
    echo_json,
    gathered_warnings,
    saving_of,
    saving_options,
)
from pcs_annotator.faces.cli.run_view import plan_json, print_plan
from pcs_annotator.pipeline.label import Labelled, LabelPlan, label
from pcs_annotator.pipeline.resolve_config import Flags, flags_only
from pcs_annotator.pipeline.run import RunRequest


@click.command("label")
@click.argument("data", type=PATH)
@click.option("--run", "folder", type=PATH, required=True, help="The folder of a fitted run.")
@click.option("-o", "--out", type=PATH, help="Where the labels go; by default DATA-labels.csv beside DATA.")
@click.option("--text-column", help="Where the texts are.")
@click.option("--id-column", help="Where their names are; by default `id`, or row numbers.")
@saving_options
@LIMIT
@JSON
@QUIET
def command(
    *,
    data: Path,
    folder: Path,
    out: Path | None,
    text_column: str | None,
    id_column: str | None,
    limit: int | None,
    to_json: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """Label the texts of DATA with the models, rewrites and weights of a fitted run.

    Asks the heaviest questions first, and stops about a text as soon as no further answer can change its label.
    """
    columns = flags_only(Flags(text_column=text_column, id_column=id_column))
    request = RunRequest(data=data, folder=folder, config=columns, limit=limit, progress=not (to_json or quiet))
    place = out or data.with_name(f"{data.name.split('.')[0]}-labels.csv")
    with gathered_warnings() as notes:
        labelled = label(request, place, saving_of(options))
    if to_json:
        echo_json(labelled_json(labelled, notes))
    elif not quiet:
        print_labelled(labelled, notes)
    return exit_code(labelled.unlabelled, labelled.tally.failed)


def labelled_json(labelled: Labelled, notes: Sequence[str]) -> dict[str, Any]:
    """Return everything that `print_labelled` shows as plain values."""
    tally = labelled.tally
    return {
        "rows": len(labelled.outcomes),
        "rows_without_label": labelled.unlabelled,
        "label_counts": dict(_counts(labelled)),
        "decisions": dict(Counter(one.decision for one in labelled.outcomes if one.decision is not None)),
        "calls": tally.calls,
        "known_already": tally.from_ledger,
        "questions": tally.questions,
        "questions_spared": tally.spared,
        **promise_json(labelled),
        "warnings": list(notes),
        "out": str(labelled.out),
    }


def print_labelled(labelled: Labelled, notes: Sequence[str], console: Console | None = None) -> None:
    """Print what came of labelling for a person."""
    console = console or Console(highlight=False)
    for name, count in _counts(labelled).most_common():
        console.print(Text(f"{count:>8,}  {name}"))
    tally = labelled.tally
    console.print(f"{tally.calls:,} calls, {tally.from_ledger:,} from the ledger")
    if labelled.frugal is not None and tally.spared:
        share = tally.spared / (tally.spared + tally.questions)
        console.print(
            f"{tally.spared:,} questions ({100 * share:.0f} %) were not asked, because the label was settled; "
            "[dim]--ask-all asks everything[/]"
        )
    print_promise(labelled, len(labelled.outcomes), console)
    print_notes(notes, labelled.unlabelled, console)
    console.print(Text(f"\nlabels  {labelled.out}", style="bold"))


def label_plan_json(plan: LabelPlan) -> dict[str, Any]:
    """Return a plan both ways as plain values."""
    return {
        **plan_json(plan.everything),
        "adaptive": None if plan.frugal is None else plan_json(plan.frugal),
        "share_asked": None if plan.spending is None else plan.spending._asdict(),
    }


def print_label_plan(plan: LabelPlan, console: Console | None = None) -> None:
    """Print what labelling takes, both ways."""
    console = console or Console(highlight=False)
    console.print("[bold]asking everything[/]")
    print_plan(plan.everything, console)
    if plan.frugal is None or plan.spending is None:
        console.print("\nnothing was learned in that run that could tell when a label is settled: everything is asked")
        return
    console.print(
        f"\n[bold]asking until the label is settled[/], about {100 * plan.spending.questions:.0f} % of the questions"
    )
    print_plan(plan.frugal, console)


def _counts(labelled: Labelled) -> Counter[str]:
    return Counter(outcome.label for outcome in labelled.outcomes if outcome.label is not None)
