"""Every reply ever paid for, in one SQLite file."""

import asyncio
import json
import os
import sqlite3
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, get_args

from pcs_annotator.asking.ledger import admin
from pcs_annotator.asking.ledger.admin import LedgerAdmin, LedgerEntry, LedgerSums, Row, add_own
from pcs_annotator.asking.ledger.lock import holds_lock
from pcs_annotator.base.errors import LedgerError
from pcs_annotator.core.chat import Finish, Message, Reply, Request, Usage
from pcs_annotator.models.logprobs import pack, unpack

if sys.platform != "win32":
    import fcntl

BUSY_SECONDS = 15
KEYS_PER_QUERY = 500
GATHER_SECONDS = 0.001
POLL_SECONDS = 0.1  # pause between looks for the replies that other processes are getting
CACHE_KILOBYTES = 32_000
PAGES_PER_CHECKPOINT = 8_000  # keys are random, so every page of a large ledger is needed and changed again

CREATE_CALLS = """
CREATE TABLE IF NOT EXISTS calls (
    key BLOB PRIMARY KEY,
    model TEXT NOT NULL,
    purpose TEXT NOT NULL,
    reply TEXT NOT NULL,
    finish TEXT NOT NULL,
    input_tokens INTEGER,
    output_tokens INTEGER,
    usd REAL,
    latency REAL NOT NULL,
    asked_at REAL NOT NULL
) WITHOUT ROWID
"""
# What each schema adds to the one before; a ledger of any age goes through those that it lacks.
STEPS = (
    (CREATE_CALLS,),
    (
        "ALTER TABLE calls ADD COLUMN logprobs BLOB",
        "CREATE TABLE IF NOT EXISTS models (model TEXT PRIMARY KEY, gives_logprobs INTEGER NOT NULL) WITHOUT ROWID",
    ),
    (
        """CREATE TABLE IF NOT EXISTS spent (asked_at REAL NOT NULL, model TEXT NOT NULL, purpose TEXT NOT NULL,
        calls INTEGER NOT NULL, input_tokens INTEGER, output_tokens INTEGER, usd REAL)""",
    ),
)
SCHEMA = len(STEPS)
LARGEST_SCHEMA = 999  # a larger number is damage
COLUMNS = "key, model, purpose, reply, finish, input_tokens, output_tokens, usd, latency, asked_at, logprobs"
INSERT = f"INSERT OR IGNORE INTO calls ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
FOUND = "key, reply, finish, input_tokens, output_tokens, latency, logprobs"

_DAY = "CAST({}asked_at / 86400 AS INTEGER)"
CREATE_SUMS = (
    """CREATE TABLE sums (day INTEGER NOT NULL, model TEXT NOT NULL, usd REAL NOT NULL, sent INTEGER NOT NULL,
    got INTEGER NOT NULL, PRIMARY KEY (day, model)) WITHOUT ROWID""",
    f"INSERT INTO sums SELECT {_DAY.format('')}, model, {admin.OF_ROWS} FROM ({admin.PAID}) GROUP BY 1, 2",
    *(
        f"""CREATE TRIGGER {event}_{table}_sums AFTER {event} ON {table} BEGIN INSERT INTO sums
        VALUES ({_DAY.format(row)}, {row}model, {", ".join(f"{sign} {value.format(row)}" for value in admin.OF_ROW)})
        ON CONFLICT DO UPDATE SET usd = usd + excluded.usd, sent = sent + excluded.sent, got = got + excluded.got;
        END"""
        for event, table, row, sign in (
            ("INSERT", "calls", "NEW.", ""),
            ("INSERT", "spent", "NEW.", ""),
            ("DELETE", "calls", "OLD.", "-"),
        )
    ),
)
_FINISHES, _COUNTS = get_args(Finish), {int, type(None)}


class CallKey(NamedTuple):
    """The key of a call, and its twin's: the same question without log-probabilities if it asks for them, else with."""

    own: bytes
    twin: bytes


