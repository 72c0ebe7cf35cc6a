"""Opens a ledger in a file or on a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Union

from pcs_annotator.asking.ledger.sqlite import Ledger
from pcs_annotator.base.errors import MissingPackage
from pcs_annotator.core.ledger_address import LedgerAddress, on_server

if TYPE_CHECKING:
    from pcs_annotator.asking.ledger.on_server import PostgresLedger

AnyLedger = Union[Ledger, "PostgresLedger"]


def open_ledger(address: LedgerAddress) -> AnyLedger:
    """Return the ledger in a file, or on a PostgreSQL server; use it as a context manager."""
    return open_server_ledger(address) if on_server(address) else Ledger(address)


def open_server_ledger(address: LedgerAddress, *, worker: str = "", run: str = "") -> PostgresLedger:
    """Return the ledger on a PostgreSQL server; use it as a context manager.

    `worker` names a process that may be lost and started again: what it had claimed is free at once. `run` is the
    command that it works for, as `lead_run` returns it: what is paid is counted under it.
    """
    try:
        from pcs_annotator.asking.ledger.on_server import PostgresLedger
    except ImportError as error:
        needed = "needs the extra postgres: pip install 'perceived-confidence[postgres]'"
        raise MissingPackage(f"a ledger at postgresql://… {needed}") from error
    return PostgresLedger(str(address), worker, run)
