"""Blocks for a terminal of any width: nothing is cut, wide tables are split, and long names are folded."""

import re
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap

from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.table import Table as RichTable
from rich.text import Text

from pcs_annotator.core.result_table import Figure, number_of
from pcs_annotator.core.variant import edits_between
from pcs_annotator.showing import blocks
from pcs_annotator.showing.blocks import Block, Cell, Change, Shaded, Spot, Style, Styled, plain
from pcs_annotator.showing.formats import DASH, count, left_to_right, number

GAP = 2
NARROWEST, BULLET = 20, " • "
_TOGETHER = re.compile(r" (?=%)|(?<=\bp) (?=[<=] \d)|(?<=[<=]) (?=\d)|(?<=\d) (?=\w)")
_GLUE = "\ue000"  # a letter of nobody's alphabet, in the place of a blank at which a line must not end
WIDEST_BAR = 30
GONE, NEW = "red strike", "green"
STYLES: dict[Style, str] = {
    "strong": "bold",
    "bold": "bold",
    "count": "bold",
    "warn": "bold yellow",
    "caution": "yellow",
    "em": "italic",
    "small": "dim",
    "quiet": "dim",
}
COPIED = ("labels", "report", "files", "gold", "next")  # lines of an answer with paths and commands
PARAGRAPHS = {
    "note": "dim",
    "warning": "yellow",
    "promise": "bold",
    "title": "bold",
    "files": "bold",
    # stamps
    "good": "green",
    "given": "cyan",
    "warn": "yellow",
    "bad": "red",
    "quiet": "dim",
}


def show(*shown: Block, console: Console | None = None) -> None:
    """Print blocks."""
    printer = _Printer(console or Console(highlight=False))
    for block in blocks.simple(*shown):
        printer.block(block)


def styled(words: object) -> Text:
    """Return words for the terminal."""
    if isinstance(words, str):
        return Text(words)
    if isinstance(words, Styled):
        return Text(left_to_right(words.text) if words.own else words.text, STYLES.get(words.style, ""))
    return Text.assemble(*map(styled, words))  # type: ignore[call-overload]  # a tuple


def lines_of(text: Text, console: Console, width: int) -> Iterator[Text]:
    """Yield a text in lines without blanks at their ends; a number stays with what belongs to it, as in `50 %`."""
    kept = text.copy()
    kept.plain = _TOGETHER.sub(_GLUE, text.plain)
    for line in kept.wrap(console, max(width, NARROWEST)):
        line.plain = line.plain.replace(_GLUE, " ")
        line.rstrip()
        yield line


