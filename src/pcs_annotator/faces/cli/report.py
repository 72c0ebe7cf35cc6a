"""`pcs report`: one self-contained HTML file of a run."""

from __future__ import annotations

import json
from pathlib import Path

import click

from pcs_annotator.faces.cli.options import JSON, PATH
from pcs_annotator.faces.report.page import write_report
from pcs_annotator.pipeline.run import open_run


@click.command("report")
@click.argument("folder", type=PATH)
@click.option("-o", "--out", type=PATH, help="Where the page goes; by default report.html in the run's folder.")
@JSON
def command(folder: Path, out: Path | None, to_json: bool) -> None:
    """Write the report of the run in FOLDER: one HTML file that needs no network."""
    result = open_run(folder)
    path = out or result.folder.report
    write_report(result, path)
    if to_json:
        click.echo(json.dumps({"report": str(path), "bytes": path.stat().st_size}))
    else:
        click.echo(f"wrote {path}")
