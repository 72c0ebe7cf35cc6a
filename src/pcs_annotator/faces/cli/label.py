"""`pcs label`: label new texts with a fitted run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pcs_annotator.faces.cli.label_view import labelled_json, print_labelled
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
from pcs_annotator.faces.cli.run import EXIT_BUDGET, EXIT_UNLABELLED
from pcs_annotator.pipeline.labelling import label
from pcs_annotator.pipeline.run import RunRequest
from pcs_annotator.pipeline.settling import Flags, flags_only


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
    if labelled.tally.failed["budget reached"]:
        return EXIT_BUDGET
    return EXIT_UNLABELLED if labelled.unlabelled else 0
