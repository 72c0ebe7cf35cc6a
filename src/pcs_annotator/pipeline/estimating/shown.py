"""Estimates as tables, and as sentences that can be quoted."""

from __future__ import annotations

from collections.abc import Sequence

from pcs_annotator.core.result_table import Content, Figure, ResultTable
from pcs_annotator.core.weights import Interval
from pcs_annotator.pipeline.estimating.estimate import METHODS, Estimated, Line

HEADINGS = {"corrected": "corrected", "gold_only": "gold only", "naive": "naive (biased)"}
_TITLES = {"share": "Share of labels, %", "mean": "Mean", "regression": "Coefficients"}
_EXPLAINED = (
    "corrected: machine labels, corrected by the gold rows; gold only: the gold rows alone; naive: machine labels as "
    "if they were true, which is biased and shown for comparison; 95 % intervals"
)


def tables(found: Estimated) -> list[ResultTable]:
    """Return a table of estimates and, if there are any, one of differences between groups."""
    unit = 100.0 if found.kind == "share" else 1.0
    notes = [f"{_EXPLAINED}.", *(f"{note}." for note in found.notes)]
    shown = [_table("estimates", _TITLES[found.kind], found.lines, unit, notes)]
    if found.differences:
        title = "Differences, percentage points" if found.kind == "share" else "Differences"
        shown.append(_table("differences", title, found.differences, unit, ()))
    return shown


def _table(name: str, title: str, lines: Sequence[Line], unit: float, notes: Sequence[str]) -> ResultTable:
    grouped, tested = any(line.group for line in lines), any(line.p_value is not None for line in lines)
    columns = ["", *(["group"] if grouped else []), *HEADINGS.values(), "gold rows", *(["p"] if tested else [])]
    digits = 1 if unit == 100 else 3
    return ResultTable(
        name=name,
        title=title,
        columns=columns,
        rows=[_row(line, unit, grouped=grouped, tested=tested) for line in lines],
        notes=notes,
        digits={**dict.fromkeys(HEADINGS.values(), digits), "p": 3},
    )


def _row(line: Line, unit: float, *, grouped: bool, tested: bool) -> list[Content]:
    figures = [_scaled(getattr(line, method), unit) for method in METHODS]
    names: list[Content] = [line.name, line.group] if grouped else [line.name]
    return [*names, *figures, line.gold_rows, *([line.p_value] if tested else [])]


def _scaled(figure: Figure, unit: float) -> Figure:
    ends = figure.interval
    return Figure(figure.value * unit, ends and Interval(ends.low * unit, ends.high * unit))


def sentences(found: Estimated) -> list[str]:
    """Return what was found, one sentence per line of the table."""
    if found.kind == "share":
        said = [_about_share(line, found.rows) for line in found.lines]
        return said + [_about_difference(line) for line in found.differences]
    return [
        f"{line.name}{f' ({line.group})' if line.group else ''}: {line.corrected.value:.3g} (95 % interval "
        f"{_ends(line.corrected, 1, '.3g')}; {line.gold_rows:,} gold rows). From machine labels as if they were true, "
        f"it would be {line.naive.value:.3g}."
        for line in (*found.lines, *found.differences)
    ]


def _about_share(line: Line, rows: int) -> str:
    where = f"of the texts in {line.group!r}" if line.group else f"of the {rows:,} texts"
    return (
        f"{100 * line.corrected.value:.1f} % {where} are {line.name} (95 % interval "
        f"{_ends(line.corrected, 100, '.1f')} %; {line.gold_rows:,} gold rows). Counting machine labels as if they "
        f"were true would give {100 * line.naive.value:.1f} %."
    )


def _about_difference(line: Line) -> str:
    points = 100 * line.corrected.value
    p_value = line.p_value or 0.0
    said = "p < .001" if p_value < 0.001 else f"p = {p_value:.3f}".replace("0.", ".", 1)
    return (
        f"{line.name}, {line.group}: {points:+.1f} percentage points (95 % interval "
        f"{_ends(line.corrected, 100, '+.1f')}; {said}). Machine labels as if they were true would give "
        f"{100 * line.naive.value:+.1f}."
    )


def _ends(figure: Figure, unit: float, how: str) -> str:
    low, high = figure.interval or (figure.value, figure.value)
    return f"{unit * low:{how}} to {unit * high:{how}}"
