"""Reports of runs as a folder for a web server: their pages, and an index that says what each run has labelled."""

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from pcs_annotator.base.text import counted
from pcs_annotator.runs.book_result import BookResult
from pcs_annotator.runs.fits import list_versions
from pcs_annotator.runs.paths import read_origin
from pcs_annotator.showing import answer
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.markup import tag
from pcs_annotator.showing.report.page import headline_of, in_words, page_of
from pcs_annotator.showing.to_html import document, header
from pcs_annotator.tables.files import set_aside
from pcs_annotator.tables.write import PAGES, STRICT, OutputPolicy

INDEX = "index.html"
NAV = '<nav aria-label="Sections">'
BACK = tag("a", "← All runs", href=f"../{INDEX}")


def write_site(results: Sequence[BookResult], folder: Path, policy: OutputPolicy = STRICT) -> list[Path]:
    """Write the pages of runs, each into a folder of its own, and return the paths, the index first."""
    index = folder / INDEX
    policy.check(index, PAGES)
    if index.exists():
        set_aside(folder)
    runs = {result.folder.resolve(): result for result in results}
    written, sections = list[Path](), list[b.Section]()
    for result in sorted(runs.values(), key=_made, reverse=True):
        base = result.folder.resolve().name
        names = (base, *(f"{base}-{number}" for number in range(2, len(runs) + 1)))
        name = next(free for free in names if not (folder / free).exists())
        page = page_of(result).replace(NAV, f"{NAV}{BACK}", 1)
        written.append(policy.write_page(folder / name / result.report.name, page))
        sections.append(_section(result, name)._replace(name=f"run{len(sections)}"))
    top = header(counted(len(runs), "run"), b.text("The newest first.", kind="sub") if len(runs) > 1 else None)
    return [policy.write_page(index, document("Runs", top, sections)), *written]


def _made(result: BookResult) -> str:
    """Return when the last fit of any variable was made, in UTC."""
    versions = (version.made for run in result.results.values() for version in list_versions(run.folder))
    return max(versions, default="")


def _section(result: BookResult, name: str) -> b.Section:
    first = next(iter(result.results.values()))
    what = b.plain(answer.labelled(first.counts)[1])
    if result.book.named:
        what = f"{', '.join(result.variables)}: {in_words({**result.results, **result.sets})}"
    about = (f"{_made(result)[:16].replace('T', ' ')} UTC", read_origin(first.folder).data)
    return b.section(
        name,
        name,
        b.Paragraph(b.strong(headline_of(result)), "verdict"),
        b.text(b.name(what)),
        b.Bullets([b.Styled("Report", "name", own=True, link=quote(f"{name}/{result.report.name}"))]),
        b.note(b.name(" · ".join(filter(None, about)))),
    )
