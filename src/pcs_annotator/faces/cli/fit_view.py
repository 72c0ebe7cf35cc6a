"""What `pcs fit` shows, for a person and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from pcs_annotator.faces.cli.learned_view import learned_json, print_learned
from pcs_annotator.pipeline.project import FitFiles, FittedTable


def as_json(fitted: FittedTable, files: FitFiles, notes: Sequence[str]) -> dict[str, Any]:
    """Return everything that `print_fit` shows as plain values."""
    return {
        "rows": len(fitted.outcomes),
        "rows_without_label": fitted.unlabelled,
        "labels": list(fitted.table.votes.labels),
        "decisions": dict(Counter(one.decision for one in fitted.outcomes if one.decision is not None)),
        **learned_json(fitted.learned),
        "warnings": list(notes),
        "model": str(files.model),
        "out": str(files.labels_out) if files.labels_out else None,
    }


def print_fit(fitted: FittedTable, files: FitFiles, notes: Sequence[str], console: Console | None = None) -> None:
    """Print the fit for a person."""
    console = console or Console(highlight=False)
    print_learned(fitted.learned, fitted.table.votes, console)
    print_notes(notes, fitted.unlabelled, console)
    console.print(f"\nwrote {files.model}" + (f" and {files.labels_out}" if files.labels_out else ""))


def print_notes(notes: Sequence[str], unlabelled: int, console: Console) -> None:
    """Print what a person should know before believing the rest."""
    for note in notes:
        console.print(Text(f"note: {note}", style="yellow"))
    if unlabelled:
        rows = "1 row has" if unlabelled == 1 else f"{unlabelled:,} rows have"
        console.print(f"{rows} no label, because nobody voted", style="yellow")
