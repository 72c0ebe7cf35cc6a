"""What a page about a run needs from its folder, and writing that page."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import NamedTuple

from pcs_annotator.files.runs import RunFolder, atomic_path, read_json
from pcs_annotator.judging.evaluation.flips import FlipMatrix, flip_matrices
from pcs_annotator.version import __version__

__all__ = ["FlipMatrix", "Origin", "flip_matrices", "read_origin", "write_page"]


class Origin(NamedTuple):
    """Where a run comes from.

    Attributes:
        version: Of the package that made it.
        data: Name of the user's file; empty when it is not known.
    """

    version: str
    data: str


def read_origin(folder: RunFolder) -> Origin:
    """Return where the run in a folder comes from."""
    if not folder.settings.exists():
        return Origin(__version__, "")
    start = read_json(folder.settings)
    return Origin(start.get("version", __version__), PurePath(start.get("data", "")).name)


def write_page(path: Path, text: str) -> None:
    """Write a page whole or not at all; what UTF-8 cannot hold becomes a question mark."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(text.encode("utf-8", "replace"))
