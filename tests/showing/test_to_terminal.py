import io
import json

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from pcs_annotator.core.result_table import Content, Figure, ResultTable
from pcs_annotator.core.weights import Interval
from pcs_annotator.faces.cli.experiment import table_json
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.to_terminal import show

TABLE = ResultTable(
    name="t",
    title="A [bold]title[/]",
    columns=("Dataset", "Model", "Rows", "AUROC", "Accuracy", "Missing"),
    rows=[
        ["news", "[red]gpt[/] <b>", 12, Figure(0.8125, Interval(0.7, 0.9)), 0.5, None],
        ["news", "שלום", 12, Figure(0.75), float("nan"), None],
    ],
    summary=[("Improvement", "+1 %")],
    notes=["A note."],
    best=frozenset({(0, 3)}),
    digits={"AUROC": 3},
)


def printed(table: ResultTable, width: int) -> str:
    out = io.StringIO()
    show(table, console=Console(file=out, width=width, highlight=False))
    return out.getvalue()


def test_a_table_that_fits_stands_in_one_piece() -> None:
    lines = printed(TABLE, 120).splitlines()
    assert lines[0] == "A [bold]title[/]"
    assert lines[1].split() == ["Dataset", "Model", "Rows", "AUROC", "Accuracy", "Missing"]
    assert lines[2].split() == ["news", "[red]gpt[/]", "<b>", "12", "0.812", "0.700–0.900", "0.50", "–"]
    assert lines[3].split() == ["news", "שלום", "12", "0.750", "–", "–"]
    assert "Improvement: +1 %" in lines
    assert "A note." in lines


def test_a_wide_table_is_cut_and_every_piece_names_its_rows() -> None:
    text = printed(TABLE, 48)
    assert text.count("[red]gpt[/]") >= 2
    assert all(len(line) <= 48 for line in text.splitlines())
    assert not any(line.rstrip().endswith("…") for line in text.splitlines())
    for word in ("Rows", "AUROC", "Accuracy", "Missing", "0.700–0.900"):
        assert word in text


def test_json_has_null_where_nothing_could_be_computed() -> None:
    found = json.loads(json.dumps(table_json(TABLE), allow_nan=False))
    assert found["rows"][0][2:] == [12, {"value": 0.8125, "low": 0.7, "high": 0.9}, 0.5, None]
    assert found["rows"][1][3:] == [0.75, None, None]


CONTENT = st.none() | st.text(max_size=20) | st.integers() | st.floats() | st.builds(Figure, st.floats())


@given(st.lists(st.lists(CONTENT, min_size=3, max_size=3), max_size=4), st.integers(20, 200))
def test_any_table_can_be_printed_at_any_width(rows: list[list[Content]], width: int) -> None:
    table = ResultTable(name="t", title="", columns=("a", "b", "c"), rows=rows)
    assert "nan" not in printed(table, width).split() or any("nan" in str(cell) for row in rows for cell in row)
    json.dumps(table_json(table), allow_nan=False)


def test_a_figure_with_more_decimals_than_its_interval_is_still_inside() -> None:
    cell = Figure(0.864, Interval(0.864, 0.891))
    out = io.StringIO()
    table = b.Table(columns=[b.Column("method"), *b.numbers("AUROC", digits=3)], rows=[["lr", cell]])
    show(table, console=Console(file=out, width=120))
    assert "0.864  0.864–0.891" in out.getvalue()


def test_a_long_name_is_folded_and_stays_whole() -> None:
    name = "openrouter:meta-llama/llama-3.1-405b-instruct:free"
    lines = printed(ResultTable(name="t", title="", columns=("model", "rows"), rows=[[name, 12]]), 30).splitlines()
    assert name in "".join(lines).replace(" ", "").replace("12", "")
    assert max(map(len, lines)) <= 30
