"""The folder for files that can be made again: `$XDG_CACHE_HOME/pcs-annotator`, by default in `~/.cache`."""

import os
from collections.abc import Mapping
from pathlib import Path


def cache_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Return the folder, whether it exists or not; None for the environment of the process."""
    environment = os.environ if environment is None else environment
    cache = environment.get("XDG_CACHE_HOME", "").strip()
    return (Path(cache).expanduser() if cache else Path.home() / ".cache") / "pcs-annotator"
