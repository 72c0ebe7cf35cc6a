"""`pcs run`: from texts to labels with a confidence."""

import sys
from pathlib import Path
from typing import Any

import click

from pcs_annotator.base.text import counted
from pcs_annotator.faces.cli import models, options, run_view
from pcs_annotator.runs import resolve_config
from pcs_annotator.runs.run_request import RunRequest, default_folder
from pcs_annotator.runs.settings import GoldSample
from pcs_annotator.verbs import run


@click.command("run", cls=options.ManyOptions)
@click.argument("data", type=options.TABLE)
@options.settings_options
@options.execution_options
@click.option("-o", "--out", type=options.PATH, help="Run folder; default: runs/ plus the name of DATA.")
@options.options_for("limit", "to_label", "spreadsheet_safe", "gold_wins", "replace", "fresh", "wait")
@options.printing
def command(*, data: Path | str, config: Path | None, out: Path | None, **choices: Any) -> int:
    """Rewrite, ask, learn and label the texts of DATA (CSV, Excel, JSONL, Parquet or the like).

    DATA is a file, a folder, a pattern in quotes such as 'parts/*.parquet', an address such as s3://bucket/news.csv,
    or - for standard input.

    Every text gets one of 2 to 5,000 labels; with [variables.NAME] in pcs.toml, one for each of several variables, or
    any number of labels; with --kind number, a quantity; with --pair, which of two texts is better. The page
    docs/limits.md says what is not supported.

    After an interruption, the same command resumes and asks only what is missing. Weights are learned from the rows
    with a gold label; all rows get a label.
    """
    folder = out or default_folder(data)
    flags = options.take_settings(choices)
    settings = resolve_config.read_settings(config, Path.cwd(), flags, run.learn_defaults(folder))
    request = RunRequest(
        data=data,
        folder=folder,
        config=settings,
        progress=options.shown(),
        announce=options.announced if options.shown() else None,
        say=options.saying(),
        working=options.working,
        ask_gold_sample=_asked_gold_sample if options.shown() and sys.stdin.isatty() else None,
        **choices,
    )
    models.pull_missing(settings.ask.models, shown=request.progress)
    return run_view.show_result(lambda: run.run(request))


def _asked_gold_sample(rows: int) -> GoldSample:
    """Ask how the gold rows of the data were chosen: a promise needs rows drawn at random."""
    how = f"{counted(rows, 'row has', 'rows have')} a gold label. Were these rows drawn at random?"
    answer = click.prompt(f"{how} yes, no, or unknown", type=click.Choice(["yes", "no", "unknown"]), default="unknown")
    samples: dict[str, GoldSample] = {"yes": "random", "no": "chosen", "unknown": "unknown"}
    return samples[answer]
