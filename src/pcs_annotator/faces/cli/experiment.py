"""`pcs experiment`: the paper's tables and figures, on your own votes."""

from collections.abc import Sequence
from typing import Any

import click

from pcs_annotator.core.result_table import Content, Figure, ResultTable, number_of
from pcs_annotator.faces.cli import options
from pcs_annotator.showing import answer
from pcs_annotator.showing import blocks as b
from pcs_annotator.tables.write import OutputPolicy
from pcs_annotator.verbs import experiment
from pcs_annotator.verbs.evaluate import EvaluateRequest, Splitting


@click.command("experiment")
@click.argument("name", type=click.Choice(experiment.NAMES))
@click.argument("sources", nargs=-1, required=True)
@click.option("-o", "--out", type=options.PATH, required=True, help="Folder for tables and plots.")
@options.options_in(experiment.ExperimentRequest)
@options.options_in(Splitting)
@options.options_in(EvaluateRequest, "rewritten")
@options.KEEP_EARLIER
@options.printing
def command(*, name: str, sources: tuple[str, ...], **choices: Any) -> None:
    """Does the paper hold on your data? Its questions rq1, rq2, rq3, rq4, size, or all.

    Each of the SOURCES is a dataset: a table of votes with gold, or a run folder. It is named after its file, unless
    you write NAME=PATH. No model is asked; pcs run asks.
    """
    on_step = (lambda step: click.echo(f"{step} …", err=True)) if options.shown() else (lambda step: None)
    choices |= {"splitting": options.take(Splitting, choices), "policy": options.take(OutputPolicy, choices)}
    choices |= {"on_step": on_step, "name": name, "sources": sources}
    with options.gathered_warnings() as notes:
        done = experiment.experiment(options.take(experiment.ExperimentRequest, choices))
    options.show(
        lambda: {
            "experiments": {study.name: [table_json(table) for table in study.tables] for study in done.experiments},
            "warnings": notes,
            "files": [str(path) for path in done.files],
        },
        lambda: [_answer(done, notes)],
        details=lambda: (table for study in done.experiments for table in study.tables),
    )


def _answer(done: experiment.Experimented, notes: Sequence[str]) -> b.Answer:
    lines: list[answer.Line] = []
    for study in done.experiments:
        summary = "; ".join(f"{title}: {value}" for table in study.tables for title, value in table.summary)
        lines.append((study.name, summary or study.tables[0].title))
    return b.Answer([*lines, *answer.look_at(notes), ("files", str(done.files[0].parent) if done.files else "none")])


def table_json(table: ResultTable) -> dict[str, Any]:
    """Return a table as plain values; values that could not be computed are null."""
    rows = [[_plain(cell) for cell in row] for row in table.rows]
    values = {"name": table.name, "title": table.title, "columns": list(table.columns), "rows": rows}
    return {**values, "summary": [list(line) for line in table.summary], "notes": list(table.notes)}


def _plain(cell: Content) -> Any:
    if cell is None or isinstance(cell, str | int):
        return cell
    if isinstance(cell, Figure) and cell.interval is not None:
        low, high = number_of(cell.interval.low), number_of(cell.interval.high)
        return {"value": number_of(cell), "low": low, "high": high}
    return number_of(cell)
