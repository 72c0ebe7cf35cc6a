"""`pcs init`: look at a table, and write settings for it."""

from pathlib import Path

import click

from pcs_annotator.faces.cli import options
from pcs_annotator.runs import resolve_config
from pcs_annotator.tables.write import OutputPolicy
from pcs_annotator.verbs.init_config import write_first_config


@click.command("init")
@click.argument("data", type=options.TABLE)
@click.option("-o", "--out", type=options.PATH, help="Settings file to write; default: pcs.toml in this folder.")
@options.options_for("encoding", "sheet", "text_column", "id_column", "gold_column", "coders")
@options.KEEP_EARLIER
@options.JSON
def command(data: Path | str, out: Path | None, replace: bool, **columns: str | None) -> None:
    """Inspect DATA and write a commented pcs.toml for it."""
    settings = resolve_config.settings_of(options.take_settings(columns))
    path = write_first_config(data, out, settings, OutputPolicy(replace=replace))
    wrote = f"wrote {path}: check the instruction, the labels and the models in it, then run"
    options.tell({"config": str(path)}, wrote, "", f"  pcs plan {data}    # shows the cost", f"  pcs run {data}")
