"""Files of tables: what their names and first bytes say about them, how they are opened, and what can go wrong."""

import csv
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath, PurePosixPath
from typing import Any, NamedTuple

from pcs_annotator.base.errors import TableError, warn_user
from pcs_annotator.base.text import first_line
from pcs_annotator.tables.arrow import pa, refuse_repeated

CSV, JSON, JSON_LINES, CONLL, PARQUET, WORKBOOK = ".csv", ".json", ".jsonl", ".conll", ".parquet", ".xlsx"
TEXTS = (CSV, JSON, JSON_LINES, CONLL)
FORMATS: Mapping[str, str] = {
    **dict.fromkeys((CSV, ".tsv", ".tab", ".txt"), CSV),
    JSON: JSON,
    **dict.fromkeys((JSON_LINES, ".ndjson"), JSON_LINES),
    **dict.fromkeys((CONLL, ".bio", ".iob", ".iob2"), CONLL),
    **dict.fromkeys((PARQUET, ".pq"), PARQUET),
    **dict.fromkeys((WORKBOOK, ".xlsm"), WORKBOOK),
}
"""Extension → the format that it stands for, called by its usual extension."""
ENDINGS = tuple(FORMATS)
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
STDIO = PurePath("-")  # standard input or output instead of a file
MOST_COLUMNS = 10_000
MOST_ROWS = 100_000_000
MOST_BYTES_UNPACKED = 2 * 1024**3  # a small file can hold terabytes when it is compressed
BATCH_ROWS = 10_000
BLOCK = 64 * 1024**2  # the most bytes of a row; so many tell the encoding of a file elsewhere
USUAL_BLOCK = 1024**2  # how much of a file is in memory at a time, unless a row is longer
HEAD = 4096  # how many of its first bytes tell the format of a file


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How a CSV file is written, so that labels can be written alike."""

    delimiter: str = ","
    # whether it begins with a byte order mark, or has another encoding than UTF-8: what is written alike is in UTF-8,
    # with a mark that spreadsheets recognise
    bom: bool = False
    line_end: str = "\n"
    quote_all: bool = False  # whether all cells are in quotes, rather than those that need them


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a user's table is to be read, where it does not show that itself."""

    encoding: str = ""  # the encoding of its texts, such as `windows-1252`; empty to guess it
    sheet: str = ""  # the sheet of a workbook, by name or by number from 1; empty for the first with a header and rows


AS_FOUND = Reading()  # nothing is prescribed


class OpenedTable(NamedTuple):
    """The columns of a table in one or several files, and a function that reads some of them, a few rows at a time."""

    schema: pa.Schema
    rows: int | None  # how many; None if only reading them tells
    batches: Callable[[pa.Schema], Iterator[pa.Table]]
    dialect: Dialect | None = None  # how it is written, if it is a CSV file
    note: str = ""  # what was guessed about it, such as "is read as cp1252"
    packed: bool = False  # whether it can be much larger in memory than in its files


class FileName(NamedTuple):
    """The name of a file in parts: `news`, `.csv` and `.gz`."""

    stem: str
    suffix: str
    packed: str

    @property
    def format(self) -> str:
        """The format that the extension stands for; empty if it is unknown."""
        return FORMATS.get(self.suffix.lower(), "")

    @property
    def compression(self) -> str | None:
        """How the file is compressed."""
        return COMPRESSIONS.get(self.packed.lower())


def name_parts(path: PurePath | str) -> FileName:
    """Return what the name of a file says about it."""
    path = PurePosixPath(path) if isinstance(path, str) else path
    packed = path.suffix if path.suffix.lower() in COMPRESSIONS else ""
    inner = path.with_suffix("") if packed else path
    return FileName(inner.stem, inner.suffix, packed)


_MAGIC: Mapping[bytes, str] = {
    b"\x1f\x8b": ".gz",
    b"\x28\xb5\x2f\xfd": ".zst",
    b"PAR1": PARQUET,
    b"ARROW1": ".arrow",
    b"SQLite format 3\0": ".sqlite",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": ".xls",
    b"FEA1": ".arrow",
    b"%PDF": ".pdf",
}
_TEXT_KINDS = {r"\[\s*[{\]]": JSON, r'\{\s*["}]': JSON_LINES, r"(?i)<(!doctype html|html|table|\?xml)": ".html"}
_RENAME: Mapping[str, str] = {
    ".gz": "compressed with gzip",
    ".zst": "compressed with Zstandard",
    PARQUET: "a Parquet file",
    WORKBOOK: "an Excel workbook",
    JSON: "a list in JSON",
    JSON_LINES: "JSON with one object per line",
    CSV: "a text file",
}
"""Kinds that are read under another extension."""
_CONVERT: Mapping[str, str] = {
    ".arrow": "an Arrow or Feather file: write it as Parquet: df.to_parquet('texts.parquet')",
    ".sqlite": "an SQLite database: export its table: sqlite3 -header -csv FILE 'SELECT * FROM name' > texts.csv",
    ".duckdb": "a DuckDB database: export its table: duckdb FILE \"COPY name TO 'texts.parquet'\"",
    ".zip": "a ZIP archive: unpack it, and name a file in it",
    ".pdf": "a PDF document: save its table as .xlsx or .csv",
    ".xls": "an old Excel workbook, or one with a password: save it as .xlsx, without a password",
    ".ods": "an OpenDocument spreadsheet: save it as .xlsx or .csv",
    ".html": "a web page, whatever its extension says: open it in a spreadsheet and save it as .xlsx",
}


