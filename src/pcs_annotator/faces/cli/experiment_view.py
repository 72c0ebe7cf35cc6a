"""What `pcs experiment` shows, for a person and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from pcs_annotator.faces.cli.evaluate_view import print_files
from pcs_annotator.faces.cli.fit_view import print_notes
from pcs_annotator.faces.cli.result_view import print_table, table_json
from pcs_annotator.pipeline.experimenting import Experimented


def experimented_json(found: Experimented, notes: Sequence[str]) -> dict[str, Any]:
    """Return everything that `print_experiments` shows as plain values."""
    return {
        "experiments": {one.name: [table_json(table) for table in one.tables] for one in found.experiments},
        "unanswered": dict(found.unanswered),
        "warnings": [*notes, *found.notes],
        "files": [str(path) for path in found.files],
    }


def print_experiments(found: Experimented, notes: Sequence[str], console: Console | None = None) -> None:
    """Print all tables, then what was written and what a reader must know."""
    console = console or Console(highlight=False)
    for one in found.experiments:
        for table in one.tables:
            print_table(table, console)
    print_notes([*notes, *found.notes], 0, console)
    for reason, count in found.unanswered.items():
        console.print(Text(f"{count:,} questions unanswered: {reason}; the same command asks them again", "yellow"))
    print_files(found.files, console)
