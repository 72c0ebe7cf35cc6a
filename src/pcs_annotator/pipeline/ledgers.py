"""`pcs ledger`: size, export, import, prune and repair, without calling a model."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pcs_annotator.asking.engine.ledger import Ledger, LedgerEntry
from pcs_annotator.asking.engine.ledger_lock import Say, lock_ledger, warn_user
from pcs_annotator.asking.engine.ledger_repair import is_sound, salvage
from pcs_annotator.core.bill import Bill
from pcs_annotator.errors import LedgerError
from pcs_annotator.files.runs import atomic_path, check_ending, make_way, refuse_existing, refuse_inputs, set_aside
from pcs_annotator.files.table_writer import WRITTEN
from pcs_annotator.files.tables import write_table


def ledger_sizes(path: Path) -> list[Bill]:
    """Return the calls, tokens and cost of the answers in a ledger, per model and purpose."""
    with _existing(path) as ledger:
        return ledger.sizes()


def paid_bills(path: Path) -> list[Bill]:
    """Return the calls, tokens and cost of all that was paid for, also of answers that the ledger has no longer."""
    with _existing(path) as ledger:
        return ledger.bills()


def export_ledger(path: Path, out: Path, *, replace: bool = False) -> int:
    """Write all calls as a CSV or Parquet table; return how many. With `replace`, a file of that name is kept aside."""
    import pyarrow as pa

    refuse_inputs(out, path)
    check_ending(out, WRITTEN)
    refuse_existing(out, replace=replace)
    with _existing(path) as ledger:
        entries = list(ledger.entries())
    columns = {
        name: [entry.key.hex() if name == "key" else getattr(entry, name) for entry in entries]
        for name in LedgerEntry._fields
        if name != "logprobs"
    }
    make_way(out)
    write_table(out, pa.table(columns))
    return len(entries)


def import_ledger(path: Path, other: Path, *, wait: bool = True, say: Say = warn_user) -> int:
    """Copy the calls of another ledger into this one; return how many were new."""
    with lock_ledger(path, wait=wait, say=say), Ledger(path) as ledger:
        return ledger.import_from(other)


def prune_ledger(
    path: Path, *, model: str | None, before: float | None, wait: bool = True, say: Say = warn_user
) -> int:
    """Delete calls of a model, or from before a time; return how many."""
    existing = _existing(path)
    with lock_ledger(path, wait=wait, say=say), existing as ledger:
        return ledger.prune(model=model, before=before)


class Repaired(NamedTuple):
    """How many calls a ledger has after its repair, and where the damaged file is kept; None if it was not damaged."""

    calls: int
    kept: Path | None


def repair_ledger(path: Path, *, wait: bool = True, say: Say = warn_user) -> Repaired:
    """Write all calls of a damaged ledger that can be read into a new one, which takes its place."""
    _existing(path)
    with lock_ledger(path, wait=wait, say=say):
        if is_sound(path):
            return Repaired(sum(bill.calls for bill in ledger_sizes(path)), None)
        saved = salvage(path)
        if not saved.calls:
            raise LedgerError(f"{path}: no call can be read from it, so it is left as it is: check that it is a ledger")
        with atomic_path(path) as temporary:
            with Ledger(temporary) as ledger:
                ledger.restore(saved.calls.values(), saved.models.items(), saved.spent.values())
            kept = _set_aside(path)
    return Repaired(len(saved.calls), kept)


def set_ledger_aside(path: Path) -> Path:
    """Rename a ledger so that its name has today's date and time, and return its new path; the caller holds its lock.

    SQLite may keep the latest calls in a file of its own, which goes along. A new ledger takes over what was spent.
    """
    with suppress(LedgerError), Ledger(path):
        pass  # a ledger that is opened and closed leaves no such file, unless somebody else reads it or it is damaged
    kept = _set_aside(path)
    with suppress(LedgerError), Ledger(path) as ledger:
        ledger.take_over_spending(kept)
    return kept


def _set_aside(path: Path) -> Path:
    kept = set_aside(path)
    for end in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            Path(f"{path}{end}").rename(f"{kept}{end}")
    return kept


def _existing(path: Path) -> Ledger:
    if not path.is_file():
        raise LedgerError(f"there is no ledger {path}: name the file, such as ledger.db in a run folder")
    return Ledger(path)
