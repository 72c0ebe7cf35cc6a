"""The ledger of a team: paid calls on a PostgreSQL server. Calls under way are claimed, so that each is paid for once.

A thread has the one connection. The requests that come while it waits for the server are carried out together, in one
transaction and one round trip.
"""

import asyncio
import hashlib
import os
import platform
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from operator import add, itemgetter, sub
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import psycopg
from psycopg import Cursor

from pcs_annotator.asking.ledger import postgres
from pcs_annotator.asking.ledger.admin import REMEMBER, LedgerAdmin, LedgerEntry, LedgerSums, PaidInRun, Row, add_own
from pcs_annotator.asking.ledger.lock import lock_ledger
from pcs_annotator.asking.ledger.postgres import LedgerRequests, settle
from pcs_annotator.asking.ledger.sqlite import COLUMNS, Ledger, reply_of
from pcs_annotator.base.errors import LedgerError
from pcs_annotator.core.chat import Reply
from pcs_annotator.core.ledger_address import without_password

LEASE_SECONDS = 30.0  # a worker that does not renew its lease for this long loses its claims
POLL_SECONDS = 0.1  # pause between looks for the replies that other workers are getting
PATIENCE_SECONDS = 120.0  # how long a server that is gone is waited for; what was paid for is then kept in a file
CLOSING_SECONDS = 5.0
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0  # seconds between attempts to connect
ENTRIES_AT_A_TIME = 2000
RESTARTING, RESTART_SECONDS = "the database system is", 20.0  # what a server that restarts says, and how long to wait

T = TypeVar("T")


