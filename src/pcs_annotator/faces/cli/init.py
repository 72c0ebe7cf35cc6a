"""`pcs init`: look at a file and write a commented pcs.toml."""

from __future__ import annotations

from pathlib import Path

import click

from pcs_annotator.faces.cli.options import JSON, PATH, echo_json
from pcs_annotator.pipeline.init_config import write_first_config


@click.command("init")
@click.argument("data", type=PATH)
@click.option("-o", "--out", type=PATH, help="Where the settings go; by default pcs.toml in the working folder.")
@click.option("--force", is_flag=True, help="Overwrite settings that are there.")
@JSON
def command(data: Path, out: Path | None, force: bool, to_json: bool) -> None:
    """Look at DATA and write a commented pcs.toml that suits it."""
    path = write_first_config(data, out, force=force)
    if to_json:
        echo_json({"config": str(path)})
        return
    click.echo(f"wrote {path}: look at the instruction, the labels and the models in it, then\n")
    click.echo(f"  pcs plan {data}    # what it would cost\n  pcs run {data}")
