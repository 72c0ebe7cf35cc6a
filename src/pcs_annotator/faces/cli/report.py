"""`pcs report`: the report of a run."""

from collections.abc import Sequence
from pathlib import Path

import click

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.base.text import counted
from pcs_annotator.faces.cli import options
from pcs_annotator.showing.report.page import write_figures, write_report
from pcs_annotator.showing.report.site import write_site
from pcs_annotator.tables.write import OutputPolicy
from pcs_annotator.verbs import paper
from pcs_annotator.verbs.fit import open_book, open_run


@click.command("report")
@click.argument("folders", metavar="RUN...", type=options.PATH, nargs=-1, required=True)
@click.option(
    "-o",
    "--out",
    type=options.PATH,
    help="File to write; default: report.html in the run folder. With --site, a folder; default: site beside the run.",
)
@click.option(
    "--site",
    is_flag=True,
    help="Write a folder for a web server instead, or to open: an index of the runs, their reports, and the pages of "
    "pcs compare and pcs estimate that lie in the run folders.",
)
@click.option("--md", "summary", is_flag=True, help="A summary in Markdown instead; without -o, it is printed.")
@click.option(
    "--figures/--no-figures",
    default=True,
    show_default=True,
    help="Also write each chart as an SVG file, to the folder figures beside the page.",
)
@options.KEEP_EARLIER
@options.JSON
def command(
    *, folders: Sequence[Path], out: Path | None, site: bool, summary: bool, figures: bool, replace: bool
) -> None:
    """Write the report of RUN, a run folder: one HTML file that works offline."""
    policy, folder = OutputPolicy(replace=replace), folders[0]
    if (summary and site) or (len(folders) > 1 and not site):
        raise ConfigError("one run at a time is reported, unless --site is given, which --md does not go with")
    if site:
        pages = write_site([open_book(each) for each in folders], out or folder.resolve().parent / "site", policy)
        options.tell({"site": pages[0], "pages": pages[1:]}, f"wrote {pages[0]} and {counted(len(pages) - 1, 'page')}")
        return
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
