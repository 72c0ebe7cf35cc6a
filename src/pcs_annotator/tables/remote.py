"""Files elsewhere, at any address that fsspec understands: `s3://…`, `gs://…`, `https://…`, `memory://…`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from pcs_annotator.base.errors import MissingPackage, PcsError, TableError
from pcs_annotator.base.text import first_line
from pcs_annotator.tables.arrow import pa
from pcs_annotator.tables.tabular import has_wildcards

WEB = ("http://", "https://")


class RemoteFile(NamedTuple):
    """A file at an address."""

    address: str  # where it is; without what follows a question mark, which may be a key
    size: int  # its size in bytes
    open: Callable[[], Any]  # opens it as a pyarrow file
    version: Callable[[], str]  # returns what changes whenever the file does


def find_remote(address: str) -> tuple[Sequence[RemoteFile], bool]:
    """Return the files at an address or those that a pattern matches, by name; and whether it is a folder."""
    system, path = file_system(address)
    with explained(address):
        if has_wildcards(address) and not address.startswith(WEB):
            return _sorted(system, system.glob(path, detail=True).values()), False
        about = system.info(path)
        if about["type"] == "directory":
            return _sorted(system, system.ls(path, detail=True)), True
    return [_remote_file(system, about, shown_address(address))], False


def _sorted(system: Any, listed: Iterable[Mapping[str, Any]]) -> Sequence[RemoteFile]:
    files = sorted((about for about in listed if about["type"] == "file"), key=lambda about: about["name"])
    return [_remote_file(system, about, str(system.unstrip_protocol(about["name"]))) for about in files]


def _remote_file(system: Any, about: Mapping[str, Any], shown: str) -> RemoteFile:
    path = about["name"]

    def version() -> str:
        with explained(shown):
            return _version(system, path)

    return RemoteFile(
        address=shown,
        size=-1 if about.get("size") is None else about["size"],
        open=lambda: pa.PythonFile(_Explained(system.open, path, shown), mode="r"),
        version=version,
    )


def _version(system: Any, path: str) -> str:
    return hashlib.sha256(str(sorted(system.info(path).items(), key=str)).encode()).hexdigest()


def remote_version(address: str) -> str | None:
    """Return what changes whenever the file at an address does; None if there is no file."""
    system, path = file_system(address)
    with explained(address):
        return _version(system, path) if system.exists(path) else None


def rename_remote(address: str, name: str) -> str:
    """Give a file another name in the same place, and return its new address."""
    system, path = file_system(address)
    with explained(address):
        system.mv(path, f"{path.rpartition('/')[0]}/{name}")
    return f"{address.rpartition('/')[0]}/{name}"


def shown_address(address: str) -> str:
    """Return an address without what follows a question mark, which may be a key."""
    return address.partition("?")[0] if address.startswith(WEB) else address


def file_system(address: str) -> tuple[Any, str]:
    """Return the file system of an address, and the path within it.

    Raises:
        MissingPackage: fsspec is not installed, or the package for this kind of address.
    """
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
def explained(address: str) -> Iterator[None]:
    """Turn whatever a remote file system raises into an error that names the address."""
    try:
        yield
    except PcsError:
        raise
    except FileNotFoundError as error:
        raise TableError(f"there is no file {shown_address(address)}: check the address") from error
    except Exception as error:  # each file system has errors of its own
        raise TableError(
            f"{shown_address(address)} cannot be reached ({first_line(error)}): check address, key and connection"
        ) from error


class _Explained:
    """An open remote file whose errors name its address."""

    def __init__(self, open: Callable[[str, str], Any], path: str, address: str) -> None:
        self._address = address
        with explained(address):
            self._file = open(path, "rb")

    def read(self, size: int = -1) -> bytes:
        with explained(self._address):
            return bytes(self._file.read(size))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