def call_key(model: str, request: Request, draw: int) -> CallKey:
    """Return the content hash of a call: the same question to the same model in the same draw has the same key."""
    constraint, messages = request.constraint, request.messages
    form = None
    if constraint is not None:
        form = tuple(constraint.choices), json.dumps(constraint.json_schema)
    # All but the last message are the same for all texts, unless there was an answer in between.
    begun = _begun if len(messages) <= 2 else _begun.__wrapped__
    last = messages[-1]
    end = f"{json.dumps(last.content)}]".encode()
    started = begun(model, draw, request.max_tokens, form, messages[:-1], last.role)
    hard, graded = started[0].copy(), started[1].copy()
    hard.update(end)
    graded.update(end)
    same_kind, twin = (graded, hard) if request.logprobs else (hard, graded)
    return CallKey(same_kind.digest(), twin.digest())


@lru_cache(maxsize=1024)
def _begun(
    model: str,
    draw: int,
    max_tokens: int | None,
    form: tuple[Sequence[str], str] | None,
    messages: Sequence[Message],
    last_role: str,
) -> tuple[blake2b, blake2b]:
    """Return the hashes of a call up to its last text: without log-probabilities, and with them."""
    how = [0.0, None, max_tokens, None]  # temperature, top_p, limit, seed
    asked_for = "null" if form is None else f"[{json.dumps(form[0])}, {form[1]}]"
    head = f"[{json.dumps(model)}, {draw}, {json.dumps(how)}, {asked_for}"
    texts = [part for message in messages for part in (message.role, message.content)]
    start = ", ".join(map(json.dumps, [*texts, last_role]))
    hard, graded = (blake2b(f"{head}, {asked}, {start}, ".encode(), digest_size=16) for asked in ("false", "true"))
    return hard, graded


def entry_of(key: bytes, model: str, purpose: str, reply: Reply, usd: float | None) -> LedgerEntry:
    """Return the ledger row for a reply that has just arrived."""
    usage = reply.usage
    # SQLite stores text as UTF-8, which has no lone surrogates
    text = reply.text.encode("utf-8", "replace").decode()
    used = usage.input_tokens, usage.output_tokens, usd
    return LedgerEntry(key, model, purpose, text, reply.finish, *used, reply.latency, time.time(), pack(reply.logprobs))


def reply_of(
    text: str, finish: Finish, tokens_in: int | None, tokens_out: int | None, latency: float, logprobs: bytes | None
) -> Reply:
    """Return the reply in the columns `FOUND` of a row; a row that somebody has edited may raise."""
    if not (type(text) is str and finish in _FINISHES and {type(tokens_in), type(tokens_out)} <= _COUNTS):
        raise ValueError(f"the reply {text!r:.80}, its end {finish!r:.20} or its tokens")
    usage = Usage(input_tokens=tokens_in, output_tokens=tokens_out)
    return Reply(text=text, finish=finish, usage=usage, latency=latency, logprobs=unpack(logprobs))


def set_all(results: Iterable[tuple[asyncio.Future[Any], Any]]) -> None:
    """Set the results, or errors, of futures that were not cancelled meanwhile."""
    for done, result in results:
        if done.done():
            continue
        if isinstance(result, Exception):
            done.set_exception(result)
        else:
            done.set_result(result)


