"""Calls that wait for a batch: collected in files of the size that providers take, and read when they come back."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, NamedTuple

from pcs_annotator.asking.engine.budget import Cost
from pcs_annotator.asking.engine.call import Asker, Call
from pcs_annotator.asking.ledger.admin import PriceOf
from pcs_annotator.base.errors import Unanswerable
from pcs_annotator.core.chat import ChatModel, Constraint, Request
from pcs_annotator.models.batch_apis import MOST_BYTES, PRICE_SHARE, BatchApi, batch_api


class BatchKind(NamedTuple):
    """What the requests of a batch have in common, so that their answers can be read without them.

    `logprobs` is how many alternatives of each token were requested; `choices`, whether answers are among given ones.
    """

    model: str
    purpose: str
    logprobs: int
    choices: bool

    @classmethod
    def of(cls, call: Call) -> "BatchKind":
        """Return the kind of batch that a call fits into."""
        request = call.request
        choices = request.constraint is not None and bool(request.constraint.choices)
        return cls(call.model.name, call.purpose, request.logprobs, choices)

    def request(self) -> Request:
        """Return a request without text, with everything that its answer is read by."""
        constraint = Constraint(choices=("any",)) if self.choices else None
        return Request(messages=(), constraint=constraint, logprobs=self.logprobs)


@dataclass(slots=True)
class Chunk:
    """Requests for one batch, in a file with one per line; their keys in the ledger are also their IDs in the batch."""

    kind: BatchKind
    model: ChatModel
    path: Path
    keys: list[bytes] = field(default_factory=list)
    usd: float | None = 0.0  # what the requests are expected to cost; None if a price is unknown
    size: int = 0

    @property
    def api(self) -> BatchApi:
        """The batch API of the model."""
        api = batch_api(self.model)
        assert api is not None  # other models are asked live
        return api

    def halves(self) -> "tuple[Chunk, Chunk]":
        """Return two chunks with half of the requests each."""
        lines = self.path.read_bytes().splitlines(keepends=True)
        middle = len(lines) // 2
        return self._part(lines, 0, middle), self._part(lines, middle, len(lines))

    def _part(self, lines: list[bytes], start: int, end: int) -> "Chunk":
        path = self.path.with_name(f"{self.path.stem}-{start}.jsonl")
        path.write_bytes(b"".join(lines[start:end]))
        usd = self.usd and self.usd * (end - start) / len(lines)
        return Chunk(self.kind, self.model, path, self.keys[start:end], usd, path.stat().st_size)


class Collector:
    """Takes the calls to models with a batch API, and leaves others to be made.

    What a call is expected to cost stays reserved until its batch has ended.
    """

    def __init__(self, folder: Path, asker: Asker) -> None:
        self.chunks: list[Chunk] = []  # the calls so far
        # key → why the server will never answer a question; it is not asked again in this command
        self.refused: dict[bytes, Unanswerable] = {}
        self._folder, self._asker = folder, replace(asker, price_of=batch_prices(asker.price_of))
        self._taken: dict[bytes, Cost | None] = {}  # key → what is reserved for it, if there is a budget
        self._open: dict[BatchKind, tuple[Chunk, BinaryIO]] = {}
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
        line = api.line(call.key.hex(), call.request) + b"\n"
        kind = BatchKind.of(call)
        chunk, file = self._open.get(kind) or self._new(kind, call.model)
        if len(chunk.keys) >= api.most_lines or (chunk.keys and chunk.size + len(line) > MOST_BYTES):
            file.close()
            chunk, file = self._new(kind, call.model)
        file.write(line)
        chunk.keys.append(call.key)
        chunk.size += len(line)
        chunk.usd = None if usd is None or chunk.usd is None else chunk.usd + usd

    def _new(self, kind: BatchKind, model: ChatModel) -> tuple[Chunk, BinaryIO]:
        self._made += 1
        chunk = Chunk(kind, model, self._folder / f"{self._made}.jsonl")
        self.chunks.append(chunk)
        self._open[kind] = chunk, chunk.path.open("wb")
        return self._open[kind]

    def hand_over(self) -> list[Chunk]:
        """Return the chunks, complete; the next call begins new ones."""
        for _, file in self._open.values():
            file.close()
        chunks, self.chunks, self._open = self.chunks, [], {}
        return chunks

    def release(self, keys: Iterable[bytes]) -> None:
        """End the reservations of calls, answered or not; they may be taken again."""
        for key in keys:
            if reserved := self._taken.pop(key, None):
                self._asker.tracker.release_from_batch(reserved)


def batch_prices(prices: PriceOf) -> PriceOf:
    """Return the prices of calls in batches."""

    def cost(model: str, tokens_in: int, tokens_out: int) -> float | None:
        usd = prices(model, tokens_in, tokens_out)
        return None if usd is None else usd * PRICE_SHARE

    return cost
