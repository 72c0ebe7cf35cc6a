"""What `pcs evaluate` shows, for a person and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.text import Text

from pcs_annotator.faces.cli.fit_view import print_notes
from pcs_annotator.faces.cli.result_view import print_table
from pcs_annotator.pipeline.evaluating import Evaluated, evaluation_json


def evaluated_json(found: Evaluated, notes: Sequence[str]) -> dict[str, Any]:
    """Return everything that `print_evaluation` shows as plain values."""
    return {
        **evaluation_json(found.evaluation),
        "annotators": list(found.votes.annotators),
        "relations": list(found.votes.relations),
        "labels": list(found.votes.labels),
        "warnings": list(notes),
        "files": [str(path) for path in found.files],
    }


def print_evaluation(found: Evaluated, notes: Sequence[str], console: Console | None = None) -> None:
    """Print methods side by side, and the tests of the first against the others."""
    console = console or Console(highlight=False)
    for table in found.tables:
        known = table.rows[: len(found.evaluation.methods)]  # the others are dashes, and the notes say why
        print_table(replace(table, rows=known), console)
    print_notes(notes, 0, console)
    print_files(found.files, console)


def print_files(files: Sequence[object], console: Console) -> None:
    """Print what was written."""
    if files:
        console.print(Text("wrote " + ", ".join(map(str, files)), style="bold"), soft_wrap=True)
