"""`pcs find`: the rows that have a label, with a promised precision or recall."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pcs_annotator.faces.cli import options
from pcs_annotator.studies.estimating import find

SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)


@click.command("find")
@click.argument("folder", type=options.PATH)
@click.option("--label", required=True, metavar="LABEL", help="The label to find.")
@click.option("--recall", type=SHARE, metavar="X", help="Find at least this share of all rows with the label.")
@click.option("--precision", type=SHARE, metavar="X", help="At least this share of the rows found has the label.")
@click.option("--certainty", type=SHARE, default=0.9, show_default=True, help="How often such promises hold.")
@click.option("-o", "--out", type=options.PATH, help="File for the rows, most probable first.")
@options.JSON
def command(*, folder: Path, out: Path | None, to_json: bool, **search: Any) -> None:
    """Find the rows of the run in FOLDER that have a label, with a promised precision, recall or both.

    The promise is tested on gold rows drawn at random. Say what you need before you look: it holds for one search.
    """
    with options.gathered_warnings() as notes:
        found = find.find(folder, find.Search(**search), out)
    if to_json:
        options.echo_json({**found.to_dict(), "warnings": notes})
        return
    click.echo(found.sentence)
    if out is not None:
        click.echo(f"wrote {out}")
