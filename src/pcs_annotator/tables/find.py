"""From what a user names to tables: a file, a folder, a pattern, an address, standard input, or a table in memory."""

import atexit
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from glob import glob
from itertools import chain
from pathlib import Path, PurePath
from typing import BinaryIO

from pcs_annotator.base.errors import InputError, TableError
from pcs_annotator.base.text import first_line
from pcs_annotator.core.arrays import is_column
from pcs_annotator.tables import source_files
from pcs_annotator.tables.arrow import pa, texts_of
from pcs_annotator.tables.conll import open_conll
from pcs_annotator.tables.files import find_remote, has_wildcards, hash_of, shown_address
from pcs_annotator.tables.parquet import open_parquet
from pcs_annotator.tables.source_files import AS_FOUND, OpenedTable, Reading, SourceFile, name_parts
from pcs_annotator.tables.text_files import open_csv, open_json
from pcs_annotator.tables.workbook import open_workbook

READERS: Mapping[str, Callable[[SourceFile, int | None], OpenedTable]] = {
    source_files.CSV: open_csv,
    source_files.JSON: open_json,
    source_files.JSON_LINES: open_json,
    source_files.CONLL: open_conll,
    source_files.PARQUET: open_parquet,
    source_files.WORKBOOK: open_workbook,
}
_ADDRESS = re.compile(r"([A-Za-z][\w+.-]*::)*[A-Za-z][\w+.-]*://")


def as_arrow(table: object, reading: Reading = AS_FOUND) -> pa.Table:
    """Return the table as pyarrow; all columns of a CSV file are texts, whatever they look like.

    Takes a path to a file, which is read as `reading` says, a dict of columns, or any object that supports the Arrow
    PyCapsule protocol: pandas, polars, pyarrow, DuckDB.
    """
    if isinstance(table, str | os.PathLike):
        return read_file(Path(table), reading)
    try:
        arrow = pa.table(table)
    except (TypeError, ValueError, pa.ArrowException) as error:
        kind = type(table).__name__
        raise InputError(
            f"cannot read a {kind} as a table ({error}): give a path, a data frame or a dict of columns"
        ) from error
    # pandas adds its row index as a column of this name
    return arrow.drop_columns([name for name in arrow.column_names if name.startswith("__index_level_")])


def read_file(path: Path, reading: Reading = AS_FOUND, wanted: Collection[str] | None = None) -> pa.Table:
    """Read a file, or those of the wanted columns that it has; every problem is an error that names the remedy."""
    opened, _ = _opened(path.name, [local_file(path, reading=reading)], None)
    schema = pa.schema([field for field in opened.schema if wanted is None or field.name in wanted])
    return source_files.joined(opened.batches(schema), schema, path.name, packed=opened.packed)


def place_or_table(data: object) -> Path | str | pa.Table:
    """Return where a table is, or the table itself; a list or a column of texts is a table with the column `text`."""
    if isinstance(data, str | os.PathLike):
        return table_place(data)
    if not is_column(data):
        return as_arrow(data)
    return pa.table({"text": pa.array(texts_of(data), pa.string())})


def is_address(spec: os.PathLike[str] | str) -> bool:
    """Return whether a table is elsewhere, at an address such as `s3://bucket/news.parquet`."""
    return isinstance(spec, str) and _ADDRESS.match(spec) is not None


def table_place(spec: os.PathLike[str] | str) -> Path | str:
    """Return where a table is: an address as it is, because a path would lose one of its slashes; else a path."""
    return str(spec) if is_address(spec) else Path(spec)


def table_stem(spec: Path | str) -> str:
    """Return the name of a table without its extension; for a pattern, that of the folder that it is about."""
    name = str(spec).partition("://")[2].partition("?")[0] if is_address(spec) else str(spec)
    path = PurePath("stdin" if PurePath(name) == source_files.STDIO else name)
    while has_wildcards(path.name):
        path = path.parent
    parts = name_parts(path)
    return (parts.stem if parts.format else f"{parts.stem}{parts.suffix}") or "tables"


def source_name(table: object) -> str:
    """Return how messages call a table."""
    if not isinstance(table, str | os.PathLike):
        return "the table"
    if is_address(table):
        return shown_address(str(table))
    return str(table) if has_wildcards(str(table)) else Path(table).name


def open_parts(
    spec: Path | str, limit: int | None = None, reading: Reading = AS_FOUND
) -> tuple[OpenedTable, Sequence[SourceFile]]:
    """Return a table and its files, which must have the same columns; the first `limit` rows are enough."""
    files, name = _find(spec, reading), source_name(spec)
    first, other = files[0], next((file for file in files if file.format != files[0].format), None)
    if other is not None:
        folder = str(spec).rstrip("/") if not has_wildcards(str(spec)) else os.path.dirname(str(spec)) or "."
        raise TableError(
            f"{name} has {first.format} and {other.format} files ({first.name}, {other.name}): choose one kind with a "
            f"pattern such as '{folder}/*{name_parts(first.name).suffix.lower()}'"
        )
    return _opened(name, files, limit)


