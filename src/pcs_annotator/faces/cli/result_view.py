"""Tables for a terminal of any width, and as plain values: results, and what calls cost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from textwrap import wrap
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pcs_annotator.core.bill import Bill
from pcs_annotator.core.result_table import Content, Figure, ResultTable, number_of

DASH = "–"
GAP = 2
NUMBER = re.compile(r"(about )?[-+<≤$]? ?\d|(unknown|free|text unchanged|)$")


def room_for_names(console: Console) -> int:
    """Return the longest name that is shown in full: a third of the line, or more where figures leave more."""
    return max(console.width // 3, console.width - 60, 8)


class ShortNames:
    """Names, those too long for the terminal shortened in the middle; two names never look the same."""

    def __init__(self, names: Iterable[str], room: int) -> None:
        long = [name for name in dict.fromkeys(names) if len(name) > room]
        cuts = sorted(range(1, room - 1), key=lambda tail: abs(tail - 3 * room // 4))  # versions are near the end
        ways = ([f"{name[: room - 1 - tail]}…{name[-tail:]}" for name in long] for tail in cuts)
        numbered = [f"{name[: room - 5]}…{number}" for number, name in enumerate(long, 1)]
        short = next((way for way in ways if len(set(way)) == len(long)), numbered)
        self._short = dict(zip(long, short, strict=True))

    def __call__(self, text: str) -> str:
        """Return a text with the names in it, which are words, shortened."""
        return " ".join(self._short.get(word, word) for word in text.split(" "))

    def explain(self, console: Console) -> None:
        """Print the shortened names in full."""
        if self._short:
            console.print(Text(f"names in full: {', '.join(self._short)}", style="dim"))


def plain_table() -> Table:
    """Return a table without lines."""
    return Table(box=None, padding=(0, 1), show_edge=False)


def print_bills(bills: Sequence[Bill], console: Console, *, limit: str = "", explain: bool = True) -> None:
    """Print a row per model and purpose; `limit` precedes the headings of figures that are upper limits."""
    names = ShortNames((bill.model for bill in bills), room_for_names(console))
    rows: list[list[Content]] = [
        [names(bill.model), bill.purpose, bill.calls, bill.input_tokens, bill.output_tokens, _cost(bill)]
        for bill in bills
    ]
    columns = ("model", "purpose", "calls", "tokens in", f"{limit}tokens out", f"{limit}cost")
    print_rows(ResultTable(name="", title="", columns=columns, rows=rows), console)
    if explain:
        names.explain(console)


def _cost(bill: Bill) -> str:
    return "unknown" if bill.usd is None else money([bill])


def money(bills: Sequence[Bill]) -> str:
    """Return the total cost of calls."""
    known = sum(bill.usd for bill in bills if bill.usd is not None)
    if any(bill.usd is None for bill in bills):
        return f"${known:.4f}, and calls of unknown price"
    return f"${known:.4f}" if known else "free"


def table_json(table: ResultTable) -> dict[str, Any]:
    """Return a table as plain values; values that could not be computed are null."""
    return {
        "name": table.name,
        "title": table.title,
        "columns": list(table.columns),
        "rows": [[_plain(cell) for cell in row] for row in table.rows],
        "summary": [list(line) for line in table.summary],
        "notes": list(table.notes),
    }


def _plain(cell: Content) -> Any:
    if cell is None or isinstance(cell, str | int):
        return cell
    if isinstance(cell, Figure) and cell.interval is not None:
        low, high = number_of(cell.interval.low), number_of(cell.interval.high)
        return {"value": number_of(cell), "low": low, "high": high}
    return number_of(cell)


def print_tables(tables: Sequence[ResultTable], console: Console) -> None:
    """Print tables with their titles and notes; names that are shortened are explained once, at the end."""
    texts = (cell for table in tables for row in (table.columns, *table.rows) for cell in row if isinstance(cell, str))
    names = ShortNames((word for text in texts for word in text.split(" ")), room_for_names(console))
    for table in tables:
        rows = [[names(cell) if isinstance(cell, str) else cell for cell in row] for row in table.rows]
        columns = [names(column) for column in table.columns]
        digits = {names(column): count for column, count in table.digits.items()}
        console.print(Text(table.title, style="bold"))
        print_rows(replace(table, rows=rows, columns=columns, digits=digits), console)
        console.print()
        for name, value in table.summary:
            console.print(Text.assemble(f"{name}: ", (value, "bold")))
        for note in table.notes:
            console.print(Text(note, style="dim"))
        console.print()
    names.explain(console)


def print_rows(table: ResultTable, console: Console) -> None:
    """Print headings and rows; if they are too wide for the terminal, in several parts with the same first columns."""
    columns, leading = range(len(table.columns)), _leading(table)
    for headings_wrapped, between in ((False, "  "), (True, "  "), (True, "\n")):
        cells = [_cells(table, column, between) for column in columns]
        widths = [_width(one, headings_wrapped) for one in cells]
        if sum(widths) + GAP * len(widths) <= console.width:
            break
    else:
        for column in range(leading):
            widths[column] = min(widths[column], room_for_names(console), 2 * console.width // 3 // leading)
    for place, block in enumerate(_blocks([width + GAP for width in widths], leading, console.width)):
        if place:
            console.print()
        console.print(_rich(table, cells, {column: widths[column] for column in block}))


def _numeric(table: ResultTable, column: int) -> bool:
    """Tell whether a column has numbers, as numbers or as text."""
    cells = [row[column] for row in table.rows]
    return any(number_of(cell) is not None for cell in cells) or all(
        cell is None or (isinstance(cell, str) and NUMBER.match(cell)) for cell in cells
    )


def _leading(table: ResultTable) -> int:
    """Return the number of columns that name the rows: those before the first number."""
    return next((column for column in range(1, len(table.columns)) if _numeric(table, column)), 1)


def _cells(table: ResultTable, column: int, between: str) -> list[Text]:
    """Return the heading and cells of a column; `between` separates a figure from its interval."""
    digits = table.digits.get(table.columns[column], 2)
    best = {row for row, at in table.best if at == column}
    rows = [_shown(row[column], digits, between, place in best) for place, row in enumerate(table.rows)]
    return [Text(table.columns[column]), *rows]


def _shown(cell: Content, digits: int, between: str, best: bool) -> Text:
    if isinstance(cell, str):
        return Text(" ".join(cell.split()))
    value = number_of(cell)
    if value is None:
        return Text(DASH, style="dim")
    shown = Text(f"{cell:,d}" if isinstance(cell, int) else f"{value:.{digits}f}", style="bold" if best else "")
    if isinstance(cell, Figure) and cell.interval is not None:
        low, high = cell.interval.rounded(digits)
        to = " to " if low < 0 else "–"  # a dash before or after a minus would not be read
        shown.append(f"{between}{low:.{digits}f}{to}{high:.{digits}f}", style="not bold dim")
    return shown


def _width(cells: Sequence[Text], heading_wrapped: bool) -> int:
    heading, *rows = cells
    parts = heading.plain.split() if heading_wrapped else [heading.plain]
    return max([1, *map(len, parts), *(line.cell_len for cell in rows for line in cell.split())])


def _blocks(widths: Sequence[int], names: int, room: int) -> list[list[int]]:
    """Return the columns of each part; every part begins with the columns that name the rows."""
    blocks: list[list[int]] = [[]]
    left = room - sum(widths[:names])
    for column in range(names, len(widths)):
        if blocks[-1] and widths[column] > left:
            blocks.append([])
            left = room - sum(widths[:names])
        blocks[-1].append(column)
        left -= widths[column]
    return [[*range(names), *block] for block in blocks]


def _rich(table: ResultTable, cells: Sequence[Sequence[Text]], widths: Mapping[int, int]) -> Table:
    """Return some columns with fixed widths, because rich would otherwise squeeze figures before names."""
    shown = plain_table()
    for column, width in widths.items():
        # the no-break space keeps "50 %" on one line
        heading = "\n".join(wrap(table.columns[column].replace(" %", "\u00a0%"), width))
        shown.add_column(
            Text(heading), justify="right" if _numeric(table, column) else "left", width=width, overflow="fold"
        )
    for row in range(1, len(table.rows) + 1):
        shown.add_row(*(cells[column][row] for column in widths))
    return shown
