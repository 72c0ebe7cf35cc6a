"""Where a ledger is: in an SQLite file, or on a PostgreSQL server."""

import re
from pathlib import Path

_SERVER = re.compile(r"postgres(?:ql)?://", re.IGNORECASE)
# up to the last @ that can belong to it, because people forget to write %40 in a password
_PASSWORD = re.compile(r"(?<=//)([^:@/]*):(?:[^?]*|[^/]*)@")
_PASSWORD_PARAMETER = re.compile(r"(?<=[?&])(?:ssl)?password=[^&]*&?", re.IGNORECASE)

LedgerAddress = Path | str  # a file, or an address that begins with `postgresql://`


def on_server(address: LedgerAddress) -> bool:
    """Return whether an address is that of a PostgreSQL server; otherwise it is a file.

    >>> on_server("postgresql://db.example.org/team"), on_server("runs/news/ledger.db")
    (True, False)
    """
    return isinstance(address, str) and _SERVER.match(address) is not None


def absolute_address(address: LedgerAddress) -> LedgerAddress:
    """Return an address that means the same in every folder."""
    return address if on_server(address) else Path(address).absolute()


def without_password(address: LedgerAddress) -> str:
    """Return an address as it may be stored and shown.

    >>> without_password("postgresql://me:word@db.example.org/team?sslmode=require")
    'postgresql://me@db.example.org/team?sslmode=require'
    """
    if not on_server(address):
        return str(address)
    return _PASSWORD_PARAMETER.sub("", _PASSWORD.sub(r"\1@", str(address), count=1)).rstrip("?&")
