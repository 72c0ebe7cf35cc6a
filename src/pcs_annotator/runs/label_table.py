"""All rows of a table, also one larger than memory: asked about in chunks, judged, written in order, and counted."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np

from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.base.concurrency import run_sync
from pcs_annotator.base.errors import TableError, warn_user
from pcs_annotator.core.events import Reviewed
from pcs_annotator.core.ledger_address import LedgerAddress
from pcs_annotator.core.outcome import COPY_OF_GOLD, DECISION, LABEL, REASON, VERSION, Counts, input_names, result_names
from pcs_annotator.core.task import Item, is_empty
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.model import Model, Predictions
from pcs_annotator.runs import ask, folder_votes, ledgers
from pcs_annotator.runs.columns import groups_of, result_columns, with_columns
from pcs_annotator.runs.executors import asking
from pcs_annotator.runs.labeller import FittedRun, Labeller, job_of
from pcs_annotator.runs.learn import Learned
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.paths import RunFolder, WholeTable, read_whole
from pcs_annotator.runs.run_table import RunTable, data_hash_of, sampled_rows, taken
from pcs_annotator.tables import chunks, vote_files
from pcs_annotator.tables.arrow import pa
from pcs_annotator.tables.chunks import CHUNK_ROWS, Dataset, TableStream, gold_in
from pcs_annotator.tables.files import signature, write_json
from pcs_annotator.tables.vote_files import VoteAxes
from pcs_annotator.tables.workbook import original_cell
from pcs_annotator.tables.write import STRICT, OutputPolicy, TableWriter, writing_table

CHUNKS_AT_ONCE = 2  # while the last calls of one chunk are awaited, the next chunk is asked about

C = TypeVar("C")
R = TypeVar("R")


@dataclass(kw_only=True)
class RowWriter:
    """Judges votes on rows and writes these in order; a context manager, after an error in which no file appears."""

    model: Model  # what judges the votes
    labels: Path | None  # the file for the user's columns, then the results; None for no file
    policy: OutputPolicy = STRICT  # how that is written
    votes: Path | None = None  # the file for all votes, in the long form; None for no file
    graded: bool = False  # whether that has columns for grades, whether or not a chunk has some
    people: Mapping[str, Reviewed] = field(default_factory=dict)  # item → what people said about it
    gold: Mapping[str, str | None] = field(default_factory=dict)  # item → gold label, of rows in the sample
    version: int = 0  # the number of the fit, for a column of its own; 0 for none
    sample_of: int | None = None  # how many rows the table has, if a sample of them is to be kept
    keep: Callable[[Dataset, Votes, Model, Predictions], None] = lambda *_: None  # puts texts aside for people
    counts: Counts = field(default_factory=Counts, init=False)  # how many rows have which label, so far
    sample: list[tuple[Dataset, Votes]] = field(default_factory=list, init=False)  # the sampled rows and their votes
    _open: ExitStack = field(default_factory=ExitStack, init=False)
    _labels: TableWriter | None = field(default=None, init=False)
    _votes: Any = field(default=None, init=False)

    def __enter__(self) -> Self:
        if self.labels is not None:
            self._labels = self._open.enter_context(writing_table(self.labels, self.policy))
        if self.votes is not None:
            self._votes = self._open.enter_context(vote_files.writing_votes(self.votes))
        return self

    def __exit__(self, *error: Any) -> None:
        self._open.__exit__(*error)

    def write(self, chunk: Dataset, votes: Votes) -> None:
        """Add the next rows, with the labels that these votes give them."""
        votes = replace(votes, groups=votes.groups or groups_of(self.model.by, chunk.table, votes.texts or ()))
        judged = self.model.judged(votes)
        self.keep(chunk, votes, self.model, judged)
        reviewed = [self.people.get(item.id) for item in chunk.items] if self.people else []
        data_gold = gold_in(chunk.table, chunk.columns) or [None] * len(votes)
        gold = [self.gold.get(item.id) or label for item, label in zip(chunk.items, data_gold, strict=True)]
        columns = result_columns(self.model, votes, judged, reviewed, gold)
        labelled = with_columns(chunk.table, columns, result_names(votes.labels))
        if self.version:
            labelled = labelled.append_column(VERSION, pa.array([self.version] * len(votes), pa.int64()))
        assigned, decided, why = (labelled[name].to_pylist() for name in (LABEL, DECISION, REASON))
        settled = [*zip(decided, why, strict=True)].count(("review", COPY_OF_GOLD))
        if self._labels is not None:
            self._labels.write(labelled)
        if self._votes is not None:
            self._votes.add(votes, graded=self.graded)
        if self.sample_of is not None and (some := sampled_rows(chunk, self.sample_of)).any():
            rows = np.flatnonzero(some)
            self.sample.append((taken(chunk, rows), votes.take(rows)))
        empty = sum(label is None and is_empty(item.text) for label, item in zip(assigned, chunk.items, strict=True))
        labels, decisions = (Counter(value for value in values if value) for values in (assigned, decided))
        counts = Counts(rows=len(votes), labels=labels, decisions=decisions, empty=empty, settled=settled)
        self.counts = self.counts.plus(counts)


async def in_order(
    chunks: Iterable[C], work: Callable[[C], Coroutine[Any, Any, R]], at_once: int = CHUNKS_AT_ONCE
) -> AsyncIterator[R]:
    """Do some work on every chunk, on several at the same time, and yield the results in order; leave none running."""
    under_way: deque[asyncio.Task[R]] = deque()
    try:
        for chunk in chunks:
            under_way.append(asyncio.create_task(work(chunk)))
            if len(under_way) == at_once:
                yield await under_way.popleft()
        while under_way:
            yield await under_way.popleft()
    finally:
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)


def label_all(stream: TableStream, data: str, fitted: FittedRun, writer: RowWriter) -> None:
    """Ask about all rows of a table, label and write them; close the models. If it has changed, that is an error."""

    async def label() -> None:
        settings = fitted.settings
        with writer:
            async with asking(fitted.job, _Items(stream), fitted.ledger, settings, fitted.strategy) as asker:
                labeller = Labeller(fitted, asker)

                async def asked(chunk: Dataset) -> tuple[Dataset, Votes]:
                    return chunk, await labeller.ask(chunk.items, asker.part(asker.shared, settings.tally))

                async for chunk, votes in in_order(stream.chunks(CHUNK_ROWS), asked):
                    writer.write(chunk, votes)
            if data_hash_of(stream) != data:
                raise TableError(
                    f"{stream.name} has changed while it was labelled; all answers are kept: run the same command again"
                )

    run_sync(label)


@dataclass(frozen=True)
class _Items:
    stream: TableStream  # which is read anew every time

    def __iter__(self) -> Iterator[Item]:
        for chunk in self.stream.chunks():
            yield from chunk.items


def label_whole(
    recorded: Run, learned: Learned, table: RunTable, settings: ask.CollectSettings, *, spreadsheet_safe: bool
) -> Learned:
    """Label all rows, unless nothing has changed; return what was learned, with exact counts in its promise."""
    folder, model = recorded.folder, learned.model
    ledger = ledgers.ledger_of(folder, recorded.config)
    made_from = _made_from(recorded, model, table.data, spreadsheet_safe=spreadsheet_safe)
    whole = read_finished(folder, ledger, made_from)
    if whole is not None:
        counted = Tally(rows_expected=table.rows)
        counted.take_over(whole.tally)
        _become(settings.tally, counted)
        return replace(learned, model=with_counted_coverage(learned.model, whole.counts))
    sampled = settings.tally
    # what is paid for is counted in one place, also if the rest is interrupted
    tally, before = Tally(rows_expected=table.rows, paid=sampled.paid), Counter(sampled.paid)
    settings = replace(settings, tally=tally)
    job = job_of(recorded, settings)
    fitted = FittedRun(job=job, settings=settings, model=model, frugal=None, folder=folder, ledger=ledger)
    graded = any(model_of.can_grade and annotator.answers != "hard" for annotator, model_of in job.annotators)
    labels = folder.path / ("labels.parquet" if table.stream.parquet else "labels.csv")
    writer = replace(_writer(recorded, model, labels, spreadsheet_safe), votes=folder.all_votes, graded=graded)
    label_all(table.stream, table.data, fitted, writer)
    # both count as one run: answers for the sample were found in the ledger the second time
    found_again = sampled.calls + sampled.from_ledger
    tally.calls += sampled.calls
    tally.from_ledger = max(0, tally.from_ledger - found_again) + sampled.from_ledger
    tally.reused -= before
    tally.retries += sampled.retries
    _become(sampled, tally)
    noted = {"made_from": made_from, "tally": sampled.to_dict(), "ledger": folder_votes.ledger_state(ledger)}
    return _kept(recorded, learned, writer, table.stream.schema.names, **noted)


def relabel_whole(recorded: Run, learned: Learned, *, spreadsheet_safe: bool) -> Learned:
    """Judge the recorded votes on all rows anew and rewrite their labels; no model is called."""
    folder = recorded.folder
    whole = read_whole(folder)
    if whole is None or not (folder.all_votes.exists() and folder.labels.exists()):
        warn_user(f"{folder.home}: only a sample of the rows has been asked about; pcs run labels all of them")
        return learned
    start, text_name = recorded.start, recorded.dataset.columns.text or ""
    axes = VoteAxes((), recorded.votes.annotators, start["relations"], recorded.votes.labels, recorded.config.ask.draws)
    with _writer(recorded, learned.model, folder.labels, spreadsheet_safe) as writer:
        parts = vote_files.read_parts(folder.all_votes, axes)
        for votes, table in _with_own_columns(folder.labels, whole, parts):
            items = tuple(Item(id=name, text="") for name in votes.ids)
            chunk = replace(recorded.dataset, table=table, items=items, gold=())
            texts = chunks.texts_in(table, text_name)
            writer.write(chunk, replace(votes, texts=texts))
    made_from = _made_from(recorded, learned.model, start.get("data_hash", ""), spreadsheet_safe=spreadsheet_safe)
    return _kept(recorded, learned, writer, whole.columns, made_from=made_from, tally=whole.tally, ledger=whole.ledger)


def _kept(recorded: Run, learned: Learned, writer: RowWriter, columns: Collection[str], **more: Any) -> Learned:
    """Note what was written about all rows; return what was learned, with exact counts in its promise."""
    whole = WholeTable(
        counts=writer.counts,
        columns=list(input_names(columns, result_names(recorded.votes.labels)).values()),
        signature=signature(recorded.folder.labels, recorded.folder.path),
        spreadsheet_safe=writer.policy.spreadsheet_safe,
        **more,
    )
    write_json(recorded.folder.whole, asdict(whole))
    return replace(learned, model=with_counted_coverage(learned.model, whole.counts))


def _with_own_columns(path: Path, whole: WholeTable, parts: Iterable[Votes]) -> Iterator[tuple[Votes, pa.Table]]:
    """Yield votes with the user's own columns of their rows, from a file of labels; other rows there are an error."""
    other_rows = TableError(f"{path.name} does not have the rows that were asked about: pcs run writes it again")
    stream = chunks.open_stream(path, chunks.Columns(text=next(iter(whole.columns), None)))
    batches = stream.batches(pa.schema([stream.schema.field(name) for name in whole.columns]))
    rest: list[pa.Table] = []
    for votes in parts:
        while sum(map(len, rest)) < len(votes):
            if (table := next(batches, None)) is None:
                raise other_rows
            rest.append(table)
        table_rows = pa.concat_tables(rest)
        rest, rows = [table_rows.slice(len(votes))], table_rows.slice(0, len(votes))
        yield votes, _with_original_cells(rows) if whole.spreadsheet_safe else rows
    if sum(map(len, rest)) or any(map(len, batches)):
        raise other_rows


