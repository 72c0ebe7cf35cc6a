"""Reports of runs as a folder for a web server: their pages, and an index that says what each run has labelled."""

import html
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from pcs_annotator.base.text import counted
from pcs_annotator.runs.book_result import BookResult
from pcs_annotator.runs.fits import list_versions
from pcs_annotator.runs.paths import VARIABLES, read_origin
from pcs_annotator.showing import answer
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.markup import tag
from pcs_annotator.showing.report.page import in_words, page_of
from pcs_annotator.showing.to_html import document, header
from pcs_annotator.tables.files import set_aside
from pcs_annotator.tables.write import PAGES, STRICT, OutputPolicy

INDEX = "index.html"
BACK = tag("a", "← All runs", href=f"../{INDEX}")
_NAV = '<nav aria-label="Sections">'
_TITLE = re.compile("<title>(.*?) · perceived-confidence</title>", re.DOTALL)
_SET_ASIDE = re.compile(r"-\d{4}-\d\d-\d\d-\d{6}(-\d+)?$")  # the ending of what --replace has kept
_HEADLINE = re.compile("<h1>(.*?)</h1>", re.DOTALL)


class SitePage(NamedTuple):
    """A page of a run: the report, or a comparison or an estimate that was written into the run folder."""

    name: str  # its file name
    source: str  # HTML

    def part(self, pattern: re.Pattern[str]) -> str:
        """Return the title or the headline as plain text."""
        match = pattern.search(self.source)
        return html.unescape(re.sub("<[^<>]+>", "", match[1])) if match else self.name


def write_site(results: Sequence[BookResult], folder: Path, policy: OutputPolicy = STRICT) -> list[Path]:
    """Write the pages of runs, each into a folder of its own, and return the paths, the index first."""
    index = folder / INDEX
    policy.check(index, PAGES)
    if index.exists():
        set_aside(folder)
    runs = {result.folder.resolve(): result for result in results}
    newest_first = sorted(runs.values(), key=_made, reverse=True)
    written, sections = list[Path](), list[b.Section]()
    for result in newest_first:
        base = result.folder.resolve().name
        names = (base, *(f"{base}-{number}" for number in range(2, len(runs) + 1)))
        name = next(free for free in names if not (folder / free).exists())
        pages = [*_pages(result)]
        for page in pages:
            linked = page.source.replace(_NAV, f"{_NAV}{BACK}", 1)
            written.append(policy.write_page(folder / name / page.name, linked))
        sections.append(_section(result, name, pages)._replace(name=f"run{len(sections)}"))
    top = header(counted(len(runs), "run"), b.text("The newest first.", kind="sub") if len(runs) > 1 else None)
    return [policy.write_page(index, document("Runs", top, sections)), *written]


def _made(result: BookResult) -> str:
    """Return when the last fit of any variable was made, in UTC."""
    versions = (version.made for run in result.results.values() for version in list_versions(run.folder))
    return max(versions, default="")


def _pages(result: BookResult) -> Iterator[SitePage]:
    """Yield the report, and our other pages in the run folder and in those of its variables."""
    yield SitePage(result.report.name, page_of(result))
    for path in sorted([*result.folder.glob("*.html"), *result.folder.glob(f"{VARIABLES}/**/*.html")]):
        source = path.read_text(encoding="utf-8", errors="replace")
        if path.name != result.report.name and _TITLE.search(source) and not _SET_ASIDE.search(path.stem):
            yield SitePage("-".join(path.relative_to(result.folder).parts).removeprefix(f"{VARIABLES}-"), source)


def _section(result: BookResult, name: str, pages: Sequence[SitePage]) -> b.Section:
    runs = [*result.results.values()]
    if result.book.named:
        what = f"{', '.join(result.variables)}: {in_words({**result.results, **result.sets})}"
    else:
        what = b.plain(answer.labelled(runs[0].counts)[1])
    about = (f"{_made(result)[:16].replace('T', ' ')} UTC", read_origin(runs[0].folder).data)
    titles = [("Report", ""), *((page.part(_TITLE), f": {page.part(_HEADLINE)}") for page in pages[1:])]
    links = [
        (b.Styled(title, "name", own=True, link=quote(f"{name}/{page.name}")), b.name(more))
        for page, (title, more) in zip(pages, titles, strict=True)
    ]
    return b.section(
        name,
        name,
        b.Paragraph(b.strong(pages[0].part(_HEADLINE)), "verdict"),
        b.text(b.name(what)),
        b.Bullets(links),
        b.note(b.name(" · ".join(filter(None, about)))),
    )
