"""`pcs versions`: the fits of a run, and going back to one."""

from pathlib import Path

import click

from pcs_annotator.faces.cli import options
from pcs_annotator.runs.certificate_text import promised
from pcs_annotator.runs.fits import list_versions
from pcs_annotator.runs.opened import Run
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.formats import percent
from pcs_annotator.verbs.fit import use_version


@click.command("versions")
@click.argument("run", type=options.PATH)
@click.option("--use", "number", type=click.IntRange(1), metavar="N", help="Go back, or forward, to version N.")
@options.JSON
def command(*, run: Path, number: int | None) -> None:
    """List the fits of RUN, oldest first: when each was made, from how much gold, and how good it is.

    With --use, labels, report, `pcs label` and `pcs serve` use the model of that version from now on.
    """
    if number is not None:
        model = use_version(run, number, options.say).learned.model
        promise = "nothing was promised" if model.certificate is None else promised(model.certificate).headline
        options.tell({"version": number, "promise": promise}, f"{run} uses version {number} now; {promise}")
        return
    found = list_versions(Run.open(run).folder)
    numbers = b.numbers("gold rows", "accuracy", "accepted")
    columns = [b.Column("version"), b.Column("made (UTC)"), *numbers, b.Column("")]
    rows: list[b.Row] = [
        [
            str(one.number),
            one.made[:16].replace("T", " "),
            f"{one.gold_rows:,}",
            "–" if one.accuracy is None else percent(one.accuracy, 1),
            "–" if one.accepted is None else percent(one.accepted, 1),
            "in use" if one.in_use else "",
        ]
        for one in found
    ]
    options.show(
        lambda: {"versions": [one._asdict() for one in found]},
        lambda: [b.Table(columns=columns, rows=rows) if found else f"{run} has no fit yet: pcs fit {run}"],
    )