class PostgresLedger(LedgerAdmin):
    """Paid calls on a PostgreSQL server; use it as a context manager.

    `put` returns when the reply is safely on the server. Many processes may ask at the same time: each claims a call
    before it pays for it, and waits for the reply if another one has claimed it. A claim ends with the reply, when the
    call fails, or when its process is gone. A server that restarts is waited for.
    """

    _day = postgres.DAY

    def __init__(self, address: str, worker: str = "", run: str = "") -> None:
        self.address, self.shown = address, without_password(address)
        self.rescue = Path(f"rescued-calls-{hashlib.sha256(self.shown.encode()).hexdigest()[:8]}.db")
        self.run, self._paid_in_run = run, PaidInRun()
        self._worker = worker or f"{platform.node()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._queue: SimpleQueue[LedgerRequests | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._connection: postgres.Connection | None = None
        self._closing = threading.Event()
        self._failing_since: float | None = None
        self._renew_lease_at = 0.0
        self._own: set[bytes] = set()
        self._waiting = LedgerRequests()
        self._paid: dict[int, float] | None = None
        self._newest: LedgerSums | None = None
        self._returned: LedgerSums | None = None
        self._since = 0

    def __enter__(self) -> "PostgresLedger":
        self._connection = self._open()
        self._thread = threading.Thread(target=self._carry_out_all, name="pcs-ledger", daemon=True)
        self._thread.start()
        try:
            # an earlier process of this name is gone
            self._do(lambda connection: connection.execute(postgres.END_CLAIMS, [self._worker]))
            self._store_rescued()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _open(self) -> postgres.Connection:
        """Connect to the server; if it is restarting, wait for it. One that is not there is an error at once."""
        until = 0.0
        while True:
            try:
                return postgres.open_ledger_tables(self.address)
            except psycopg.Error as error:
                if RESTARTING in str(error):
                    until = until or time.monotonic() + RESTART_SECONDS
                if time.monotonic() > until or not postgres.is_transient(error):
                    raise postgres.explained(error, self.address) from None
            time.sleep(LONGEST_PAUSE / 4)

    def __exit__(self, *_: object) -> None:
        if self._thread is not None:
            self._closing.set()
            self._queue.put(None)
            self._thread.join()
            self._thread = None

    async def find(self, keys: Sequence[bytes]) -> dict[bytes, Reply]:
        """Return the replies that the ledger already has."""
        replies: dict[bytes, Reply] = await self._answer("finds", keys)
        return replies

    async def claim(self, key: bytes) -> Reply | None:
        """Claim a call before paying for it; if another process pays for it already, return the reply when it comes."""
        reply: Reply | None = await self._answer("claims", key)
        return reply

    async def put(self, entry: LedgerEntry) -> None:
        """Store a paid call, and end the claim on it; returns once it is safely on the server."""
        await self._answer("puts", entry)

    def give_up(self, key: bytes) -> None:
        """End the claim on a call that got no reply."""
        self._queue.put(LedgerRequests(give_ups=(key,)))

    def remember_graded(self, model: str, *, gives: bool) -> None:
        """Store whether a model gives log-probabilities, soon; asking goes on meanwhile."""
        self._do_soon(lambda connection: connection.execute(_placed(REMEMBER), (model, int(gives))))

    def entries(self) -> Iterator[LedgerEntry]:
        """Yield every call, in no particular order."""
        query = f"SELECT {COLUMNS} FROM calls WHERE key > %b ORDER BY key LIMIT {ENTRIES_AT_A_TIME}"
        last = b""
        while rows := self._do(lambda connection: _all(connection, query, [last])):  # noqa: B023  # done at once
            texts = (self._reply_of(row[0], *row[3:7], row[8], row[10]).text for row in rows)
            yield from (LedgerEntry._make([*row[:3], text, *row[4:]]) for row, text in zip(rows, texts, strict=True))
            last = rows[-1][0]

    def keep_sums(self) -> LedgerSums:
        """Have the server keep sums of what is paid for, by whichever process, and return them."""

        def keep(connection: postgres.Connection) -> LedgerSums:
            postgres.make_table(connection, "sums", postgres.CREATE_SUMS, "a budget in dollars")
            self._paid = self._paid or {}
            in_run = _all(connection, postgres.READ_PAID, [self.run]) if self.run else []
            return self._ledger_sums(_all(connection, postgres.READ_SUMS, [0]), in_run, self._paid)

        return self._do(keep)

    def changed_sums(self, since: int) -> LedgerSums | None:
        """Return the sums from a day on as of the last claim or reply; None if those were returned before."""
        self._since, before = since, self._returned
        self._returned = self._newest  # which the thread may replace at any moment
        return None if self._returned is before else self._returned

    def _ledger_sums(self, rows: list[Row], in_run: list[Row], by_day: dict[int, float]) -> LedgerSums:
        beside = PaidInRun(*map(sub, in_run[0], self._paid_in_run)) if in_run else PaidInRun()
        return LedgerSums(rows, dict(by_day), beside)

    def lead_run(self) -> str:
        """Return the name under which other processes count what they pay for this one, as long as it is open."""

        def lead(connection: postgres.Connection) -> str:
            postgres.make_table(connection, "paid", postgres.CREATE_PAID, "--executor ray")
            connection.execute(postgres.FORGET_PAID)
            return self._worker

        return self._do(lead)

    def run_is_led(self) -> bool:
        """Return whether the process that this one works for is still there."""
        return bool(self._rows(postgres.IS_LED, [self.run]))

    def paid_in_run(self) -> PaidInRun:
        """Return what other processes have paid for this one."""
        return PaidInRun(*self._rows(postgres.READ_PAID, [self._worker])[0])

    def bytes_used(self) -> int:
        """Return how much room the calls take on the server."""
        return int(self._rows("SELECT pg_total_relation_size('calls')")[0][0])

    def _rows(self, query: str, values: Sequence[object] = ()) -> list[Row]:
        return self._do(lambda connection: _all(connection, _placed(query), values))

    def _change(self, *statements: tuple[str, Sequence[object]]) -> list[int]:
        def change(connection: postgres.Connection) -> list[int]:
            with connection.transaction():
                return [connection.execute(_placed(statement), values).rowcount for statement, values in statements]

        return self._do(change)

    def _insert(self, calls: Sequence[Row]) -> int:
        return self._do(lambda connection: connection.execute(postgres.INSERT, postgres.columns_of(calls)).rowcount)

    def _do(self, work: Callable[[postgres.Connection], T]) -> T:
        """Have the thread do something with the connection, and wait for the result."""
        self._check_open()
        return self._do_soon(work).result()

    def _do_soon(self, work: Callable[[postgres.Connection], T]) -> Future[T]:
        done: Future[T] = Future()
        self._queue.put(LedgerRequests(work=((work, done),)))
        return done

    async def _answer(self, kind: str, asked: object) -> Any:
        self._check_open()
        answer = asyncio.get_running_loop().create_future()
        requests: dict[str, Any] = {kind: ((asked, answer),)}
        self._queue.put(LedgerRequests(**requests))
        return await answer

    def _check_open(self) -> None:
        if self._thread is None:
            raise LedgerError(f"{self.shown} is not open: use the ledger in a with block")

    def _carry_out_all(self) -> None:
        """Carry out requests until the ledger is closed: the work of the thread."""
        is_open = True
        while is_open:
            requests, is_open = self._next_requests()
            try:
                self._carry_out(requests)
            except Exception as error:
                self._fail(requests, error)
        settle([(done, LedgerError(f"{self.shown} was closed")) for done in self._waiting.waiting])
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.execute(postgres.END_CLAIMS, [self._worker])
                self._connection.execute(postgres.END_LEASE, [self._worker])
            self._connection.close()

    def _next_requests(self) -> tuple[LedgerRequests, bool]:
        """Wait for requests, or until the lease is to be renewed; return them all, and whether more may come.

        Claims that somebody else has are tried again.
        """
        pause = POLL_SECONDS if self._waiting.claims else self._renew_lease_at - time.monotonic()
        received: list[LedgerRequests | None] = [self._waiting]
        self._waiting = LedgerRequests()
        with suppress(Empty):
            received.append(self._queue.get(timeout=max(pause, POLL_SECONDS)))
            while True:
                received.append(self._queue.get_nowait())
        return LedgerRequests.joined(filter(None, received)), None not in received

    def _carry_out(self, requests: LedgerRequests) -> None:
        """Carry out requests; a connection that is lost is made again, and a server that is gone is waited for."""
        pause, work = FIRST_PAUSE, deque(requests.work)
        while True:
            try:
                connection = self._connected()
                self._renew_lease(connection)
                self._do_work(connection, work)
                self._transact(connection, requests)
            except psycopg.Error as error:
                if not postgres.is_transient(error) or not self._worth_waiting():
                    raise postgres.explained(error, self.address) from None
                # the connection may have been lost after these were claimed
                claimed = [key for key, _ in requests.claims if key not in self._own]
                requests = requests._replace(give_ups=[*requests.give_ups, *claimed])
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            else:
                self._failing_since = None
                return

    def _worth_waiting(self) -> bool:
        now = time.monotonic()
        if self._failing_since is None:
            self._failing_since = now
        return now - self._failing_since < (CLOSING_SECONDS if self._closing.is_set() else PATIENCE_SECONDS)

    def _connected(self) -> postgres.Connection:
        if self._connection is None or self._connection.closed:
            self._connection = postgres.connect(self.address)
            self._renew_lease_at = 0.0
        return self._connection

    def _renew_lease(self, connection: postgres.Connection) -> None:
        if time.monotonic() < self._renew_lease_at:
            return
        connection.execute(postgres.RENEW_LEASE, (self._worker, LEASE_SECONDS))
        connection.execute(postgres.END_LEASES, [LEASE_SECONDS])
        connection.execute(postgres.END_CLAIMS_OF_LOST)
        self._renew_lease_at = time.monotonic() + LEASE_SECONDS / 5

    def _do_work(self, connection: postgres.Connection, work: deque[tuple[Callable[..., Any], Future[Any]]]) -> None:
        while work:
            do, done = work[0]
            try:
                done.set_result(do(connection))
            except psycopg.Error as error:
                if postgres.is_transient(error):
                    raise
                done.set_exception(postgres.explained(error, self.address))
            work.popleft()

    def _transact(self, connection: postgres.Connection, requests: LedgerRequests) -> None:
        """Store, claim and find calls in one transaction, and pass on what was found."""
        claimed = [key for key, _ in requests.claims]
        wanted = list({key for keys, _ in requests.finds for key in keys} | set(claimed))
        entries = sorted((entry for entry, _ in requests.puts), key=itemgetter(0))
        look = self._paid is not None and bool(claimed or entries)
        taken, finding, sums, in_run = (connection.cursor(binary=True) for _ in range(4))
        paid = PaidInRun(
            len(entries), sum((paid_call.input_tokens or 0) + (paid_call.output_tokens or 0) for paid_call in entries)
        )
        with connection.pipeline():
            if requests.give_ups:
                connection.execute(postgres.GIVE_UP, (self._worker, [*requests.give_ups]))
            if claimed:
                taken.execute(postgres.CLAIM, (self._worker, sorted(claimed)))
            if entries:
                connection.execute(postgres.PUT, [*postgres.columns_of(entries), [entry.key for entry in entries]])
                if self.run:
                    connection.execute(postgres.PAY, (self.run, self._worker, *paid))
            if wanted:
                finding.execute(postgres.FIND, [wanted])
            if look:
                sums.execute(postgres.READ_SUMS, [self._since])
                if self.run:
                    in_run.execute(postgres.READ_PAID, [self.run])
        self._paid_in_run = PaidInRun(*map(add, self._paid_in_run, paid))
        if self._paid is not None and look:
            add_own(self._paid, ((entry.asked_at, entry.usd) for entry in entries))
            self._newest = self._ledger_sums(sums.fetchall(), in_run.fetchall() if self.run else [], self._paid)
        stored = {row[0]: self._reply_of(*row) for row in _fetched(finding, wanted)}
        self._pass_on(requests, stored, {key for (key,) in _fetched(taken, claimed)})

    def _reply_of(self, key: bytes, text: bytes, *rest: Any) -> Reply:
        try:
            return reply_of(text.decode(), *rest)
        except (AttributeError, TypeError, ValueError) as error:
            remedy = rf"put it back as it was, or DELETE FROM calls WHERE key = '\x{key.hex()}' to have it asked again"
            raise LedgerError(f"{self.shown}: somebody has changed an answer in it ({error}): {remedy}") from error

    def _pass_on(self, requests: LedgerRequests, stored: dict[bytes, Reply], taken: set[bytes]) -> None:
        self._own.difference_update(requests.give_ups, [entry.key for entry, _ in requests.puts])
        results: list[tuple[asyncio.Future[Any], Any]] = [(done, None) for _, done in requests.puts]
        results += [(done, {key: stored[key] for key in keys if key in stored}) for keys, done in requests.finds]
        waiting = []
        for key, done in requests.claims:
            if key in stored:
                results.append((done, stored[key]))
            elif key in taken and not done.done():
                taken.remove(key)  # another task that claims it waits for this one
                self._own.add(key)
                results.append((done, None))
            elif not done.done():
                waiting.append((key, done))
        self._waiting = LedgerRequests(claims=waiting)
        for key in taken:  # the reply is known, or the task was cancelled
            self.give_up(key)
        settle(results)

    def _fail(self, requests: LedgerRequests, error: Exception) -> None:
        """Keep what was paid for in a file, and pass the error on."""
        if requests.puts:
            error = self._kept_aside([entry for entry, _ in requests.puts], error)
        for _, done in requests.work:
            if not done.done():
                done.set_exception(error)
        settle([(done, error) for done in requests.waiting])

    def _kept_aside(self, entries: Sequence[LedgerEntry], error: Exception) -> LedgerError:
        rescued = self.rescue.absolute()
        try:
            with lock_ledger(rescued), Ledger(rescued) as file:
                file._insert(entries)
        except Exception as worse:
            return LedgerError(f"{error}; {len(entries)} answers that were paid for cannot be kept: {worse}")
        return LedgerError(
            f"{error}; answers that were paid for meanwhile are kept in {rescued}, and the next command in this folder "
            "stores them in the ledger"
        )

    def _store_rescued(self) -> None:
        """Store calls that an earlier process could not, and kept in a file."""
        if self.rescue.exists():
            with lock_ledger(self.rescue):
                with Ledger(self.rescue) as file:
                    self.import_from(file)
                self.rescue.unlink()


def _placed(statement: str) -> bytes:
    """Return a statement with psycopg's sign for values."""
    return statement.replace("?", "%s").encode()


def _all(connection: postgres.Connection, query: str | bytes, values: Sequence[object]) -> list[Any]:
    return connection.cursor(binary=True).execute(query, values).fetchall()


def _fetched(cursor: Cursor[Any], asked: Sequence[bytes]) -> list[Any]:
    return cursor.fetchall() if asked else []
