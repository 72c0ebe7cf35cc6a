"""`pcs experiment`: the paper's tables and figures, on one's own votes or texts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from pcs_annotator.errors import ConfigError
from pcs_annotator.faces.cli.evaluate import print_files, splitting_of, splitting_options
from pcs_annotator.faces.cli.exit_codes import exit_code
from pcs_annotator.faces.cli.learned_view import print_notes
from pcs_annotator.faces.cli.options import (
    JSON,
    LIMIT,
    PATH,
    QUIET,
    echo_json,
    flags_of,
    gathered_warnings,
    settings_options,
)
from pcs_annotator.faces.cli.pulling import pull_missing
from pcs_annotator.faces.cli.result_view import print_table, table_json
from pcs_annotator.pipeline.experiment import ALL, NAMES, Experimented, ExperimentRequest, experiment
from pcs_annotator.pipeline.experiment_sources import Asking, find_sources
from pcs_annotator.pipeline.resolve_config import read_settings

WITH_BASELINES = ("rq2", ALL)
PAPER_S_OPTIMISER = "lr"


@click.command("experiment")
@click.argument("name", type=click.Choice(NAMES))
@click.argument("sources", nargs=-1, required=True)
@click.option("-o", "--out", type=PATH, required=True, help="A folder for tables, plots and runs.")
@splitting_options
@click.option("--baselines", is_flag=True, help="With rq2 or all, and texts: also ask models how sure they are.")
@settings_options
@LIMIT
@JSON
@QUIET
def command(
    *, name: str, sources: tuple[str, ...], out: Path, config: Path | None, to_json: bool, quiet: bool, **options: Any
) -> int:
    """Answer the paper's questions: rq1, rq2, rq3, rq4, size, optimisers, temperature, or all of them.

    SOURCES are one table of votes with gold per dataset, folders of runs, or texts with gold, about which models are
    asked first as pcs run does: a CSV, JSONL or Parquet file, fakenewsnet:FOLDER/SITE, sentiment:FILE or
    hf:OWNER/NAME. A dataset is called as its file, or as you say: NAME=PATH.
    """
    asks_how_sure = options.pop("baselines")
    if asks_how_sure and name not in WITH_BASELINES:
        raise ConfigError(f"--baselines belongs to {' and '.join(WITH_BASELINES)}, not to {name}: leave it out")
    shown = not (to_json or quiet)
    flags = flags_of(options)
    settings = read_settings(config, Path.cwd(), flags)
    found = find_sources(sources)
    if any(source.kind == "texts" for source in found):
        pull_missing(settings.ask.models, shown=shown)
    request = ExperimentRequest(
        name=name,
        sources=found,
        out=out,
        optimiser=flags.optimiser or PAPER_S_OPTIMISER,
        relations=flags.relations,
        models=flags.models,
        rewritten=options["rewritten"],
        splitting=splitting_of(options, settings.learn.seed),
        asking=Asking(config=settings, baselines=asks_how_sure, limit=options["limit"], progress=shown),
        on_step=(lambda step: click.echo(f"{step} …", err=True)) if shown else (lambda step: None),
    )
    with gathered_warnings() as notes:
        done = experiment(request)
    if to_json:
        echo_json(experimented_json(done, notes))
    elif not quiet:
        print_experiments(done, notes)
    return exit_code(0, done.unanswered)


def experimented_json(found: Experimented, notes: Sequence[str]) -> dict[str, Any]:
    """Return everything that `print_experiments` shows as plain values."""
    return {
        "experiments": {one.name: [table_json(table) for table in one.tables] for one in found.experiments},
        "unanswered": dict(found.unanswered),
        "warnings": [*notes, *found.notes],
        "files": [str(path) for path in found.files],
    }


def print_experiments(found: Experimented, notes: Sequence[str], console: Console | None = None) -> None:
    """Print all tables, then what was written and what a reader must know."""
    console = console or Console(highlight=False)
    for one in found.experiments:
        for table in one.tables:
            print_table(table, console)
    print_notes([*notes, *found.notes], 0, console)
    for reason, count in found.unanswered.items():
        console.print(Text(f"{count:,} questions unanswered: {reason}; the same command asks them again", "yellow"))
    print_files(found.files, console)
