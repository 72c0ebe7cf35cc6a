import csv
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator.core.result_table import Content, Figure, ResultTable
from pcs_annotator.core.weights import Interval
from pcs_annotator.showing.result_tables import to_csv, to_latex, to_markdown
from pcs_annotator.tables.workbook import original_cell

TABLE = ResultTable(
    name="rq1",
    title="PCS against zero-shot",
    columns=["Dataset", "LLM", "Zero-shot", "PCS", "n"],
    rows=[
        ["sentiment", "L", 0.684, Figure(0.8149, Interval(0.79, 0.84)), 405],
        ["sentiment", "M", 0.7, Figure(0.7), 405],
        ["gossipcop", "L", None, float("nan"), 393],
    ],
    summary=[("Average relative improvement", "+9.3 %")],
    notes=["gossipcop: L never gave a label."],
    best=frozenset([(0, 3)]),
    digits={"PCS": 3},
)


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def test_markdown_by_hand() -> None:
    assert to_markdown(TABLE).splitlines() == [
        "### PCS against zero-shot",
        "",
        "| Dataset | LLM | Zero-shot | PCS | n |",
        "| --- | --- | ---: | ---: | ---: |",
        r"| sentiment | L | 0.68 | **0.815 \[0.790, 0.840\]** | 405 |",
        "| sentiment | M | 0.70 | 0.700 | 405 |",
        "| gossipcop | L | – | – | 393 |",
        "| Average relative improvement | +9.3 % |  |  |  |",
        "",
        "- gossipcop: L never gave a label.",
    ]


def test_csv_by_hand() -> None:
    assert rows_of(to_csv(TABLE)) == [
        ["Dataset", "LLM", "Zero-shot", "PCS", "PCS low", "PCS high", "n"],
        ["sentiment", "L", "0.684", "0.8149", "0.79", "0.84", "405"],
        ["sentiment", "M", "0.7", "0.7", "", "", "405"],
        ["gossipcop", "L", "", "", "", "", "393"],
        ["Average relative improvement", "+9.3 %", "", "", "", "", ""],
    ]


def test_latex_by_hand() -> None:
    assert to_latex(TABLE).splitlines() == [
        r"% needs \usepackage{booktabs,graphicx}",
        r"\begin{table}[t]",
        r"\centering",
        r"\caption{PCS against zero-shot}",
        r"\label{tab:rq1}",
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        r"\begin{tabular}{llrrr}",
        r"\toprule",
        r"\textbf{Dataset} & \textbf{LLM} & \textbf{Zero-shot} & \textbf{PCS} & \textbf{n} \\",
        r"\midrule",
        r"sentiment & L & 0.68 & \textbf{0.815} & 405 \\",
        r" & M & 0.70 & 0.700 & 405 \\",
        r"\midrule",
        r"gossipcop & L & -- & -- & 393 \\",
        r"\midrule",
        r"\multicolumn{4}{l}{Average relative improvement} & +9.3 \% \\",
        r"\bottomrule",
        r"\end{tabular}",
        "}",
        r"\par\footnotesize gossipcop: L never gave a label.",
        r"\end{table}",
    ]


def table_of(cell: Content, columns: int = 2) -> ResultTable:
    return ResultTable(name="a b_c", title="t", columns=["x"] * columns, rows=[[cell] * columns, ["y"] * columns])


def test_latex_without_groups_summary_or_notes_has_one_rule() -> None:
    latex = to_latex(table_of("plain"))
    assert latex.count(r"\midrule") == 1
    assert "footnotesize" not in latex
    assert r"\label{tab:a-b-c}" in latex


@pytest.mark.parametrize(
    ("cell", "latex"),
    [
        ("50 % & more_1 #2 $x$ {y} ~ ^", r"50 \% \& more\_1 \#2 \$x\$ \{y\} \textasciitilde{} \textasciicircum{}"),
        (r"\input{secret}", r"\textbackslash{}input\{secret\}"),
        ("p < .01 | × ≥ – …", r"p $<$ .01 \textbar{} $\times$ $\ge$ -- \dots{}"),
        ("شائعة", "شائعة"),
    ],
)
def test_latex_special_characters_are_escaped(cell: str, latex: str) -> None:
    assert f"{latex} & {latex} \\\\" in to_latex(table_of(cell))


def test_markdown_cells_stay_in_their_cell_and_run_nothing() -> None:
    line = to_markdown(table_of("a|b <script>alert(1)</script>\n*c* [d](e) & `f`")).splitlines()[4]
    assert line == (
        r"| a\|b &lt;script&gt;alert(1)&lt;/script&gt; \*c\* \[d\](e) &amp; \`f\` "
        r"| a\|b &lt;script&gt;alert(1)&lt;/script&gt; \*c\* \[d\](e) &amp; \`f\` |"
    )


@pytest.mark.parametrize("formula", ["=HYPERLINK(1)", "+1", "-1", "@x", "＝1+1", "＋1", "\t=1", "\n=1+1"])
def test_spreadsheet_formulas_are_texts(formula: str) -> None:
    assert rows_of(to_csv(table_of(formula)))[1] == [f"'{formula}"] * 2


@given(st.text(max_size=30))
def test_any_text_keeps_every_table_well_formed(text: str) -> None:
    table = table_of(text)
    parsed = list(csv.reader(io.StringIO(to_csv(table), newline="")))
    assert [len(row) for row in parsed] == [2, 2, 2]
    assert original_cell(parsed[1][0]) == text.replace("\r\n", "\n").replace("\r", "\n")
    for line in to_markdown(table).split("\n")[2:6]:
        assert len(re.findall(r"(?:^|[^\\])(?:\\\\)*\|", line)) == 3
    latex = to_latex(table)
    assert latex.count(r"\\" + "\n") == 3
    assert re.sub(r"\\[{}]", "", latex).count("{") == re.sub(r"\\[{}]", "", latex).count("}")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None, Figure(float("nan"))])
def test_values_that_are_not_finite_are_not_shown(value: Content) -> None:
    for text in (to_markdown(table_of(value)), to_csv(table_of(value)), to_latex(table_of(value))):
        assert "nan" not in text.lower()
        assert "inf" not in text.lower()


def test_minus_zero_is_zero() -> None:
    assert "| 0.00 | 0.00 |" in to_markdown(table_of(-0.001))
    assert "| -0.25 |" in to_markdown(table_of(-0.25))


def test_an_empty_table_is_a_table() -> None:
    empty = ResultTable(name="e", title="t", columns=["a", "b"], rows=[])
    assert "| a | b |\n| --- | --- |" in to_markdown(empty)
    assert to_csv(empty) == "a,b\n"
    assert r"\bottomrule" in to_latex(empty)
