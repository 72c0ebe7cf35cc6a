"""Files written whole or not at all, kept under dated names, and JSON marked with a schema number."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import count
from pathlib import Path, PurePath
from typing import Any

from pcs_annotator.base.errors import ConfigError, TableError
from pcs_annotator.tables.remote import remote_version, rename_remote
from pcs_annotator.tables.table_files import split_name

SCHEMA = 1
CANNOT_WRITE = (errno.EDQUOT, errno.EFBIG, errno.EISDIR, errno.ENOSPC, errno.ENOTEMPTY, errno.EPERM, errno.EROFS)
_TEMPORARY = re.compile(r"\.[\w.-]+\.(?P<ending>\w+)\.(?P<process>\d+)-\w{8}\.(?P=ending)")


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path next to `path`, and rename it to `path` at the end if there was no error."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        prefix = f".{path.name}.{os.getpid()}-"
        handle, name = tempfile.mkstemp(prefix=prefix, suffix=path.suffix, dir=path.parent)
    except OSError as error:
        raise TableError(f"cannot write {path}: {error.strerror}; choose another place with --out") from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)  # mkstemp makes private files, but these are results to share
        os.replace(temporary, path)
    except OSError as error:
        if error.errno not in CANNOT_WRITE:
            raise
        raise TableError(f"cannot write {path}: {error.strerror}; make room, or choose another place") from error
    finally:
        temporary.unlink(missing_ok=True)


def check_ending(place: Path | str, endings: Sequence[str]) -> None:
    """Raise if a file to be written, here or at an address, has an extension that we do not write, or is a folder."""
    if isinstance(place, Path) and place.is_dir():
        raise TableError(f"{place} is a folder: name a file to write")
    ending = split_name(PurePath(place))[1]
    if ending and ending.lower() not in endings:
        raise TableError(f"{place} cannot be written: use {' or '.join(endings)} instead of {ending}")


def signature(place: Path | str, base: Path) -> dict[str, str]:
    """Return the path of a file, relative to a folder → a hash of its contents; nothing if there is no file.

    For a file at an address, it is the address → what its server reports about it.
    """
    if isinstance(place, str):
        version = remote_version(place)
        return {} if version is None else {place: version}
    if not place.exists():
        return {}
    with place.open("rb") as file:
        return {os.path.relpath(place.resolve(), base.resolve()): hashlib.file_digest(file, "sha256").hexdigest()}


def refuse_inputs(out: Path, *inputs: Path | None) -> None:
    """Raise if a file to be written is one that was read."""
    for path in inputs:
        if path is not None and out.exists() and path.exists() and out.samefile(path):
            raise TableError(f"{out} is read here, and would be overwritten: name another file to write")


def refuse_existing(out: Path, *, replace: bool) -> None:
    """Raise if a file to be written exists, unless `make_way` may keep it under another name."""
    if out.exists() and not replace:
        raise TableError(f"{out} exists: name another file, or add --replace, which keeps it under a dated name")


def make_way(out: Path) -> None:
    """Keep a file in the way of one to be written under a dated name."""
    if out.exists():
        set_aside(out)


def clear_leftovers(folder: Path) -> None:
    """Delete the temporary files of processes that were killed while they wrote to a folder."""
    for path in folder.glob(".*"):
        found = _TEMPORARY.fullmatch(path.name)
        if found and not _is_running(found["process"]):
            with suppress(OSError):
                path.unlink()


def _is_running(process: str) -> bool:
    # On Windows, os.kill would end the process; but there, a file in use cannot be deleted.
    if os.name != "posix":
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass  # it is somebody else's
    return True


def keep_earlier(place: Path | str) -> Path | str:
    """Rename a file, here or at an address, so that its name has today's date and time; return where it is now."""
    if isinstance(place, Path):
        return set_aside(place)
    return rename_remote(place, next(_dated(PurePath(place))))


def _dated(path: PurePath) -> Iterator[str]:
    """Yield names with today's date and time."""
    moment = datetime.now().strftime("%Y-%m-%d-%H%M%S")
    stem, ending = split_name(path)
    return (f"{stem}-{moment}{f'-{number}' if number else ''}{ending}" for number in count())


def set_aside(path: Path) -> Path:
    """Rename a file or folder so that its name has today's date and time, and return its new path."""
    kept = next(place for name in _dated(path) if not (place := path.with_name(name)).exists())
    try:
        return path.rename(kept)
    except OSError as error:
        raise TableError(f"{path} cannot be renamed to {kept.name}: {error.strerror}; rename it yourself") from error


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write values as readable JSON, with the schema number first."""
    text = json.dumps({"schema": SCHEMA, **values}, indent=2, ensure_ascii=False, allow_nan=False)
    write_page(path, f"{text}\n")


def read_json(path: Path, remedy: str = "make it again with the command that wrote it") -> dict[str, Any]:
    """Read what `write_json` wrote; a newer schema is an error."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise TableError(f"there is no file {path}: fit first, or check the name") from error
    except (OSError, ValueError, RecursionError) as error:
        raise TableError(f"{path} cannot be read ({error}): {remedy}") from error
    with expecting(path, remedy):
        if values.get("schema", 0) > SCHEMA:
            raise TableError(f"{path} was written by a newer version (schema {values['schema']}): upgrade it")
    return dict(values)


@contextmanager
def expecting(path: Path, remedy: str) -> Iterator[None]:
    """Turn what goes wrong with values of another shape into an error that names the file and the remedy."""
    try:
        yield
    except (AttributeError, ConfigError, IndexError, KeyError, TypeError, ValueError) as error:
        raise TableError(f"{path} is damaged ({type(error).__name__}: {error}): {remedy}") from error


def write_page(path: Path, text: str) -> None:
    """Write a text completely or not at all; characters that UTF-8 cannot encode become question marks."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(text.encode("utf-8", "replace"))
