"""`pcs ledger`: size, export, import and prune, without calling a model."""

from __future__ import annotations

from pathlib import Path

from pcs_annotator.asking.engine.ledger import Ledger, LedgerEntry
from pcs_annotator.core.bill import Bill
from pcs_annotator.errors import LedgerError
from pcs_annotator.files.tables import write_table


def ledger_sizes(path: Path) -> list[Bill]:
    """Return the calls, tokens and cost in a ledger, per model and purpose."""
    with _existing(path) as ledger:
        return ledger.sizes()


def export_ledger(path: Path, out: Path) -> int:
    """Write all calls as a CSV or Parquet table; return how many."""
    import pyarrow as pa

    with _existing(path) as ledger:
        entries = list(ledger.entries())
    columns = {
        name: [entry.key.hex() if name == "key" else getattr(entry, name) for entry in entries]
        for name in LedgerEntry._fields
        if name != "logprobs"
    }
    write_table(out, pa.table(columns))
    return len(entries)


def import_ledger(path: Path, other: Path) -> int:
    """Copy the calls of another ledger into this one; return how many were new."""
    with Ledger(path) as ledger:
        return ledger.import_from(other)


def prune_ledger(path: Path, *, model: str | None, before: float | None) -> int:
    """Delete calls of a model, or from before a time; return how many."""
    with _existing(path) as ledger:
        return ledger.prune(model=model, before=before)


def _existing(path: Path) -> Ledger:
    if not path.is_file():
        raise LedgerError(f"there is no ledger {path}: name the file, such as ledger.db in a run folder")
    return Ledger(path)
