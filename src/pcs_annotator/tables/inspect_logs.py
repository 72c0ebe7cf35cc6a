"""Logs of Inspect AI (`.eval`, archives of JSON files) as votes: every scorer is a judge, and its value is its vote.

An item is what a model wrote about a sample, so each epoch is an item of its own; its text is the input and the answer.
Its gold is the sample's metadata `gold`.
"""

import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

from pcs_annotator.base.errors import TableError, warn_user
from pcs_annotator.tables.arrow import pa

ENDING = ".eval"
ZSTANDARD = 93
LARGEST_SAMPLE = 512 * 1024 * 1024


def read_inspect_log(path: Path) -> pa.Table:
    """Return id, text, gold and a column of votes per scorer; a scorer with several values per sample is left out."""
    try:
        with zipfile.ZipFile(path) as log:
            files = [one for one in log.infolist() if one.filename.startswith("samples/")]
            samples = [json.loads(_contents(log, file)) for file in files]
        epochs = len({one.get("epoch") for one in samples}) > 1
        rows = [_row(one, f", epoch {one.get('epoch')}" if epochs else "") for one in samples]
    except (
        OSError,
        ValueError,
        AttributeError,
        KeyError,
        NotImplementedError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        remedy = "copy it again; `inspect log convert --to eval` makes one from other logs"
        raise TableError(f"{path} cannot be read as a log of Inspect AI ({error!r}): {remedy}") from error
    several = {name for row in rows for name, value in row.items() if isinstance(value, dict | list)}
    if several:
        warn_user(f"{path.name}: scorers with several values per sample are left out: {', '.join(sorted(several))}")
    names = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in several]
    if not any("|" in name for name in names):
        raise TableError(f"{path} has no scores to read as votes: score it with `inspect score`, or name another log")
    return pa.table({name: pa.array([_label(row.get(name)) for row in rows], pa.string()) for name in names})


def _contents(log: zipfile.ZipFile, file: zipfile.ZipInfo) -> bytes:
    """Return the contents of a file of the archive; Python before 3.14 does not know Zstandard, which Inspect uses."""
    if file.file_size > LARGEST_SAMPLE:
        raise ValueError(f"{file.filename} is larger than {LARGEST_SAMPLE:,} bytes")
    if file.compress_type != ZSTANDARD or log.fp is None:
        return log.read(file)
    log.fp.seek(file.header_offset)
    header = log.fp.read(30)  # ends with the lengths of the name and of what follows it
    log.fp.seek(sum(int.from_bytes(header[at : at + 2], "little") for at in (26, 28)), 1)
    packed = pa.BufferReader(log.fp.read(file.compress_size))
    return bytes(pa.CompressedInputStream(packed, "zstd").read(file.file_size))


def _row(sample: dict[str, Any], epoch: str) -> dict[str, Any]:
    said = [sample.get("input"), (sample.get("output") or {}).get("completion")]
    text, gold = _text(said, sample.get("attachments") or {}), (sample.get("metadata") or {}).get("gold")
    votes = {f"{name.replace('|', '/')}|original": one["value"] for name, one in (sample.get("scores") or {}).items()}
    return {"id": f"{sample['id']}{epoch}", "text": text, "gold": gold, **votes}


def _text(given: Any, attachments: dict[str, str]) -> str:
    """Return a text, or those of messages and their parts; long ones are attachments of the sample."""
    if isinstance(given, list):
        return "\n\n".join(filter(None, (_text(one, attachments) for one in given)))
    if isinstance(given, dict):
        return _text(given.get("content", given.get("text")), attachments)
    return attachments.get(str(given).removeprefix("attachment://"), given or "")


def _label(value: Any) -> str | None:
    if isinstance(value, float | int) and not isinstance(value, bool):
        return None if value != value else f"{value:g}"  # noqa: PLR0124  # NaN: no score
    return None if value is None else str(value)