def _with_original_cells(table: pa.Table) -> pa.Table:
    for at, name in enumerate(table.column_names):
        if table[name].type == pa.string():
            cells = [cell and original_cell(cell) for cell in table[name].to_pylist()]
            table = table.set_column(at, name, pa.array(cells, pa.string()))
    return table


def read_finished(folder: RunFolder, ledger: LedgerAddress, made_from: str) -> WholeTable | None:
    """Return what is known about all rows if they have been labelled from the very same, and all questions answered."""
    try:
        whole = read_whole(folder)
    except TableError as error:  # which says that it is written again
        warn_user(str(error))
        return None
    if whole is None or whole.made_from != made_from or not folder.all_votes.exists():
        return None
    if not folder_votes.all_answered(whole.tally, whole.ledger, ledger):
        return None
    return whole if signature(folder.labels, folder.path) == whole.signature else None


def _made_from(recorded: Run, model: Model, data: str, *, spreadsheet_safe: bool) -> str:
    """Return a digest of all that a file of labels depends on, the names of its columns among it."""
    asked, verdicts, judging = recorded.start["asked"], recorded.gold.verdicts.last, model.to_dict()
    if judging["certificate"]:  # counts of rows decide nothing
        judging["certificate"] |= dict.fromkeys(("accepted_share", "review_rows", "withdrawn"))
    names, texts = sorted(result_names(recorded.votes.labels)), sorted((recorded.gold_labels or {}).items())
    parts = data, asked, judging, spreadsheet_safe, verdicts, names, texts
    return blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def with_counted_coverage(model: Model, counts: Counts) -> Model:
    """Return the model; its promise says how many of all rows are accepted."""
    if model.certificate is None or not counts.rows:
        return model
    accepted = counts.decisions.get("accept", 0)
    share, review = accepted / counts.rows, counts.rows - accepted
    return replace(model, certificate=replace(model.certificate, accepted_share=share, review_rows=review))


def _writer(recorded: Run, model: Model, labels: Path, spreadsheet_safe: bool) -> RowWriter:
    items = recorded.dataset.items
    reviewed = zip(items, recorded.gold.verdicts.by_place(len(items)), strict=False)
    people = {item.id: verdict for item, verdict in reviewed if verdict is not None}
    gold = dict(zip(recorded.votes.ids, recorded.gold.all_labels, strict=True))
    model = replace(model, gold_labels=recorded.gold_labels)
    policy = OutputPolicy(spreadsheet_safe=spreadsheet_safe)
    return RowWriter(model=model, labels=labels, policy=policy, people=people, gold=gold)


def _become(tally: Tally, other: Tally) -> None:
    for name in other.to_dict():
        setattr(tally, name, getattr(other, name))
