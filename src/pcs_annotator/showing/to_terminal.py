"""Blocks for a terminal of any width: nothing is cut, wide tables are split, and long names are shortened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import singledispatchmethod
from textwrap import wrap

from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from pcs_annotator.core.result_table import Figure, ResultTable, number_of
from pcs_annotator.core.variant import edits_between
from pcs_annotator.showing import blocks
from pcs_annotator.showing.blocks import Bar, Block, Cell, Change, Level, Shaded, Style, Styled
from pcs_annotator.showing.formats import DASH, count, percent
from pcs_annotator.showing.svg_plot import Plot

GAP = 2
WIDEST_BAR = 30
GONE, NEW = "red strike", "green"
STYLES: dict[Style, str] = {
    "strong": "bold",
    "bold": "bold",
    "count": "bold",
    "warn": "bold yellow",
    "em": "italic",
    "small": "dim",
    "quiet": "dim",
    "meaning": "dim",
}
PARAGRAPHS = {"note": "dim", "warning": "yellow", "promise": "bold", "title": "bold", "files": "bold"}
STAMPS = {"good": "green", "given": "cyan", "warn": "yellow", "bad": "red", "quiet": "dim"}


def show(*shown: Block, console: Console | None = None) -> None:
    """Print blocks, then the names that were shortened in full."""
    console = console or Console(highlight=False)
    printer = Printer(console, ShortNames(_words(shown), room_for_names(console)))
    printer.all(shown)
    printer.names.explain(console)


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


def _words(shown: Iterable[Block]) -> Iterator[str]:
    """Yield the words of all tables, among them names."""
    for block in shown:
        match block:
            case ResultTable():
                yield from _words(blocks.results(block))
            case blocks.Table():
                for cell in (
                    *(column.title for column in block.columns),
                    *(cell for row in block.rows for cell in row),
                ):
                    yield from _plain(cell).split(" ")
            case blocks.Section() | blocks.Group() | blocks.Folded():
                yield from _words(block.blocks)


def _plain(words: object) -> str:
    return styled(words).plain if isinstance(words, str | Styled) or type(words) is tuple else ""


def styled(words: object) -> Text:
    """Return words for the terminal."""
    if isinstance(words, str):
        return Text(words)
    if isinstance(words, Styled):
        return Text(words.text, STYLES.get(words.style, ""))
    return Text.assemble(*map(styled, words))


class Printer:
    """Prints blocks; between them there is at most one empty line."""

    def __init__(self, console: Console, names: ShortNames) -> None:
        self.console, self.names = console, names
        self._fresh = True

    def all(self, shown: Iterable[Block]) -> None:
        """Print blocks; those that are None are left out."""
        for one in shown:
            if one is not None:
                self.block(one)

    def line(self, words: object, style: str = "", *, indent: int = 0, whole: bool = False) -> None:
        """Print a paragraph; `whole` if its lines must not be broken."""
        text = words if isinstance(words, Text) else styled(words)
        text.style = style
        shown = Padding(text, (0, 0, 0, indent), expand=False) if indent else text
        self.console.print(shown, soft_wrap=whole)
        self._fresh = False

    def gap(self) -> None:
        """Print an empty line, unless the last one is."""
        if not self._fresh:
            self.console.print()
        self._fresh = True

    @singledispatchmethod
    def block(self, block: Block) -> None:
        """Print a block."""
        raise TypeError(f"{type(block).__name__} is not a block")

    @block.register
    def _(self, block: str) -> None:
        self.line(block)

    @block.register
    def _(self, block: Plot) -> None:
        self.line(block.description, "dim")

    @block.register
    def _(self, block: blocks.Paragraph) -> None:
        if block.kind in ("title", "files"):
            self.gap()
        self.line(block.words, PARAGRAPHS.get(block.kind, ""), whole=block.kind == "files")

    @block.register
    def _(self, block: Change) -> None:
        self.gap()
        self.line(difference(block.before, block.after, coloured=self.console.color_system is not None), whole=True)

    @block.register
    def _(self, block: blocks.Stamp) -> None:
        self.line(block.words, STAMPS[block.kind])

    @block.register
    def _(self, block: blocks.Section) -> None:
        self.gap()
        self.line(block.title, "bold underline")
        self.all(block.blocks)
        self.gap()

    @block.register
    def _(self, block: blocks.Group) -> None:
        if block.title:
            self.gap()
            self.line(block.title, "bold")
        self.all(block.blocks)

    @block.register
    def _(self, block: blocks.Folded) -> None:
        self.line(block.summary)
        self.all(block.blocks)

    @block.register
    def _(self, block: blocks.Bullets) -> None:
        for place, item in enumerate(block.items):
            if block.kind == "spoken":
                self.line(item, "" if place else "bold")
            else:
                grid = RichTable.grid(padding=(0, 1))
                grid.add_row(" •", styled(item))
                self.console.print(grid)
        self._fresh = False

    @block.register
    def _(self, block: blocks.KeyValues) -> None:
        for name, value in block.pairs:
            self.line(Text.assemble(f"{name}: ", styled(value)), "dim", indent=2)

    @block.register
    def _(self, block: blocks.KeyFigures) -> None:
        for value, title, detail in block.figures:
            self.line(Text.assemble((value, "bold"), f" {title} ", (detail, "dim")))

    @block.register
    def _(self, block: blocks.Shares) -> None:
        named = [f"{count(n)} {title} ({percent(n, block.whole)})" for title, _, n in block.parts if n]
        self.line(f"{', '.join(named)} of {count(block.whole)} rows", indent=2)

    @block.register
    def _(self, block: ResultTable) -> None:
        self.all(blocks.results(block))
        self.gap()

    @block.register
    def _(self, block: blocks.Table) -> None:
        for place, part in enumerate(_Layout(block, self.names, self.console.width).parts()):
            if place:
                self.console.print()
            self.console.print(part)
        self._fresh = False
        self.gap()


class _Layout:
    """A table that fits the terminal: headings wrapped, intervals below figures, or columns in several parts."""

    def __init__(self, table: blocks.Table, names: ShortNames, width: int) -> None:
        self.table, self.names, self.width = table, names, width
        kinds = [column.kind.startswith("chart") for column in table.columns]
        drawn = [any(isinstance(row[at], Bar | Level) for row in table.rows) for at in range(len(kinds))]
        self.bars = next((at for at, chart in enumerate(kinds) if chart and drawn[at]), None)
        self.columns = [at for at, chart in enumerate(kinds) if not chart]

    def parts(self) -> Iterator[RichTable]:
        """Yield the table, in several parts with the same first columns if it is too wide."""
        leading = next((at for at in range(1, len(self.columns)) if self._numeric(self.columns[at])), 1)
        for wrapped, between in ((False, "  "), (True, "  "), (True, "\n")):
            cells = {column: self._cells(column, between) for column in self.columns}
            widths = {column: _width(one, wrapped) for column, one in cells.items()}
            if sum(widths.values()) + GAP * (len(widths) - 1) <= self.width:
                break
        else:
            room = max(self.width // 3, self.width - 60, 8)
            for column in self.columns[:leading]:
                widths[column] = min(widths[column], room, 2 * self.width // 3 // leading)
        for block in self._blocks({at: width + GAP for at, width in widths.items()}, leading):
            yield self._part(cells, {column: widths[column] for column in block})

    def _blocks(self, widths: Mapping[int, int], leading: int) -> Iterator[list[int]]:
        """Yield the columns of each part; every part begins with the columns that name the rows."""
        names, others = self.columns[:leading], self.columns[leading:]
        room = self.width + GAP - sum(widths[column] for column in names)
        block, left = [*names], room
        for column in others:
            if len(block) > len(names) and widths[column] > left:
                yield block
                block, left = [*names], room
            block.append(column)
            left -= widths[column]
        yield block

    def _part(self, cells: Mapping[int, Sequence[Text]], widths: Mapping[int, int]) -> RichTable:
        """Return some columns with fixed widths, because rich would otherwise squeeze figures before names."""
        shown = RichTable(box=None, padding=(0, 1), pad_edge=False)
        for column, width in widths.items():
            # the no-break space keeps "50 %" on one line
            heading = "\n".join(wrap(cells[column][0].plain.replace(" %", "\u00a0%"), width))
            side = "right" if self._numeric(column) else "left"
            shown.add_column(Text(heading), justify=side, width=width, overflow="fold")  # type: ignore[arg-type]  # rich's literal
        left = min(WIDEST_BAR, self.width - sum(widths.values()) - GAP * (len(widths) + 1))
        bars = self.bars if left > 1 and self.columns[-1] in widths else None
        if bars is not None:
            shown.add_column("")
        for place, row in enumerate(self.table.rows, 1):
            drawn = [] if bars is None else [_bar(row[bars], left)]
            shown.add_row(*(cells[column][place] for column in widths), *drawn)
        return shown

    def _numeric(self, column: int) -> bool:
        return self.table.columns[column].kind.startswith("number")

    def _cells(self, column: int, between: str) -> list[Text]:
        """Return the heading and cells of a column; `between` separates a figure from its interval."""
        heading = self.table.columns[column]
        best = {row for row, at in self.table.best if at == column}
        rows = [self._cell(row[column], heading.digits, between) for row in self.table.rows]
        for place in best:
            rows[place].stylize("bold")
        return [Text(self.names(_plain(heading.title))), *rows]

    def _cell(self, cell: Cell, digits: int, between: str) -> Text:
        if isinstance(cell, Shaded):
            cell = cell.words
        if isinstance(cell, str | Styled) or type(cell) is tuple:
            text = styled(cell)
            return Text(self.names(" ".join(text.plain.split())), text.style, spans=text.spans)
        if isinstance(cell, Change):
            return difference(cell.before, cell.after, coloured=True)
        return _number(cell, digits, between) if isinstance(cell, int | float | Figure) else Text(DASH, "dim")


def _number(cell: float | Figure, digits: int, between: str) -> Text:
    value = number_of(cell)
    if value is None:
        return Text(DASH, style="dim")
    shown = Text(f"{cell:,d}" if isinstance(cell, int) else f"{value:.{digits}f}")
    if isinstance(cell, Figure) and cell.interval is not None:
        low, high = cell.interval.rounded(digits)
        to = " to " if low < 0 else "–"  # a dash before or after a minus would not be read
        shown.append(f"{between}{low:.{digits}f}{to}{high:.{digits}f}", style="not bold dim")
    return shown


def _bar(cell: Cell, width: int) -> Text:
    if not isinstance(cell, Bar | Level):
        return styled(cell) if isinstance(cell, str | Styled) else Text()
    share = cell.share if isinstance(cell, Bar) else cell.value / cell.top
    return Text("█" * round(share * width) or "▏", style="cyan")


def _width(cells: Sequence[Text], heading_wrapped: bool) -> int:
    heading, *rows = cells
    parts = heading.plain.split() if heading_wrapped else [heading.plain]
    return max([1, *map(len, parts), *(line.cell_len for cell in rows for line in cell.split())])


def difference(before: str, after: str, *, coloured: bool) -> Text:
    """Return a text with deletions in red and insertions in green; in brackets without colours."""
    shown, done = Text(), 0
    for start, gone, new in edits_between(before, after):
        shown.append(before[done:start])
        shown.append(gone if coloured or not gone else f"[-{gone}-]", GONE)
        shown.append(new if coloured or not new else f"{{+{new}+}}", NEW)
        done = start + len(gone)
    shown.append(before[done:])
    return shown
