"""`pcs label`: label new texts with a fitted run."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import click

from pcs_annotator.faces.cli.fit_view import print_notes
from pcs_annotator.faces.cli.options import JSON, LIMIT, PATH, QUIET, gathered_warnings
from pcs_annotator.faces.cli.run import EXIT_BUDGET, EXIT_UNLABELLED
from pcs_annotator.pipeline.run import Labelled, RunRequest, label
from pcs_annotator.pipeline.settling import Flags, flags_only


@click.command("label")
@click.argument("data", type=PATH)
@click.option("--run", "folder", type=PATH, required=True, help="The folder of a fitted run.")
@click.option("-o", "--out", type=PATH, help="Where the labels go; by default DATA-labels.csv beside DATA.")
@click.option("--text-column", help="Where the texts are.")
@click.option("--id-column", help="Where their names are; by default `id`, or row numbers.")
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
) -> int:
    """Label the texts of DATA with the models, rewrites and weights of a fitted run."""
    columns = flags_only(Flags(text_column=text_column, id_column=id_column))
    request = RunRequest(data=data, folder=folder, config=columns, limit=limit, progress=not (to_json or quiet))
    with gathered_warnings() as notes:
        labelled = label(request, out or data.with_name(f"{data.name.split('.')[0]}-labels.csv"))
    if to_json:
        click.echo(json.dumps(_as_json(labelled, notes), ensure_ascii=False, indent=2))
    elif not quiet:
        _print(labelled, notes)
    if labelled.tally.failed["budget reached"]:
        return EXIT_BUDGET
    return EXIT_UNLABELLED if labelled.unlabelled else 0


def _counts(labelled: Labelled) -> Counter[str]:
    return Counter(outcome.label for outcome in labelled.outcomes if outcome.label is not None)


def _as_json(labelled: Labelled, notes: list[str]) -> dict[str, object]:
    return {
        "rows": len(labelled.outcomes),
        "rows_without_label": labelled.unlabelled,
        "label_counts": dict(_counts(labelled)),
        "calls": labelled.tally.calls,
        "known_already": labelled.tally.from_ledger,
        "warnings": notes,
        "out": str(labelled.out),
    }


def _print(labelled: Labelled, notes: list[str]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for name, count in _counts(labelled).most_common():
        console.print(Text(f"{count:>8,}  {name}"))
    console.print(f"{labelled.tally.calls:,} calls, {labelled.tally.from_ledger:,} known already")
    print_notes(notes, labelled.unlabelled, console)
    console.print(Text(f"\nlabels  {labelled.out}", style="bold"))
