"""`pcs versions` and `pcs use`: the fits of a run, and going back to one of them."""

from __future__ import annotations

from pathlib import Path

import click

from pcs_annotator.faces.cli import options
from pcs_annotator.runs.certificate_text import promised
from pcs_annotator.runs.run import Run
from pcs_annotator.runs.versions import list_versions
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.formats import percent
from pcs_annotator.verbs.fit import use_version

RUN = click.argument("run", type=options.PATH)


@click.command("versions")
@RUN
@options.JSON
def versions_command(*, run: Path) -> None:
    """List the fits of RUN, oldest first: when each was made, from how much gold, and how good it is."""
    found = list_versions(Run.open(run).folder)
    columns = [
        b.Column("version"),
        b.Column("made (UTC)"),
        *b.numbers("gold rows", "accuracy", "accepted"),
        b.Column(""),
    ]
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


@click.command("use")
@RUN
@click.argument("version", type=click.IntRange(1))
@options.JSON
def use_command(*, run: Path, version: int) -> None:
    """Go back, or forward, to VERSION of RUN: labels, report, `pcs label` and `pcs serve` use its model from now on."""
    model = use_version(run, version, options.say).learned.model
    promise = "nothing was promised" if model.certificate is None else promised(model.certificate).headline
    options.tell({"version": version, "promise": promise}, f"{run} uses version {version} now; {promise}")
