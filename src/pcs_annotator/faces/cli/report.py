"""`pcs report`: one self-contained HTML file of a run."""

from __future__ import annotations

from pathlib import Path

import click

from pcs_annotator.faces.cli.options import JSON, PATH, echo_json
from pcs_annotator.pipeline.report.page import write_figures, write_report
from pcs_annotator.pipeline.run import open_run


@click.command("report")
@click.argument("folder", type=PATH)
@click.option("-o", "--out", type=PATH, help="Where the page goes; by default report.html in the run's folder.")
@click.option(
    "--figures/--no-figures",
    default=True,
    show_default=True,
    help="Also write each chart as an SVG file, in the folder figures beside the page.",
)
@JSON
def command(folder: Path, out: Path | None, figures: bool, to_json: bool) -> None:
    """Write the report of the run in FOLDER: one HTML file that needs no network."""
    result = open_run(folder)
    path = write_report(result, out)
    drawn = write_figures(result, path.parent / "figures") if figures else []
    if to_json:
        told = {"report": str(path), "bytes": path.stat().st_size, "figures": [str(one) for one in drawn]}
        echo_json(told)
        return
    click.echo(f"wrote {path}")
    if drawn:
        click.echo(f"wrote {', '.join(one.name for one in drawn)} in {drawn[0].parent}")
