"""`pcs init` and `pcs run`: from texts to labels with a confidence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pcs_annotator.faces.cli import codebook_view, exit_codes, models, options, run_view
from pcs_annotator.runs import resolve_config
from pcs_annotator.runs.resolve_config import settings_of
from pcs_annotator.runs.run_request import RunRequest, default_folder
from pcs_annotator.verbs import run
from pcs_annotator.verbs.init_config import write_first_config


@click.command("init")
@click.argument("data", type=options.TABLE)
@click.option("-o", "--out", type=options.PATH, help="Settings file to write; default: pcs.toml in this folder.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@options.options_for("encoding", "sheet", "text_column", "id_column", "gold_column", "coders")
@options.JSON
def init_command(data: Path | str, out: Path | None, force: bool, **columns: str | None) -> None:
    """Inspect DATA and write a commented pcs.toml for it."""
    path = write_first_config(data, out, settings_of(options.take_settings(columns)), force=force)
    wrote = f"wrote {path}: check the instruction, the labels and the models in it, then run"
    options.tell({"config": str(path)}, wrote, "", f"  pcs plan {data}    # shows the cost", f"  pcs run {data}")


@click.command("run", cls=options.ManyOptions)
@click.argument("data", type=options.TABLE)
@options.settings_options
@options.execution_options
@click.option("-o", "--out", type=options.PATH, help="Run folder; default: runs/ plus the name of DATA.")
@options.options_for("limit", "to_label", "spreadsheet_safe", "gold_wins", "replace", "fresh", "wait")
@options.printing
def run_command(*, data: Path | str, config: Path | None, out: Path | None, **given: Any) -> int:
    """Rewrite, ask, learn and label the texts of DATA (CSV, Excel, JSONL, Parquet or the like).

    DATA is a file, a folder, a pattern in quotes such as 'parts/*.parquet', an address such as s3://bucket/news.csv,
    or - for standard input.

    Every text gets one of 2 to 5,000 labels; with [variables.NAME] in pcs.toml, one for each of several variables, or
    any number of labels. Not supported: numbers (except as labels) and pairs of texts. The page docs/limits.md says
    what to do instead.

    After an interruption, the same command resumes and asks only what is missing. Weights are learned from the rows
    with a gold label; all rows get a label.
    """
    folder = out or default_folder(data)
    flags = options.take_settings(given)
    settings = resolve_config.read_settings(config, Path.cwd(), flags, run.learn_defaults(folder))
    request = RunRequest(
        data=data,
        folder=folder,
        config=settings,
        progress=options.shown(),
        announce=run_view.print_panel if options.shown() else None,
        say=options.saying(),
        **given,
    )
    models.pull_missing(settings.ask.models, shown=request.progress)
    if settings.variables:
        return codebook_view.run_and_show(request)
    with options.gathered_warnings() as notes:
        result = run.run(request)
    run_view.show_run(result, notes)
    return exit_codes.exit_code(result.counts.unanswered, result.tally.failed)
