"""Blocks as LaTeX."""

from __future__ import annotations

from pcs_annotator.core.result_table import ResultTable
from pcs_annotator.showing.blocks import Block, Bullets, Change, Heading, Paragraph, Table, as_results, plain, simple
from pcs_annotator.showing.result_tables import latex as latex_text
from pcs_annotator.showing.result_tables import to_latex

HEADINGS = {1: "section", 2: "paragraph"}


def latex(*shown: Block) -> str:
    """Return blocks as LaTeX; nothing in their words is a command."""
    return "\n".join(part for block in shown for part in _parts(block))


def _parts(block: Block) -> list[str]:
    match block:
        case ResultTable() | Table():
            return [to_latex(as_results(block) if isinstance(block, Table) else block, intervals=True)]
        case Heading():
            return [rf"\{HEADINGS[block.level]}{{{latex_text(plain(block.words))}}}"] if block.words else []
        case Paragraph():
            return [latex_text(plain(block.words)), ""]
        case Bullets():
            items = [rf"\item {latex_text(plain(item))}" for item in block.items]
            return [r"\begin{itemize}", *items, r"\end{itemize}"]
        case Change():
            return [latex_text(block.after), ""]
    return [part for one in simple(block) for part in _parts(one)]
