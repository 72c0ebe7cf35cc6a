"""What all files of tables have in common: their names, how they are opened, and what can be wrong with them."""

import csv
import re
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import PurePath, PurePosixPath
from typing import Any, ClassVar, NamedTuple

from pcs_annotator.base.errors import TableError, warn_user
from pcs_annotator.base.text import first_line
from pcs_annotator.tables.arrow import pa
from pcs_annotator.tables.encodings import BOMS, UTF8, Encoding, NotText, find_encoding

PARQUET = (".parquet", ".pq")
JSON_LINES = (".jsonl", ".ndjson")
TEXTS = (".csv", ".tsv", ".tab", ".txt", ".json", *JSON_LINES)
WORKBOOKS = (".xlsx", ".xlsm", ".xls", ".ods")
ENDINGS = (*TEXTS, *PARQUET, *WORKBOOKS)
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
STDIO = PurePath("-")  # standard input or output instead of a file
MOST_COLUMNS = 10_000
MOST_ROWS = 100_000_000
MOST_BYTES_UNPACKED = 2 * 1024**3  # a small file can hold terabytes when it is compressed
BLOCK = 64 * 1024**2  # the most bytes of a row; so many tell the encoding of a file elsewhere
USUAL_BLOCK = 1 * 1024**2  # how much of a file is in memory at a time, unless a row is longer


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


class Contents(NamedTuple):
    """What can be known about a file before its rows are read."""

    schema: pa.Schema  # names and types of its columns
    rows: int | None  # number of its rows; None if only reading them tells
    dialect: Dialect | None = None  # how it is written, if it is a CSV file
    note: str = ""  # what was guessed about it, such as "is read as Windows-1252"; empty if nothing was


def split_name(path: PurePath) -> tuple[str, str]:
    """Return the name of a file without its extension, and the extension with that of its compression.

    >>> split_name(PurePath("news.train.csv.gz"))
    ('news.train', '.csv.gz')
    """
    packed = path.suffix if path.suffix.lower() in COMPRESSIONS else ""
    inner = path.with_suffix("") if packed else path
    return inner.stem, inner.suffix + packed


class Ending(NamedTuple):
    """The extension of a table's file, in lower case, without that of its compression; and how it is compressed."""

    kind: str
    compression: str | None


def ending_of(name: str) -> Ending:
    """Return what the name of a file says about it.

    >>> ending_of("news.train.CSV.gz")
    Ending(kind='.csv', compression='gzip')
    """
    path = PurePosixPath(name)
    compression = COMPRESSIONS.get(path.suffix.lower())
    return Ending((path.with_suffix("") if compression else path).suffix.lower(), compression)


HEAD = 4096  # how many of its first bytes tell the format of a file
_MAGIC: Mapping[bytes, str] = {
    b"\x1f\x8b": ".gz",
    b"\x28\xb5\x2f\xfd": ".zst",
    b"PAR1": ".parquet",
    b"ARROW1": ".arrow",
    b"SQLite format 3\0": ".sqlite",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": ".xls",
    b"FEA1": ".arrow",
    b"%PDF": ".pdf",
}
_RENAME: Mapping[str, str] = {
    ".gz": "compressed with gzip",
    ".zst": "compressed with Zstandard",
    ".parquet": "a Parquet file",
    ".xls": "an old Excel workbook, or an Excel workbook with a password",
    ".xlsx": "an Excel workbook",
    ".ods": "an OpenDocument spreadsheet",
    ".json": "a list in JSON",
    ".jsonl": "JSON with one object per line",
    ".csv": "a text file",
}
"""Kinds that are read under another extension."""
_CONVERT: Mapping[str, str] = {
    ".arrow": "an Arrow or Feather file: write it as Parquet: df.to_parquet('texts.parquet')",
    ".sqlite": "an SQLite database: export its table: sqlite3 -header -csv FILE 'SELECT * FROM name' > texts.csv",
    ".duckdb": "a DuckDB database: export its table: duckdb FILE \"COPY name TO 'texts.parquet'\"",
    ".zip": "a ZIP archive: unpack it, and name a file in it",
    ".pdf": "a PDF document: save its table as .xlsx or .csv",
    ".html": "a web page, whatever its extension says: open it in a spreadsheet and save it as .xlsx",
}
_FAMILIES = ({".xlsx", ".xlsm"}, {".parquet", ".pq"}, {".jsonl", ".ndjson"}, {".csv", ".tsv", ".tab", ".txt"})
_KNOWN = {*_RENAME, *(ending for family in _FAMILIES for ending in family)}


