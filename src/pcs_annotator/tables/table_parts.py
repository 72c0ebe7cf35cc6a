"""The files that a table consists of: one, those in a folder, or those that a pattern matches; here or elsewhere."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from glob import glob
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pcs_annotator.base.errors import TableError
from pcs_annotator.tables.remote import find_remote, shown_address
from pcs_annotator.tables.stdin import spool_stdin
from pcs_annotator.tables.table_files import (
    ARROW,
    AS_FOUND,
    JSON_LINES,
    PARQUET,
    STDIO,
    TEXTS,
    WORKBOOKS,
    Contents,
    Dialect,
    Reading,
    TableFile,
    ending_of,
    say_notes,
)
from pcs_annotator.tables.table_formats import local_file, table_file
from pcs_annotator.tables.tabular import has_wildcards, is_address

if TYPE_CHECKING:
    import pyarrow as pa


class Part(NamedTuple):
    """One file of a table.

    Attributes:
        file: How to read it.
        version: Returns what changes whenever the file does.
    """

    file: TableFile
    version: Callable[[], str]


class Parts(NamedTuple):
    """The files of a table, which have the same columns.

    Attributes:
        parts: The files, in the order of their names.
        contents: All columns of them, the number of all rows where it is known, and how the first is written.
    """

    parts: Sequence[Part]
    contents: Contents


def open_parts(spec: Path | str, limit: int | None = None, reading: Reading = AS_FOUND) -> Parts:
    """Return the files of a table, after a look at the columns of each; the first `limit` rows are enough."""
    parts = _find(spec, reading)
    _refuse_mixed(spec, [part.file.name for part in parts])
    return _with_contents(spec, parts, limit)


def source_name(spec: Path | str) -> str:
    """Return how messages call a table.

    >>> source_name("s3://bucket/news.parquet"), source_name(Path("data/news.csv")), source_name("data/*.csv")
    ('s3://bucket/news.parquet', 'news.csv', 'data/*.csv')
    """
    if is_address(spec):
        return shown_address(str(spec))
    return str(spec) if has_wildcards(str(spec)) else Path(spec).name


def _find(spec: Path | str, reading: Reading) -> Sequence[Part]:
    if is_address(spec):
        return _find_remote(str(spec), reading)
    if Path(spec) == STDIO:
        return [_local_part(*spool_stdin(), reading)]
    path = Path(spec)
    if os.path.isdir(path):
        paths = [path / name for name in _tables_among(os.listdir(path), path)]
        return [_local_part(one, f"{path.name}/{one.name}", reading) for one in paths]
    if not os.path.exists(path) and has_wildcards(str(path)):
        paths = [Path(one) for one in sorted(glob(str(path), recursive=True)) if os.path.isfile(one)]
        if not paths:
            raise TableError(f"no file matches {path}: check the pattern and the folder")
        return [_local_part(one, str(one), reading) for one in paths]
    return [_local_part(path, path.name, reading)]


def _find_remote(address: str, reading: Reading) -> Sequence[Part]:
    found, folder = find_remote(address)
    if folder:
        known = set(_tables_among([file.address.rpartition("/")[2] for file in found], address))
        found = [file for file in found if file.address.rpartition("/")[2] in known]
    if not found:
        raise TableError(f"no file matches {address}: check the pattern and the folder")
    return [
        Part(table_file(file.address, file.size, file.open, remote=True, reading=reading), file.version)
        for file in found
    ]


def _local_part(path: Path, name: str, reading: Reading) -> Part:
    file = local_file(path, name, reading)

    def version() -> str:
        try:
            with path.open("rb") as opened:
                return hashlib.file_digest(opened, "sha256").hexdigest()
        except OSError as error:
            raise TableError(f"{name} cannot be read ({error.strerror}): restore it, and start again") from error

    return Part(file, version)


def _tables_among(names: Iterable[str], folder: Path | str) -> Sequence[str]:
    """Return the names of tables; `_SUCCESS`, `.part.crc` and the like are what engines leave beside them."""
    kinds = (*TEXTS, *PARQUET, *ARROW)  # a workbook or a database is a table of its own
    known = sorted(name for name in names if ending_of(name).kind in kinds and not name.startswith((".", "_")))
    if not known:
        raise TableError(
            f"{folder} is a folder without tables: name a file, or a pattern such as "
            f"'{str(folder).rstrip('/')}/**/*.parquet' for files in folders below it"
        )
    return known


def _refuse_mixed(spec: Path | str, names: Sequence[str]) -> None:
    for first, second in pairwise(names):
        if _kind(first) != _kind(second):
            folder = str(spec).rstrip("/") if not has_wildcards(str(spec)) else os.path.dirname(str(spec)) or "."
            raise TableError(
                f"{source_name(spec)} has {_kind(first)} and {_kind(second)} files ({first}, {second}): "
                f"choose one kind with a pattern such as '{folder}/*{ending_of(first).kind}'"
            )


def _kind(name: str) -> str:
    ending = ending_of(name).kind
    kinds = {
        **dict.fromkeys(PARQUET, "Parquet"),
        **dict.fromkeys(JSON_LINES, "JSONL"),
        ".json": "JSON",
        **dict.fromkeys(ARROW, "Arrow"),
        **dict.fromkeys(WORKBOOKS, "workbook"),
    }
    return kinds.get(ending, "CSV")


def _with_contents(spec: Path | str, parts: Sequence[Part], limit: int | None) -> Parts:
    used: list[Part] = []
    schema: pa.Schema | None = None
    rows: int | None = 0
    dialect: Dialect | None = None
    notes: dict[str, str] = {}
    for part in parts:
        left = None if limit is None or rows is None else limit - rows
        if left is not None and left <= 0:
            break
        contents = part.file.contents(left)
        rows = None if rows is None or contents.rows is None else rows + contents.rows
        schema = contents.schema if schema is None else _together(schema, used[0].file, contents.schema, part.file)
        notes[part.file.name] = contents.note
        dialect = dialect if used else contents.dialect
        used.append(part)
    if schema is None or not schema.names:
        raise TableError(f"{source_name(spec)} has no rows")
    say_notes(notes)
    return Parts(used, Contents(schema, rows, dialect))


def _together(schema: pa.Schema, first: TableFile, more: pa.Schema, file: TableFile) -> pa.Schema:
    """Return the schema of two parts; rows of JSON may lack keys, other parts must have the same columns."""
    import pyarrow as pa

    if _kind(file.name) not in ("JSON", "JSONL"):
        _refuse_other_columns(schema.names, first.name, more.names, file.name)
    if schema == more:
        return schema
    try:
        # a column without any value has no type
        return pa.unify_schemas([schema, more], promote_options="permissive")
    except pa.ArrowException:
        name = next(name for name in schema.names if not _alike(schema.field(name), more.field(name)))
        raise TableError(
            f"column {name!r} is {schema.field(name).type} in {first.name}, but {more.field(name).type} in "
            f"{file.name}: write both with the same type"
        ) from None


def _alike(one: pa.Field, other: pa.Field) -> bool:
    import pyarrow as pa

    try:
        pa.unify_schemas([pa.schema([one]), pa.schema([other])], promote_options="permissive")
    except pa.ArrowException:
        return False
    return True


def _refuse_other_columns(names: Sequence[str], first: str, more: Sequence[str], file: str) -> None:
    only = {
        first: [name for name in names if name not in set(more)],
        file: [name for name in more if name not in set(names)],
    }
    differing = [f"only {part} has {', '.join(map(repr, lacking))}" for part, lacking in only.items() if lacking]
    if differing:
        raise TableError(
            f"{first} and {file} have different columns ({'; '.join(differing)}): "
            "give all parts the same columns, or choose parts with a pattern"
        )