class Ledger(LedgerAdmin):
    """A file of paid calls: looked up by content, written in groups; failures are never stored.

    Use it as a context manager. `put` returns when the reply is safely in the file. Replies that arrive within a
    millisecond are committed together, in the event loop's thread (`docs/design/pace.md`).

    Whoever opened it with its lock claims nothing. Else a claim is a lock on one byte of an empty file next to it, at a
    place that follows from the call; the system ends it with its process. Tasks of one process are not kept apart.
    Windows has no such locks: there, a call that two processes make at the same moment is paid twice.
    """

    _day = _DAY.format("")

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._connection: sqlite3.Connection | None = None
        self._pending: list[tuple[LedgerEntry, asyncio.Future[None]]] = []
        self._paid: dict[int, float] | None = None  # day → dollars, of calls stored here, if sums are kept
        self._seen = 0
        self._claims: BinaryIO | None = None
        self._alone = False

    def __enter__(self) -> "Ledger":
        self._alone = holds_lock(self.path)
        with self._explained():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # One for reading and writing: what another connection has in memory is void after every commit.
            self._connection = self._connect()
            self._prepare(self._connection)
        return self

    def __exit__(self, *_: object) -> None:
        if self._pending:  # the event loop ended before it could write these
            self._write([entry for entry, _ in self._pending])
            self._pending = []
        if self._connection is not None:
            self._connection.close()
            self._connection = self._paid = None
        if self._claims is not None:
            self._claims.close()
            self._claims = None

    def _connect(self) -> sqlite3.Connection:
        if self.path.exists() and not os.access(self.path.parent, os.W_OK):
            # SQLite reads a folder that it cannot write to only on the promise that nothing changes in it
            address = f"{self.path.absolute().as_uri()}?immutable=1"
            return sqlite3.connect(address, uri=True, check_same_thread=False)
        connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KILOBYTES}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {PAGES_PER_CHECKPOINT}")
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        if self._version(connection) == SCHEMA:
            return
        # in one transaction, for which other processes wait: a ledger is never half upgraded
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            for step in STEPS[self._version(connection) :]:
                for statement in step:
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {SCHEMA}")

    def _version(self, connection: sqlite3.Connection) -> int:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if not 0 <= version <= LARGEST_SCHEMA:
            raise sqlite3.DatabaseError(f"malformed header, with schema {version}")
        if version > SCHEMA:
            raise LedgerError(
                f"{self.path} was written by a newer version (schema {version}): upgrade, or use another file"
            )
        return int(version)

    async def find(self, keys: Sequence[bytes]) -> dict[bytes, Reply]:
        """Return the replies that the ledger already has."""
        replies: dict[bytes, Reply] = {}
        query = f"SELECT {FOUND} FROM calls WHERE key IN ({{}})"
        with self._explained():
            for start in range(0, len(keys), KEYS_PER_QUERY):
                some = keys[start : start + KEYS_PER_QUERY]
                rows = self._connected().execute(query.format(",".join("?" * len(some))), some)
                replies.update((row[0], reply_of(*row[1:])) for row in rows)
        return replies

    async def claim(self, key: bytes) -> Reply | None:
        """Claim a call before paying for it; if another process pays for it already, return the reply when it comes."""
        while not self._alone:
            claimed = self._lock(key)
            reply = (await self.find([key])).get(key)
            if claimed and reply is not None:
                self.give_up(key)
            if claimed or reply is not None:
                return reply
            await asyncio.sleep(POLL_SECONDS)
        return None

    def _lock(self, key: bytes) -> bool:
        if sys.platform == "win32":
            return True
        if self._claims is None:
            with self._explained():
                self._claims = Path(f"{self.path}-claims").open("wb")  # noqa: SIM115  # closed with the ledger
        try:
            fcntl.lockf(self._claims, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _byte_of(key))
        except BlockingIOError:
            return False
        return True

    def give_up(self, key: bytes) -> None:
        """End the claim on a call."""
        if self._claims is not None and sys.platform != "win32":
            fcntl.lockf(self._claims, fcntl.LOCK_UN, 1, _byte_of(key))

    async def put(self, entry: LedgerEntry) -> None:
        """Store a paid call, and end the claim on it; returns once it is in the file."""
        loop = asyncio.get_running_loop()
        stored: asyncio.Future[None] = loop.create_future()
        if not self._pending:
            loop.call_later(GATHER_SECONDS, self._commit)
        self._pending.append((entry, stored))
        await stored
        self.give_up(entry.key)

    def _commit(self) -> None:
        """Write all pending replies in one transaction."""
        waiting, self._pending = self._pending, []
        result: LedgerError | None = None
        try:
            self._write([entry for entry, _ in waiting])
        except LedgerError as error:
            result = error
        set_all((stored, result) for _, stored in waiting)

    def _write(self, entries: Sequence[LedgerEntry]) -> None:
        with self._explained(), self._connected() as connection:
            if connection.executemany(INSERT, entries).rowcount < len(entries):
                connection.rollback()
                for entry in entries:
                    if not connection.execute(INSERT, entry).rowcount:  # paid for twice: the first reply is kept
                        spent = (entry.asked_at, entry.model, entry.purpose, 1, *entry[5:8])
                        connection.execute(admin.SPEND, spent)
        if self._paid is not None:
            add_own(self._paid, ((entry.asked_at, entry.usd) for entry in entries))

    def keep_sums(self) -> LedgerSums:
        """Have the ledger keep sums of what is paid for, by whichever process, and return them."""
        with self._explained():
            self._connected().execute("BEGIN IMMEDIATE")  # other processes wait, so that no call is left out
            with self._connected() as connection:
                if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'sums'").fetchone():
                    for statement in CREATE_SUMS:
                        connection.execute(statement)
            self._paid, self._seen = self._paid or {}, self._data_version()
        return self._read_sums(0)

    def changed_sums(self, since: int) -> LedgerSums | None:
        """Return the sums from a day on, if another process has written to the file since the last time; else None."""
        seen, self._seen = self._seen, self._data_version()
        return None if self._paid is None or seen == self._seen else self._read_sums(since)

    def _read_sums(self, since: int) -> LedgerSums:
        return LedgerSums(self._rows(admin.READ.format("?"), (since,)), dict(self._paid or {}))

    def _data_version(self) -> int:
        return int(self._rows("PRAGMA data_version")[0][0])

    def _rows(self, query: str, values: Sequence[object] = ()) -> list[Row]:
        with self._explained():
            return self._connected().execute(query, values).fetchall()

    def _change(self, *statements: tuple[str, Sequence[object]]) -> list[int]:
        with self._explained(), self._connected() as connection:
            return [connection.execute(statement, values).rowcount for statement, values in statements]

    def _insert(self, calls: Sequence[Row]) -> int:
        with self._explained(), self._connected() as connection:
            return connection.executemany(INSERT, calls).rowcount

    def entries(self) -> Iterator[LedgerEntry]:
        """Yield every call, in no particular order."""
        with self._explained():
            for row in self._connected().execute(f"SELECT {COLUMNS} FROM calls"):
                yield LedgerEntry(*row)

    def take_over_spending(self, other: Path) -> None:
        """Count what was paid for in another ledger as paid for here, too."""
        with Ledger(other) as source:
            self._change(*((admin.SPEND, row) for row in source.spending_by_day()))

    def prune(
        self, *, model: str | None = None, before: float | None = None, keys: Sequence[bytes] | None = None
    ) -> int:
        """Delete the calls of a model, those made before a time, or those with some keys, and shrink the file.

        Returns how many. Nothing of them is left in the file, or beside it.
        """
        deleted = super().prune(model=model, before=before, keys=keys)
        with self._explained():
            self._connected().execute("VACUUM")
            self._connected().execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return deleted

    def bytes_used(self) -> int:
        """Return the size of the file."""
        return self.path.stat().st_size

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            raise LedgerError(f"{self.path} is not open: use the ledger in a with block")
        return self._connection

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn SQLite's errors into ours, with the remedy."""
        try:
            yield
        except sqlite3.Error as error:
            raise LedgerError(f"{self.path}: {_remedy(error, self.path)}") from error
        except (TypeError, ValueError) as error:
            remedy = "put back the file as it was, or ask again with --fresh"
            raise LedgerError(f"{self.path}: somebody has changed an answer in it ({error}): {remedy}") from error
        except OSError as error:
            raise LedgerError(f"{self.path}: {error.strerror or error}; choose another path for the ledger") from error


def _byte_of(key: bytes) -> int:
    return int.from_bytes(key[:7], "big")


def _remedy(error: sqlite3.Error, path: Path) -> str:
    text = str(error)
    if "locked" in text or "busy" in text:
        return f"another process is writing to it ({text}): wait for it to end, or use another ledger"
    if "full" in text or "disk I/O" in text:
        return f"the disk is full or failing ({text}): free some space and run again; nothing in the ledger is lost"
    if any(sign in text for sign in ("not a database", "malformed", "no such", "corrupt")):
        return f"it is damaged or not a ledger ({text}): sqlite3 {path} .recover | sqlite3 saved.db saves its answers"
    if "readonly" in text or "unable to open" in text:
        return f"it cannot be written ({text}): choose a folder that you can write to"
    return f"SQLite error: {text}"
