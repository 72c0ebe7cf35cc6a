"""A connection to the PostgreSQL server of a ledger: its tables, statements and errors, and what is requested of it."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple

import psycopg
from psycopg import conninfo, errors
from psycopg.types.numeric import Int8BinaryDumper

from pcs_annotator.asking.ledger.admin import OF_ROWS, PAID, READ, SPENT_COLUMNS, LedgerEntry, Row
from pcs_annotator.asking.ledger.sqlite import COLUMNS, FOUND, set_all
from pcs_annotator.base.errors import LedgerError
from pcs_annotator.core.chat import Reply
from pcs_annotator.core.ledger_address import without_password

# The texts of replies are bytes, because PostgreSQL's texts have no NUL.
CREATE_TABLES = (
    """CREATE TABLE calls (
        key BYTEA PRIMARY KEY, model TEXT NOT NULL, purpose TEXT NOT NULL, reply BYTEA NOT NULL, finish TEXT NOT NULL,
        input_tokens BIGINT, output_tokens BIGINT, usd DOUBLE PRECISION, latency DOUBLE PRECISION NOT NULL,
        asked_at DOUBLE PRECISION NOT NULL, logprobs BYTEA)""",
    "CREATE TABLE models (model TEXT PRIMARY KEY, gives_logprobs INTEGER NOT NULL)",
    """CREATE TABLE spent (
        asked_at DOUBLE PRECISION NOT NULL, model TEXT NOT NULL, purpose TEXT NOT NULL, calls BIGINT NOT NULL,
        input_tokens BIGINT, output_tokens BIGINT, usd DOUBLE PRECISION)""",
    "CREATE TABLE claims (key BYTEA PRIMARY KEY, worker TEXT NOT NULL)",
    "CREATE TABLE workers (worker TEXT PRIMARY KEY, alive_until TIMESTAMPTZ NOT NULL)",
)
SCHEMA = 1
CREATING = 0x70637321  # the advisory lock of the process that makes the tables
# One schema for all tables, unless the address names another; a claim must see what was committed a moment ago; a
# server or a network that is gone is noticed.
OPTIONS = r"-c search_path=pcs -c default_transaction_isolation=read\ committed -c client_min_messages=error"
DEFAULTS = {"connect_timeout": "10", "keepalives_idle": "10", "tcp_user_timeout": "30000", "client_encoding": "utf8"}
TEMPORARY = ("08", "40", "57P", "25006", "53300")
"""Codes of transient errors: connections, deadlocks, a server that stops or starts, or that has too many clients."""

TYPES = ("bytea", "text", "text", "bytea", "text", "bigint", "bigint", *3 * ("double precision",), "bytea")
ARRAYS = ", ".join(f"%b::{kind}[]" for kind in TYPES)
FIND = f"SELECT {FOUND} FROM calls WHERE key = ANY(%b)"
# Sorted, so that two workers never wait for each other. If another transaction is writing the reply, this waits for it.
CLAIM = "INSERT INTO claims (key, worker) SELECT key, %s FROM unnest(%b) AS key ON CONFLICT DO NOTHING RETURNING key"
# A reply that was paid for twice is counted, unless it is the same one, written again after a lost connection.
PUT = f"""WITH entry AS (SELECT * FROM unnest({ARRAYS}) AS entry ({COLUMNS})),
fresh AS (INSERT INTO calls ({COLUMNS}) SELECT {COLUMNS} FROM entry ON CONFLICT DO NOTHING RETURNING key),
again AS (INSERT INTO spent ({SPENT_COLUMNS})
    SELECT asked_at, model, purpose, 1, input_tokens, output_tokens, usd FROM entry
    WHERE key NOT IN (SELECT key FROM fresh)
    AND NOT EXISTS (SELECT FROM calls WHERE calls.key = entry.key AND calls.asked_at = entry.asked_at)),
