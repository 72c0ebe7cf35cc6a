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
        model = use_version(run, number, options.say).only.model
        promise = "nothing was promised" if model.certificate is None else promised(model.certificate).headline
        options.tell({"version": number, "promise": promise}, f"{run} uses version {number} now; {promise}")
        return
    versions = list_versions(Run.open(run).folder)
    numbers = b.numbers("gold rows", "accuracy", "accepted")
    columns = [b.Column("version"), b.Column("made (UTC)"), *numbers, b.Column("")]
    rows: list[b.Row] = [
        [
            str(version.number),
            version.made[:16].replace("T", " "),
            f"{version.gold_rows:,}",
            "–" if version.accuracy is None else percent(version.accuracy, 1),
            "–" if version.accepted is None else percent(version.accepted, 1),
            "in use" if version.in_use else "",
        ]
        for version in versions
    ]
    options.show(
        lambda: {"versions": [version._asdict() for version in versions]},
        lambda: [b.Table(columns=columns, rows=rows) if versions else f"{run} has no fit yet: pcs fit {run}"],
    )
