"""Estimates as a page: every quantity in three ways, with intervals on a common scale."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pcs_annotator.core.weights import Interval
from pcs_annotator.pipeline.estimating.answers import METHODS, Estimated, Line
from pcs_annotator.pipeline.estimating.robust import Robust
from pcs_annotator.pipeline.estimating.shown import HEADINGS, robust_sentences, sentences, tables
from pcs_annotator.pipeline.report.document import document
from pcs_annotator.pipeline.report.formats import capital, count, interval, number, span
from pcs_annotator.pipeline.report.markup import Child, Markup, figure, section, sentence, table, tag, user_text


def page(found: Estimated) -> str:
    """Return the page."""
    header = tag("header", tag("h1", "From labels to conclusions"), sentence(f"{count(found.rows)} texts", kind="sub"))
    unit = 100.0 if found.kind == "share" else 1.0
    titles = {shown.name: shown.title for shown in tables(found)}
    parts = [_figure(titles["estimates"], found.lines, unit)]
    if found.differences:
        parts.append(_figure(titles["differences"], found.differences, unit))
    said = tag("ul", *(tag("li", user_text(one)) for one in sentences(found)))
    notes = tag("ul", *(tag("li", capital(note)) for note in tables(found)[0].notes))
    sections = [
        ("estimates", "Estimates", section("estimates", "Estimates", *parts)),
        ("sentences", "In words", section("sentences", "In words", said)),
        ("notes", "Notes", section("notes", "Notes", notes)),
    ]
    return document("estimates", header, sections)


def _figure(title: str, lines: Sequence[Line], unit: float) -> Markup:
    columns = [("quantity", ""), ("method", ""), ("value", "num"), ("95 % interval", "num"), ("", "drawn")]
    return figure(title, table(columns, _rows(lines, unit)))


def _rows(lines: Sequence[Line], unit: float) -> Iterator[list[Child]]:
    figures = [getattr(line, method) for line in lines for method in METHODS]
    ends = [end for one in figures for end in (one.interval or (one.value,))]
    low, high = min(0.0, *ends), max(ends)
    digits = 1 if unit == 100 else 3
    for line in lines:
        for method in METHODS:
            one = getattr(line, method)
            scaled = one.interval._replace(low=unit * one.interval.low, high=unit * one.interval.high)
            name = (
                user_text(f"{line.name} · {line.group}" if line.group else line.name) if method == "corrected" else ""
            )
            yield [
                name,
                HEADINGS[method],
                number(unit * one.value, digits),
                interval(scaled, digits),
                span(one.value, one.interval, low=low, high=high),
            ]


def robust_page(found: Sequence[Robust]) -> str:
    """Return the page of a quantity under all choices: a specification curve."""
    header = tag("header", tag("h1", "Would another choice change the conclusion?"))
    sections = []
    for place, one in enumerate(found):
        anchor = f"q{place}"
        said = [sentence(user_text(text)) for text in robust_sentences(one)]
        shown = section(anchor, one.name, *said, table(_ROBUST_COLUMNS, _specifications(one)))
        sections.append((anchor, one.name, shown))
    return document("robust", header, sections)


_ROBUST_COLUMNS = [("choice", ""), ("corrected", "num"), ("", "drawn"), ("naive", "num"), (" ", "drawn")]


def _specifications(found: Robust) -> Iterator[list[Child]]:
    listed = sorted(found.specifications, key=lambda one: one.corrected.value)
    figures = [figure for one in listed for figure in (one.corrected, one.naive)]
    ends = [end for one in figures for end in one.interval or (one.value,)]
    low, high = min(found.reference, *ends), max(found.reference, *ends)
    for one in listed:
        name = f"{one.choice} (this run)" if one is found.made else one.choice
        cells: list[Child] = [user_text(name)]
        for shown in (one.corrected, one.naive):
            drawn = span(shown.value, shown.interval or Interval(shown.value, shown.value), low=low, high=high)
            cells += [number(shown.value, 3), drawn]
        yield cells
