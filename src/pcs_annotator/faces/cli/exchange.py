"""`pcs exchange`: rows for people in Label Studio, and their answers back."""

from pathlib import Path

import click

from pcs_annotator.base.text import counted
from pcs_annotator.core.events import Queue
from pcs_annotator.faces.cli import options
from pcs_annotator.tables.write import OutputPolicy
from pcs_annotator.verbs import exchange

RUN = click.argument("run", type=options.PATH)
TOOL = click.argument("tool", type=click.Choice(["label-studio"]), expose_value=False)
TOOL_OR_FORMAT = click.argument("tool", type=click.Choice(["label-studio", "conll"]))


@click.group("exchange")
def command() -> None:
    """Hand rows of a run to people in Label Studio, and read their answers back."""


@command.command()
@RUN
@TOOL_OR_FORMAT
@click.option("-o", "--out", type=options.PATH, required=True, help="File to write: JSON, or .conll.")
@click.option(
    "--decision",
    type=click.Choice(["review", "accept", "agree", "all"]),
    help="Rows with this decision, without those that have a gold label or a verdict; or all rows. Default: review.",
)
@click.option(
    "--queue",
    type=click.Choice(["random", "learn", "audit", "doubtful"]),
    help="Instead, draw rows as `pcs review` does: at random, which can support a promise; where most is learned; "
    "accepted ones, to audit them; or the least certain first, from which nothing may be estimated.",
)
@click.option(
    "--rows",
    type=click.IntRange(1),
    metavar="N",
    help=f"Write at most N rows; default: all, or {exchange.ROWS_DRAWN} with --queue.",
)
@options.KEEP_EARLIER
@options.JSON
def export(  # options of the command
    *, run: Path, tool: str, out: Path, decision: str | None, queue: Queue | None, rows: int | None, replace: bool
) -> None:
    """Write rows of RUN for people to label.

    They are tasks for Label Studio, with the label that the models give and its confidence. Beside tasks.json,
    tasks.xml gets the labelling interface. With conll, all texts of a run with passages are written as tokens with BIO
    tags.
    """
    if queue and decision:
        raise click.UsageError("--queue draws rows whatever their decision: leave out one of --queue and --decision")
    policy = OutputPolicy(replace=replace)
    if tool == "conll":
        texts, left_out = exchange.export_conll(run, out, policy)
        lost = f"; {counted(left_out, 'passage')} left out, because a token has one tag" if left_out else ""
        options.tell({"rows": texts, "left_out": left_out}, f"{counted(texts, 'text')} written to {out}{lost}")
        return
    written = exchange.export_rows(run, out, decision=decision or "review", queue=queue, count=rows, policy=policy)
    paste = f"paste {written.settings} under Settings > Labeling Interface > Code"
    options.tell(
        written._asdict(),
        f"{counted(written.rows, 'row')} written to {written.file}",
        f"in Label Studio, {paste}, then import {written.file}",
    )


@command.command("import")
@RUN
@TOOL
@click.argument("file", type=options.PATH)
@options.JSON
def import_(*, run: Path, file: Path) -> None:
    """Read what people answered from FILE.

    The answers become verdicts of RUN, like those of `pcs review`. FILE is what Label Studio exports as JSON or
    JSON-MIN. If one answer does not fit the run, none is added. Importing a file again adds only what is new.
    """
    imported = exchange.import_answers(run, file)
    people = ", ".join(f"{name} ({count:,})" for name, count in imported.reviewers.items())
    new = f"{imported.verdicts:,} new verdicts by {people}; rows skipped: {imported.skipped:,}"
    lines = [f"{counted(imported.known, 'answer')} in {file} had been read before"] if imported.known else []
    lines += [new, f"pcs fit {run} learns from them"] if imported.verdicts else [f"no new answers in {file}"]
    options.tell(imported._asdict(), *lines)
