"""`pcs init`: inspect a data file and write a commented pcs.toml."""

from __future__ import annotations

from pathlib import Path

import click

from pcs_annotator.faces.cli import options
from pcs_annotator.runs.resolve_config import settings_of
from pcs_annotator.verbs.init_config import write_first_config


@click.command("init")
@click.argument("data", type=options.TABLE)
@click.option("-o", "--out", type=options.PATH, help="Settings file to write; default: pcs.toml in this folder.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@options.column_options
@options.JSON
def command(data: Path | str, out: Path | None, force: bool, to_json: bool, **columns: str | None) -> None:
    """Inspect DATA and write a commented pcs.toml for it."""
    path = write_first_config(data, out, settings_of(options.take_settings(columns)), force=force)
    if to_json:
        options.echo_json({"config": str(path)})
        return
    click.echo(f"wrote {path}: check the instruction, the labels and the models in it, then run\n")
    click.echo(f"  pcs plan {data}    # shows the cost\n  pcs run {data}")
