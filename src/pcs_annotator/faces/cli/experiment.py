"""`pcs experiment`: the paper's tables and figures, on your own votes or texts."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.result_table import Content, Figure, ResultTable, number_of
from pcs_annotator.faces.cli import evaluate, exit_codes, models, options
from pcs_annotator.runs import resolve_config
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.showing import answer
from pcs_annotator.showing import blocks as b
from pcs_annotator.studies.paper.sources import find_sources
from pcs_annotator.verbs import experiment
from pcs_annotator.verbs.evaluate import Splitting

WITH_BASELINES = ("rq2", experiment.ALL)
PAPERS_OPTIMISER = "lr"


@click.command("experiment", cls=options.ManyOptions)
@click.argument("name", type=click.Choice(experiment.NAMES))
@click.argument("sources", nargs=-1, required=True)
@click.option("-o", "--out", type=options.PATH, required=True, help="Folder for tables, plots and runs.")
@evaluate.splitting_options
@click.option("--baselines", is_flag=True, help="With rq2 or all, on texts: also ask the models how sure they are.")
@options.settings_options
@options.options_for("gold_wins", "replace", "limit", "wait")
@options.printing
def command(*, name: str, sources: tuple[str, ...], out: Path, config: Path | None, **given: Any) -> int:
    """Does the paper hold on your data? Its questions rq1, rq2, rq3, rq4, size, temperature, or all.

    Each of the SOURCES is a dataset: a table of votes with gold, a run folder, or texts with gold, which models are
    asked about first, as in pcs run. Texts come from a CSV, JSONL or Parquet file, here or at an address, or
    from fakenewsnet:FOLDER/SITE. A dataset is named after its file, unless you write NAME=PATH.
    """
    baselines = given.pop("baselines")
    if baselines and name not in WITH_BASELINES:
        raise ConfigError(f"--baselines works with {' and '.join(WITH_BASELINES)}, not with {name}: leave it out")
    shown = options.shown()
    flags = options.take_settings(given)
    settings = resolve_config.read_settings(config, Path.cwd(), flags)
    found = find_sources(sources)
    if any(source.kind == "texts" for source in found):
        models.pull_missing(settings.ask.models, shown=shown)
    again = {name: given[name] for name in ("limit", "replace", "gold_wins", "wait")}
    asking = RunRequest(data="", folder=out, config=settings, progress=shown, say=options.saying(), **again)
    request = experiment.ExperimentRequest(
        name=name,
        sources=found,
        out=out,
        optimiser=flags["optimiser"] or PAPERS_OPTIMISER,
        relations=flags["relations"],
        models=flags["models"],
        rewritten=given["rewritten"],
        splitting=options.take(Splitting, {**given, "seed": settings.learn.seed}),
        asking=asking,
        baselines=baselines,
        on_step=(lambda step: click.echo(f"{step} …", err=True)) if shown else (lambda step: None),
    )
    with options.gathered_warnings() as notes:
        done = experiment.experiment(request)
    options.show(
        lambda: {
            "experiments": {one.name: [table_json(table) for table in one.tables] for one in done.experiments},
            "unanswered": dict(done.unanswered),
            "warnings": notes,
            "files": [str(path) for path in done.files],
        },
        lambda: experiments_shown(done, notes),
        details=lambda: (table for one in done.experiments for table in one.tables),
    )
    return exit_codes.exit_code(0, done.unanswered)


def experiments_shown(found: experiment.Experimented, notes: Sequence[str]) -> Iterator[b.Block]:
    """Yield what every experiment came to, and where its tables are."""
    lines: list[tuple[str, b.Words]] = []
    for one in found.experiments:
        said = "; ".join(f"{title}: {value}" for table in one.tables for title, value in table.summary)
        lines.append((one.name, said or one.tables[0].title))
    yield b.Answer(
        [
            *lines,
            *answer.look_at([*answer.unanswered(found.unanswered), *notes]),
            ("files", str(found.files[0].parent) if found.files else "none"),
        ]
    )


def table_json(table: ResultTable) -> dict[str, Any]:
    """Return a table as plain values; values that could not be computed are null."""
    return {
        "name": table.name,
        "title": table.title,
        "columns": list(table.columns),
        "rows": [[_plain(cell) for cell in row] for row in table.rows],
        "summary": [list(line) for line in table.summary],
        "notes": list(table.notes),
    }


def _plain(cell: Content) -> Any:
    if cell is None or isinstance(cell, str | int):
        return cell
    if isinstance(cell, Figure) and cell.interval is not None:
        low, high = number_of(cell.interval.low), number_of(cell.interval.high)
        return {"value": number_of(cell), "low": low, "high": high}
    return number_of(cell)
