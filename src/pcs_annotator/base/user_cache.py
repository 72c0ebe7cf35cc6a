"""The folder for files that can be made again: `$XDG_CACHE_HOME/pcs-annotator`, by default in `~/.cache`."""

import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path


def cache_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Return the folder, whether it exists or not; None for the environment of the process."""
    environment = os.environ if environment is None else environment
    cache = environment.get("XDG_CACHE_HOME", "").strip()
    return (Path(cache).expanduser() if cache else Path.home() / ".cache") / "pcs-annotator"


def keep_folder(folder: Path, fill: Callable[[Path], None]) -> None:
    """Fill a new folder and move it to its place in one step, so that no process sees half of it.

    A folder that cannot be written is left out: whatever is in it can be made again.
    """
    with suppress(OSError, RuntimeError):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".new-") as made:
            fill(Path(made))
            os.rename(made, folder)
            os.mkdir(made)  # for the end of the block, which deletes it
