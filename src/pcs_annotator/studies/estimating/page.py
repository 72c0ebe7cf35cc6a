"""Estimates as tables, as sentences to quote, and as a page with every quantity in three ways on one scale."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pcs_annotator.base.text import capital
from pcs_annotator.core.result_table import Content, Figure, ResultTable
from pcs_annotator.core.weights import Interval
from pcs_annotator.judging.metrics.significance import p_text
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.formats import count, interval, number
from pcs_annotator.showing.report.document import STYLES, document, header
from pcs_annotator.showing.result_tables import to_csv
from pcs_annotator.showing.to_latex import latex
from pcs_annotator.showing.to_markdown import markdown
from pcs_annotator.studies.estimating.answers import METHODS, Estimated, Line
from pcs_annotator.studies.estimating.robust import Robust
from pcs_annotator.tables.files import check_ending, write_page

HEADINGS = {"corrected": "corrected", "gold_only": "gold only", "naive": "naive (biased)"}
_TITLES = {"share": "Share of labels, %", "mean": "Mean", "regression": "Coefficients"}
_TESTS = ("p", "p (Holm)")
LINES_SHOWN = 6
_IN_SHORT = "95 % intervals; naive counts machine labels as if they were true."
_EXPLAINED = (
    "corrected: machine labels, corrected by the gold rows; gold only: the gold rows alone; naive: machine labels as "
    "if they were true, which is biased and shown for comparison; 95 % intervals"
)
_STYLES = (*STYLES, "estimates.css")
_ROBUST_COLUMNS = (
    b.Column("choice"),
    *b.numbers("corrected", digits=3),
    b.Column("", "chart"),
    *b.numbers("naive", digits=3),
    b.Column(" ", "chart"),
)


def tables(found: Estimated) -> list[ResultTable]:
    """Return a table of estimates and, if there are any, one of differences between groups."""
    unit = 100.0 if found.kind == "share" else 1.0
    notes = [f"{_EXPLAINED}.", *(f"{note}." for note in found.notes)]
    notes += _about_missing(found)
    first = _table("estimates", _TITLES[found.kind], found.lines, unit, notes)
    if found.missing:
        empty: Sequence[Content] = [None] * len(METHODS)
        first = replace(first, rows=[*first.rows, *(["", one.group, *empty, one.gold_rows] for one in found.missing)])
    if not found.differences:
        return [first]
    title = "Differences, percentage points" if found.kind == "share" else "Differences"
    return [first, _table("differences", title, found.differences, unit, ())]


def most_telling(found: Estimated) -> list[ResultTable | str]:
    """Return the first estimates, the differences whose interval excludes 0, and what they are based on."""
    first, *differences = tables(found)
    shown: list[ResultTable | str] = [replace(first, rows=first.rows[:LINES_SHOWN], notes=())]
    if differences:
        told = [at for at, line in enumerate(found.differences) if _excludes_zero(line)]
        rows = [differences[0].rows[at] for at in told[:LINES_SHOWN]]
        title = f"Differences: {len(told)} of {len(found.differences)} have an interval without 0"
        shown.append(replace(differences[0], title=title, rows=rows) if rows else f"{title}.")
    if len(first.rows) > LINES_SHOWN:
        shown.append(f"{len(first.rows) - LINES_SHOWN} more lines: --details, or a page with -o estimates.html")
    return [*shown, _IN_SHORT, *(f"{note}." for note in found.notes), *_about_missing(found)]


def _excludes_zero(line: Line) -> bool:
    ends = line.corrected.interval
    return ends is not None and not ends.low <= 0 <= ends.high


def _table(name: str, title: str, lines: Sequence[Line], unit: float, notes: Sequence[str]) -> ResultTable:
    grouped, tested = any(line.group for line in lines), any(line.p_value is not None for line in lines)
    columns = ["", *(["group"] if grouped else []), *HEADINGS.values(), "gold rows", *(_TESTS if tested else ())]
    digits = 1 if unit == 100 else 3
    return ResultTable(
        name=name,
        title=title,
        columns=columns,
        rows=[_row(line, unit, grouped=grouped, tested=tested) for line in lines],
        notes=notes,
        digits={**dict.fromkeys(HEADINGS.values(), digits), **dict.fromkeys(_TESTS, 3)},
    )


def _row(line: Line, unit: float, *, grouped: bool, tested: bool) -> list[Content]:
    figures = [_scaled(getattr(line, method), unit) for method in METHODS]
    names: list[Content] = [line.name, line.group] if grouped else [line.name]
    return [*names, *figures, line.gold_rows, *([line.p_value, line.adjusted] if tested else [])]


def _scaled(figure: Figure, unit: float) -> Figure:
    ends = figure.interval
    return Figure(figure.value * unit, ends and Interval(ends.low * unit, ends.high * unit))


def sentences(found: Estimated) -> list[str]:
    """Return what was found, one sentence per line of the table."""
    if found.kind == "share":
        said = [_about_share(line, found.rows) for line in found.lines]
        return [*said, *_about_missing(found), *(_about_difference(line) for line in found.differences)]
    return [
        f"{line.name}{f' ({line.group})' if line.group else ''}: {line.corrected.value:.3g} (95 % interval "
        f"{_ends(line.corrected, 1, '.3g')}; {line.gold_rows:,} gold rows). From machine labels as if they were true, "
        f"it would be {line.naive.value:.3g}."
        for line in (*found.lines, *found.differences)
    ]


def _about_missing(found: Estimated) -> list[str]:
    return [f"{one.group} is not estimated: {one.reason}." for one in found.missing]


def _about_share(line: Line, rows: int) -> str:
    where = f"of the texts in {line.group!r}" if line.group else f"of the {rows:,} texts"
    return (
        f"{100 * line.corrected.value:.1f} % {where} are {line.name} (95 % interval "
        f"{_ends(line.corrected, 100, '.1f')} %; {line.gold_rows:,} gold rows). Counting machine labels as if they "
        f"were true would give {100 * line.naive.value:.1f} %."
    )


def _about_difference(line: Line) -> str:
    points = 100 * line.corrected.value
    p_value, adjusted = (p_text(one or 0.0) for one in (line.p_value, line.adjusted))
    said = f"{p_value}, adjusted for all differences {adjusted}"
    return (
        f"{line.name}, {line.group}: {points:+.1f} percentage points (95 % interval "
        f"{_ends(line.corrected, 100, '+.1f')}; {said}). Machine labels as if they were true would give "
        f"{100 * line.naive.value:+.1f}."
    )


def _ends(figure: Figure, unit: float, how: str) -> str:
    """Return an interval; that of a share is rounded outwards, as in the table."""
    low, high = _scaled(figure, unit).interval or (figure.value, figure.value)
    if unit == 100:
        low, high = Interval(low, high).rounded(1)
    return f"{low:{how}} to {high:{how}}"


def robust_table(found: Robust) -> ResultTable:
    """Return a quantity under every choice, smallest first."""
    listed = sorted(found.specifications, key=lambda one: one.corrected.value)
    return ResultTable(
        name="robust",
        title=found.name,
        columns=["choice", "corrected", "naive (biased)"],
        rows=[[one.choice, one.corrected, one.naive] for one in listed],
        notes=robust_sentences(found),
        digits={"corrected": 3, "naive (biased)": 3},
    )


def robust_verdicts(found: Sequence[Robust]) -> list[str]:
    """Return for every quantity how often another choice would have changed the conclusion."""
    return [" ".join([f"{one.name}:", *robust_sentences(one)]) for one in found[:LINES_SHOWN]]


def robust_sentences(found: Robust) -> list[str]:
    """Return how often another choice would have changed the conclusion."""
    values = [one.corrected.value for one in found.specifications]
    said = [
        f"{len(values)} choices: corrected estimates from {min(values):.3g} to {max(values):.3g}; with the choices of "
        f"this run, {found.made.corrected.value:.3g}."
    ]
    for method in ("corrected", "naive"):
        sign, conclusion = found.flips(method)
        said.append(
            f"{method}: {100 * sign:.0f} % of choices have another sign, {100 * conclusion:.0f} % another conclusion "
            "(below, above or undecided) than the corrected estimate of this run."
        )
    if found.left_out:
        said.append(f"Under {found.left_out} more choices it could not be estimated.")
    return said


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
