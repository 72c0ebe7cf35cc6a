"""Saves the calls of a damaged ledger: reads every page of the SQLite file by itself, whatever the pages around it are.

The format is at https://www.sqlite.org/fileformat2.html. Only cells that read as a whole row of ours are kept.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from pcs_annotator.asking.ledger.ledger import LARGEST_SCHEMA, LedgerEntry

PAGE_SIZE = 4096
FILE_HEADER, WAL_HEADER, FRAME_HEADER = 100, 32, 24
INTERIOR_INDEX, LEAF_INDEX, LEAF_TABLE = 2, 10, 13
WITH_CELLS = (INTERIOR_INDEX, LEAF_INDEX, LEAF_TABLE)
OVERFLOW = struct.Struct(">I")
INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
"""Type of a value → number of bytes, for whole numbers."""

Value = int | float | str | bytes | None


class Salvaged(NamedTuple):
    """The rows that could be read: calls by key, whether models give log-probabilities, and other paid calls."""

    calls: dict[bytes, LedgerEntry]
    models: dict[str, bool]
    spent: dict[int, Sequence[Value]]


class _Unreadable(Exception):
    """A cell is not what it should be."""


def is_sound(path: Path) -> bool:
    """Return whether SQLite finds nothing wrong with a ledger; the file is not changed."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            connection.execute("SELECT COUNT(*) FROM calls")
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            return 0 <= version <= LARGEST_SCHEMA and connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
    except sqlite3.Error:
        return False


def salvage(path: Path) -> Salvaged:
    """Return all rows of a damaged ledger that can be read, also those that SQLite has not merged into it yet."""
    content = path.read_bytes()
    given = int.from_bytes(content[16:18])
    sizes = {PAGE_SIZE, given if 512 <= given <= 32768 and given.bit_count() == 1 else PAGE_SIZE}
    return max((_salvaged(content, path, size) for size in sizes), key=lambda found: len(found.calls))


def _salvaged(content: bytes, path: Path, size: int) -> Salvaged:
    merged = {place // size + 1: content[place : place + size] for place in range(0, len(content), size)}
    latest = merged | dict(_frames(Path(f"{path}-wal"), size))
    found = Salvaged({}, {}, {})
    # the latest version of a page first, because the first reading of a row counts
    for pages in (latest, {number: page for number, page in merged.items() if latest[number] is not page}):
        for number, page in pages.items():
            for rowid, row in _rows(page, FILE_HEADER if number == 1 else 0, latest, size):
                _sort_in(found, rowid, row)
    return found


def _frames(wal: Path, size: int) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of the pages in SQLite's write-ahead log."""
    content = wal.read_bytes() if wal.exists() else b""
    # frames with another salt are older than the log, and merged
    salt = content[16:24]
    for start in range(WAL_HEADER, len(content), FRAME_HEADER + size):
        header = content[start : start + FRAME_HEADER]
        if header[8:16] == salt:
            yield int.from_bytes(header[:4]), content[start + FRAME_HEADER : start + FRAME_HEADER + size]


def _rows(page: bytes, at: int, pages: dict[int, bytes], size: int) -> Iterator[tuple[int, list[Value]]]:
    """Yield the rows of a page, each with its number where it has one."""
    if len(page) < at + 12 or page[at] not in WITH_CELLS:
        return
    first = at + (12 if page[at] == INTERIOR_INDEX else 8)
    for place in range(first, min(first + 2 * int.from_bytes(page[at + 3 : at + 5]), len(page) - 1), 2):
        try:
            yield _row(page, int.from_bytes(page[place : place + 2]), page[at], pages, size)
        except (_Unreadable, IndexError, KeyError, struct.error, UnicodeDecodeError):
            continue


def _row(page: bytes, at: int, kind: int, pages: dict[int, bytes], size: int) -> tuple[int, list[Value]]:
    at += 4 if kind == INTERIOR_INDEX else 0
    length, at = _number(page, at)
    rowid, at = _number(page, at) if kind == LEAF_TABLE else (0, at)
    least = (size - 12) * 32 // 255 - 23
    most = size - 35 if kind == LEAF_TABLE else (size - 12) * 64 // 255 - 23
    if length <= most:
        return rowid, _values(page[at : at + length], length)
    local = least + (length - least) % (size - 4)
    local = local if local <= most else least
    payload, (following,) = page[at : at + local], OVERFLOW.unpack_from(page, at + local)
    while following and len(payload) < length:
        more = pages[following]
        payload, (following,) = payload + more[4 : 4 + length - len(payload)], OVERFLOW.unpack_from(more)
    if following:
        raise _Unreadable  # the last page of a long row names no further one
    return rowid, _values(payload, length)


def _values(payload: bytes, length: int) -> list[Value]:
    """Return the values of a row."""
    if len(payload) != length:
        raise _Unreadable
    end, at = _number(payload, 0)
    kinds = []
    while at < end:
        kind, at = _number(payload, at)
        kinds.append(kind)
    values: list[Value] = []
    for kind in kinds:
        width = INTEGERS.get(kind, 8 if kind == 7 else max(0, kind - 12) // 2)
        part, at = payload[at : at + width], at + width
        if kind in INTEGERS:
            values.append(int.from_bytes(part, signed=True))
        elif kind == 7:
            values.append(struct.unpack(">d", part)[0])
        elif kind >= 12:
            values.append(part.decode() if kind % 2 else part)
        else:
            values.append({0: None, 8: 0, 9: 1}[kind])
    if at != length:
        raise _Unreadable
    return values


def _number(content: bytes, at: int) -> tuple[int, int]:
    """Return a number of variable length, and where it ends."""
    number = 0
    for place in range(at, at + 8):
        number = number << 7 | content[place] & 0x7F
        if content[place] < 0x80:
            return number, place + 1
    return number << 8 | content[at + 8], at + 9


def _sort_in(found: Salvaged, rowid: int, row: list[Value]) -> None:
    """Keep a row if it is one of ours; values of another kind, or zeros where there are none, show that it is not."""
    if any(isinstance(value, str) and "\0" in value for value in row):
        return
    match row:
        case [bytes(key), str(), str(), str(), str(), *numbers] if len(key) == 16 and bytes(4) not in key:
            numbers, logprobs = numbers[:5], numbers[5:]
            texts = any(isinstance(value, str | bytes) for value in numbers)
            if len(numbers) == 5 and not texts and numbers[-1] and len(logprobs) < 2:
                found.calls.setdefault(key, LedgerEntry(*row))  # type: ignore[arg-type]  # their kinds were checked
        case [str(model), 0 | 1 as gives]:
            found.models.setdefault(model, bool(gives))
        case [float() | int(), str(), str(), int(), _, _, _]:
            found.spent.setdefault(rowid, row)
