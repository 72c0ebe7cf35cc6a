"""`pcs demo`: the whole tour on the embedded model, offline."""

from __future__ import annotations

from pathlib import Path

import click

from pcs_annotator.faces.cli.options import JSON, PATH, QUIET, echo_json
from pcs_annotator.faces.cli.pulling import pull_missing
from pcs_annotator.faces.cli.run_view import run_json
from pcs_annotator.faces.demo.tour import FOLDER, STYLES, print_tour, run_tour
from pcs_annotator.faces.report.page import write_report


@click.command("demo")
@click.option("-o", "--out", type=PATH, default=FOLDER, show_default=True, help="The run's folder.")
@JSON
@QUIET
def command(out: Path, to_json: bool, quiet: bool) -> None:
    """Label sixty invented news items with a small model on this computer, and look at what came of it.

    Needs no key and, once the model is fetched (about 100 MB), no network.
    """
    from rich.console import Console

    shown = not (to_json or quiet)
    console = Console(highlight=False)
    if shown:
        console.print("Sixty invented news items, four topics; two prompts of a small model; rewrites by rule.\n")
    pull_missing(STYLES, shown=shown)
    result = run_tour(out, progress=shown)
    write_report(result, result.folder.report)
    if to_json:
        echo_json(run_json(result, []))
    elif shown:
        print_tour(result, console)
