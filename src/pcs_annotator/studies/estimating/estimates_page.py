"""Estimates as a short answer, as tables and sentences to quote, and as a page with a dot plot per label."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pcs_annotator.base.text import capital, counted
from pcs_annotator.core.result_table import Content, Figure, ResultTable
from pcs_annotator.core.weights import Interval
from pcs_annotator.judging.metrics.significance import p_text
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.answer import LONGEST_LABEL, look_at
from pcs_annotator.showing.formats import label_name, number, signed
from pcs_annotator.showing.result_tables import markdown_text, to_csv, to_latex, to_markdown
from pcs_annotator.showing.svg_plot import round_scale
from pcs_annotator.showing.to_html import STYLES, document, header
from pcs_annotator.studies.estimating.answers import ADJUSTED, Estimated, Line
from pcs_annotator.tables.files import check_ending
from pcs_annotator.tables.write import STRICT, OutputPolicy

HEADINGS = {"corrected": "corrected", "gold_only": "gold only", "naive": "naive (biased)"}
TITLES = {"share": "Share of labels, %", "mean": "Mean", "regression": "Coefficients"}
DIFFERENCE = "difference"
SUBJECTS = {"share": "label", "mean": "variable", "regression": "term"}
LINES_SHOWN = 5
LEVEL = 0.05
_HOW_TO_READ = (
    "Marks are estimates from machine labels, corrected by the gold rows, with 95 % intervals. The dashed line is "
    "naive: what machine labels would give if all were true, which is biased. A solid upright line is zero."
)
_EXPLAINED = (
    "corrected: machine labels, corrected by the gold rows; gold only: the gold rows alone; naive: machine labels as "
    "if they were true, which is biased and shown for comparison; 95 % intervals"
)
STYLES_OF_ESTIMATES = (*STYLES, "estimates.css")


def tables(estimated: Estimated) -> list[ResultTable]:
    """Return a table of estimates and, if there are any, one of differences between groups."""
    unit = 100.0 if estimated.kind == "share" else 1.0
    notes = [f"{_EXPLAINED}.", *(f"{note}." for note in estimated.notes)]
    notes += _about_missing(estimated)
    tested = [*dict.fromkeys(("p", ADJUSTED[estimated.p_adjust]))]
    first = _table("estimates", TITLES[estimated.kind], estimated.lines, unit, notes, tested)
    if estimated.missing:
        empty: Sequence[Content] = [None] * (len(first.columns) - 3)
        first = replace(
            first, rows=[*first.rows, *(["", part.group, *empty, part.gold_rows] for part in estimated.missing)]
        )
    if not estimated.differences:
        return [first]
    title = "Differences, percentage points" if estimated.kind == "share" else "Differences"
    return [first, _table("differences", title, estimated.differences, unit, (), tested)]


def answer_shown(estimated: Estimated) -> Iterator[b.Block]:
    """Yield the differences that are clear of zero, the largest first, or else all; without any, the estimates."""
    clear, _ = told_apart(estimated.differences)
    if estimated.differences:
        below = f" ({ADJUSTED[estimated.p_adjust]} < .05){', the largest' if clear[LINES_SHOWN:] else ''}"
        yield b.Paragraph(f"{headline(estimated)}{below}", "title")
    lines = clear or estimated.differences or estimated.lines
    if not clear:
        yield b.Paragraph(estimated.title or TITLES[estimated.kind], "title")
    short = [line._replace(name=label_name(line.name, LONGEST_LABEL)) for line in lines[:LINES_SHOWN]]
    yield _shown(short, estimated, _scale(lines), DIFFERENCE if estimated.differences else "")


def answer_lines(estimated: Estimated, *, everything: bool = False) -> Iterator[tuple[str, b.Words]]:
    """Yield what the figures are based on, and where the others are, unless everything is shown."""
    clear, _ = told_apart(estimated.differences)
    more = (
        len(estimated.lines)
        + len(estimated.differences)
        - len((clear or estimated.differences or estimated.lines)[:LINES_SHOWN])
    )
    details = f"; {counted(more, 'more line')}, gold only and p-values: --details" if more and not everything else ""
    yield "how", b.Styled(f"corrected by gold rows; naive: machine labels as if true{details}", "quiet")
    yield from look_at([*estimated.notes, *(part.rstrip(".") for part in _about_missing(estimated))])


def told_apart(lines: Sequence[Line]) -> tuple[list[Line], list[Line]]:
    """Return the lines that are clear of zero, the largest first, and the others."""
    clear = [line for line in lines if _clear_of_zero(line)]
    return sorted(clear, key=lambda line: -abs(line.corrected.value)), [
        part for part in lines if not _clear_of_zero(part)
    ]


def headline(estimated: Estimated) -> str:
    """Return how many differences or coefficients are clear of zero; without any, the largest share or the question."""
    tested, noun = estimated.differences, DIFFERENCE
    if estimated.kind == "regression":
        tested, noun = estimated.lines, "coefficient"
    if tested:
        return f"{len(told_apart(tested)[0])} of {counted(len(tested), f'{noun} is', f'{noun}s are')} clear of zero"
    largest = max(estimated.lines, key=lambda line: line.corrected.value, default=None)
    if largest is None or largest.group or largest.name not in estimated.labels:
        return estimated.title or TITLES[estimated.kind]
    return f"{number(100 * largest.corrected.value, 1)} % of the texts are {largest.name}"


def _clear_of_zero(line: Line) -> bool:
    """Return whether a test says so that allows for how many were made; of 20 intervals, one misses 0 by chance."""
    p_value = line.p_value if line.adjusted is None else line.adjusted
    return p_value is not None and p_value < LEVEL


def _table(
    name: str, title: str, lines: Sequence[Line], unit: float, notes: Sequence[str], tests: Sequence[str]
) -> ResultTable:
    """Return lines as a table, with those columns that some line has; `tests` are what p-values are called."""
    shown = {key: title for key, title in HEADINGS.items() if any(getattr(line, key) is not None for line in lines)}
    grouped = any(line.group for line in lines)
    tests = tests if any(line.p_value is not None for line in lines) else ()
    rows: list[list[Content]] = [
        [
            *([line.name, line.group] if grouped else [line.name]),
            *(_scaled(getattr(line, key), unit) for key in shown),
            line.gold_rows,
            *(line.p_value, line.adjusted)[: len(tests)],
        ]
        for line in lines
    ]
    return ResultTable(
        name=name,
        title=title,
        columns=["", *(["group"] if grouped else []), *shown.values(), "gold rows", *tests],
        rows=rows,
        notes=notes,
        digits={**dict.fromkeys(shown.values(), 1 if unit == 100 else 3), **dict.fromkeys(tests, 3)},
    )


def _scaled(figure: Figure | None, unit: float) -> Figure | None:
    ends = figure and figure.interval
    return figure and Figure(figure.value * unit, ends and Interval(ends.low * unit, ends.high * unit))


def sentences(estimated: Estimated) -> list[str]:
    """Return what was found, one sentence per line of the table."""
    shares = estimated.kind == "share"
    lines = [_about_share(line, estimated.rows) if shares else _about_number(line) for line in estimated.lines]
    differences = (_told(estimated, line) for line in estimated.differences)
    return [*lines, *(_about_missing(estimated) if shares else ()), *differences]


def _told(estimated: Estimated, difference: Line) -> str:
    return _about_difference(difference) if estimated.kind == "share" else _about_number(difference)


def _about_number(line: Line) -> str:
    return (
        f"{line.name}{f' ({line.group})' if line.group else ''}: {line.corrected.value:.3g} (95 % interval "
        f"{_ends(line.corrected, 1, '.3g')}; {line.gold_rows:,} gold rows). From machine labels as if they were true, "
        f"it would be {line.naive.value:.3g}."
    )


def _about_missing(estimated: Estimated) -> list[str]:
    return [f"{part.group} is not estimated: {part.reason}." for part in estimated.missing]


def _about_share(line: Line, rows: int) -> str:
    where = f"of the texts in {line.group!r}" if line.group else f"of the {rows:,} texts"
    return (
        f"{100 * line.corrected.value:.1f} % {where} are {line.name} (95 % interval "
        f"{_ends(line.corrected, 100, '.1f')} %; {line.gold_rows:,} gold rows). Counting machine labels as if they "
        f"were true would give {100 * line.naive.value:.1f} %."
    )


def _about_difference(line: Line) -> str:
    points = 100 * line.corrected.value
    words = p_text(line.p_value or 0.0)
    if line.adjusted is not None:
        words += f", adjusted for all differences {p_text(line.adjusted)}"
    return (
        f"{line.name}, {line.group}: {points:+.1f} percentage points (95 % interval "
        f"{_ends(line.corrected, 100, '+.1f')}; {words}). Machine labels as if they were true would give "
        f"{100 * line.naive.value:+.1f}."
    )


def _ends(figure: Figure, unit: float, how: str) -> str:
    """Return an interval; that of a share is rounded outwards, as in the table."""
    low, high = (unit * end for end in figure.interval or (figure.value, figure.value))
    if unit == 100:
        low, high = Interval(low, high).rounded(1)
    return f"{low:{how}} to {high:{how}}"


def page(estimated: Estimated) -> str:
    """Return the page: differences that can be told first, then a dot plot per label, then how."""
    title = estimated.title or TITLES[estimated.kind]
    about = [part for part in (title, estimated.data, counted(estimated.rows, "text")) if part]
    top = header(b.name(headline(estimated)), b.text(b.name(" · ".join(about)), kind="sub"))
    names = dict.fromkeys(line.name for line in estimated.lines)
    grouped = any(line.group for line in estimated.lines)
    parts = [(name, [line for line in estimated.lines if line.name == name]) for name in names] if grouped else []
    scale = _scale(estimated.lines)
    plots: list[b.Block] = []
    for name, lines in parts:  # the heading names the label
        shown = _shown([line._replace(name=line.group, group="") for line in lines], estimated, scale, "group")
        plots.append(b.titled(b.name(name), replace(shown, label=f"{name}, by group")))
    tests = len(estimated.differences or estimated.lines)
    alone = f"An interval is about one comparison alone; “clear of zero” allows for all {tests}."
    many = estimated.p_adjust != "none" and tests > 1 and (estimated.differences or estimated.kind == "regression")
    notes = [_HOW_TO_READ, *([alone] if many else []), *(f"{capital(note)}." for note in estimated.notes)]
    notes += _about_missing(estimated)
    sections = [
        *([_differences(estimated)] if estimated.differences else []),
        b.section("estimates", TITLES[estimated.kind], *(plots or [_shown(estimated.lines, estimated, scale)])),
        b.section(
            "notes",
            "How to read this",
            b.Bullets([b.Styled(note, "plain", own=True) for note in notes]),
            b.Folded("Sentences to quote", [b.Bullets([b.name(table) for table in sentences(estimated)])]),
            b.Folded(
                "All numbers", [part for table in tables(estimated) for part in b.results(replace(table, notes=()))]
            ),
        ),
    ]
    return document(title, top, sections, STYLES_OF_ESTIMATES)


def _differences(estimated: Estimated) -> b.Section:
    """Return the differences that are clear of zero, and the others folded away."""
    clear, rest = told_apart(estimated.differences)
    scale = _scale(estimated.differences)
    more = counted(len(rest), "difference that is not clear of zero", "differences that are not clear of zero")
    return b.section(
        "differences",
        "Differences, percentage points" if estimated.kind == "share" else "Differences",
        b.Paragraph(f"The largest: {_told(estimated, clear[0])}", "verdict") if clear else None,
        _shown(clear, estimated, scale, DIFFERENCE) if clear else None,
        b.Folded(more, [replace(_shown(rest, estimated, scale, DIFFERENCE), label=more)]) if rest else None,
        menu="Differences",
    )


def _scale(lines: Sequence[Line]) -> Interval:
    ends = [end for line in lines for end in (*(line.corrected.interval or ()), line.corrected.value, line.naive.value)]
    return round_scale([0.0, *ends])


def _shown(lines: Sequence[Line], estimated: Estimated, scale: Interval, what: str = "") -> b.Table:
    """Return a row per estimate, which is a `what`, with a drawing for pages: its interval, and the naive value."""
    differences = what == DIFFERENCE
    unit, digits = (100.0, 1) if estimated.kind == "share" else (1.0, 3)
    write = signed if differences or estimated.kind == "regression" else number
    value = {"share": "points" if differences else "share, %", "mean": "mean", "regression": "coefficient"}[
        estimated.kind
    ]
    tested = [ADJUSTED[estimated.p_adjust]] if differences or estimated.kind == "regression" else []
    rows: list[b.Row] = []
    for line in lines:
        ends = line.corrected.interval or Interval(line.corrected.value, line.corrected.value)
        low, high = Interval(unit * ends.low, unit * ends.high).rounded(digits)
        shown = [write(part, digits) for part in (unit * line.corrected.value, unit * line.naive.value, low, high)]
        spot = b.Spot(line.corrected.value, ends, scale.low, scale.high, line.naive.value)
        row: b.Row = [b.name(line.title), spot, shown[0], f"{shown[2]} to {shown[3]}", shown[1], line.gold_rows]
        least = line.p_value if line.adjusted is None else line.adjusted
        p_value = p_text(least or 0.0).removeprefix("p ").removeprefix("= ")
        rows.append([*row, p_value] if tested else row)
    axis = " ".join(f"{unit * end:.4g}".replace("-", "−") for end in scale)  # one at each end
    columns = [b.Column(what or SUBJECTS[estimated.kind]), b.Column(axis, "chart axis"), *b.numbers(value)]
    columns += [b.Column("95 % interval", "number quiet"), *b.numbers("naive", "gold rows", *tested)]
    return b.Table(columns=columns, rows=rows, kind="bars estimates")


def write_estimates(estimated: Estimated, path: Path, policy: OutputPolicy = STRICT) -> None:
    """Write estimates to a file; its extension says how."""
    check_ending(path, FORMATS)
    policy.write_page(path, _FORMATS[path.suffix.lower()](estimated))


def _one_table(several: Sequence[ResultTable]) -> ResultTable:
    """Return several tables below each other as one that programs can read, with a column that tells them apart."""
    columns = [*dict.fromkeys(name for table in several for name in table.columns)]
    cells = [(table.name, dict(zip(table.columns, row, strict=True))) for table in several for row in table.rows]
    rows = [[name, *(row.get(column) for column in columns)] for name, row in cells]
    return replace(several[0], columns=["table", *columns], rows=rows)


def _markdown(estimated: Estimated) -> str:
    words = [f"- {markdown_text(part)}" for part in sentences(estimated)]
    return "\n".join([*map(to_markdown, tables(estimated)), *words, ""])


def _json(estimated: Estimated) -> str:
    return json.dumps({**estimated.to_dict(), "sentences": sentences(estimated)}, ensure_ascii=False, indent=2) + "\n"


_FORMATS: Mapping[str, Callable[[Estimated], str]] = {
    ".html": page,
    ".htm": page,
    ".md": _markdown,
    ".tex": lambda found: "\n".join(to_latex(table, intervals=True) for table in tables(found)),
    ".csv": lambda found: to_csv(_one_table(tables(found))),
    ".json": _json,
}
FORMATS = tuple(_FORMATS)
