"""Cells of files that spreadsheets open: shown, and never run as formulas."""

from __future__ import annotations

import re
from typing import Any

_FORMULA = re.compile(r"'*[=+\-@＝＋－＠\t\r\n]")
"""The start of a cell that a spreadsheet may run as a formula, or of one that was made safe."""


def safe_cell(cell: Any) -> Any:
    """Return a cell so that a spreadsheet shows it instead of running it: an apostrophe is put before a formula."""
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell


def original_cell(cell: str) -> str:
    """Return the cell that `safe_cell` was given."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
