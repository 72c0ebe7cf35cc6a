"""Files here, written whole or not at all and kept under dated names, and files at any address of fsspec, to read."""

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

from pcs_annotator.base.errors import ConfigError, MissingPackage, PcsError, TableError
from pcs_annotator.base.text import first_line
from pcs_annotator.tables.arrow import pa
from pcs_annotator.tables.source_files import Reading, SourceFile, name_parts

SCHEMA = 1
CANNOT_WRITE = (errno.EDQUOT, errno.EFBIG, errno.EISDIR, errno.ENOSPC, errno.ENOTEMPTY, errno.EPERM, errno.EROFS)
_TEMPORARY = re.compile(r"\.[\w.-]+\.(?P<ending>\w+)\.(?P<process>\d+)-\w{8}\.(?P=ending)")
_ADDRESS = re.compile(r"[A-Za-z][\w+.-]+:/")  # a path has one slash of it
WEB = ("http://", "https://")


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


def check_ending(path: Path, endings: Sequence[str]) -> None:
    """Raise if a file to be written has an extension that we do not write, or is a folder."""
    if _ADDRESS.match(str(path)):
        raise TableError(f"{path} is an address: name a file here to write, and copy it there")
    if path.is_dir():
        raise TableError(f"{path} is a folder: name a file to write")
    ending = extension(path)
    if ending and ending.lower() not in endings:
        raise TableError(f"{path} cannot be written: use {' or '.join(endings)} instead of {ending}")


def extension(path: PurePath) -> str:
    """Return the extension of a file, with that of its compression."""
    _, suffix, packed = name_parts(path)
    return suffix + packed


def signature(path: Path, base: Path) -> dict[str, str]:
    """Return the path of a file, relative to a folder → a hash of its contents; nothing if there is no file."""
    return {os.path.relpath(path.resolve(), base.resolve()): hash_of(path)} if path.exists() else {}


def hash_of(path: Path) -> str:
    """Return a hash of the contents of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def clear_leftovers(*folders: Path) -> None:
    """Delete the temporary files of processes that were killed while they wrote to folders."""
    for path in (path for folder in folders for path in folder.glob(".*")):
        leftover = _TEMPORARY.fullmatch(path.name)
        if leftover and not is_running(leftover["process"]):
            with suppress(OSError):
                path.unlink()


def is_running(process: str) -> bool:
    """Return whether a process of this machine lives; on Windows never."""
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


def set_aside(path: Path) -> Path:
    """Rename a file or folder so that its name has today's date and time, and return its new path."""
    dated = f"{name_parts(path).stem}-{datetime.now():%Y-%m-%d-%H%M%S}"
    names = (path.with_name(f"{dated}{f'-{number}' if number else ''}{extension(path)}") for number in count())
    kept = next(name for name in names if not name.exists())
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


def has_wildcards(spec: str) -> bool:
    """Return whether a path or an address is a pattern that several files can match."""
    return any(character in spec for character in "*?[")


def find_remote(address: str, reading: Reading) -> tuple[Sequence[SourceFile], bool]:
    """Return the files at an address or those that a pattern matches, by name; and whether it is a folder."""
    system, path = _file_system(address)
    with _explained(address):
        if has_wildcards(address) and not address.startswith(WEB):
            listed, folder = system.glob(path, detail=True).values(), False
        else:
            about = system.info(path)
            if about["type"] != "directory":
                return [_remote_file(system, about, shown_address(address), reading)], False
            listed, folder = system.ls(path, detail=True), True
    files = sorted((about for about in listed if about["type"] == "file"), key=lambda about: about["name"])
    return [
        _remote_file(system, about, str(system.unstrip_protocol(about["name"])), reading) for about in files
    ], folder


def _remote_file(system: Any, about: Mapping[str, Any], shown: str, reading: Reading) -> SourceFile:
    path = about["name"]

    def version() -> str:
        with _explained(shown):
            return hashlib.sha256(str(sorted(system.info(path).items(), key=str)).encode()).hexdigest()

    return SourceFile(
        name=shown,
        size=-1 if about.get("size") is None else about["size"],
        open=lambda: pa.PythonFile(_RemoteStream(system, path, shown), mode="r"),
        version=version,
        remote=True,
        reading=reading,
    )


def shown_address(address: str) -> str:
    """Return an address without what follows a question mark, which may be a key."""
    return address.partition("?")[0] if address.startswith(WEB) else address


def _file_system(address: str) -> tuple[Any, str]:
    shown = shown_address(address)
    try:
        import fsspec
    except ImportError as error:
        raise MissingPackage(
            f"{shown} needs the extra remote: pip install 'perceived-confidence[remote]'; or copy the file here"
        ) from error
    try:
        return fsspec.core.url_to_fs(address)
    except ImportError as error:
        raise MissingPackage(f"{shown} needs another package ({error}): install it, or copy the file here") from error
    except Exception as error:  # whatever the package raises, its first line says why
        raise TableError(f"{shown} is not a usable address ({first_line(error)}): check it") from error


@contextmanager
def _explained(address: str) -> Iterator[None]:
    """Turn whatever a remote file system raises into an error that names the address."""
    shown = shown_address(address)
    try:
        yield
    except PcsError:
        raise
    except FileNotFoundError as error:
        raise TableError(f"there is no file {shown}: check the address") from error
    except Exception as error:  # each file system has errors of its own
        raise TableError(f"{shown} cannot be reached ({first_line(error)}): check address, key and connection") from (
            error
        )


class _RemoteStream:
    """An open remote file whose errors name its address."""

    def __init__(self, system: Any, path: str, address: str) -> None:
        self._address = address
        with _explained(address):
            self._file = system.open(path, "rb")

    def read(self, size: int = -1) -> bytes:
        with _explained(self._address):
            return bytes(self._file.read(size))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
