"""Tables and views of database files: SQLite and DuckDB, opened to be read only."""

from __future__ import annotations

import sqlite3
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from pcs_annotator.core.table_files import Contents, TableFile, first_line, refuse_repeated, schema_of_texts
from pcs_annotator.core.workbooks import number_text
from pcs_annotator.errors import MissingPackage, TableError

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS = 10_000


class _Tables(NamedTuple):
    """The names of the tables and of the views of a database."""

    tables: Sequence[str]
    views: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseFile(TableFile):
    """A table or view in the file of a database."""

    def contents(self, limit: int | None = None) -> Contents:
        """Return the columns of the table, and the number of its rows."""
        with self._connected() as database:
            name, note = self._chosen(database)
            schema, rows = self._about(database, _quoted(name))
        refuse_repeated(schema.names, self.name)
        return Contents(schema, rows, note=note)

    def batches(self, schema: pa.Schema) -> Iterator[pa.Table]:
        """Yield the rows, a few thousand at a time."""
        with self._connected() as database:
            columns = ", ".join(map(_quoted, schema.names))
            query = f"SELECT {columns} FROM {_quoted(self._chosen(database)[0])}"
            yield from self._selected(database, query, schema)

    def _chosen(self, database: Any) -> tuple[str, str]:
        """Return the name of the table to read, and what to say about that."""
        tables, views = self._named(database)
        names = [*tables, *views]
        given = self.reading.table
        if given:
            alike = [name for name in names if name == given] or [
                name for name in names if name.casefold() == given.casefold()
            ]
            if not alike:
                raise TableError(
                    f"{self.name} has no table {given!r} (--table); there are {', '.join(names) or 'none'}"
                )
            return alike[0], ""
        if not names:
            raise TableError(f"{self.name} has no tables: name another file")
        if len(tables) != 1 and len(names) > 1:
            raise TableError(f"{self.name} has several tables: name one with --table: {', '.join(names)}")
        note = f"has views, too ({', '.join(views)}): the table {names[0]!r} is read (--table names another)"
        return names[0], note if len(names) > 1 else ""

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        if self.path is None or self.compression is not None:
            raise TableError(f"{self.name} is a database: copy it to this machine, and unpack it, to read it")
        self._refuse_empty()
        try:
            with closing(self._connect(self.path)) as database:
                yield database
        except self._errors() as error:
            self._refuse_other_kind()
            raise TableError(
                f"{self.name} cannot be read ({first_line(error)}): close programs that write to it, or restore it"
            ) from error

    @abstractmethod
    def _connect(self, path: Path) -> Any: ...

    @abstractmethod
    def _errors(self) -> type[Exception]: ...

    @abstractmethod
    def _named(self, database: Any) -> _Tables: ...

    @abstractmethod
    def _about(self, database: Any, table: str) -> tuple[pa.Schema, int]: ...

    @abstractmethod
    def _selected(self, database: Any, query: str, schema: pa.Schema) -> Iterator[pa.Table]: ...


def _quoted(name: str) -> str:
    """Return the name of a table or column for SQL."""
    return '"' + name.replace('"', '""') + '"'


class SqliteFile(DatabaseFile):
    """A table of an SQLite database; cells are texts, because every cell of a column may have a type of its own."""

    def _connect(self, path: Path) -> Any:
        return sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)

    def _errors(self) -> type[Exception]:
        return sqlite3.Error

    def _named(self, database: Any) -> _Tables:
        query = "SELECT name FROM sqlite_master WHERE type = ? AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
        tables, views = ([name for (name,) in database.execute(query, [kind])] for kind in ("table", "view"))
        return _Tables(tables, views)

    def _about(self, database: Any, table: str) -> tuple[pa.Schema, int]:
        columns = database.execute(f"SELECT * FROM {table} LIMIT 0").description
        ((rows,),) = database.execute(f"SELECT count(*) FROM {table}")
        return schema_of_texts([name for name, *_ in columns]), rows

    def _selected(self, database: Any, query: str, schema: pa.Schema) -> Iterator[pa.Table]:
        import pyarrow as pa

        cursor = database.execute(query)
        while rows := cursor.fetchmany(BATCH_ROWS):
            columns = zip(*rows, strict=True)
            texts = [
                [self._as_text(cell, name) for cell in column]
                for name, column in zip(schema.names, columns, strict=True)
            ]
            yield pa.table(texts, schema=schema)

    def _as_text(self, cell: Any, column: str) -> str | None:
        if isinstance(cell, bytes):
            raise TableError(
                f"{self.name}: column {column!r} holds bytes (BLOB): store texts in it, or select others with a view"
            )
        return number_text(cell) if isinstance(cell, float) else None if cell is None else str(cell)


class DuckDbFile(DatabaseFile):
    """A table of a DuckDB database, with the types that it has there."""

    def _connect(self, path: Path) -> Any:
        return _duckdb(self.name).connect(str(path), read_only=True)

    def _errors(self) -> type[Exception]:
        return _duckdb(self.name).Error

    def _named(self, database: Any) -> _Tables:
        query = "SELECT table_name FROM information_schema.tables WHERE table_type = ? ORDER BY table_name"
        kinds = ("BASE TABLE", "VIEW")
        tables, views = ([name for (name,) in database.execute(query, [kind]).fetchall()] for kind in kinds)
        return _Tables(tables, views)

    def _about(self, database: Any, table: str) -> tuple[pa.Schema, int]:
        ((rows,),) = database.execute(f"SELECT count(*) FROM {table}").fetchall()
        return _reader(database, f"SELECT * FROM {table} LIMIT 0").schema, rows

    def _selected(self, database: Any, query: str, schema: pa.Schema) -> Iterator[pa.Table]:
        import pyarrow as pa

        for batch in _reader(database, query):
            yield pa.Table.from_batches([batch]).cast(schema)


def _reader(database: Any, query: str) -> Any:
    import pyarrow as pa

    # the names of methods that return Arrow differ between versions
    return pa.RecordBatchReader.from_stream(database.sql(query))


def _duckdb(name: str) -> Any:
    try:
        import duckdb
    except ImportError as error:
        raise MissingPackage(
            f"{name} needs the package duckdb: pip install duckdb; or save the table as Parquet"
        ) from error
    return duckdb
