"""Tables of results as Markdown, CSV and LaTeX.

Cells are escaped: bars, angle brackets, LaTeX special characters, quotes, line breaks and spreadsheet formulas have no
effect. A value that could not be computed is a dash, in CSV an empty cell.
"""

import csv
import io
import re
from collections.abc import Iterable

from pcs_annotator.base.text import one_line
from pcs_annotator.core.result_table import Content, Figure, ResultTable, number_of
from pcs_annotator.showing.formats import DASH, interval, number
from pcs_annotator.tables.workbook import safe_cell

CSV_DECIMALS = 6

_PACKAGES = r"% needs \usepackage{booktabs,graphicx}"
_NO_WIDER_THAN_THE_LINE = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
_MARKDOWN = re.compile(r"([\\`*_\[\]|])")
_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"$<$", ">": r"$>$", "|": r"\textbar{}",
    '"': r"\textquotedbl{}", "–": "--", "−": "$-$", "≥": r"$\ge$", "≤": r"$\le$", "×": r"$\times$", "…": r"\dots{}",
    "α": r"$\alpha$", "δ": r"$\delta$", "ε": r"$\epsilon$", "κ": r"$\kappa$",
}  # fmt: skip


def to_markdown(table: ResultTable) -> str:
    """Return the table as Markdown: a heading, the rows, then the notes as a list."""
    numeric = _numeric(table)
    rule = ["---:" if right else "---" for right in numeric]
    lines = [f"### {markdown_text(table.title)}", "", _row(map(markdown_text, table.columns)), _row(rule)]
    for index, row in enumerate(table.rows):
        cells = [markdown_text(_shown(table, column, cell)) for column, cell in enumerate(row)]
        lines.append(_row(f"**{cell}**" if (index, at) in table.best else cell for at, cell in enumerate(cells)))
    width = len(table.columns)
    lines += [_row([markdown_text(name), markdown_text(value), *[""] * (width - 2)]) for name, value in table.summary]
    lines += ["", *(f"- {markdown_text(note)}" for note in table.notes), ""]
    return "\n".join(lines)


def to_csv(table: ResultTable) -> str:
    """Return the table as CSV; a figure with an interval takes three columns, numbers keep their decimals."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    cells = [pair for row in table.rows for pair in enumerate(row)]
    wide = {at for at, cell in cells if isinstance(cell, Figure) and cell.interval is not None}
    heading: list[str] = []
    for at, name in enumerate(table.columns):
        heading += [name, f"{name} low", f"{name} high"] if at in wide else [name]
    writer.writerow([_harmless(name) for name in heading])
    for row in table.rows:
        writer.writerow([_plain(part) for at, cell in enumerate(row) for part in _parts(cell, at in wide)])
    for name, value in table.summary:
        writer.writerow([_harmless(name), value, *[""] * (len(heading) - 2)])
    return out.getvalue()


def to_latex(table: ResultTable, *, intervals: bool = False) -> str:
    """Return the table as LaTeX for booktabs: rules between groups of rows, the best in bold."""
    layout = "".join("r" if right else "l" for right in _numeric(table))
    heading = " & ".join(f"\\textbf{{{latex(name)}}}" for name in table.columns)
    lines = [rf"\begin{{tabular}}{{{layout}}}", r"\toprule", heading + r" \\"]
    names = [row[0] for row in table.rows]
    starts = {index for index, name in enumerate(names) if index == 0 or name != names[index - 1]}  # of groups
    for index, row in enumerate(table.rows):
        first = index in starts
        if index == 0 or (first and len(starts) < len(table.rows)):
            lines.append(r"\midrule")
        cells = [latex(_shown(table, at, cell, intervals=intervals)) for at, cell in enumerate(row)]
        cells = [rf"\textbf{{{cell}}}" if (index, at) in table.best else cell for at, cell in enumerate(cells)]
        lines.append(" & ".join([cells[0] if first else "", *cells[1:]]) + r" \\")
    if table.summary:
        lines.append(r"\midrule")
    left = max(len(table.columns) - 1, 1)
    for name, value in table.summary:
        lines.append(rf"\multicolumn{{{left}}}{{l}}{{{latex(name)}}} & {latex(value)} \\")
    lines = [_NO_WIDER_THAN_THE_LINE, *lines, r"\bottomrule", r"\end{tabular}", "}"]
    caption = rf"\caption{{{latex(table.title)}}}"
    notes = [rf"\par\footnotesize {latex(' '.join(table.notes))}"] if table.notes else []
    label = re.sub(r"[^A-Za-z0-9:-]+", "-", table.name)
    parts = [r"\begin{table}[t]", r"\centering", caption, rf"\label{{tab:{label}}}", *lines, *notes]
    return "\n".join([_PACKAGES, *parts, r"\end{table}", ""])


def _numeric(table: ResultTable) -> list[bool]:
    return [any(number_of(row[at]) is not None for row in table.rows) for at in range(len(table.columns))]


def _shown(table: ResultTable, column: int, cell: Content, *, intervals: bool = True) -> str:
    if isinstance(cell, str):
        return one_line(cell)
    value = number_of(cell)
    if value is None or isinstance(cell, int):
        return DASH if value is None else f"{cell:d}"
    digits = table.digits.get(table.columns[column], 2)
    ends = interval(cell.interval, digits) if intervals and isinstance(cell, Figure) else ""
    return f"{number(value, digits)} {ends}".rstrip().replace("−", "-")


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def markdown_text(text: str) -> str:
    """Return text in one line with every special character escaped."""
    escaped = _MARKDOWN.sub(r"\\\1", one_line(text).replace("&", "&amp;"))
    return escaped.replace("<", "&lt;").replace(">", "&gt;")


def latex(text: str) -> str:
    """Return text in one line with every special character escaped."""
    return "".join(_LATEX.get(letter, letter) for letter in one_line(text))


def _parts(cell: Content, wide: bool) -> list[Content]:
    value, interval = cell if isinstance(cell, Figure) else (cell, None)
    return [value, *(interval or (None, None))] if wide else [value]


def _plain(cell: Content) -> str:
    if isinstance(cell, str):
        return _harmless(cell)
    value = number_of(cell)
    if value is None:
        return ""
    return f"{cell:d}" if isinstance(cell, int) else f"{round(value, CSV_DECIMALS):g}"


def _harmless(text: str) -> str:
    """Return the text as a safe cell, with line feeds alone: only some readers end a row at a carriage return."""
    return str(safe_cell(text.replace("\r\n", "\n").replace("\r", "\n")))
