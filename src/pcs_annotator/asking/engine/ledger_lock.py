"""One process asks at a time: those that share a ledger wait for each other, so that no call is paid for twice."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from pcs_annotator.errors import LedgerError

# Short, for Ctrl-C is noticed only between two attempts.
ATTEMPT_SECONDS = 0.2


@contextmanager
def lock_ledger(ledger: Path | str) -> Iterator[None]:
    """Hold the lock of a ledger, after waiting for the process that has it.

    SQLite holds the lock on an empty file next to the ledger: this works on every system, between threads as between
    processes, and the lock is free again when its holder dies.
    """
    path = Path(f"{ledger}-turn")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=ATTEMPT_SECONDS, isolation_level=None)
    except (OSError, sqlite3.Error) as error:
        raise LedgerError(
            f"{path} cannot be opened ({error}): name a ledger in a folder that can be written"
        ) from error
    with closing(connection):
        while not _taken(connection, path):
            pass
        yield


def _taken(connection: sqlite3.Connection, path: Path) -> bool:
    try:
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
            return False
        raise LedgerError(
            f"{path} cannot be locked ({error}): name a ledger in a folder that can be written"
        ) from error
    return True
