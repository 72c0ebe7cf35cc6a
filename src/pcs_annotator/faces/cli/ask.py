"""`pcs init`, `pcs plan` and `pcs run`: from texts to labels with a confidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click

from pcs_annotator.faces.cli import exit_codes, label, models, options, run_view
from pcs_annotator.runs import resolve_config
from pcs_annotator.runs.resolve_config import settings_of
from pcs_annotator.runs.run_request import RunRequest, default_folder
from pcs_annotator.runs.settings import Saving
from pcs_annotator.showing import blocks as b
from pcs_annotator.verbs import plan as planning
from pcs_annotator.verbs import run
from pcs_annotator.verbs.init_config import write_first_config
from pcs_annotator.verbs.label import plan_labelling


@click.command("init")
@click.argument("data", type=options.TABLE)
@click.option("-o", "--out", type=options.PATH, help="Settings file to write; default: pcs.toml in this folder.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@options.column_options
@options.JSON
def init_command(data: Path | str, out: Path | None, force: bool, to_json: bool, **columns: str | None) -> None:
    """Inspect DATA and write a commented pcs.toml for it."""
    path = write_first_config(data, out, settings_of(options.take_settings(columns)), force=force)
    if to_json:
        options.echo_json({"config": str(path)})
        return
    click.echo(f"wrote {path}: check the instruction, the labels and the models in it, then run\n")
    click.echo(f"  pcs plan {data}    # shows the cost\n  pcs run {data}")


@click.command("plan", cls=options.ManyOptions)
@click.argument("data", type=options.TABLE)
@options.settings_options
@click.option("--run", "folder", type=options.PATH, help="Plan to label DATA with this fitted run.")
@options.stopping_options
@options.LIMIT
@options.JSON
def plan_command(
    *, data: Path | str, folder: Path | None, config: Path | None, limit: int | None, **given: Any
) -> None:
    """Show calls, tokens and cost of a run over DATA; no model is called.

    With --run, the same for labelling DATA with a fitted run: asking all questions, and stopping when labels are
    settled.
    """
    to_json = given.pop("to_json")
    saving = options.take(Saving, dict(given))
    settings = resolve_config.read_settings(config, Path.cwd(), options.take_settings(given))
    planned = RunRequest(data=data, folder=folder or default_folder(data), config=settings, limit=limit)
    if folder is not None:
        both = plan_labelling(planned, saving)
        options.show(label.label_plan_json, partial(_then, "label", label.label_plan_shown), both, to_json=to_json)
    else:
        shown = partial(_then, "run", run_view.plan_shown)
        options.show(run_view.plan_json, shown, planning.plan(planned), to_json=to_json)


def _then(command: str, shown: Callable[[Any], Iterable[object]], plan: object) -> Iterator[object]:
    """Yield what is shown of a plan, and the command that carries it out."""
    yield from shown(plan)
    yield b.Answer([("next", b.strong(options.instead(command)))])


@click.command("run", cls=options.ManyOptions)
@click.argument("data", type=options.TABLE)
@options.settings_options
@options.execution_options
@click.option("-o", "--out", type=options.PATH, help="Run folder; default: runs/ plus the name of DATA.")
@options.LIMIT
@options.TO_LABEL
@options.SPREADSHEET_SAFE
@options.GOLD_WINS
@options.REPLACE
@options.FRESH
@options.NO_WAIT
@options.DETAILS
@options.JSON
@options.QUIET
def run_command(
    *, data: Path | str, config: Path | None, out: Path | None, to_json: bool, quiet: bool, **given: Any
) -> int:
    """Rewrite, ask, learn and label the texts of DATA (CSV, Excel, JSONL, Parquet or the like).

    DATA is a file, a folder, a pattern in quotes such as 'parts/*.parquet', an address such as s3://bucket/news.csv,
    or - for standard input.

    Every text gets one label out of 2 to 127. Not supported: several labels per text, scales and numbers (except as
    labels), several questions in one run, trees of labels, pairs of texts. The page docs/limits.md says what to do
    instead.

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
        progress=not (to_json or quiet),
        announce=None if to_json or quiet else run_view.print_panel,
        say=partial(options.say, shown=not (to_json or quiet)),
        **given,
    )
    models.pull_missing(settings.ask.models, shown=request.progress)
    with options.gathered_warnings() as notes:
        result = run.run(request)
    run_view.show_run(result, notes, to_json=to_json, quiet=quiet)
    return exit_codes.exit_code(result.counts.unanswered, result.tally.failed)
