"""`pcs report`: the report of a run."""

from collections.abc import Sequence
from pathlib import Path

import click

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.base.text import counted
from pcs_annotator.faces.cli import options
from pcs_annotator.showing.report.page import write_report
from pcs_annotator.showing.report.site import write_site
from pcs_annotator.tables.write import OutputPolicy
from pcs_annotator.verbs.fit import open_book


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
@options.KEEP_EARLIER
@options.JSON
def command(*, folders: Sequence[Path], out: Path | None, site: bool, replace: bool) -> None:
    """Write the report of RUN, a run folder: one HTML file that works offline."""
    if len(folders) > 1 and not site:
        raise ConfigError("one run at a time is reported, unless --site is given")
    policy, books = OutputPolicy(replace=replace), [open_book(folder) for folder in folders]
    if site:
        pages = write_site(books, out or folders[0].resolve().parent / "site", policy)
        options.tell({"site": pages[0], "pages": pages[1:]}, f"wrote {pages[0]} and {counted(len(pages) - 1, 'page')}")
        return
    path = write_report(books[0], out, policy)
    options.tell({"report": path, "bytes": path.stat().st_size}, f"wrote {path}")
