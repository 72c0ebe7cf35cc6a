"""Sums of what is paid for in a ledger, kept by the ledger itself, so that every process sees what all of them spend.

They are made for the first command with a budget in dollars, in a ledger of any age. Triggers keep them right whoever
writes, with whatever version; in a file, that takes 3 µs per call.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

SECONDS_PER_DAY = 86_400
_UNPRICED = "CASE WHEN {0}usd IS NULL THEN COALESCE({0}{1}, 0) ELSE 0 END"
_OF_ROW = ("COALESCE({0}usd, 0)", _UNPRICED.format("{0}", "input_tokens"), _UNPRICED.format("{0}", "output_tokens"))
OF_ROWS = ", ".join(f"SUM({value.format('')})" for value in _OF_ROW)
"""Dollars, and the tokens in and out of calls whose price is unknown."""
READ = """SELECT day, model, SUM(usd), CAST(SUM(sent) AS BIGINT), CAST(SUM(got) AS BIGINT)
FROM sums WHERE day >= {} GROUP BY day, model"""

_DAY = "CAST({}asked_at / 86400 AS INTEGER)"
FILE_DAY = _DAY.format("")
_CREATE = """CREATE TABLE sums (day INTEGER NOT NULL, model TEXT NOT NULL, usd REAL NOT NULL, sent INTEGER NOT NULL,
got INTEGER NOT NULL, PRIMARY KEY (day, model)) WITHOUT ROWID"""
_FILL = f"INSERT INTO sums SELECT {FILE_DAY}, model, {OF_ROWS} FROM ({{}}) GROUP BY 1, 2"
_CHANGE = "ON CONFLICT DO UPDATE SET usd = usd + excluded.usd, sent = sent + excluded.sent, got = got + excluded.got"


def _trigger(event: str, table: str) -> str:
    row, sign = ("NEW.", "") if event == "INSERT" else ("OLD.", "-")
    values = ", ".join([_DAY.format(row), f"{row}model", *(f"{sign} {value.format(row)}" for value in _OF_ROW)])
    return f"""CREATE TRIGGER {event}_{table}_sums AFTER {event} ON {table}
    BEGIN INSERT INTO sums VALUES ({values}) {_CHANGE}; END"""


PriceOf = Callable[[str, int, int], float | None]
"""Model, tokens in, tokens out → dollars; None if the price is unknown."""


class PaidInRun(NamedTuple):
    """What the processes of one command paid for."""

    calls: int = 0
    tokens: int = 0


class LedgerSums(NamedTuple):
    """What was paid for in a ledger."""

    rows: Sequence[tuple[Any, ...]]  # day, model, dollars, and the tokens in and out of calls whose price is unknown
    own: Mapping[int, float]  # day → dollars for the calls among them that were stored through the same object
    beside: PaidInRun = PaidInRun()  # what other processes of the same command paid for

    def by_day(self, price_of: PriceOf) -> dict[int, float]:
        """Return day → dollars; calls whose price was unknown count at the price that is known now."""
        found: dict[int, float] = {}
        for day, model, usd, sent, got in self.rows:
            unpriced = price_of(model, sent, got) if sent or got else None
            found[day] = found.get(day, 0.0) + usd + (unpriced or 0.0)
        return found


def day_of(seconds: float) -> int:
    """Return the number of a day, which begins at midnight UTC."""
    return int(seconds // SECONDS_PER_DAY)


def add_own(own: dict[int, float], calls: Iterable[tuple[float, float | None]]) -> None:
    """Add what calls cost, given when they were made, to the dollars of their days."""
    for asked_at, usd in calls:
        day = day_of(asked_at)
        own[day] = own.get(day, 0.0) + (usd or 0.0)


class FileSums:
    """The sums in a file, made if they are not there; `paid` selects the calls that were paid for."""

    def __init__(self, connection: sqlite3.Connection, paid: str) -> None:
        self._connection = connection
        self.own: dict[int, float] = {}  # day → dollars for the calls that were stored through this connection
        connection.execute("BEGIN IMMEDIATE")  # other processes wait, so that no call is left out
        with connection:
            if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'sums'").fetchone():
                connection.execute(_CREATE)
                connection.execute(_FILL.format(paid))
                for event, table in (("INSERT", "calls"), ("INSERT", "spent"), ("DELETE", "calls")):
                    connection.execute(_trigger(event, table))
        self._seen = self._version()

    def read(self, since: int = 0) -> LedgerSums:
        """Return the sums from a day on."""
        return LedgerSums(self._connection.execute(READ.format("?"), (since,)).fetchall(), dict(self.own))

    def changed(self, since: int) -> LedgerSums | None:
        """Return them if another connection has written to the file meanwhile; else None."""
        seen, self._seen = self._seen, self._version()
        return None if seen == self._seen else self.read(since)

    def _version(self) -> int:
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        return int(version)
