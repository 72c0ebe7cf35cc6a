"""`review.jsonl`: every draw and verdict of a review, one line each; lines are added and never changed."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from pcs_annotator.base.errors import PcsWarning, TableError
from pcs_annotator.core.review import Draw, Event, Undo, Verdict

KINDS: Mapping[str, type[Event]] = {"draw": Draw, "verdict": Verdict, "undo": Undo}
_NAMES = {kind: name.encode() for name, kind in KINDS.items()}


def read_review(path: Path) -> list[Event]:
    """Return all events of a review; none if there is no file.

    A last line without an end was being written when the process was killed: nobody was told that it is saved, so it is
    left out.
    """
    if not path.exists():
        return []
    *whole, rest = path.read_bytes().split(b"\n")
    if rest:
        warnings.warn(f"{path.name}: the last line was cut off and is not read", PcsWarning, stacklevel=2)
    return list(_events(path, whole))


def append_events(path: Path, events: Sequence[Event]) -> None:
    """Add events to a review; when this returns, they are on disk."""
    lines = b"".join(b'{"kind":"%b",%b\n' % (_NAMES[type(event)], orjson.dumps(event)[1:]) for event in events)
    is_new = not path.exists()
    with path.open("ab") as file:
        if file.tell() and not _ends_whole(path):
            file.write(b"\n")  # closes a line that was cut off; it stays, and is passed over
        file.write(lines)
        file.flush()
        os.fsync(file.fileno())
    if is_new:
        _sync_folder(path.parent)


def _ends_whole(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def _sync_folder(folder: Path) -> None:
    """Make sure that the name of a new file is on disk too; not every system lets a folder be opened."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _events(path: Path, lines: Sequence[bytes]) -> Iterator[Event]:
    cut = []
    for row, line in enumerate(lines, 1):
        try:
            yield _event(orjson.loads(line))
        except orjson.JSONDecodeError:
            cut.append(row)
        except (KeyError, TypeError, AttributeError):
            remedy = "correct or remove that line; the others stay as they are"
            raise TableError(f"{path.name}, line {row} is not an event of a review: {remedy}") from None
    if cut:
        message = f"{path.name}: lines that were cut off are not read: {', '.join(map(str, cut))}"
        warnings.warn(message, PcsWarning, stacklevel=4)


def _event(values: dict[str, Any]) -> Event:
    kind = KINDS[values.pop("kind")]
    if kind is Undo:
        values["verdicts"] = tuple(values["verdicts"])
    return kind(**values)
