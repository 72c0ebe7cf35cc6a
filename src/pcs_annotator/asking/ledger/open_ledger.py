"""The door to ledgers of either kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Union

from pcs_annotator.asking.ledger.ledger import Ledger
from pcs_annotator.core.ledger_address import LedgerAddress, on_server
from pcs_annotator.errors import MissingPackage

if TYPE_CHECKING:
    from pcs_annotator.asking.ledger.on_server import PostgresLedger

AnyLedger = Union[Ledger, "PostgresLedger"]


def open_ledger(address: LedgerAddress, successor_of: str | None = None) -> AnyLedger:
    """Return the ledger in a file, or on a PostgreSQL server; use it as a context manager.

    A process that may be started again names itself in `successor_of`: what it had claimed on a server is free at once.
    """
    if not on_server(address):
        return Ledger(address)
    try:
        from pcs_annotator.asking.ledger.on_server import PostgresLedger
    except ImportError as error:
        needed = "needs the extra postgres: pip install 'perceived-confidence[postgres]'"
        raise MissingPackage(f"a ledger at postgresql://… {needed}") from error
    return PostgresLedger(str(address), successor_of)