def kind_of(head: bytes) -> str:
    """Return the extension that suits the first bytes of a file; `.csv` for a text that is nothing else.

    >>> kind_of(b"PAR1"), kind_of(b'{"text": "Hello"}'), kind_of(b"id;text")
    ('.parquet', '.jsonl', '.csv')
    """
    found = next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), "")
    if found:
        return found
    if head[8:12] == b"DUCK":
        return ".duckdb"
    if head.startswith(b"PK\x03\x04"):
        if b"opendocument.spreadsheet" in head[:200]:
            return ".ods"
        return ".xlsx" if b"xl/" in head or b"[Content_Types].xml" in head else ".zip"
    return _kind_of_text(head)


def _kind_of_text(head: bytes) -> str:
    encoding = next((name for bom, name in BOMS if head.startswith(bom)), "latin-1")
    text = head.decode(encoding, "ignore").lstrip("\ufeff \t\r\n")
    if re.match(r"\[\s*[{\]]", text):
        return ".json"
    if re.match(r'\{\s*["}]', text):
        return ".jsonl"
    return ".html" if re.match(r"<(!doctype html|html|table|\?xml)", text, re.IGNORECASE) else ".csv"


def other_kind(kind: str, ending: str) -> str:
    """Return what a file of some kind is, and what to do, if its extension says otherwise; empty if not."""
    if kind in _CONVERT:
        return _CONVERT[kind]
    if kind == ending or any({kind, ending} <= family for family in _FAMILIES):
        return ""
    if (kind == ".csv" and ending in (".json", ".jsonl", ".ndjson")) or ending not in _KNOWN:  # then it is damaged
        return ""
    return f"{_RENAME[kind]}, not what its extension says: rename it so that it ends in {kind}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFile(ABC):
    """A file of a table, wherever it is."""

    kind: ClassVar[str]  # what messages call its format
    has_compression: ClassVar[bool] = False  # whether the format compresses on its own

    name: str  # its name in messages
    size: int  # its size in bytes
    open: Callable[[], Any]  # opens it as a pyarrow file
    version: Callable[[], str]  # returns what changes whenever the file does
    compression: str | None = None  # how it is compressed; None if it is not, or if its format has its own
    remote: bool = False  # whether it is on another machine
    reading: Reading = AS_FOUND  # how it is to be read

    @property
    def packed(self) -> bool:
        """Whether it can be much larger when it is read."""
        return self.has_compression or self.compression is not None

    @abstractmethod
    def contents(self, limit: int | None = None) -> Contents:
        """Return columns and, where known, the number of rows; `limit` is the number of rows that will be read."""

    @abstractmethod
    def batches(self, schema: pa.Schema) -> Iterator[pa.Table]:
        """Yield its rows in order, with exactly these columns."""

    def _refuse_empty(self) -> None:
        if self.size == 0:
            raise TableError(f"{self.name} is empty: it needs a header line and at least one row")

    def _read_all(self) -> bytes:
        with self._explained(), self._stream() as stream:
            found: bytes = stream.read(MOST_BYTES_UNPACKED + 1)
        if len(found) > MOST_BYTES_UNPACKED:
            raise too_large(self.name)
        return found

    def _stream(self) -> Any:
        raw = self.open()
        return raw if self.compression is None else pa.CompressedInputStream(raw, self.compression)

    def _seekable(self) -> Any:
        """Open it to be read in any order."""
        return self.open() if self.compression is None else pa.BufferReader(self._read_all())

    def _refuse_other_kind(self) -> None:
        """Raise if the first bytes show that this is a file of another kind than its extension says."""
        with self._stream() as stream:
            other = other_kind(kind_of(stream.read(HEAD)), ending_of(self.name).kind)
        if other:
            raise TableError(f"{self.name} is {other}")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn what goes wrong while reading into an error that names the file and the remedy."""
        try:
            yield
        except FileNotFoundError as error:
            raise TableError(f"{self.name} is no longer there: restore it, and start again") from error
        except (OSError, EOFError, UnicodeError, csv.Error, zlib.error, pa.ArrowException) as error:
            with suppress(OSError, EOFError, pa.ArrowException):  # the first error is the one to report
                self._refuse_other_kind()
            reason = first_line(error)
            if "UTF8" in reason and self.kind != "Parquet":
                raise TableError(
                    f"{self.name} is not UTF-8 text ({reason}): name its encoding with --encoding, or save it as UTF-8"
                ) from error
            raise TableError(f"{self.name} cannot be read ({reason}): save it again as CSV or Parquet") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFile(TableFile):
    """A table that is a text, in whatever encoding; `_encodings` has it once it is known."""

    _encodings: list[Encoding] = field(default_factory=list, compare=False, repr=False)

    def _encoding(self, limit: int | None = None) -> Encoding:
        """Return the encoding, after one look at the file; the first `limit` rows are enough."""
        if not self._encodings:
            most = BLOCK if self.remote or limit is not None else None
            try:
                found = find_encoding(self._stream, self.name, self.reading.encoding, most)
            except NotText:
                self._refuse_other_kind()
                raise TableError(f"{self.name} is not a text file: give a CSV, Excel or Parquet file") from None
            self._encodings.append(found)
        return self._encodings[0]

    def _note(self) -> str:
        """Return what was guessed about the file."""
        encoding = self._encoding()
        return f"is read as {encoding.shown} (guessed; --encoding overrides)" if encoding.guessed else ""

    def _utf8(self) -> Any:
        """Open the file as a stream of UTF-8, whatever its own encoding."""
        name = self._encoding().name
        return self._stream() if name == UTF8 else pa.transcoding_input_stream(self._stream(), name, UTF8)


def say_notes(notes: Mapping[str, str]) -> None:
    """Warn of what was guessed about files, given by name; once if it is the same about several."""
    for note in dict.fromkeys(filter(None, notes.values())):
        names = [name for name, one in notes.items() if one == note]
        more = f" (and so are {len(names) - 1} more files)" if len(names) > 1 else ""
        warn_user(f"{names[0]} {note}{more}")


def gathered(tables: Iterable[pa.Table], schema: pa.Schema, name: str, *, packed: bool) -> pa.Table:
    """Return all rows as one table; what was compressed and turns out too large for memory is an error."""
    found, rows, size = list[pa.Table](), 0, 0
    for table in tables:
        found.append(table)
        rows, size = rows + len(table), size + table.nbytes
        if packed and (rows > MOST_ROWS or size > MOST_BYTES_UNPACKED):
            raise too_large(name)
    # pyarrow loads pandas for an empty table, which takes a third of a second
    return pa.concat_tables(found) if found else schema.empty_table()


def too_large(name: str) -> TableError:
    """Return the error for a file that is too large for memory."""
    size = f"{MOST_BYTES_UNPACKED / 1024**3:g} GiB"
    return TableError(f"{name} is larger than {size} when unpacked: split it, or save it as CSV without compression")


def refuse_repeated(names: Sequence[str], table: str) -> None:
    """Raise if a table has two columns of the same name."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise TableError(f"{table} has more than one column called {repeated[0]!r}: rename one of them")


def schema_of_texts(names: Sequence[str], table: str) -> pa.Schema:
    """Return the schema of a table in which all cells are texts; too many columns or a repeated name are an error."""
    if len(names) > MOST_COLUMNS:
        raise TableError(
            f"{table} has {len(names):,} columns, at most {MOST_COLUMNS:,} are read: one row per text is needed"
        )
    refuse_repeated(names, table)
    return pa.schema([(name, pa.string()) for name in names])
