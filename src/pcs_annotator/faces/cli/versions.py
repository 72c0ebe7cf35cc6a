"""`pcs versions`: the fits of a run, and going back to one."""

from pathlib import Path

import click

from pcs_annotator.faces.cli import options
from pcs_annotator.runs.certificate_text import promised
from pcs_annotator.runs.fits import list_versions
from pcs_annotator.runs.opened import Run
from pcs_annotator.showing.report.over_time import fits_table
from pcs_annotator.verbs.fit import use_version


@click.command("versions")
@click.argument("run", type=options.PATH)
@click.option("--use", "number", type=click.IntRange(1), metavar="N", help="Go back, or forward, to version N.")
@options.JSON
def command(*, run: Path, number: int | None) -> None:
    """List the fits of RUN, oldest first: when each was made, from how much gold, how good it is, audits, and cost.

    With --use, labels, report, `pcs label` and `pcs serve` use the model of that version from now on.
    """
    if number is not None:
        model = use_version(run, number, options.say).only.model
        promise = "nothing was promised" if model.certificate is None else promised(model.certificate).headline
        options.tell({"version": number, "promise": promise}, f"{run} uses version {number} now; {promise}")
        return
    opened = Run.open(run)
    versions = list_versions(opened.folder, opened.config)
    options.show(
        lambda: {"versions": [version._asdict() for version in versions]},
        lambda: [fits_table(versions) if versions else f"{run} has no fit yet: pcs fit {run}"],
    )
