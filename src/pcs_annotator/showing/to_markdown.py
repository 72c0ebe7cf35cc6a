"""Blocks as Markdown."""

from __future__ import annotations

from pcs_annotator.core.result_table import ResultTable
from pcs_annotator.showing.blocks import Block, Bullets, Change, Heading, Paragraph, Table, as_results, plain, simple
from pcs_annotator.showing.result_tables import markdown_text, to_markdown


def markdown(*shown: Block) -> str:
    """Return blocks as Markdown; nothing in their words has a meaning of its own there."""
    return "\n".join(part for block in shown for part in _parts(block))


def _parts(block: Block) -> list[str]:
    match block:
        case ResultTable() | Table():
            table = as_results(block) if isinstance(block, Table) else block
            return [to_markdown(table).removeprefix("### \n\n")]
        case Heading():
            return [f"{'#' * (block.level + 1)} {markdown_text(plain(block.words))}", ""] if block.words else []
        case Paragraph():
            return [markdown_text(plain(block.words)), ""]
        case Bullets():
            return [*(f"- {markdown_text(plain(item))}" for item in block.items), ""]
        case Change():
            return [markdown_text(block.after), ""]
    return [part for one in simple(block) for part in _parts(one)]
