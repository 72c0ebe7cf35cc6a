"""The report of a run: which sections it has, and where it is written."""

import re
from pathlib import Path

from pcs_annotator.runs.run_result import RunResult
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.report.sections.curves import plots
from pcs_annotator.showing.report.sections.quality import how_good
from pcs_annotator.showing.report.sections.questions import questions
from pcs_annotator.showing.report.sections.rows import rows
from pcs_annotator.showing.report.sections.summary import cost, headline, promise, settings
from pcs_annotator.showing.report.view import view_of
from pcs_annotator.showing.to_html import document, title_of
from pcs_annotator.tables.files import check_ending, write_page


def write_report(result: RunResult, path: Path | None = None, *, replace: bool = False) -> Path:
    """Write the page of a run atomically, by default into the run folder, and return its path.

    A file that is no report on these data is an error; with `replace`, it is kept under a dated name.
    """
    path = path or result.folder.report
    check_ending(path, (".html", ".htm"))
    title = str(title_of(view_of(result).data_name)).encode("utf-8", "replace")
    elsewhere = path.resolve() != result.folder.report.resolve()
    write_page(path, render(result), re.escape(title) if elsewhere else None, replace=replace)
    return path


def write_figures(result: RunResult, folder: Path) -> list[Path]:
    """Write each chart of the page to a separate file and return the paths; none without gold labels."""
    charts = {folder / f"{plot.name}.svg": plot for plot in plots(view_of(result))}
    for path, plot in charts.items():
        write_page(path, plot.file())
    return [*charts]


def render(result: RunResult) -> str:
    """Return the page of a run; the same run gives the same page.

    Below the verdict are the rows, the evidence and the method; sections with nothing to say are left out.
    """
    view, learned = view_of(result), result.learned
    promised = promise(learned.model, learned.drift, result.counts, learned.alternatives)
    method = [b.Folded("The promise in full", promised.blocks), cost(result), settings(view)]
    shown = [rows(view), how_good(view), questions(view), b.section("method", "Method and settings", *method)]
    return document(view.data_name, headline(view), [one for one in shown if one is not None])
