"""`pcs report`: the report of a run."""

from pathlib import Path

import click

from pcs_annotator.base.text import counted
from pcs_annotator.faces.cli import options
from pcs_annotator.showing.report.page import write_figures, write_report
from pcs_annotator.tables.write import OutputPolicy
from pcs_annotator.verbs import paper
from pcs_annotator.verbs.fit import open_book, open_run


@click.command("report")
@click.argument("folder", type=options.PATH)
@click.option("-o", "--out", type=options.PATH, help="File to write; default: report.html in the run folder.")
@click.option("--md", "summary", is_flag=True, help="A summary in Markdown instead; without -o, it is printed.")
@click.option(
    "--figures/--no-figures",
    default=True,
    show_default=True,
    help="Also write each chart as an SVG file, to the folder figures beside the page.",
)
@options.KEEP_EARLIER
@options.JSON
def command(*, folder: Path, out: Path | None, summary: bool, figures: bool, replace: bool) -> None:
    """Write the report of the run in FOLDER: one HTML file that works offline."""
    policy = OutputPolicy(replace=replace)
    if summary:
        text = paper.summary_of(open_run(folder))
        if out is not None:
            policy.write_page(out, text)
        options.tell({"markdown": text, "file": out}, f"wrote {out}" if out else text)
        return
    result = open_book(folder)
    path = write_report(result, out, policy)
    charts = write_figures(result, path.parent / "figures", policy) if figures else []
    values = {"report": path, "bytes": path.stat().st_size, "figures": charts}
    more = [f"wrote {counted(len(charts), 'chart')} in {charts[0].parent}"] if charts else []
    options.tell(values, f"wrote {path}", *more)
