"""`pcs finish`: which rows people must label so that the whole table has few errors."""

from dataclasses import asdict
from pathlib import Path
from shlex import join
from typing import Any

import click

from pcs_annotator.base.text import counted
from pcs_annotator.faces.cli import options
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.formats import percent
from pcs_annotator.studies import finishing
from pcs_annotator.tables.write import OutputPolicy


@click.command("finish")
@click.argument("folder", type=options.PATH)
@click.option(
    "--max-error", type=options.SHARE, required=True, metavar="X", help="Share of all labels that may be wrong."
)
@options.options_in(finishing.Terms)
@click.option("-o", "--out", type=options.PATH, help="The finished table; default: finished.csv in FOLDER.")
@options.KEEP_EARLIER
@options.JSON
def command(*, folder: Path, max_error: float, replace: bool, out: Path | None, **choices: Any) -> None:
    """Say which rows of the run in FOLDER people must label so that its whole table has few errors.

    The machine labels the others. A text that stands in several rows is labelled once. It may be asked again at any
    time, and reads what people filled in to to_label.csv; once all rows have a label, the finished table is written. No
    model is called.
    """
    terms = options.take(finishing.Terms, choices)
    with options.working("sharing the rows between people and the machine"):
        finish = finishing.finish(folder, max_error, terms, out, OutputPolicy(replace=replace))
    labelled = f"{counted(finish.labelled, 'row')} of {finish.rows:,} ({percent(finish.labelled, finish.rows)})"
    promise = f"{finish.goal}, with {percent(finish.certainty, 1)} certainty"
    if finish.left:
        promise = f"label {counted(finish.left, 'more row')}, and {promise}"
    lines: list[tuple[str, b.Words]] = [("promise", promise), ("people", f"{labelled} have a person's label")]
    if finish.left:
        lines.append(("time", f"about {_work_time(finish.hours)}, at {finish.seconds:.0f} seconds a row"))
        lines.append(("rows", f"{finish.to_label}, the least certain first, or pcs review, queue Finish"))
        lines.append(("next", b.strong(join(["pcs", "review", str(folder)]))))
    if finish.out is not None:
        lines.append(("labels", f"{finish.out} (columns final_label, labelled_by)"))
        lines.append(("certificate", str(finish.certificate)))
    options.show(lambda: {**asdict(finish), "hours": finish.hours}, lambda: [b.Answer(lines)])


def _work_time(hours: float) -> str:
    return f"{hours:.0f} hours" if hours >= 2 else counted(max(round(60 * hours), 1), "minute")
