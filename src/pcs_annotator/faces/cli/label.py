"""`pcs label`: label new texts with a fitted run."""

from pathlib import Path
from typing import Any

import click

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.faces.cli import options, run_view
from pcs_annotator.runs import resolve_config
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.settings import Saving
from pcs_annotator.tables.source_files import STDIO
from pcs_annotator.verbs import label

OUT = "File to write (.xlsx, .csv, .tsv, .jsonl, .parquet), or - for standard output; default:"


@click.command("label", cls=options.ManyOptions)
@click.argument("data", type=options.TABLE)
@click.option("--run", "folder", type=options.PATH, required=True, help="Folder of the fitted run.")
@click.option("-o", "--out", type=options.PATH, help=f"{OUT} DATA-labels.csv beside DATA.")
@options.options_in(RunRequest, "format")
@options.reading_options
@options.options_for("text_column", "pair", "id_column")
@options.MOVED_LEDGER
@options.saving_options
@options.options_for("on_drift", "audit", "keep_texts", "keep_days")
@options.execution_options
@options.options_for("limit", "replace", "spreadsheet_safe", "wait")
@options.printing
def command(*, data: Path | str, folder: Path, out: Path | None, **choices: Any) -> int:
    """Label the texts of DATA with the models, rewrites and weights of a fitted run.

    Asks the questions with the most weight first, and stops asking about a text when no further answer can change its
    label.
    """
    if options.wanted("json") and out == STDIO:
        raise ConfigError("-o - and --json both write to standard output: leave one of them out")
    saving = options.take(Saving, choices)
    request = RunRequest(
        data=data,
        folder=folder,
        config=resolve_config.settings_of(options.take_settings(choices)),
        progress=options.shown(),
        say=options.saying(),
        **choices,
    )
    path = out or label.default_out(data)
    return run_view.label_and_show(request, path, saving)