def _opened(name: str, files: Sequence[SourceFile], limit: int | None) -> tuple[OpenedTable, Sequence[SourceFile]]:
    opened: dict[str, OpenedTable] = {}
    schema, rows = pa.schema([]), 0
    for file in files:
        for option, value, allowed, problem in (
            ("--encoding", file.reading.encoding, source_files.TEXTS, "is not a text file"),
            ("--sheet", file.reading.sheet, (source_files.WORKBOOK,), "has no sheets"),
        ):
            if value and file.format not in allowed:
                raise TableError(f"{file.name} {problem}: leave {option} out, or the setting of that name in pcs.toml")
        part = READERS[file.format](file, None if limit is None else limit - rows)
        schema = _merged(schema, next(iter(opened)), part.schema, file) if opened else part.schema
        opened[file.name] = part
        rows += part.rows or 0
        if limit is not None and rows >= limit:
            break
    if not schema.names:
        raise TableError(f"{name} has no rows")
    source_files.warn_of_guesses({name: part.note for name, part in opened.items()})
    parts, files = list(opened.values()), files[: len(opened)]
    table = OpenedTable(
        schema=schema,
        rows=rows if all(part.rows is not None for part in parts) else None,
        batches=lambda wanted: chain.from_iterable(part.batches(wanted) for part in parts),
        dialect=parts[0].dialect,
        packed=any(file.packed for file in files),
    )
    return table, files


def _merged(schema: pa.Schema, first: str, more: pa.Schema, file: SourceFile) -> pa.Schema:
    """Return the schema of two parts; rows of JSON may lack keys, other parts must have the same columns."""
    if file.format not in source_files.TEXTS[1:] and {*schema.names} != {*more.names}:
        only = {first: {*schema.names} - {*more.names}, file.name: {*more.names} - {*schema.names}}
        lists = {part: ", ".join(map(repr, sorted(names))) for part, names in only.items() if names}
        differing = "; ".join(f"only {part} has {names}" for part, names in lists.items())
        raise TableError(
            f"{first} and {file.name} have different columns ({differing}): give all parts the same columns, or choose "
            "parts with a pattern"
        )
    try:
        # a column without any value has no type
        return pa.unify_schemas([schema, more], promote_options="permissive")
    except pa.ArrowException as error:
        raise TableError(
            f"{first} and {file.name} differ ({first_line(error)}): write both with the same types"
        ) from None


def _find(spec: Path | str, reading: Reading) -> Sequence[SourceFile]:
    if is_address(spec):
        files, folder = find_remote(str(spec), reading)
        tables = set(_tables_among([file.name.rpartition("/")[2] for file in files], spec)) if folder else None
        files = [file for file in files if tables is None or file.name.rpartition("/")[2] in tables]
    elif Path(spec) == source_files.STDIO:
        if sys.stdin is None or sys.stdin.isatty():
            raise TableError("- stands for a table on standard input: pipe one in, such as pcs plan - < news.csv")
        path, kind = _spooled(sys.stdin.buffer)
        files = [local_file(path, f"stdin{kind}", reading)]
    elif os.path.isdir(path := Path(spec)):
        files = [
            local_file(path / name, f"{path.name}/{name}", reading) for name in _tables_among(os.listdir(path), path)
        ]
    elif not os.path.exists(path) and has_wildcards(str(path)):
        matches = [name for name in sorted(glob(str(path), recursive=True)) if os.path.isfile(name)]
        files = [local_file(Path(name), name, reading) for name in matches]
    else:
        files = [local_file(path, reading=reading)]
    if not files:
        raise TableError(f"no file matches {spec}: check the pattern and the folder")
    return files


def local_file(path: Path, name: str = "", reading: Reading = AS_FOUND) -> SourceFile:
    """Return a file on this machine, called `name` in messages; one that cannot be a table is an error."""
    # os.path accepts a name that is too long for any file; Path raises an error
    if os.path.isdir(path):
        raise TableError(f"{path} is a folder: name a CSV, Excel, JSON or Parquet file in it")
    if not os.path.exists(path):
        raise TableError(f"there is no file {path}: check the name and the folder")
    if not os.path.isfile(path):
        raise TableError(f"{path} is not a regular file: save the table to a file first, or give it as - on stdin")
    name = name or path.name

    def version() -> str:
        try:
            return hash_of(path)
        except OSError as error:
            raise TableError(f"{name} cannot be read ({error.strerror}): restore it, and start again") from error

    size = path.stat().st_size
    return SourceFile(name=name, size=size, open=lambda: pa.OSFile(os.fspath(path)), version=version, reading=reading)


@lru_cache(maxsize=1)
def _spooled(stdin: BinaryIO) -> tuple[Path, str]:
    """Copy standard input to a temporary file (`TMPDIR`), because a table is opened and read more than once.

    It is removed when this process ends. Its name in messages has the extension that suits what is in it.
    """
    handle, name = tempfile.mkstemp(prefix="pcs-stdin-")
    path = Path(name)
    atexit.register(path.unlink, missing_ok=True)
    with os.fdopen(handle, "wb") as file:
        shutil.copyfileobj(stdin, file)
    with path.open("rb") as file:
        kind = source_files.kind_of(file.read(source_files.HEAD))
    if kind in source_files.COMPRESSIONS:
        with pa.CompressedInputStream(pa.OSFile(str(path)), source_files.COMPRESSIONS[kind]) as stream:
            kind = source_files.kind_of(stream.read(source_files.HEAD)) + kind
    return path, kind


def _tables_among(names: Iterable[str], folder: Path | str) -> Sequence[str]:
    """Return the names of tables; `_SUCCESS`, `.part.crc` and the like are what engines leave beside them."""
    # a workbook is a table of its own
    formats_of = {name: name_parts(name).format for name in names if not name.startswith((".", "_"))}
    tables = sorted(name for name, format in formats_of.items() if format not in ("", source_files.WORKBOOK))
    if not tables:
        raise TableError(
            f"{folder} is a folder without tables: name a file, or a pattern such as "
            f"'{str(folder).rstrip('/')}/**/*.parquet' for files in folders below it"
        )
    return tables
