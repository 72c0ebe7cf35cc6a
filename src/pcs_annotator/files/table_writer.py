"""Writing tables, at once or in pieces: CSV and JSON Lines (also `.gz` and `.zst`) and Parquet; here or elsewhere."""

from __future__ import annotations

import csv
import errno
import io
import os
import re
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO

from pcs_annotator.core.table_files import COMPRESSIONS, JSON_LINES, PARQUET, Ending, ending_of
from pcs_annotator.core.tabular import is_address
from pcs_annotator.errors import TableError
from pcs_annotator.files import remote
from pcs_annotator.files.runs import atomic_path, check_ending

if TYPE_CHECKING:
    import pyarrow as pa

_TEXTS = (".csv", ".jsonl")
WRITTEN = (*_TEXTS, *PARQUET, *(f"{ending}{packed}" for ending in _TEXTS for packed in COMPRESSIONS))
"""Extensions of the tables that we write."""
GROUP_ROWS = 50_000
GROUP_BYTES = 32 * 1024**2
"""How much of a Parquet file is written at a time: many small groups of rows would be slow to read."""
_FORMULA = re.compile(r"'*[=+\-@＝＋－＠\t\r\n]")
"""The start of a cell that a spreadsheet may run as a formula, or of one that was made safe."""


class TableWriter(ABC):
    """A table that is being written; all tables that it gets must have the columns of the first."""

    @abstractmethod
    def write(self, table: pa.Table) -> None:
        """Add rows."""

    @abstractmethod
    def close(self) -> None:
        """Write what is left to be written."""


@contextmanager
def writing_table(place: Path | str, *, spreadsheet_safe: bool = False) -> Iterator[TableWriter]:
    """Yield what adds rows to a new file, which replaces an earlier one at the end; if there is an error, it does not.

    The extension says how the table is written. A file for an address is written on this machine (`TMPDIR`) first.
    With `spreadsheet_safe`, cells of a CSV file that look like formulas get an apostrophe; see `safe_cell`.
    """
    with _temporary(place) as temporary:
        file = temporary.open("wb")
        try:
            writer = _writer(file, ending_of(str(place)), spreadsheet_safe)
            try:
                yield writer
            except BaseException:
                with suppress(Exception):  # the first error is the one to report
                    writer.close()
                raise
            writer.close()
            file.close()
        finally:
            with suppress(OSError):
                file.close()


def _writer(file: BinaryIO, ending: Ending, spreadsheet_safe: bool) -> TableWriter:
    import pyarrow as pa

    if ending.kind in PARQUET:
        return _ParquetWriter(file)
    packed = file if ending.compression is None else pa.CompressedOutputStream(file, ending.compression)
    return _JsonLinesWriter(packed) if ending.kind in JSON_LINES else _CsvWriter(packed, spreadsheet_safe)


@contextmanager
def _temporary(place: Path | str) -> Iterator[Path]:
    if not is_address(place):
        check_ending(Path(place), WRITTEN)
        with atomic_path(Path(place)) as temporary:
            yield temporary
        return
    address = str(place)
    if address.startswith(remote.WEB):
        raise TableError(
            f"{remote.shown_address(address)} cannot be written: name a file, or an address such as s3://…"
        )
    check_ending(address, WRITTEN)
    system, path = remote.file_system(address)
    with tempfile.TemporaryDirectory(prefix="pcs-") as folder:
        temporary = Path(folder) / PurePosixPath(address).name
        try:
            yield temporary
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            raise TableError(
                f"{address} was not written, because {folder} is full: make room, or set TMPDIR to another folder"
            ) from error
        _upload(system, temporary, path, address)


def _upload(system: Any, temporary: Path, path: str, address: str) -> None:
    """Store a file under another name first, so that there is never half a file at the address."""
    unfinished = f"{path}.{os.getpid()}.part"
    try:
        with remote.explained(address):
            system.put_file(os.fspath(temporary), unfinished)
            system.mv(unfinished, path)
    except TableError:
        with suppress(Exception):  # whatever the file system raises: the first error is the one to report
            system.rm(unfinished)
        raise


def safe_cell(cell: Any) -> Any:
    """Return a cell so that a spreadsheet shows it instead of running it: an apostrophe is put before a formula."""
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell


def original_cell(cell: str) -> str:
    """Return the cell that `safe_cell` was given."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


class _CsvWriter(TableWriter):
    def __init__(self, file: Any, spreadsheet_safe: bool) -> None:
        self._file = io.TextIOWrapper(file, encoding="utf-8", newline="")
        # pyarrow would quote every text
        self._writer = csv.writer(self._file, lineterminator="\n")
        self._safe = partial(map, safe_cell) if spreadsheet_safe else iter
        self._begun = False

    def write(self, table: pa.Table) -> None:
        if not self._begun:
            self._writer.writerow(self._safe(table.column_names))
            self._begun = True
        for batch in table.to_batches():
            rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            self._writer.writerows(map(self._safe, rows))

    def close(self) -> None:
        self._file.close()


class _JsonLinesWriter(TableWriter):
    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, table: pa.Table) -> None:
        import orjson

        for batch in table.to_batches():
            lines = (orjson.dumps(row, default=str, option=orjson.OPT_APPEND_NEWLINE) for row in batch.to_pylist())
            self._file.write(b"".join(lines))

    def close(self) -> None:
        self._file.close()


class _ParquetWriter(TableWriter):
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._writer: Any = None
        self._waiting: list[pa.Table] = []

    def write(self, table: pa.Table) -> None:
        from pyarrow import parquet

        if self._writer is None:
            self._writer = parquet.ParquetWriter(self._file, table.schema)
        self._waiting.append(table)
        if sum(map(len, self._waiting)) >= GROUP_ROWS or sum(one.nbytes for one in self._waiting) >= GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa

        group, self._waiting = pa.concat_tables(self._waiting), []
        self._writer.write_table(group)

    def close(self) -> None:
        if self._waiting:
            self._flush()
        if self._writer is not None:
            self._writer.close()
