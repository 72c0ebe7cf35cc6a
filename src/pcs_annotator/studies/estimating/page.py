"""Estimates as files: tables for a paper, plain values, and a page with every quantity in three ways on one scale."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from pcs_annotator.base.text import capital
from pcs_annotator.core.weights import Interval
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.formats import count, interval, number
from pcs_annotator.showing.report.document import STYLES, document, header
from pcs_annotator.showing.result_tables import to_csv
from pcs_annotator.showing.to_latex import latex
from pcs_annotator.showing.to_markdown import markdown
from pcs_annotator.studies.estimating.answers import METHODS, Estimated, Line
from pcs_annotator.studies.estimating.robust import Robust
from pcs_annotator.studies.estimating.shown import HEADINGS, robust_sentences, sentences, tables
from pcs_annotator.tables.files import check_ending, write_page

_STYLES = (*STYLES, "estimates.css")
_ROBUST_COLUMNS = (
    b.Column("choice"),
    *b.numbers("corrected", digits=3),
    b.Column("", "chart"),
    *b.numbers("naive", digits=3),
    b.Column(" ", "chart"),
)


def page(found: Estimated) -> str:
    """Return the page."""
    top = header("From labels to conclusions", b.text(f"{count(found.rows)} texts", kind="sub"))
    unit = 100.0 if found.kind == "share" else 1.0
    made = tables(found)
    lines = {"estimates": found.lines, "differences": found.differences}
    said = b.Bullets([b.name(one) for one in sentences(found)])
    sections = [
        b.section("estimates", "Estimates", *(_drawn(one.title, lines[one.name], unit) for one in made)),
        b.section("sentences", "In words", said),
        b.section("notes", "Notes", b.Bullets([capital(note) for note in made[0].notes])),
    ]
    return document("estimates", top, sections, _STYLES)


def _drawn(title: str, lines: Sequence[Line], unit: float) -> b.Group:
    ends = [end for line in lines for method in METHODS for end in getattr(line, method).interval]
    low, high = min(0.0, *ends), max(0.0, *ends)
    scale = " to ".join(number(unit * end, 0 if unit == 100 else 2) for end in (low, high))
    columns = [
        b.Column("quantity"),
        b.Column(scale, "chart axis"),
        *b.numbers("value", digits=1 if unit == 100 else 3),
        b.Column("95 % interval", "number quiet"),
    ]
    rows = [*_rows(lines, unit, low, high)]
    return b.titled(title, b.Table(columns=columns, rows=rows, kind="bars estimates"))


def _rows(lines: Sequence[Line], unit: float, low: float, high: float) -> Iterator[b.Row]:
    for line in lines:
        name = b.Styled(f"{line.name} · {line.group}" if line.group else line.name, "quantity", own=True)
        for method in METHODS:
            value, ends = getattr(line, method)
            scaled = Interval(unit * ends.low, unit * ends.high)
            ours = method == "corrected"
            yield [
                (*([name] if ours else []), HEADINGS[method]),
                b.Spot(value, ends, low, high, 0.0, "point" if ours else "point other"),
                unit * value,
                interval(scaled, 1 if unit == 100 else 3),
            ]


def robust_page(found: Sequence[Robust]) -> str:
    """Return the page of a quantity under all choices: a specification curve."""
    sections = []
    for place, one in enumerate(found):
        said = [b.text(b.name(words)) for words in robust_sentences(one)]
        curve = b.Table(columns=_ROBUST_COLUMNS, rows=[*_specifications(one)], kind="bars curve")
        sections.append(b.section(f"q{place}", one.name, *said, curve))
    return document("robust", header("Would another choice change the conclusion?"), sections, _STYLES)


def _specifications(found: Robust) -> Iterator[b.Row]:
    listed = sorted(found.specifications, key=lambda one: one.corrected.value)
    figures = [figure for one in listed for figure in (one.corrected, one.naive)]
    all_ends = [end for one in figures for end in one.interval or (one.value,)]
    low, high = min(found.reference, *all_ends), max(found.reference, *all_ends)
    for one in listed:
        cells: b.Row = [b.name(f"{one.choice} (this run)" if one is found.made else one.choice)]
        for shown in (one.corrected, one.naive):
            ends = shown.interval or Interval(shown.value, shown.value)
            cells += [shown.value, b.Spot(shown.value, ends, low, high, found.reference)]
        yield cells


def write_estimates(found: Estimated, path: Path) -> None:
    """Write estimates to a file; its extension says how."""
    check_ending(path, tuple(_FORMATS))
    write_page(path, _FORMATS[path.suffix.lower()](found))


def write_robust(found: Sequence[Robust], path: Path) -> None:
    """Write a specification curve as a page."""
    check_ending(path, (".html", ".htm"))
    write_page(path, robust_page(found))


def _json(found: Estimated) -> str:
    return json.dumps({**found.to_dict(), "sentences": sentences(found)}, ensure_ascii=False, indent=2) + "\n"


_FORMATS: Mapping[str, Callable[[Estimated], str]] = {
    ".html": page,
    ".htm": page,
    ".md": lambda found: markdown(*tables(found), b.Bullets(sentences(found))),
    ".tex": lambda found: latex(*tables(found)),
    ".csv": lambda found: "\n".join(map(to_csv, tables(found))),
    ".json": _json,
}
