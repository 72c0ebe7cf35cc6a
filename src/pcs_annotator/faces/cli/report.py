"""`pcs report`: a run's report as one self-contained HTML file."""

from __future__ import annotations

from pathlib import Path

import click

from pcs_annotator.faces.cli import options
from pcs_annotator.showing.report.page import write_figures, write_report
from pcs_annotator.verbs.fit import open_run


@click.command("report")
@click.argument("folder", type=options.PATH)
@click.option("-o", "--out", type=options.PATH, help="HTML file to write; default: report.html in the run folder.")
@click.option(
    "--figures/--no-figures",
    default=True,
    show_default=True,
    help="Also write each chart as an SVG file, to the folder figures beside the page.",
)
@options.KEEP_EARLIER
@options.JSON
def command(*, folder: Path, out: Path | None, figures: bool, replace: bool, to_json: bool) -> None:
    """Write the report of the run in FOLDER: one HTML file that works offline."""
    result = open_run(folder)
    path = write_report(result, out, replace=replace)
    charts = write_figures(result, path.parent / "figures") if figures else []
    if to_json:
        files = [str(chart) for chart in charts]
        options.echo_json({"report": str(path), "bytes": path.stat().st_size, "figures": files})
        return
    click.echo(f"wrote {path}")
    if charts:
        click.echo(f"wrote {', '.join(chart.name for chart in charts)} in {charts[0].parent}")
