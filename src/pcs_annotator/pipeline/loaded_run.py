"""A loaded run: labels Arrow tables wherever Python runs, so that any data engine can call it."""

from __future__ import annotations

import asyncio
import os
import pickle
import threading
import weakref
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pcs_annotator.asking.ledger.open_ledger import AnyLedger, open_ledger
from pcs_annotator.core.ledger_address import LedgerAddress
from pcs_annotator.core.tabular import as_arrow, columns_of, text_column
from pcs_annotator.core.task import Item
from pcs_annotator.errors import AccessDenied, PcsError, UserError
from pcs_annotator.files.runs import RunFolder
from pcs_annotator.files.tables import SCORE_DECIMALS, Columns, find_columns
from pcs_annotator.pipeline import ask
from pcs_annotator.pipeline.fitted import FittedRun
from pcs_annotator.pipeline.label import Saving, open_fitted
from pcs_annotator.pipeline.large.chunks import ChunkLabeller, LabelledChunk
from pcs_annotator.pipeline.large.result_columns import result_columns
from pcs_annotator.pipeline.ledgers import ledger_of
from pcs_annotator.pipeline.run_folder import Recorded, started

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
MOST_ROWS = 10_000
"""Rows that are labelled at a time, so that memory does not grow with the table."""
NO_TEXT, NOT_TEXT = "no text", "the text is not valid UTF-8"
NO_ANSWER = "no model gave a usable answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """How a loaded run labels.

    Attributes:
        text_column: The column of texts; None to look for one with a usual name, or take the only column.
        in_flight: Maximum number of concurrent calls per model, in each process; None for that of the run.
        ledger: Where paid calls are kept, a file or `postgresql://…`; None for the run's own ledger.
        environment: Keys and base URLs; None for those of the process and of `.env`, wherever tables are labelled.
        saving: When to stop asking, and what may be spent by each process.
    """

    text_column: str | None = None
    in_flight: int | None = None
    ledger: LedgerAddress | None = field(default=None, repr=False)  # it may have a password
    environment: Mapping[str, str] | None = field(default=None, repr=False)
    saving: Saving = field(default_factory=Saving)


class LoadedRun:
    """A fitted run that labels tables.

    It can be pickled, so that Ray, Spark and Daft can send it to other processes, and used by several threads. Models
    and ledger are opened when the first table is labelled, in each process once. `close`, the end of a `with` block or
    the end of the process closes them.

    Attributes:
        folder: The run folder.
        options: How it labels.
    """

    def __init__(self, folder: Path, options: LoadOptions) -> None:
        self.folder, self.options = folder, options
        self._opening = threading.Lock()
        self._open: _OpenRun | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.folder)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_this_process, (self.folder, self.options)

    def __enter__(self) -> LoadedRun:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close models and ledger; the next table opens them again."""
        with self._opening:
            if self._open is not None:
                self._open.close()
            self._open = None

    def check(self) -> None:
        """Raise if the folder is no run folder."""
        started(RunFolder(self.folder))

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the run."""
        return started(RunFolder(self.folder))[0].task.labels

    def label_table(self, table: pa.Table | pa.RecordBatch, text_column: str | None = None) -> pa.Table:
        """Return the same rows in the same order, with more columns: what the run says about each text.

        The new columns are `label`, `confidence`, `decision`, `reason`, `p_<label>` with the probability of every label
        and `pcs_error`, which says why a row has no label and is null otherwise. A new column whose name is taken gets
        the prefix `pcs_`. A row that cannot be labelled raises nothing, whether its text is missing, too long or
        refused, the budget is spent, or a model does not answer.

        Args:
            table: The rows.
            text_column: The column of texts; by default that of the options, or one with a usual name.

        Raises:
            UserError: No row can be labelled: there is no such column, or a key is missing.
            AccessDenied: A key or a model's name is wrong.
        """
        import pyarrow as pa

        rows = table if isinstance(table, pa.Table) else as_arrow(table)
        used = find_columns(columns_of(rows), "the table", Columns(text=text_column or self.options.text_column)).text
        texts = _texts_of(used or "", rows[used])
        parts = [self._labelled(texts[at : at + MOST_ROWS]) for at in range(0, len(rows), MOST_ROWS)]
        added = pa.concat_tables(parts) if parts else _new_columns(self.labels).empty_table()
        schema = self.label_schema(rows.schema)
        return pa.Table.from_arrays([*rows.columns, *added.columns], schema=schema)

    def label_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of `label_table` for tables with this schema; engines may ask for it beforehand."""
        for column in _new_columns(self.labels):
            name = column.name
            while name in schema.names:
                name = f"pcs_{name}"
            schema = schema.append(column.with_name(name))
        return schema

    def _labelled(self, texts: Sequence[_Text]) -> pa.Table:
        """Return the new columns for some texts."""
        opened = self._opened()
        return opened.call(opened.label(texts))

    def _opened(self) -> _OpenRun:
        with self._opening:
            # threads do not survive a fork, and connections must not be shared after one
            if self._open is None or self._open.process != os.getpid():
                self._open = _OpenRun.open(self.folder, self.options)
                weakref.finalize(self, self._open.close)
            return self._open


_OF_THIS_PROCESS: dict[bytes, LoadedRun] = {}


def _of_this_process(folder: Path, options: LoadOptions) -> LoadedRun:
    """Return the same loaded run for the same folder and options: engines unpickle it for every batch."""
    return _OF_THIS_PROCESS.setdefault(pickle.dumps((folder, options)), LoadedRun(folder, options))


