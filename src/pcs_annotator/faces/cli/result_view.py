"""Tables for a terminal, and as plain values: results, and what calls cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pcs_annotator.core.bill import Bill
from pcs_annotator.core.result_table import Content, Figure, ResultTable, number_of

DASH = "–"
GAP = 2
LONGEST = 30
"""Longer names are wrapped if there is no room for them."""


def plain_table(*, left: Sequence[str] = (), right: Sequence[str] = ()) -> Table:
    """Return a table without lines; its first columns are aligned left, the others right."""
    table = Table(box=None, padding=(0, 1), show_edge=False)
    for heading in left:
        table.add_column(heading)
    for heading in right:
        table.add_column(heading, justify="right")
    return table


def bill_table(bills: Sequence[Bill], limit: str = "") -> Table:
    """Return a row per model and purpose; `limit` precedes the headings of figures that are upper limits."""
    headings = ("calls", "tokens in", f"{limit}tokens out", f"{limit}cost")
    table = plain_table(left=("model", "purpose"), right=headings)
    for bill in bills:
        cost = "unknown" if bill.usd is None else money([bill])
        figures = (f"{count:,}" for count in (bill.calls, bill.input_tokens, bill.output_tokens))
        table.add_row(Text(bill.model), bill.purpose, *figures, cost)
    return table


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


def print_table(table: ResultTable, console: Console) -> None:
    """Print a table; if it is too wide for the terminal, in several parts with the same first columns."""
    columns = range(len(table.columns))
    cells = [_cells(table, column, "  ") for column in columns]
    widths = [_width(one) for one in cells]
    if sum(widths) + GAP * len(widths) > console.width:
        cells = [_cells(table, column, "\n") for column in columns]
        widths = [min(_width(one), LONGEST) for one in cells]
    console.print(Text(table.title, style="bold"))
    for block in _blocks([width + GAP for width in widths], _leading(table), console.width):
        console.print(_rich(table, cells, {column: widths[column] for column in block}))
        console.print()
    for name, value in table.summary:
        console.print(Text.assemble(f"{name}: ", (value, "bold")))
    for note in table.notes:
        console.print(Text(note, style="dim"))
    console.print()


def _leading(table: ResultTable) -> int:
    """Return the number of columns that name the rows: those before the first number."""
    for column in range(len(table.columns)):
        if column and any(number_of(row[column]) is not None for row in table.rows):
            return column
    return 1


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
    shown = Text(f"{cell:d}" if isinstance(cell, int) else f"{value:.{digits}f}", style="bold" if best else "")
    if isinstance(cell, Figure) and cell.interval is not None:
        low, high = cell.interval.rounded(digits)
        shown.append(f"{between}{low:.{digits}f} to {high:.{digits}f}", style="not bold dim")
    return shown


def _width(cells: Sequence[Text]) -> int:
    heading, *rows = cells
    longest_word = max((len(word) for word in heading.plain.split()), default=1)
    return max([longest_word, *(line.cell_len for cell in rows for line in cell.split())])


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
        numeric = any(number_of(row[column]) is not None for row in table.rows)
        # the no-break space keeps "50 %" on one line
        heading = "\n".join(wrap(table.columns[column].replace(" %", "\u00a0%"), width))
        shown.add_column(Text(heading), justify="right" if numeric else "left", width=width)
    for row in range(1, len(table.rows) + 1):
        shown.add_row(*(cells[column][row] for column in widths))
    return shown