class _Printer:
    """Prints simple blocks; between them there is at most one empty line."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._fresh = True

    def block(self, block: Block) -> None:
        """Print a block."""
        match block:
            case blocks.Heading():
                self._gap()
                if block.words:
                    self._print(styled(block.words), "bold underline" if block.level == 1 else "bold")
            case blocks.Paragraph():
                if block.kind in ("title", "files"):
                    self._gap()
                self._print(styled(block.words), PARAGRAPHS.get(block.kind, ""), whole=block.kind == "files")
            case blocks.Bullets():
                self._bullets(block)
            case blocks.Answer():
                self._answer(block)
            case Change():
                self._gap()
                coloured = self.console.color_system is not None
                self._print(difference(block.before, block.after, coloured=coloured), whole=True)
            case blocks.Table():
                for part in _Layout(block, self.console.width).parts():
                    self.console.print(part)
                    self._fresh = False
                    self._gap()
            case _:
                raise TypeError(f"{type(block).__name__} is not a block")

    def _print(self, text: Text, style: str = "", *, whole: bool = False) -> None:
        """Print a paragraph; `whole` if its lines must not be broken."""
        text.style = style
        for line in [text] if whole else lines_of(text, self.console, self.console.width):
            self.console.print(line, soft_wrap=True)
        self._fresh = False

    def _gap(self) -> None:
        """Print an empty line, unless the last one is."""
        if not self._fresh:
            self.console.print()
        self._fresh = True

    def _answer(self, block: blocks.Answer) -> None:
        """Print the lines of an answer in two columns; paths and commands, to be copied, are never broken."""
        self._gap()
        margin = max(len(asked) for asked, _ in block.lines) + GAP
        for asked, words in block.lines:
            self._hanging(Text(asked.ljust(margin), "dim"), words, whole=asked in COPIED)

    def _bullets(self, block: blocks.Bullets) -> None:
        for index, item in enumerate(block.items):
            if block.kind == "spoken":
                self._print(styled(item), "" if index else "bold")
            else:
                self._hanging(Text(BULLET), item)

    def _hanging(self, mark: Text, words: blocks.Words, *, whole: bool = False) -> None:
        """Print words after a mark, with their further lines below the first; `whole` as for a paragraph."""
        text, width = styled(words), self.console.width - len(mark)
        for part in [text] if whole else lines_of(text, self.console, width):
            self.console.print(Text.assemble(mark, part), soft_wrap=True)
            mark = Text(" " * len(mark))
        self._fresh = False


class _Layout:
    """A table that fits the terminal: headings wrapped, intervals below figures, or columns in several parts."""

    def __init__(self, table: blocks.Table, width: int) -> None:
        self.table, self.width = table, width
        cells = (pair for row in table.rows for pair in enumerate(row))
        self.bars = min((at for at, cell in cells if isinstance(cell, Spot) and cell.kind == "level"), default=None)
        self.columns = [at for at, column in enumerate(table.columns) if not column.kind.startswith("chart")]

    def parts(self) -> Iterator[RichTable]:
        """Yield the table, in several parts with the same first columns if it is too wide."""
        leading = next((at for at in range(1, len(self.columns)) if self._numeric(self.columns[at])), 1)
        for wrapped, between in ((False, "  "), (True, "  "), (True, "\n")):
            cells = {column: self._cells(column, between) for column in self.columns}
            widths = {column: _width(cell, wrapped) for column, cell in cells.items()}
            if sum(widths.values()) + GAP * (len(widths) - 1) <= self.width:
                break
        else:
            room = max(self.width // 3, self.width - 60, 8)  # for a name; a longer one is folded
            left = self.width - sum(GAP + widths[column] for column in self.columns[1:])
            for column in self.columns[:leading]:
                longest = max(min(room, 2 * self.width // 3 // leading), left if leading == 1 else 0)
                widths[column] = min(widths[column], longest)
            for column in self.columns[leading:]:
                widths[column] = widths[column] if self._numeric(column) else min(widths[column], room)
        for block in self._blocks({at: width + GAP for at, width in widths.items()}, leading):
            yield self._part(cells, {column: widths[column] for column in block})

    def _blocks(self, widths: Mapping[int, int], leading: int) -> Iterator[list[int]]:
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
            side: JustifyMethod = "right" if self._numeric(column) else "left"
            shown.add_column(Text(heading), justify=side, width=width, overflow="fold")
        left = min(WIDEST_BAR, self.width - sum(widths.values()) - GAP * (len(widths) + 1))
        bars = self.bars if left > 1 and self.columns[-1] in widths else None
        if bars is not None:
            shown.add_column("")
        for index, row in enumerate(self.table.rows, 1):
            drawn = [] if bars is None else [_bar(row[bars], left)]
            shown.add_row(*(cells[column][index] for column in widths), *drawn)
        return shown

    def _numeric(self, column: int) -> bool:
        return self.table.columns[column].kind.startswith("number")

    def _cells(self, column: int, between: str) -> list[Text]:
        heading = self.table.columns[column]
        best = {row for row, at in self.table.best if at == column}
        rows = [self._cell(row[column], heading.digits, between) for row in self.table.rows]
        for index in best:
            rows[index].stylize("bold")
        return [Text(plain(heading.title)), *rows]

    def _cell(self, cell: Cell, digits: int, between: str) -> Text:
        if isinstance(cell, Shaded | Change):
            cell = cell.words if isinstance(cell, Shaded) else cell.after
        if isinstance(cell, str | Styled) or type(cell) is tuple:
            text = styled(cell)
            return Text(" ".join(text.plain.split()), text.style, spans=text.spans)
        return _number(cell, digits, between) if isinstance(cell, int | float | Figure) else Text(DASH, "dim")


def _number(cell: float | Figure, digits: int, between: str) -> Text:
    value = number_of(cell)
    if value is None:
        return Text(DASH, style="dim")
    shown = Text(count(cell) if isinstance(cell, int) else number(value, digits))
    if isinstance(cell, Figure) and cell.interval is not None:
        low, high = cell.interval.rounded(digits)
        to = " to " if low < 0 else "–"  # a dash before or after a minus would not be read
        shown.append(f"{between}{number(low, digits)}{to}{number(high, digits)}", style="not bold dim")
    return shown


def _bar(cell: Cell, width: int) -> Text:
    if not isinstance(cell, Spot):
        return styled(cell) if isinstance(cell, str | Styled) else Text()
    share = cell.value / cell.high
    return Text("█" * round(share * width) or "▏", style="cyan")


def _width(cells: Sequence[Text], heading_wrapped: bool) -> int:
    heading, *rows = cells
    parts = heading.plain.split() if heading_wrapped else [heading.plain]
    return max([1, *map(cell_len, parts), *(line.cell_len for cell in rows for line in cell.split())])


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
