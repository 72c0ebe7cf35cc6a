"""Estimates as a page: every quantity in three ways, with intervals on a common scale."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pcs_annotator.base.text import capital
from pcs_annotator.core.weights import Interval
from pcs_annotator.showing.report.document import STYLES, document
from pcs_annotator.showing.report.formats import count, interval, number, span
from pcs_annotator.showing.report.markup import Child, Markup, figure, joined, section, sentence, table, tag, user_text
from pcs_annotator.studies.estimating.answers import METHODS, Estimated, Line
from pcs_annotator.studies.estimating.robust import Robust
from pcs_annotator.studies.estimating.shown import HEADINGS, robust_sentences, sentences, tables

_STYLES = (*STYLES, "estimates.css")


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
    return document("estimates", header, sections, _STYLES)


def _figure(title: str, lines: Sequence[Line], unit: float) -> Markup:
    figures = [getattr(line, method) for line in lines for method in METHODS]
    ends = [end for one in figures for end in one.interval]
    scale = min(0.0, *ends), max(0.0, *ends)
    low, high = (number(unit * end, 0 if unit == 100 else 2) for end in scale)
    columns = [
        ("quantity", ""),
        (f"{low} to {high}", "chart axis"),
        ("value", "number"),
        ("95 % interval", "number quiet"),
    ]
    return figure(title, table(columns, _rows(lines, unit, scale), kind="bars estimates"))


def _rows(lines: Sequence[Line], unit: float, scale: tuple[float, float]) -> Iterator[list[Child]]:
    digits = 1 if unit == 100 else 3
    for line in lines:
        name = f"{line.name} · {line.group}" if line.group else line.name
        for method in METHODS:
            one = getattr(line, method)
            scaled = one.interval._replace(low=unit * one.interval.low, high=unit * one.interval.high)
            ours = method == "corrected"
            yield [
                joined(tag("span", user_text(name), class_="quantity") if ours else None, HEADINGS[method]),
                span(
                    one.value,
                    one.interval,
                    low=scale[0],
                    high=scale[1],
                    mark=0.0,
                    kind="point" if ours else "point other",
                ),
                number(unit * one.value, digits),
                interval(scaled, digits),
            ]


def robust_page(found: Sequence[Robust]) -> str:
    """Return the page of a quantity under all choices: a specification curve."""
    header = tag("header", tag("h1", "Would another choice change the conclusion?"))
    sections = []
    for place, one in enumerate(found):
        anchor = f"q{place}"
        said = [sentence(user_text(text)) for text in robust_sentences(one)]
        shown = section(anchor, one.name, *said, table(_ROBUST_COLUMNS, _specifications(one), kind="bars curve"))
        sections.append((anchor, one.name, shown))
    return document("robust", header, sections, _STYLES)


_ROBUST_COLUMNS = [("choice", ""), ("corrected", "number"), ("", "chart"), ("naive", "number"), (" ", "chart")]


def _specifications(found: Robust) -> Iterator[list[Child]]:
    listed = sorted(found.specifications, key=lambda one: one.corrected.value)
    figures = [figure for one in listed for figure in (one.corrected, one.naive)]
    all_ends = [end for one in figures for end in one.interval or (one.value,)]
    low, high = min(found.reference, *all_ends), max(found.reference, *all_ends)
    for one in listed:
        name = f"{one.choice} (this run)" if one is found.made else one.choice
        cells: list[Child] = [user_text(name)]
        for shown in (one.corrected, one.naive):
            ends = shown.interval or Interval(shown.value, shown.value)
            drawn = span(shown.value, ends, low=low, high=high, mark=found.reference)
            cells += [number(shown.value, 3), drawn]
        yield cells
