"""The files that a table consists of: one, those in a folder, or those that a pattern matches; here or elsewhere."""

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from functools import lru_cache
from glob import glob
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

from pcs_annotator.base.errors import TableError
from pcs_annotator.base.text import first_line
from pcs_annotator.tables import table_files
from pcs_annotator.tables.arrow import pa
from pcs_annotator.tables.files import find_remote, shown_address
from pcs_annotator.tables.table_files import AS_FOUND, Contents, Reading, TableFile
from pcs_annotator.tables.table_formats import JsonLinesFile, local_file, table_file
from pcs_annotator.tables.tabular import has_wildcards, is_address


def open_parts(
    spec: Path | str, limit: int | None = None, reading: Reading = AS_FOUND
) -> tuple[Sequence[TableFile], Contents]:
    """Return the files of a table in the order of their names, and what is known about all of them together.

    They must have the same columns, which are looked at here; the first `limit` rows are enough.
    """
    files = _find(spec, reading)
    for first, second in pairwise(files):
        if first.kind != second.kind:
            folder = str(spec).rstrip("/") if not has_wildcards(str(spec)) else os.path.dirname(str(spec)) or "."
            raise TableError(
                f"{source_name(spec)} has {first.kind} and {second.kind} files ({first.name}, {second.name}): "
                f"choose one kind with a pattern such as '{folder}/*{table_files.ending_of(first.name).kind}'"
            )
    return _with_contents(spec, files, limit)


def source_name(spec: Path | str) -> str:
    """Return how messages call a table.

    >>> source_name("s3://bucket/news.parquet"), source_name(Path("data/news.csv")), source_name("data/*.csv")
    ('s3://bucket/news.parquet', 'news.csv', 'data/*.csv')
    """
    if is_address(spec):
        return shown_address(str(spec))
    return str(spec) if has_wildcards(str(spec)) else Path(spec).name


def _find(spec: Path | str, reading: Reading) -> Sequence[TableFile]:
    if is_address(spec):
        return _find_remote(str(spec), reading)
    path = Path(spec)
    if path == table_files.STDIO:
        return [_spooled_stdin(reading)]
    if os.path.isdir(path):
        names = _tables_among(os.listdir(path), path)
        return [local_file(path / name, f"{path.name}/{name}", reading) for name in names]
    if not os.path.exists(path) and has_wildcards(str(path)):
        paths = [one for one in sorted(glob(str(path), recursive=True)) if os.path.isfile(one)]
        if not paths:
            raise TableError(f"no file matches {path}: check the pattern and the folder")
        return [local_file(Path(one), one, reading) for one in paths]
    return [local_file(path, reading=reading)]


def _find_remote(address: str, reading: Reading) -> Sequence[TableFile]:
    found, folder = find_remote(address)
    if folder:
        known = set(_tables_among([file.address.rpartition("/")[2] for file in found], address))
        found = [file for file in found if file.address.rpartition("/")[2] in known]
    if not found:
        raise TableError(f"no file matches {address}: check the pattern and the folder")
    return [table_file(*file, remote=True, reading=reading) for file in found]


def _spooled_stdin(reading: Reading) -> TableFile:
    if sys.stdin is None or sys.stdin.isatty():
        raise TableError("- stands for a table on standard input: pipe one in, such as pcs plan - < news.csv")
    path, kind = _spooled(sys.stdin.buffer)
    return local_file(path, f"stdin{kind}", reading)


@lru_cache(maxsize=1)
def _spooled(stdin: BinaryIO) -> tuple[Path, str]:
    """Copy standard input to a temporary file (`TMPDIR`), because a table is opened and read more than once.

    It is removed when this process ends. Its name in messages has the extension that suits what is in it.
    """
    handle, place = tempfile.mkstemp(prefix="pcs-stdin-")
    path = Path(place)
    atexit.register(path.unlink, missing_ok=True)
    with os.fdopen(handle, "wb") as file:
        shutil.copyfileobj(stdin, file)
    with path.open("rb") as file:
        kind = table_files.kind_of(file.read(table_files.HEAD))
    if kind in table_files.COMPRESSIONS:
        with pa.CompressedInputStream(pa.OSFile(str(path)), table_files.COMPRESSIONS[kind]) as stream:
            kind = table_files.kind_of(stream.read(table_files.HEAD)) + kind
    return path, kind


def _tables_among(names: Iterable[str], folder: Path | str) -> Sequence[str]:
    """Return the names of tables; `_SUCCESS`, `.part.crc` and the like are what engines leave beside them."""
    kinds = (*table_files.TEXTS, *table_files.PARQUET)  # a workbook is a table of its own
    known = sorted(
        name for name in names if table_files.ending_of(name).kind in kinds and not name.startswith((".", "_"))
    )
    if not known:
        raise TableError(
            f"{folder} is a folder without tables: name a file, or a pattern such as "
            f"'{str(folder).rstrip('/')}/**/*.parquet' for files in folders below it"
        )
    return known


def _with_contents(
    spec: Path | str, files: Sequence[TableFile], limit: int | None
) -> tuple[Sequence[TableFile], Contents]:
    used: list[TableFile] = []
    schema: pa.Schema | None = None
    rows: int | None = 0
    dialect: table_files.Dialect | None = None
    notes: dict[str, str] = {}
    for file in files:
        left = None if limit is None or rows is None else limit - rows
        if left is not None and left <= 0:
            break
        contents = file.contents(left)
        rows = None if rows is None or contents.rows is None else rows + contents.rows
        schema = contents.schema if schema is None else _together(schema, used[0], contents.schema, file)
        notes[file.name] = contents.note
        dialect = dialect if used else contents.dialect
        used.append(file)
    if schema is None or not schema.names:
        raise TableError(f"{source_name(spec)} has no rows")
    table_files.say_notes(notes)
    return used, Contents(schema, rows, dialect)


def _together(schema: pa.Schema, first: TableFile, more: pa.Schema, file: TableFile) -> pa.Schema:
    """Return the schema of two parts; rows of JSON may lack keys, other parts must have the same columns."""
    if not isinstance(file, JsonLinesFile):
        _refuse_other_columns(schema.names, first.name, more.names, file.name)
    try:
        # a column without any value has no type
        return pa.unify_schemas([schema, more], promote_options="permissive")
    except pa.ArrowException as error:
        raise TableError(
            f"{first.name} and {file.name} differ ({first_line(error)}): write both with the same types"
        ) from None


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
