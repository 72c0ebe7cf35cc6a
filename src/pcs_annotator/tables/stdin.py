"""A table on standard input, kept in a temporary file, because a table is read more than once."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from pcs_annotator.base.errors import TableError
from pcs_annotator.tables.file_signatures import HEAD, kind_of
from pcs_annotator.tables.table_files import COMPRESSIONS


class Spooled(NamedTuple):
    """The file that has what was on standard input, and its name in messages, whose extension says what it is."""

    path: Path
    name: str


def spool_stdin() -> Spooled:
    """Copy standard input to a temporary file (`TMPDIR`), which is removed when this process ends."""
    if sys.stdin is None or sys.stdin.isatty():
        raise TableError("- stands for a table on standard input: pipe one in, such as pcs plan - < news.csv")
    handle, place = tempfile.mkstemp(prefix="pcs-stdin-")
    path = Path(place)
    atexit.register(path.unlink, missing_ok=True)
    with os.fdopen(handle, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return Spooled(path, f"stdin{_ending(path)}")


def _ending(path: Path) -> str:
    """Return the extension that suits a file."""
    import pyarrow as pa

    with path.open("rb") as file:
        kind = kind_of(file.read(HEAD))
    if kind not in COMPRESSIONS:
        return kind
    with pa.CompressedInputStream(pa.OSFile(str(path)), COMPRESSIONS[kind]) as stream:
        return kind_of(stream.read(HEAD)) + kind
