"""`pcs paper`: results and methods of a run, to paste into a paper."""

from pathlib import Path
from typing import get_args

import click

from pcs_annotator.faces.cli import options
from pcs_annotator.tables.write import OutputPolicy
from pcs_annotator.verbs import paper
from pcs_annotator.verbs.evaluate import EvaluateRequest
from pcs_annotator.verbs.fit import open_run


@click.command("paper")
@click.argument("folder", type=options.PATH)
@click.option(
    "--format",
    "name",
    type=click.Choice(get_args(paper.Format)),
    help="Format; default: what the ending of --out says (.md, .tex, .csv), else markdown.",
)
@click.option("-o", "--out", type=options.PATH, help="File to write; default: print it.")
@options.options_in(EvaluateRequest, "order")
@options.KEEP_EARLIER
def command(
    *, folder: Path, name: paper.Format | None, out: Path | None, order: tuple[str, ...], replace: bool
) -> None:
    """Write results, confusion matrix and a methods paragraph of the run in FOLDER, to paste into a paper.

    CSV has one row per figure. LaTeX needs the packages booktabs and graphicx.
    """
    kind = paper.format_of(name, out)
    parts = paper.paper_of(open_run(folder), order)
    if out is None:
        click.echo(paper.paper_text(parts, kind), nl=False)
    else:
        click.echo(f"wrote {paper.write_paper(parts, kind, out, OutputPolicy(replace=replace))}")
