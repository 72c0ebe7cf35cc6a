"""`pcs robust`: would another choice have changed the conclusion?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from pcs_annotator.faces.cli import options, result_view
from pcs_annotator.faces.cli.estimate import question_of, question_options
from pcs_annotator.studies.estimating import robust, shown
from pcs_annotator.studies.estimating.write import write_robust


@click.command("robust")
@click.argument("folder", type=options.PATH)
@question_options
@click.option("-o", "--out", type=options.PATH, help="HTML file to write: the specification curve.")
@options.JSON
def command(*, folder: Path, out: Path | None, to_json: bool, **given: Any) -> None:
    """Estimate the same for every model, set of relations and way of learning in FOLDER; no model is called.

    Shows under how many of these choices the sign or the conclusion would have been another one, with machine labels
    corrected by gold rows and as if they were true.
    """
    with options.gathered_warnings() as notes:
        found = robust.robust(folder, question_of(given))
    if out is not None:
        write_robust(found, out)
    if to_json:
        options.echo_json({"quantities": [one.to_dict() for one in found], "warnings": notes})
        return
    result_view.print_tables([shown.robust_table(one) for one in found], Console(highlight=False))
    if out is not None:
        click.echo(f"wrote {out}")
