"""Parquet files, read and written a few rows at a time, however large they are."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from pcs_annotator.tables import source_files
from pcs_annotator.tables.arrow import pa, parquet, refuse_repeated
from pcs_annotator.tables.source_files import OpenedTable, SourceFile

PAGE_BUFFER = 256 * 1024  # how many bytes of a column are read at a time
GROUP_ROWS = 50_000
GROUP_BYTES = 32 * 1024**2  # written at a time: many small groups are slow to read


def open_parquet(file: SourceFile, limit: int | None = None) -> OpenedTable:
    """Return what the footer of a file says."""
    file.refuse_empty()
    with file.explained(), file.seekable() as raw:
        opened = parquet.ParquetFile(raw)
        schema, rows = opened.schema_arrow, opened.metadata.num_rows
    refuse_repeated(schema.names, file.name)
    return OpenedTable(schema, rows, lambda wanted: _batches(file, wanted))


def _batches(file: SourceFile, schema: pa.Schema) -> Iterator[pa.Table]:
    with file.explained(), file.seekable() as raw:
        # at an address, each read is a request: few large ones are better
        buffer = 0 if file.remote else PAGE_BUFFER
        opened = parquet.ParquetFile(raw, buffer_size=buffer, pre_buffer=file.remote, page_checksum_verification=True)
        about = opened.metadata
        size = sum(about.row_group(group).total_byte_size for group in range(about.num_row_groups))
        rows = max(1, min(source_files.BATCH_ROWS, about.num_rows * source_files.USUAL_BLOCK // max(size, 1)))
        for group in range(about.num_row_groups):  # one after the other, in case that a later one is damaged
            for batch in opened.iter_batches(rows, [group], schema.names, use_threads=False):
                table = pa.Table.from_batches([batch]).select(schema.names)
                table.validate(full=True)  # a damaged page may have bytes that are no text
                yield table if table.schema == schema else table.cast(schema)


class ParquetWriter:
    """Writes groups of rows that are large enough to be read quickly."""

    def __init__(self, file: BinaryIO | Path) -> None:
        self._file = file
        self._writer: Any = None
        self._waiting: list[pa.Table] = []

    def write(self, table: pa.Table) -> None:
        """Add rows."""
        if self._writer is None:
            self._writer = parquet.ParquetWriter(self._file, table.schema)
        self._waiting.append(table)
        if sum(map(len, self._waiting)) >= GROUP_ROWS or sum(part.nbytes for part in self._waiting) >= GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the rows so far, if there are any, as a group."""
        if self._waiting:
            group, self._waiting = pa.concat_tables(self._waiting), []
            self._writer.write_table(group, row_group_size=max(len(group), 1))

    def close(self) -> None:
        """Write what is left to be written."""
        self.flush()
        if self._writer is not None:
            self._writer.close()
