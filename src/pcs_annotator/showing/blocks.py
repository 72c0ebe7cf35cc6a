"""Results as blocks: what is said, apart from how it looks; `to_html` and `to_terminal` show them.

A section is a function that returns blocks. Whoever shows it chooses the sections, their order and the renderer.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from pcs_annotator.core.bill import Bill
from pcs_annotator.core.result_table import Figure, ResultTable, number_of
from pcs_annotator.core.weights import Interval
from pcs_annotator.runs.certificate_text import Standing
from pcs_annotator.showing.formats import count, dollars, percent, total_cost
from pcs_annotator.showing.svg_plot import Plot

NUMBER = re.compile(r"(about )?[-+<≤$]? ?\d|(unknown|free|text unchanged|)$")
Style = Literal[
    "name", "plain", "strong", "bold", "em", "small", "quiet", "count", "warn", "caution", "chip", "command"
]


class Styled(NamedTuple):
    """Words that look different; `own` if a user or a model wrote them, in their own writing direction."""

    text: str
    style: Style
    own: bool = False
    link: str = ""  # where it leads to, on a page


Words = str | Styled | tuple[str | Styled, ...]


def name(text: str) -> Styled:
    """Return text of a user or of a model: a label, a name, a reason."""
    return Styled(text, "name", own=True)


class Spot(NamedTuple):
    """A value with its interval on a scale from `low` to `high`; `mark` is a value to compare it with.

    Its kind is the look of a point, or `level` for a bar that ends there.
    """

    value: float
    interval: Interval | None
    low: float
    high: float
    mark: float | None = None
    kind: str = "point"


class Shaded(NamedTuple):
    """Words in a cell with a look of its own, and a hint to point at."""

    words: Words
    kind: str
    hint: str | None = None


class Change(NamedTuple):
    """A text, with what differs from an earlier one marked; on a page cut to about `room` characters."""

    before: str
    after: str
    room: int = 2_000


Cell = Words | int | float | Figure | Spot | Shaded | Change | None
"""Content of a table's cell; None if it could not be computed."""
Row = list[Cell]


class Column(NamedTuple):
    """The heading of a column; `kind` says what it has: numbers, a chart, or words; `digits` are decimals."""

    title: Words
    kind: str = ""
    hint: str | None = None
    digits: int = 2


def numbers(*titles: Words, digits: int = 2) -> list[Column]:
    """Return columns of numbers."""
    return [Column(title, "number", digits=digits) for title in titles]