def kind_of(head: bytes) -> str:
    """Return the extension that suits the first bytes of a file; `.csv` for a text that is nothing else."""
    if kind := next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), ""):
        return kind
    if head[8:12] == b"DUCK":
        return ".duckdb"
    if head.startswith(b"PK\x03\x04"):
        if b"opendocument.spreadsheet" in head[:200]:
            return ".ods"
        return WORKBOOK if b"xl/" in head or b"[Content_Types].xml" in head else ".zip"
    text = head.decode("utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig", "ignore").lstrip()
    return next((kind for pattern, kind in _TEXT_KINDS.items() if re.match(pattern, text)), CSV)


@dataclass(frozen=True, kw_only=True)
class SourceFile:
    """A file of a table, here or at an address."""

    name: str  # its name in messages
    size: int  # its size in bytes
    open: Callable[[], Any]  # opens it as a pyarrow file
    version: Callable[[], str]  # returns what changes whenever the file does
    remote: bool = False  # whether it is on another machine
    reading: Reading = AS_FOUND  # how it is to be read

    @cached_property
    def format(self) -> str:
        """What its extension stands for or, if that is unknown, what its first bytes suit."""
        return name_parts(self.name).format or FORMATS.get(self._kind(), CSV)

    @property
    def packed(self) -> bool:
        """Whether it can be much larger when it is read."""
        return self.format in (PARQUET, WORKBOOK) or name_parts(self.name).compression is not None

    def stream(self) -> Any:
        """Open it, unpacked."""
        compression, raw = name_parts(self.name).compression, self.open()
        return raw if compression is None else pa.CompressedInputStream(raw, compression)

    def seekable(self) -> Any:
        """Open it to be read in any order."""
        return self.open() if name_parts(self.name).compression is None else pa.BufferReader(self.read_all())

    def read_all(self) -> bytes:
        """Return its bytes, unpacked; an empty or a far too large file is an error."""
        self.refuse_empty()
        with self.explained(), self.stream() as stream:
            content: bytes = stream.read(MOST_BYTES_UNPACKED + 1)
        if len(content) > MOST_BYTES_UNPACKED:
            raise too_large(self.name)
        return content

    def refuse_empty(self) -> None:
        """Raise if there is nothing in it."""
        if self.size == 0:
            raise TableError(f"{self.name} is empty: it needs a header line and at least one row")

    def refuse_other_kind(self) -> None:
        """Raise if the first bytes show that this is a file of another kind than its extension says."""
        kind, expected = self._kind(), name_parts(self.name).format
        if kind in _CONVERT:
            raise TableError(f"{self.name} is {_CONVERT[kind]}")
        damaged = not expected or (kind == CSV and expected in TEXTS[1:])
        if kind != expected and not damaged:
            what = f"{_RENAME[kind]}, not what its extension says"
            raise TableError(f"{self.name} is {what}: rename it so that it ends in {kind}")

    def _kind(self) -> str:
        with self.stream() as stream:
            return kind_of(stream.read(HEAD))

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn what goes wrong while reading into an error that names the file and the remedy."""
        try:
            yield
        except FileNotFoundError as error:
            raise TableError(f"{self.name} is no longer there: restore it, and start again") from error
        except (OSError, EOFError, UnicodeError, csv.Error, zlib.error, pa.ArrowException) as error:
            with suppress(OSError, EOFError, pa.ArrowException):  # the first error is the one to report
                self.refuse_other_kind()
            reason, remedy = first_line(error), "save it again as CSV or Parquet"
            if "UTF8" in reason and self.format != PARQUET:
                remedy = "name its encoding with --encoding, or save it as UTF-8"
            raise TableError(f"{self.name} cannot be read ({reason}): {remedy}") from error


def warn_of_guesses(notes: Mapping[str, str]) -> None:
    """Warn of what was guessed about files, by name; once if it is the same about several."""
    for note in dict.fromkeys(filter(None, notes.values())):
        names = [name for name, other in notes.items() if other == note]
        more = f" (and so are {len(names) - 1} more files)" if len(names) > 1 else ""
        warn_user(f"{names[0]} {note}{more}")


def joined(tables: Iterable[pa.Table], schema: pa.Schema, name: str, *, packed: bool) -> pa.Table:
    """Return all rows as one table; what was compressed and turns out too large for memory is an error."""
    parts, rows, size = list[pa.Table](), 0, 0
    for table in tables:
        parts.append(table)
        rows, size = rows + len(table), size + table.nbytes
        if packed and (rows > MOST_ROWS or size > MOST_BYTES_UNPACKED):
            raise too_large(name)
    # pyarrow loads pandas for an empty table, which takes a third of a second
    return pa.concat_tables(parts) if parts else schema.empty_table()


def too_large(name: str) -> TableError:
    """Return the error for a file that is too large for memory."""
    size = f"{MOST_BYTES_UNPACKED / 1024**3:g} GiB"
    return TableError(f"{name} is larger than {size} when unpacked: split it, or save it as CSV without compression")


def text_schema(names: Sequence[str], table: str) -> pa.Schema:
    """Return the schema of a table in which all cells are texts; too many columns or a repeated name are an error."""
    if len(names) > MOST_COLUMNS:
        raise TableError(
            f"{table} has {len(names):,} columns, at most {MOST_COLUMNS:,} are read: one row per text is needed"
        )
    refuse_repeated(names, table)
    return pa.schema([(name, pa.string()) for name in names])
