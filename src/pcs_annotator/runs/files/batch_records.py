"""`batches.json`: the batches of a run folder at their providers, so that any machine can collect their answers."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pcs_annotator.tables.files import expecting, read_json, write_json

KEY_BYTES = 16
REMEDY = "remove it, if you can do without the answers of batches that are still open"


@dataclass(slots=True, kw_only=True)
class BatchRecord:
    """One batch."""

    model: str  # the model that is asked, as `provider:model`
    purpose: str  # `label` or `rewrite`
    logprobs: int  # how many alternatives of each token were requested
    choices: bool  # whether the answers are among given ones
    requests: int  # number of requests
    submitted_at: float  # when it was submitted, in seconds since 1970
    uploaded: str = ""  # ID of the uploaded file; empty where there is none
    id: str = ""  # ID of the batch; empty if it is not known whether it was started
    keys: set[bytes] = field(default_factory=set)  # requests that are not answered yet, as long as the batch is open
    end: str = ""  # how it ended; empty while it is open
    answered: int = 0  # requests that were answered, and so paid for
    # what all requests are expected to cost in US dollars; None if a price is unknown
    expected_usd: float | None = None
    usd: float | None = 0.0  # what the answers cost; None if a price is unknown
    trouble: str = ""  # what went wrong


def read_batches(path: Path) -> list[BatchRecord]:
    """Return the batches of a file; none if there is no file."""
    if not path.exists():
        return []
    with expecting(path, REMEDY):
        return [_record(values) for values in read_json(path, REMEDY)["batches"]]


def write_batches(path: Path, records: Iterable[BatchRecord]) -> None:
    """Write all batches; of those that have ended, the requests are left out."""
    write_json(path, {"batches": [{**asdict(one), "keys": _packed(one)} for one in records]})


def _packed(record: BatchRecord) -> str:
    return "" if record.end else b64encode(b"".join(sorted(record.keys))).decode()


def _record(values: Mapping[str, Any]) -> BatchRecord:
    raw = b64decode(values["keys"])
    keys = {raw[start : start + KEY_BYTES] for start in range(0, len(raw), KEY_BYTES)}
    known = {name: values[name] for name in BatchRecord.__slots__ if name in values}
    return BatchRecord(**{**known, "keys": keys})
