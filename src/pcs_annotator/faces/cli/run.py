"""`pcs run`: from texts to labels with a confidence, in one command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pcs_annotator.faces.cli.exit_codes import exit_code
from pcs_annotator.faces.cli.options import (
    JSON,
    LIMIT,
    PATH,
    QUIET,
    TO_LABEL,
    echo_json,
    flags_of,
    gathered_warnings,
    settings_options,
)
from pcs_annotator.faces.cli.pulling import pull_missing
from pcs_annotator.faces.cli.run_view import print_run, run_json
from pcs_annotator.pipeline.resolve_config import read_settings
from pcs_annotator.pipeline.run import RunRequest, run


@click.command("run")
@click.argument("data", type=PATH)
@settings_options
@click.option("-o", "--out", type=PATH, help="The run's folder; by default runs/NAME-OF-DATA.")
@LIMIT
@TO_LABEL
@click.option("--fresh", is_flag=True, help="Ask again what was answered before, and pay again.")
@JSON
@QUIET
def command(*, data: Path, config: Path | None, out: Path | None, to_json: bool, quiet: bool, **options: Any) -> int:
    """Rewrite, ask, learn and label the texts of DATA (CSV, JSONL or Parquet).

    The same command goes on after any stop, and asks only what is missing. Rows with a gold label teach what each
    model and each rewrite is worth; the others get a label.
    """
    settings = read_settings(config, Path.cwd(), flags_of(options))
    request = RunRequest(
        data=data,
        folder=out or default_folder(data),
        config=settings,
        progress=not (to_json or quiet),
        **options,
    )
    pull_missing(settings.ask.models, shown=request.progress)
    with gathered_warnings() as notes:
        result = run(request)
    if to_json:
        echo_json(run_json(result, notes))
    elif not quiet:
        print_run(result, notes)
    return exit_code(result.unlabelled, result.tally.failed)


def default_folder(data: Path) -> Path:
    """Return where a run goes when nobody says."""
    return Path("runs") / data.name.split(".")[0]
