"""Every block, shown on pages and in the terminal."""

import io

import pytest
from rich.console import Console

from pcs_annotator.core.result_table import Figure
from pcs_annotator.core.weights import Interval
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.svg_plot import Axes, Axis, Plot
from pcs_annotator.showing.to_html import html, html_of
from pcs_annotator.showing.to_terminal import show
from tests.showing.report.reading import Page

ATTACK = "<script>[bold]$x$|"
ENDS = Interval(0.25, 0.75)
TABLE = b.Table(
    columns=[
        b.Column("label"),
        *b.numbers("rows", "share", digits=3),
        b.Column("", "chart"),
        b.Column("0 to 1", "chart"),
    ],
    rows=[
        [b.name(ATTACK), 1200, Figure(0.5, ENDS), b.Spot(0.5, None, 0, 1, 0.5, "level"), b.Spot(0.5, ENDS, 0, 1)],
        [
            ("no ", b.Styled("label", "quiet")),
            None,
            b.Shaded("7", "number heat-2"),
            b.Spot(0.5, ENDS, 0, 1, 0.25, "level"),
            "",
        ],
    ],
    total=True,
)
PLOT = Plot(
    name="p", title="A plot", description="What it shows.", axes=Axes(Axis(title="x"), Axis(title="y")), parts=[]
)
EVERY_BLOCK = b.section(
    "all",
    "Every block",
    b.text("plain ", b.strong("stressed"), b.name(ATTACK)),
    b.note("small print"),
    "a sentence",
    b.Stamp("no promise", "warn"),
    b.Bullets([f"first {ATTACK}", b.text("second").words]),
    b.KeyValues([("version", "1.2"), ("names", (b.name("a"), " ", b.name("b")))]),
    b.Group([b.KeyFigure("280", "rows", "of 300")], kind="tiles"),
    b.Shares([("accepted", "yes", 280), ("to review", "maybe", 20), ("no label", "no", 0)], 300),
    b.titled("A group", TABLE),
    b.Folded("More", [PLOT]),
    b.not_known("there is no gold"),
    b.Change("it was good", "it was fine"),
    None,
)
SAID = (
    "Every block",
    "stressed",
    "small print",
    "a sentence",
    "no promise",
    "version",
    "280",
    "of 300",
    "A group",
    "1,200",
)


def in_terminal(*shown: b.Block) -> str:
    out = io.StringIO()
    show(*shown, console=Console(file=out, width=90, highlight=False))
    return out.getvalue()


@pytest.mark.parametrize("text", [Page(html(EVERY_BLOCK)).text, in_terminal(EVERY_BLOCK)], ids=["page", "terminal"])
def test_every_block_is_shown_on_pages_and_in_the_terminal(text: str) -> None:
    for words in (*SAID, ATTACK, "0.500", "fine"):
        assert words in text


def test_the_terminal_has_no_two_empty_lines_in_a_row_and_draws_bars() -> None:
    text = in_terminal(EVERY_BLOCK, EVERY_BLOCK)
    assert "\n\n\n" not in text
    assert text.count("█") > 20


def test_what_is_not_a_block_is_refused() -> None:
    for refusing in (html_of, in_terminal):
        with pytest.raises(TypeError, match="int is not a block"):
            refusing(7)
