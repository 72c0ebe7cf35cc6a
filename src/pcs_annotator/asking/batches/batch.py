"""Batches: requests, collected in files of the size that providers take, and the file that keeps track of them."""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, BinaryIO

from pcs_annotator.asking.engine.budget import Cost
from pcs_annotator.asking.engine.call import Asker, Call
from pcs_annotator.base.errors import Unanswerable
from pcs_annotator.core.chat import Constraint, Request
from pcs_annotator.models.batch_apis import MOST_BYTES, BatchApi, batch_api
from pcs_annotator.tables.files import expecting, read_json, write_json

KEY_BYTES = 16
REMEDY = "remove it, if you can do without the answers of batches that are still open"


@dataclass(slots=True, kw_only=True)
class Batch:
    """Requests to one model, from the first that is collected until all are answered."""

    model: str  # the model that is asked, as `provider:model`
    purpose: str  # `label` or `rewrite`
    logprobs: int  # how many alternatives of each token were requested
    choices: bool  # whether the answers are among given ones
    requests: int = 0  # number of requests
    submitted_at: float = 0.0  # when it was submitted, in seconds since 1970
    uploaded: str = ""  # ID of the uploaded file; empty where there is none
    id: str = ""  # ID of the batch; empty if it is not known whether it was started
    keys: list[bytes] = field(default_factory=list)  # ledger keys, and IDs, of the requests; not kept once it has ended
    end: str = ""  # how it ended; empty while it is open
    answered: int = 0  # requests that were answered, and so paid for
    expected_usd: float | None = 0.0  # what all requests may cost in US dollars; None if a price is unknown
    usd: float | None = 0.0  # what the answers cost; None if a price is unknown
    trouble: str = ""  # what went wrong
    path: Path | None = None  # the requests, one per line; None if an earlier command submitted them
    finished: int = 0  # requests that were processed when it was last looked at

    def request(self) -> Request:
        """Return a request without text, with everything that answers are read by."""
        constraint = Constraint(choices=("any",)) if self.choices else None
        return Request(messages=(), constraint=constraint, logprobs=self.logprobs)

    def halves(self) -> "list[Batch]":
        """Return two batches with half of the requests each."""
        assert self.path is not None
        lines, parts = self.path.read_bytes().splitlines(keepends=True), []
        for part in (slice(0, len(lines) // 2), slice(len(lines) // 2, len(lines))):
            path = self.path.with_name(f"{self.path.stem}-{part.start}.jsonl")
            path.write_bytes(b"".join(lines[part]))
            keys = self.keys[part]
            usd = self.expected_usd and self.expected_usd * len(keys) / len(lines)
            parts.append(replace(self, keys=keys, requests=len(keys), expected_usd=usd, path=path))
        return parts


_NOT_WRITTEN = ("path", "finished")
Kind = tuple[str, str, int, bool]  # what the requests of a batch have in common: its first four fields


def read_batches(path: Path) -> list[Batch]:
    """Return the batches of a file; none if there is no file."""
    if not path.exists():
        return []
    with expecting(path, REMEDY):
        return [_batch(values) for values in read_json(path, REMEDY)["batches"]]


def _batch(values: Mapping[str, Any]) -> Batch:
    raw = b64decode(values["keys"])
    keys = [raw[start : start + KEY_BYTES] for start in range(0, len(raw), KEY_BYTES)]
    names = {entry.name for entry in fields(Batch)} & values.keys()
    return Batch(**{**{name: values[name] for name in names}, "keys": keys})


def write_batches(path: Path, batches: Sequence[Batch]) -> None:
    """Write all batches; of those that have ended, the requests are left out."""
    rows = []
    for batch in batches:
        keys = "" if batch.end else b64encode(b"".join(batch.keys)).decode()
        values = {**asdict(batch), "keys": keys}
        rows.append({name: value for name, value in values.items() if name not in _NOT_WRITTEN})
    write_json(path, {"batches": rows})


class Collector:
    """Takes the calls to models with a batch API, and leaves others to be made.

    What a call is expected to cost stays reserved until its batch has ended.
    """

    def __init__(self, folder: Path, asker: Asker) -> None:
        # key → why the server will never answer a question; it is not asked again in this command
        self.refused: dict[bytes, Unanswerable] = {}
        self._folder, self._asker = folder, asker
        self._taken: dict[bytes, Cost | None] = {}  # key → what is reserved for it, if there is a budget
        self._batches: list[Batch] = []
        self._open: dict[Kind, tuple[Batch, BinaryIO]] = {}
        self._made = 0

    def take(self, call: Call) -> bool:
        """Take a call, if its model has a batch API.

        Raises `BudgetReached` if it could cost more than is left after the calls that wait already, and `Unanswerable`
        if the server has refused it.
        """
        self.recall(call)
        api = batch_api(call.model)
        if api is None:
            return False
        if call.key not in self._taken:
            expected, tracker = self._asker.expected(call), self._asker.tracker
            if tracker.limited:
                tracker.hold_for_batch(expected)
            self._taken[call.key] = expected if tracker.limited else None
            self._write(call, api, expected.usd)
        return True

    def recall(self, call: Call) -> bool:
        """Raise if the server has refused a question; otherwise take nothing."""
        if call.key in self.refused:
            raise self.refused[call.key]
        return False

    def _write(self, call: Call, api: BatchApi, usd: float | None) -> None:
        request, line = call.request, api.line(call.key.hex(), call.request) + b"\n"
        choices = request.constraint is not None and bool(request.constraint.choices)
        kind = (call.model.name, call.purpose, request.logprobs, choices)
        batch, file = self._open.get(kind) or self._new(kind)
        if batch.requests >= api.most_lines or (batch.requests and file.tell() + len(line) > MOST_BYTES):
            file.close()
            batch, file = self._new(kind)
        file.write(line)
        batch.keys.append(call.key)
        batch.requests += 1
        batch.expected_usd = None if usd is None or batch.expected_usd is None else batch.expected_usd + usd

    def _new(self, kind: Kind) -> tuple[Batch, BinaryIO]:
        self._made += 1
        model, purpose, logprobs, choices = kind
        path = self._folder / f"{self._made}.jsonl"
        batch = Batch(model=model, purpose=purpose, logprobs=logprobs, choices=choices, path=path)
        self._batches.append(batch)
        self._open[kind] = batch, path.open("wb")
        return self._open[kind]

    def hand_over(self) -> list[Batch]:
        """Return the batches, complete; the next call begins new ones."""
        for _, file in self._open.values():
            file.close()
        batches, self._batches, self._open = self._batches, [], {}
        return batches

    def release(self, keys: Iterable[bytes]) -> None:
        """End the reservations of calls, answered or not; they may be taken again."""
        for key in keys:
            if reserved := self._taken.pop(key, None):
                self._asker.tracker.release_from_batch(reserved)
