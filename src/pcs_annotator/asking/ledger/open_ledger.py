"""The door to ledgers of either kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Union

from pcs_annotator.asking.ledger.ledger import Ledger
from pcs_annotator.core.ledger_address import LedgerAddress, on_server
from pcs_annotator.errors import MissingPackage

if TYPE_CHECKING:
    from pcs_annotator.asking.ledger.on_server import PostgresLedger

AnyLedger = Union[Ledger, "PostgresLedger"]


def open_ledger(address: LedgerAddress) -> AnyLedger:
    """Return the ledger in a file, or on a PostgreSQL server; use it as a context manager."""
    if not on_server(address):
        return Ledger(address)
    try:
        from pcs_annotator.asking.ledger.on_server import PostgresLedger
    except ImportError as error:
        needed = "needs the extra postgres: pip install 'perceived-confidence[postgres]'"
        raise MissingPackage(f"a ledger at postgresql://… {needed}") from error
    return PostgresLedger(str(address))