class _Text(NamedTuple):
    """A text to label, and why it cannot be; empty if it can."""

    text: str
    error: str = ""


def _texts_of(name: str, column: pa.ChunkedArray) -> list[_Text]:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return [_decoded(value) for value in column.to_pylist()]
    texts = text_column(name, column)
    try:
        values = texts.to_pylist()
    except UnicodeDecodeError:  # Arrow takes the word of other programs for what is UTF-8
        return [_decoded(value) for value in texts.cast(pa.large_binary()).to_pylist()]
    return [_Text(value) if value and value.strip() else _Text("", NO_TEXT) for value in values]


def _decoded(value: bytes | None) -> _Text:
    try:
        return _Text(value.decode()) if value and value.strip() else _Text("", NO_TEXT)
    except UnicodeDecodeError:
        return _Text("", NOT_TEXT)


def _new_columns(labels: Iterable[str]) -> pa.Schema:
    import pyarrow as pa

    first = [("label", pa.string()), ("confidence", pa.float64()), ("decision", pa.string()), ("reason", pa.string())]
    return pa.schema([*first, *((f"p_{label}", pa.float64()) for label in labels), ("pcs_error", pa.string())])


@dataclass(slots=True)
class _OpenRun:
    """A fitted run with its ledger and models open, and the thread whose event loop asks.

    Attributes:
        process: The process that opened it.
    """

    process: int
    _loop: asyncio.AbstractEventLoop
    _closing: AsyncExitStack
    _labeller: ChunkLabeller
    _closed: bool = False

    @classmethod
    def open(cls, folder: Path, options: LoadOptions) -> _OpenRun:
        """Open a run; a missing key or a damaged folder is an error here."""
        recorded = Recorded.read(RunFolder(folder))
        fitted = open_fitted(recorded, options.saving, options.environment)
        if options.in_flight is not None:
            fitted = replace(fitted, settings=replace(fitted.settings, in_flight=options.in_flight))
        ask.refuse_unknown_prices(fitted.job, ask.pricing(fitted.settings.prices), fitted.settings.budget)
        ledger = open_ledger(options.ledger or ledger_of(recorded.folder, recorded.config))
        loop = asyncio.new_event_loop()
        threading.Thread(target=_run, args=(loop,), name="pcs-engine", daemon=True).start()
        try:
            return _wait_for(cls._enter(fitted, ledger), loop)
        except BaseException:
            loop.call_soon_threadsafe(loop.stop)
            raise

    @classmethod
    async def _enter(cls, fitted: FittedRun, ledger: AnyLedger) -> _OpenRun:
        # A file is not locked, so that processes label side by side: what two of them ask at the same moment is paid
        # for twice, and every answer is found by all of them after that. On a server, calls are claimed.
        async with AsyncExitStack() as stack:
            stack.enter_context(ledger)
            asker = ask.open_asker(ledger, fitted.settings)
            labeller = await stack.enter_async_context(ChunkLabeller(fitted, asker))
            return cls(os.getpid(), asyncio.get_running_loop(), stack.pop_all(), labeller)

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the thread that asks, and return its result; Ctrl-C stops it and keeps paid answers."""
        return _wait_for(work, self._loop)

    def close(self) -> None:
        """Close models and ledger, if this process opened them and they are still open."""
        if self.process == os.getpid() and not self._closed:
            self._closed = True
            self.call(self._closing.aclose())
            self._loop.call_soon_threadsafe(self._loop.stop)

    async def label(self, texts: Sequence[_Text]) -> pa.Table:
        """Return the new columns for some texts."""
        items = [Item(id=str(row), text=one.text) for row, one in enumerate(texts)]
        labeller, failure = self._labeller, ""
        asker = labeller.asker
        try:
            chunk = await labeller.label(items)
        except UserError:
            raise
        except PcsError as error:
            if isinstance(error, AccessDenied) and not asker.tracker.calls:
                raise  # wrong from the start, so for all rows
            failure = str(error)
            if labeller.asker is asker:  # its pace is closed for all texts; the next table tries again
                labeller.asker = asker.restarted()
            try:
                chunk = await labeller.label_from_ledger(items)
            except PcsError:  # the ledger itself has failed
                return _unlabelled(labeller.fitted.job.task.labels, len(items), failure)
        return _added(chunk, labeller.fitted, [one.error for one in texts], failure)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


def _wait_for(work: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> T:
    future = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def _added(chunk: LabelledChunk, fitted: FittedRun, errors: Sequence[str], failure: str) -> pa.Table:
    """Return the new columns; `errors` are of rows, `failure` is why rows without answers have none."""
    import pyarrow as pa

    silent, schema = chunk.votes.silent, _new_columns(chunk.votes.labels)
    why = [
        (error or failure or "; ".join(chunk.missing.get(row, ())) or NO_ANSWER) if silent[row] else None
        for row, error in enumerate(errors)
    ]
    columns: dict[str, Any] = result_columns(fitted.model, chunk.votes, chunk.judged)
    shares = chunk.judged.deciding.round(SCORE_DECIMALS)
    columns |= {f"p_{label}": pa.array(shares[:, at], mask=silent) for at, label in enumerate(chunk.votes.labels)}
    columns["pcs_error"] = why  # last: a label may be named like that
    return pa.table([columns[name] for name in schema.names], schema=schema)


def _unlabelled(labels: Sequence[str], rows: int, why: str) -> pa.Table:
    import pyarrow as pa

    schema = _new_columns(labels)
    *empty, _ = (pa.nulls(rows, column.type) for column in schema)
    return pa.table([*empty, pa.array([why] * rows)], schema=schema)