class Paragraph(NamedTuple):
    """A paragraph: plain, a `note` in small print, a `verdict`, a `warning`, …."""

    words: Words
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table whose first column names its rows."""

    columns: Sequence[Column]  # the headings
    rows: Sequence[Sequence[Cell]]  # one cell per column
    kind: str = ""  # its look
    label: str = ""  # its name for screen readers; by default its first heading
    total: bool = False  # whether the last row sums up the others
    best: frozenset[tuple[int, int]] = frozenset()  # cells to stress, as (row, column)


class Stamp(NamedTuple):
    """A word or two that tell how far to trust what follows: `good`, `given`, `warn`, `bad` or `quiet`."""

    words: str
    kind: str


# Only a check by people is evidence about these rows; a promise is about the method, so it is not green.
STAMPS: Mapping[Standing, Stamp] = {
    "none": Stamp("no promise", "warn"),
    "given": Stamp("promise, not audited", "given"),
    "open": Stamp("promise, audit open", "given"),
    "confirmed": Stamp("confirmed by audit", "good"),
    "revoked": Stamp("revoked by audit", "bad"),
}


class Bullets(NamedTuple):
    """A list."""

    items: Sequence[Words]
    kind: str = ""


class KeyValues(NamedTuple):
    """Names with values."""

    pairs: Sequence[tuple[str, Words]]
    kind: str = ""


class Answer(NamedTuple):
    """What a command ends with: few lines, each with the question that it answers."""

    lines: Sequence[tuple[str, Words]]


class KeyFigure(NamedTuple):
    """A number in large print, with its name and a detail; several are a group of the kind `tiles`."""

    value: str
    title: str
    detail: str


class Shares(NamedTuple):
    """How a whole divides into parts, each with its name, its look and its count."""

    parts: Sequence[tuple[str, str, int]]
    whole: int


class Group(NamedTuple):
    """Blocks under a small heading, side by side, or in a box."""

    blocks: "Sequence[Block]"
    title: Words = ""
    kind: str = "figure"


class Folded(NamedTuple):
    """Blocks that open on demand."""

    summary: Words
    blocks: "Sequence[Block]"


class Heading(NamedTuple):
    """A heading; without words, the end of a section."""

    words: Words
    level: int


class Section(NamedTuple):
    """A section with its heading; `menu` is a shorter title for the table of contents."""

    name: str
    title: str
    blocks: "Sequence[Block]"
    menu: str = ""


Block = object  # one of the blocks above, a `ResultTable`, a chart, or what a renderer knows besides


def text(*words: str | Styled, kind: str = "") -> Paragraph:
    """Return a paragraph."""
    return Paragraph(words, kind)


def note(*words: str | Styled) -> Paragraph:
    """Return a paragraph in small print."""
    return Paragraph(words, "note")


def joined(*words: Words) -> Words:
    """Return words one after the other."""
    return tuple(part for some in words for part in ([some] if isinstance(some, str | Styled) else some))


def warnings(notes: Iterable[str]) -> list[Block]:
    """Return what a command has warned about."""
    return [text(f"note: {message}", kind="warning") for message in notes]


def strong(words: str, *, own: bool = False) -> Styled:
    """Return words in bold."""
    return Styled(words, "strong", own)


def titled(title: Words, *blocks: Block) -> Group:
    """Return a chart or a table with a small heading."""
    return Group(blocks, title)


def not_known(why: str, title: str = "Not known yet.") -> Group:
    """Return a box that says why something cannot be shown yet."""
    return Group([text(strong(title)), text(why)], kind="callout")


def section(name: str, title: str, *blocks: Block, menu: str = "") -> Section:
    """Return a section; blocks that are None are left out."""
    return Section(name, title, [block for block in blocks if block is not None], menu)


def results(result: ResultTable) -> list[Block]:
    """Return a table of results with its title, its summary and its notes."""
    columns = [
        Column(title, "number" if _numeric(result, at) else "", digits=result.digits.get(title, 2))
        for at, title in enumerate(result.columns)
    ]
    summary = [text(f"{title}: ", strong(value)) for title, value in result.summary]
    table = Table(columns=columns, rows=result.rows, best=result.best)
    return [Paragraph(result.title, "title"), table, *summary, *map(note, result.notes)]


def _numeric(table: ResultTable, column: int) -> bool:
    cells = [row[column] for row in table.rows]
    return any(number_of(cell) is not None for cell in cells) or all(
        cell is None or (isinstance(cell, str) and NUMBER.match(cell)) for cell in cells
    )


def bill_columns(limit: str = "") -> list[Column]:
    """Return the columns of bills; `limit` precedes the headings of figures that are upper limits."""
    return [Column("Model"), Column("purpose"), *numbers("calls", "tokens in", f"{limit}tokens out", f"{limit}cost")]


def bill_rows(bills: Sequence[Bill]) -> list[Row]:
    """Return a row per model and purpose."""
    return [
        [name(bill.model), bill.purpose, bill.calls, bill.input_tokens, bill.output_tokens, dollars(bill.usd)]
        for bill in bills
    ]


def bill_total(title: str, bills: Sequence[Bill]) -> Row:
    """Return the row that sums up bills."""
    sums = [sum(getattr(bill, what) for bill in bills) for what in ("calls", "input_tokens", "output_tokens")]
    return [Styled(title, "bold"), "", *sums, total_cost([bill.usd for bill in bills])]


def simple(*shown: Block) -> Iterator[Block]:
    """Yield blocks as headings, paragraphs, lists, tables and changes alone, for renderers that know no others."""
    for block in shown:
        simpler = _SIMPLER.get(type(block))
        if simpler is not None:
            yield from simple(*simpler(block))
        elif block is not None:
            yield block


def _parts(shares: Shares) -> str:
    named = [f"{count(times)} {title} ({percent(times, shares.whole)})" for title, _, times in shares.parts if times]
    return f"{', '.join(named)} of {count(shares.whole)} rows"


_SIMPLER: Mapping[type, Callable[[Any], Iterable[Block]]] = {
    str: lambda words: [Paragraph(words)],
    Section: lambda block: [Heading(block.title, 1), *block.blocks, Heading("", 1)],
    Group: lambda block: [Heading(block.title, 2) if block.title else None, *block.blocks],
    Folded: lambda block: [Heading(block.summary, 2), *block.blocks],
    ResultTable: results,
    KeyValues: lambda block: [Bullets([joined(f"{title}: ", value) for title, value in block.pairs])],
    KeyFigure: lambda figure: [Bullets([(strong(figure.value), f" {figure.title}, {figure.detail}")])],
    Shares: lambda block: [Paragraph(_parts(block))],
    Stamp: lambda block: [Paragraph(block.words, block.kind)],
    Plot: lambda plot: [Paragraph(plot.description, "note")],
}


def plain(words: object) -> str:
    """Return words without their looks; empty for what has no words."""
    if isinstance(words, Shaded):
        return plain(words.words)
    if isinstance(words, Styled):
        return words.text
    return words if isinstance(words, str) else "".join(map(plain, words)) if type(words) is tuple else ""