ended AS (DELETE FROM claims WHERE key = ANY(%b))
SELECT COUNT(*) FROM fresh"""
INSERT = f"INSERT INTO calls ({COLUMNS}) SELECT * FROM unnest({ARRAYS}) ON CONFLICT DO NOTHING"
GIVE_UP = "DELETE FROM claims WHERE worker = %s AND key = ANY(%b)"
RENEW_LEASE = """INSERT INTO workers (worker, alive_until) VALUES (%s, now() + make_interval(secs => %s))
ON CONFLICT (worker) DO UPDATE SET alive_until = excluded.alive_until"""
# After a restart of the server, every worker gets time to come back.
END_LEASES = (
    "DELETE FROM workers WHERE greatest(alive_until, pg_postmaster_start_time() + make_interval(secs => %s)) < now()"
)
END_LEASE = "DELETE FROM workers WHERE worker = %s"
END_CLAIMS = "DELETE FROM claims WHERE worker = %s"
END_CLAIMS_OF_LOST = "DELETE FROM claims WHERE worker NOT IN (SELECT worker FROM workers)"

DAY = "floor(asked_at / 86400)::bigint"
# Workers that pay at the same time write to different rows, and so do not wait for each other. Colleagues who may write
# calls need no rights on the sums.
CREATE_SUMS = (
    "LOCK TABLE calls, spent IN SHARE ROW EXCLUSIVE MODE",
    """CREATE TABLE sums (day BIGINT, model TEXT, part INTEGER, usd DOUBLE PRECISION NOT NULL, sent BIGINT NOT NULL,
    got BIGINT NOT NULL, PRIMARY KEY (day, model, part))""",
    "GRANT SELECT ON sums TO PUBLIC",
    f"INSERT INTO sums SELECT {DAY}, model, 0, {OF_ROWS} FROM ({PAID}) AS paid GROUP BY 1, 2",
    f"""CREATE FUNCTION add_to_sums() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
    AS $$
    DECLARE sign INTEGER := CASE TG_OP WHEN 'DELETE' THEN -1 ELSE 1 END;
    BEGIN
        INSERT INTO sums AS known SELECT day, model, pg_backend_pid() % 16, sign * usd, sign * sent, sign * got
        FROM (SELECT {DAY}, model, {OF_ROWS} FROM changed GROUP BY 1, 2 ORDER BY 1, 2)
        AS new (day, model, usd, sent, got)
        ON CONFLICT (day, model, part) DO UPDATE SET
        usd = known.usd + excluded.usd, sent = known.sent + excluded.sent, got = known.got + excluded.got;
        RETURN NULL;
    END $$""",
    *(
        f"""CREATE TRIGGER {event}_sums AFTER {event} ON {table} REFERENCING {rows} TABLE AS changed
        FOR EACH STATEMENT EXECUTE FUNCTION add_to_sums()"""
        for event, table, rows in (("INSERT", "calls", "NEW"), ("INSERT", "spent", "NEW"), ("DELETE", "calls", "OLD"))
    ),
)
READ_SUMS = READ.format("%s")

# What the workers of a command have paid. Every worker has its own row, so that none waits for another.
CREATE_PAID = (
    """CREATE TABLE paid (run TEXT, worker TEXT, calls BIGINT NOT NULL, tokens BIGINT NOT NULL,
    PRIMARY KEY (run, worker))""",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON paid TO PUBLIC",
)
PAY = """INSERT INTO paid VALUES (%s, %s, %s, %s)
ON CONFLICT (run, worker) DO UPDATE SET calls = paid.calls + excluded.calls, tokens = paid.tokens + excluded.tokens"""
READ_PAID = "SELECT COALESCE(SUM(calls), 0)::bigint, COALESCE(SUM(tokens), 0)::bigint FROM paid WHERE run = %s"
FORGET_PAID = "DELETE FROM paid WHERE run NOT IN (SELECT worker FROM workers)"
IS_LED = "SELECT 1 FROM workers WHERE worker = %s"

# psycopg logs that a lost connection could not be closed; without any handler, Python would print that
logging.getLogger("psycopg").addHandler(logging.NullHandler())

Connection = psycopg.Connection[tuple[object, ...]]


def connect(address: str) -> Connection:
    """Return a connection to the server; each statement, or pipeline of statements, is a transaction."""
    parameters = _parameters(address)
    options = {"options": f"{OPTIONS} {parameters.get('options', '')}".strip()}
    connection = psycopg.connect(conninfo.make_conninfo(**{**DEFAULTS, **parameters, **options}), autocommit=True)
    # always the same type, so that a prepared statement serves for all numbers
    connection.adapters.register_dumper(int, Int8BinaryDumper)
    return connection


def _parameters(address: str) -> dict[str, str]:
    try:
        parameters = {name: str(value) for name, value in conninfo.conninfo_to_dict(address).items()}
    except psycopg.Error:
        parameters = {}
    if not parameters or "@" in parameters.get("host", "") + parameters.get("dbname", ""):
        # without the reason, which may quote a part of a password
        remedy = "write postgresql://USER@HOST:PORT/DATABASE, with the password in PGPASSWORD or a .pgpass file"
        raise LedgerError(f"the address of the ledger cannot be read: {remedy}")
    return parameters


def open_ledger_tables(address: str) -> Connection:
    """Return a connection to a ledger; its tables are made where there are none."""
    connection = connect(address)
    try:
        _prepare_tables(connection, without_password(address))
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare_tables(connection: Connection, shown: str) -> None:
    # several processes may do so at once
    if _version(connection, shown):
        return
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [CREATING])
        connection.execute("DO $$ BEGIN EXECUTE format('CREATE SCHEMA IF NOT EXISTS %I', "
                           "trim(split_part(current_setting('search_path'), ',', 1))); END $$")  # fmt: skip
        connection.execute("CREATE TABLE IF NOT EXISTS version (version INTEGER NOT NULL)")
        if not _version(connection, shown):
            for statement in CREATE_TABLES:
                connection.execute(statement)
            connection.execute("INSERT INTO version VALUES (%s)", [SCHEMA])


def make_table(connection: Connection, name: str, statements: Sequence[str], needed_for: str) -> None:
    """Make a table that not every ledger has, if it is not there."""
    try:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", [CREATING])
            if connection.execute("SELECT to_regclass(%s)", [name]).fetchone() == (None,):
                for statement in statements:
                    connection.execute(statement.encode())
    except errors.InsufficientPrivilege as error:
        raise LedgerError(
            f"the ledger does not keep {name} yet, which {needed_for} needs, and this user may not make them "
            f"({' '.join(str(error).split())}): its owner must use {needed_for} there once"
        ) from None


def _version(connection: Connection, shown: str) -> int:
    (exists,) = connection.execute("SELECT to_regclass('version') IS NOT NULL").fetchone() or (False,)
    row = connection.execute("SELECT version FROM version").fetchone() if exists else None
    version = 0 if row is None else int(str(row[0]))
    if version > SCHEMA:
        raise LedgerError(f"{shown} was written by a newer version (schema {version}): upgrade, or use another one")
    return version


def columns_of(calls: Sequence[Row]) -> list[list[Any]]:
    """Return calls by column, in the types of the table."""
    columns = [list(column) for column in zip(*calls, strict=True)]
    columns[3] = [text.encode() for text in columns[3]]
    for position in (7, 8, 9):
        columns[position] = [None if value is None else float(value) for value in columns[position]]
    return columns


def is_transient(error: psycopg.Error) -> bool:
    """Return whether the same may work in a moment, perhaps with a new connection."""
    if error.sqlstate is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return error.sqlstate.startswith(TEMPORARY)


def explained(error: psycopg.Error, address: str) -> LedgerError:
    """Return the error for the user, with the remedy."""
    text = " ".join(str(error).split())
    if isinstance(error, errors.DiskFull | errors.OutOfMemory):
        why = f"the server's disk is full ({text}): free some space and run again; nothing in the ledger is lost"
    elif isinstance(error, errors.InsufficientPrivilege):
        rights = "GRANT USAGE ON SCHEMA pcs, and SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA pcs"
        why = f"this user may not use the ledger ({text}): its owner must {rights}"
    elif (error.sqlstate or "").startswith("42"):
        why = f"its tables are not those of a ledger ({text}): put them back as they were, or use another ledger"
    elif "password" in text or "authentication" in text:
        why = f"the server does not let this user in ({text}): set PGPASSWORD, or use a .pgpass file"
    elif isinstance(error, errors.InvalidCatalogName) or "does not exist" in text:
        why = f"there is no such database ({text}): create it with createdb, or check the address"
    elif is_transient(error):
        why = f"the server cannot be reached ({text}): check the address, or run again when it is back"
    else:
        why = f"PostgreSQL error: {text}"
    return LedgerError(f"{without_password(address)}: {why}")


class LedgerRequests(NamedTuple):
    """Requests that are carried out together, each with the future of its result."""

    finds: Sequence[tuple[Sequence[bytes], asyncio.Future[dict[bytes, Reply]]]] = ()  # keys of replies to look up
    claims: Sequence[tuple[bytes, asyncio.Future[Reply | None]]] = ()  # keys of calls that a task is about to pay for
    puts: Sequence[tuple[LedgerEntry, asyncio.Future[None]]] = ()  # calls that were paid for
    give_ups: Sequence[bytes] = ()  # keys of claims that end without a reply
    work: Sequence[tuple[Callable[[Connection], Any], Future[Any]]] = ()  # something else to do with the connection

    @classmethod
    def joined(cls, several: "Iterable[LedgerRequests]") -> "LedgerRequests":
        """Return all requests together."""
        return cls(*(tuple(chain.from_iterable(alike)) for alike in zip(*several, strict=True)))

    @property
    def waiting(self) -> list[asyncio.Future[Any]]:
        """What tasks wait for."""
        requests: list[tuple[object, asyncio.Future[Any]]] = [*self.finds, *self.claims, *self.puts]
        return [done for _, done in requests]


def settle(results: Iterable[tuple[asyncio.Future[Any], Any]]) -> None:
    """Set results, or errors, in the event loops that wait for them: one call per loop, because each wakes it up."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = {}
    for done, result in results:
        by_loop.setdefault(done.get_loop(), []).append((done, result))
    for loop, some in by_loop.items():
        with suppress(RuntimeError):  # it was closed meanwhile, and nothing waits any more
            loop.call_soon_threadsafe(set_all, some)
