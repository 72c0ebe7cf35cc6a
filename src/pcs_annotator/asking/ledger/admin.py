"""What every ledger can do: say who pays for a call, keep the reply, tell about itself, and be tidied up.

The SQL here is what SQLite and PostgreSQL both understand. Sums of what is paid for are kept by the ledger itself, so
that every process sees what all of them spend. They are made for the first command with a budget in dollars, in a
ledger of any age. Triggers keep them right whoever writes, with whatever version; in a file, that takes 3 µs per call.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import inf
from typing import Any, NamedTuple

from pcs_annotator.core.bill import Bill
from pcs_annotator.core.chat import Reply

SECONDS_PER_DAY = 86_400
_UNPRICED = "CASE WHEN {0}usd IS NULL THEN COALESCE({0}{1}, 0) ELSE 0 END"
OF_ROW = ("COALESCE({0}usd, 0)", _UNPRICED.format("{0}", "input_tokens"), _UNPRICED.format("{0}", "output_tokens"))
OF_ROWS = ", ".join(f"SUM({value.format('')})" for value in OF_ROW)  # dollars, and tokens of calls without a price
READ = """SELECT day, model, SUM(usd), CAST(SUM(sent) AS BIGINT), CAST(SUM(got) AS BIGINT)
FROM sums WHERE day >= {} GROUP BY day, model"""

PriceOf = Callable[[str, int, int], float | None]  # model, tokens in, tokens out → dollars; None if it is unknown


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
        sums: dict[int, float] = {}
        for day, model, usd, sent, got in self.rows:
            unpriced = price_of(model, sent, got) if sent or got else None
            sums[day] = sums.get(day, 0.0) + usd + (unpriced or 0.0)
        return sums


def day_of(seconds: float) -> int:
    """Return the number of a day, which begins at midnight UTC."""
    return int(seconds // SECONDS_PER_DAY)


def add_own(by_day: dict[int, float], calls: Iterable[tuple[float, float | None]]) -> None:
    """Add what calls cost, given when they were made, to the dollars of their days."""
    for asked_at, usd in calls:
        day = day_of(asked_at)
        by_day[day] = by_day.get(day, 0.0) + (usd or 0.0)


# Calls that are in a ledger, and those that were paid for and are not: asked twice, deleted, or set aside.
KEPT = "SELECT asked_at, model, purpose, 1 AS calls, input_tokens, output_tokens, usd FROM calls"
PAID = f"{KEPT} UNION ALL SELECT asked_at, model, purpose, calls, input_tokens, output_tokens, usd FROM spent"
SPENT_COLUMNS = "asked_at, model, purpose, calls, input_tokens, output_tokens, usd"
SPEND = f"INSERT INTO spent ({SPENT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"
KNOWN = "CASE WHEN COUNT(*) = COUNT(usd) THEN SUM(usd) END"  # NULL where some price is unknown
SUMS = "CAST(SUM(calls) AS BIGINT), CAST(SUM(input_tokens) AS BIGINT), CAST(SUM(output_tokens) AS BIGINT)"
BY_DAY = """SELECT MIN(asked_at), model, purpose, {sums}, SUM(usd) FROM ({paid}) AS paid
GROUP BY {day}, model, purpose, usd IS NULL"""
REMEMBER = """INSERT INTO models (model, gives_logprobs) VALUES (?, ?)
ON CONFLICT (model) DO UPDATE SET gives_logprobs = excluded.gives_logprobs"""
RECALL = "INSERT INTO models (model, gives_logprobs) VALUES (?, ?) ON CONFLICT DO NOTHING"

COPIED_TOGETHER = 1000

Row = tuple[Any, ...]


class LedgerEntry(NamedTuple):
    """One paid call, as a row of the ledger."""

    key: bytes
    model: str
    purpose: str
    reply: str
    finish: str
    input_tokens: int | None
    output_tokens: int | None
    usd: float | None
    latency: float
    asked_at: float
    logprobs: bytes | None = None


class LedgerAdmin(ABC):
    """A ledger, in a file or on a server; a subclass says how SQL is run.

    Statements have `?` in place of values.
    """

    run: str = ""  # the command whose other processes pay through this ledger, too; empty if there are none
    _day: str  # SQL for the day of `asked_at`

    @abstractmethod
    async def find(self, keys: Sequence[bytes]) -> dict[bytes, Reply]:
        """Return the replies that the ledger already has."""

    @abstractmethod
    async def claim(self, key: bytes) -> Reply | None:
        """Claim a call before paying for it; if another task or process has got the reply, return that instead."""

    @abstractmethod
    async def put(self, entry: LedgerEntry) -> None:
        """Store a paid call, and end the claim on it; returns once it is safely stored."""

    @abstractmethod
    def give_up(self, key: bytes) -> None:
        """End the claim on a call that got no reply."""

    @abstractmethod
    def _rows(self, query: str, values: Sequence[object] = ()) -> list[Row]:
        """Return the rows that a query finds."""

    @abstractmethod
    def _change(self, *statements: tuple[str, Sequence[object]]) -> list[int]:
        """Run statements, all of them or none, and return how many rows each has changed."""

    @abstractmethod
    def _insert(self, calls: Sequence[Row]) -> int:
        """Store calls that are not there yet, and return how many those are."""

    @abstractmethod
    def entries(self) -> Iterator[Row]:
        """Yield every call, in no particular order."""

    def graded_models(self) -> dict[str, bool]:
        """Return model → whether it gives log-probabilities, for those that were asked for them."""
        return {model: bool(gives) for model, gives in self._rows("SELECT model, gives_logprobs FROM models")}

    def remember_graded(self, model: str, *, gives: bool) -> None:
        """Store whether a model gives log-probabilities."""
        self._change((REMEMBER, (model, int(gives))))

    def sizes(self) -> list[Bill]:
        """Return calls, tokens and cost per model and purpose, of the replies in this ledger."""
        return self._sums(KEPT)

    def bills(self) -> list[Bill]:
        """Return the same of all that was paid for, also of replies that are not kept."""
        return self._sums(PAID)

    def _sums(self, paid: str) -> list[Bill]:
        rows = self._rows(
            f"""SELECT model, purpose, {SUMS}, CASE WHEN COUNT(usd) = COUNT(*) THEN SUM(usd) END
            FROM ({paid}) AS paid GROUP BY model, purpose"""
        )
        return [
            Bill(model=model, purpose=purpose, calls=calls, input_tokens=sent or 0, output_tokens=got or 0, usd=usd)
            for model, purpose, calls, sent, got, usd in sorted(rows, key=lambda row: row[:2])
        ]

    @abstractmethod
    def keep_sums(self) -> LedgerSums:
        """Have the ledger keep sums of what is paid for, by whichever process, and return them."""

    @abstractmethod
    def changed_sums(self, since: int) -> LedgerSums | None:
        """Return the sums from a day on, if other processes may have paid for something since; else None."""

    def spending_by_day(self) -> list[Row]:
        """Return rows for the table `spent` of another ledger with all that was paid for in this one."""
        return self._rows(BY_DAY.format(sums=SUMS, paid=PAID, day=self._day))

    def mean_answers(self) -> dict[tuple[str, str], float]:
        """Return model and purpose → the mean number of tokens in its answers."""
        mean = "CAST(AVG(output_tokens) AS DOUBLE PRECISION)"
        rows = self._rows(f"SELECT model, purpose, {mean} FROM calls WHERE output_tokens >= 0 GROUP BY model, purpose")
        return {(model, purpose): tokens for model, purpose, tokens in rows}

    def count(self, until: float = inf) -> int:
        """Return the number of calls, or of those made until a time."""
        return int(self._rows("SELECT COUNT(*) FROM calls WHERE asked_at <= ?", (until,))[0][0])

    def paid_until(self, until: float) -> tuple[int, float | None]:
        """Return the number of calls that were paid for before a time, and their dollars, if all are known."""
        sums = f"SELECT COALESCE(SUM(calls), 0), {KNOWN} FROM ({PAID}) AS paid WHERE asked_at < ?"
        ((calls, usd),) = self._rows(sums, (until,))
        return int(calls), None if usd is None else float(usd)

    def asked_between(self) -> tuple[float, float] | None:
        """Return when the first and the last call were made; None without any."""
        first, last = self._rows("SELECT MIN(asked_at), MAX(asked_at) FROM calls")[0]
        return None if first is None else (first, last)

    def prune(
        self, *, model: str | None = None, before: float | None = None, keys: Sequence[bytes] | None = None
    ) -> int:
        """Delete the calls of a model, those made before a time, or those with some keys; return how many."""
        conditions: dict[str, Any] = {"model = ?": model, "asked_at < ?": before}
        values = [value for value in conditions.values() if value is not None]
        if keys is not None:
            conditions[f"key IN ({', '.join('?' * len(keys))})"] = keys
            values.extend(keys)
        chosen = " AND ".join(["1 = 1", *(condition for condition, value in conditions.items() if value is not None)])
        by_day = BY_DAY.format(sums=SUMS, paid=f"{KEPT} WHERE {chosen}", day=self._day)
        _, deleted, _ = self._change(
            (f"INSERT INTO spent ({SPENT_COLUMNS}) {by_day}", values),
            (f"DELETE FROM calls WHERE {chosen}", values),
            # whether a model gives log-probabilities is found out again if no call of it is left
            ("DELETE FROM models WHERE model NOT IN (SELECT model FROM calls)", ()),
        )
        return deleted

    def import_from(self, source: "LedgerAdmin") -> int:
        """Copy the calls of another ledger, which is open, into this one; return how many were new."""
        entries, new = source.entries(), 0
        while some := list(islice(entries, COPIED_TOGETHER)):
            new += self._insert(some)
        self._change(*((RECALL, (model, int(gives))) for model, gives in source.graded_models().items()))
        return new
