"""Tables larger than memory: a run learns from a sample of their rows, and labels all of them in chunks."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.base.concurrency import run_sync
from pcs_annotator.base.errors import PcsError, PcsWarning, TableError
from pcs_annotator.core.ledger_address import LedgerAddress
from pcs_annotator.core.outcome import Counts
from pcs_annotator.core.result_names import input_names, result_names
from pcs_annotator.core.review import Verdict
from pcs_annotator.core.task import Item, label_lookup, unknown_label
from pcs_annotator.judging.model import Model
from pcs_annotator.runs import ask, folder_votes, ledgers, resolve_config, review_state
from pcs_annotator.runs.files import human_files
from pcs_annotator.runs.files.runs import RunFolder
from pcs_annotator.runs.files.whole_table import WholeTable, read_whole, write_whole
from pcs_annotator.runs.fitted import FittedRun, job_of
from pcs_annotator.runs.large.stream import OutFiles, RowMaker, data_hash_of, label_locally, write_all, writing_rows
from pcs_annotator.runs.large.survey import Survey, survey
from pcs_annotator.runs.learn import Learned
from pcs_annotator.runs.run import SAMPLED, Run
from pcs_annotator.runs.settings import Config
from pcs_annotator.tables import sources, tables, vote_files
from pcs_annotator.tables.files import signature
from pcs_annotator.tables.sources import read_source
from pcs_annotator.tables.table_stream import TableStream
from pcs_annotator.tables.table_writer import TableStyle
from pcs_annotator.tables.vote_files import VoteAxes
from pcs_annotator.tables.workbook import original_cell

if TYPE_CHECKING:
    import pyarrow as pa

IN_MEMORY_ROWS = 50_000
"""Tables of at most so many rows are kept in memory and in the run folder completely."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeTable:
    """A table that is larger than memory.

    Attributes:
        stream: Reads it in chunks.
        data: What changes whenever its rows do.
        rows: How many it has.
        sample: The rows to learn from.
        known: Those, and the rows of an earlier sample that are still there.
    """

    stream: TableStream
    data: str
    rows: int
    sample: tables.Dataset
    known: tuple[Item, ...]


def is_large(stream: TableStream) -> bool:
    """Return whether a table is to be read in chunks: because of its size, or because only a shard of it is used."""
    if stream.shard is not None:
        return True
    if stream.rows is not None:
        return stream.rows > IN_MEMORY_ROWS
    rows = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PcsWarning)  # reading it again warns again
        for chunk in stream.chunks():
            rows += len(chunk.items)
            if rows > IN_MEMORY_ROWS:
                return True
    return False


def open_large(stream: TableStream, folder: RunFolder, config: Config) -> LargeTable:
    """Return a large table with the sample to learn from: that of an earlier run if nothing has changed.

    Rows that people have seen stay in the sample.
    """
    data = data_hash_of(stream)
    earlier = _earlier_sample(folder, stream, config)
    if earlier is not None and earlier.data == data:
        return earlier
    before = () if earlier is None else earlier.sample.items
    found = survey(stream, _seen_by_people(folder), {item.id for item in before})
    _refuse_other_gold(found, config, stream)
    known = (*found.sample.items, *found.found)
    return LargeTable(stream=stream, data=data, rows=found.rows, sample=found.sample, known=known)


def _earlier_sample(folder: RunFolder, stream: TableStream, config: Config) -> LargeTable | None:
    """Return the sample that a run folder has; None if it has none, or, warned, none that can be read."""
    if not folder.settings.exists():
        return None
    try:
        start = Run.open(folder.path).start
        if SAMPLED in start:
            columns = resolve_config.columns_of(config)
            sample = read_source(folder.items, replace(columns, id=columns.id or stream.columns.id))
            sample = replace(sample, name=stream.name)
            data = start.get("data_hash", "")
            return LargeTable(stream=stream, data=data, rows=start[SAMPLED], sample=sample, known=sample.items)
    except PcsError as error:
        warnings.warn(f"{error}; a new sample of the rows is drawn", PcsWarning, stacklevel=3)
    return None


def _seen_by_people(folder: RunFolder) -> Collection[str]:
    """Return the ids of rows that people labelled, reviewed, or got to label."""
    seen: set[str] = set()
    if folder.drawn.exists():
        seen.update(one.id for one in human_files.read_drawn(folder.drawn))
    if folder.gold.exists():
        seen.update(one.id for one in human_files.read_gold(folder.gold))
    if folder.review.exists():
        seen.update(event.id for event in review_state.read_review(folder.review) if isinstance(event, Verdict))
    return seen


def _refuse_other_gold(found: Survey, config: Config, stream: TableStream) -> None:
    """Raise for a gold label that is not in the label set; the sample no longer knows its row."""
    if config.task.labels:
        known = label_lookup(config.task.labels)
        for label, row in found.first_gold.items():
            if label.casefold() not in known:
                where = f"{stream.name}, row {row}, column {stream.columns.gold_source}"
                raise unknown_label(label, config.task.labels, where)


def label_whole(
    recorded: Run,
    learned: Learned,
    large: LargeTable,
    settings: ask.CollectSettings,
    *,
    spreadsheet_safe: bool,
) -> Learned:
    """Ask about all rows and label them; return what was learned, with exact counts in its promise.

    If all that the labels depend on is as it was, nothing is done.
    """
    folder, model = recorded.folder, learned.model
    ledger = ledgers.ledger_of(folder, recorded.config)
    made_from = _made_from(recorded, model, large.data, spreadsheet_safe=spreadsheet_safe)
    whole = read_finished(folder, ledger, made_from)
    if whole is not None:
        counted = Tally(rows_expected=large.rows)
        counted.take_over(whole.tally)
        _become(settings.tally, counted)
        return _with_coverage(learned, whole.counts)
    sampled = settings.tally
    # what is paid for is counted in one place, also if the rest is interrupted
    tally, before = Tally(rows_expected=large.rows, paid=sampled.paid), Counter(sampled.paid)
    settings = replace(settings, tally=tally)
    job = job_of(recorded, settings)
    fitted = FittedRun(job=job, settings=settings, model=model, frugal=None)
    graded = any(one.can_grade and annotator.answers != "hard" for annotator, one in job.annotators)
    maker = RowMaker(model=model, graded=graded, people=_people(recorded), gold=_gold(recorded))
    out = OutFiles(_labels_file(folder, large.stream), folder.all_votes, TableStyle(spreadsheet_safe=spreadsheet_safe))

    async def label() -> Counts:
        results = label_locally(large.stream, fitted, ledger, maker)
        return (await write_all(results, out, large.stream, large.data)).counts

    counts = run_sync(label)
    _count_both(sampled, tally, before)
    whole = WholeTable(
        counts=counts,
        columns=list(input_names(large.stream.schema.names, result_names(recorded.votes.labels)).values()),
        made_from=made_from,
        signature=signature(Path(out.labels), folder.path),
        spreadsheet_safe=spreadsheet_safe,
        tally=sampled.to_dict(),
        ledger=folder_votes.ledger_state(ledger),
    )
    write_whole(folder, whole)
    return _with_coverage(learned, counts)


def relabel_whole(recorded: Run, learned: Learned, *, spreadsheet_safe: bool) -> Learned:
    """Judge the recorded votes on all rows anew and rewrite their labels; no model is called."""
    folder = recorded.folder
    whole = read_whole(folder)
    if whole is None or not (folder.all_votes.exists() and folder.labels.exists()):
        message = f"{folder.path}: only a sample of the rows has been asked about; pcs run labels all of them"
        warnings.warn(message, PcsWarning, stacklevel=4)
        return learned
    start = recorded.start
    axes = VoteAxes((), recorded.votes.annotators, start["relations"], recorded.votes.labels, recorded.config.ask.draws)
    maker = RowMaker(model=learned.model, people=_people(recorded), gold=_gold(recorded))
    out = OutFiles(folder.labels, None, TableStyle(spreadsheet_safe=spreadsheet_safe))
    rows = _RowReader(folder.labels, whole)
    with writing_rows(out) as writer:
        for votes in vote_files.read_parts(folder.all_votes, axes):
            items = tuple(Item(id=name, text="") for name in votes.ids)
            chunk = replace(recorded.dataset, table=rows.take(len(votes)), items=items, gold=())
            writer.write(maker.rows(chunk, votes))
        rows.refuse_more()
    data = start.get("data_hash", "")
    again = replace(
        whole,
        counts=writer.counts,
        columns=list(input_names(whole.columns, result_names(recorded.votes.labels)).values()),
        made_from=_made_from(recorded, learned.model, data, spreadsheet_safe=spreadsheet_safe),
        signature=signature(folder.labels, folder.path),
        spreadsheet_safe=spreadsheet_safe,
    )
    write_whole(folder, again)
    return _with_coverage(learned, writer.counts)


class _RowReader:
    """Reads the user's own columns from a file of labels, a given number of rows at a time."""

    def __init__(self, path: Path, whole: WholeTable) -> None:
        import pyarrow as pa

        self._name, self._whole = path.name, whole
        stream = sources.open_stream(path, tables.Columns(text=next(iter(whole.columns), None)))
        self._tables = stream.batches(pa.schema([stream.schema.field(name) for name in whole.columns]))
        self._rest: list[pa.Table] = []

    def take(self, rows: int) -> pa.Table:
        """Return the next rows."""
        import pyarrow as pa

        while sum(map(len, self._rest)) < rows:
            table = next(self._tables, None)
            if table is None:
                raise self._other_rows()
            self._rest.append(table)
        found = pa.concat_tables(self._rest)
        self._rest = [found.slice(rows)]
        return _with_original_cells(found.slice(0, rows)) if self._whole.spreadsheet_safe else found.slice(0, rows)

    def refuse_more(self) -> None:
        """Raise if there are more rows."""
        if sum(map(len, self._rest)) or any(map(len, self._tables)):
            raise self._other_rows()

    def _other_rows(self) -> TableError:
        return TableError(f"{self._name} does not have the rows that were asked about: pcs run writes it again")


def _with_original_cells(table: pa.Table) -> pa.Table:
    import pyarrow as pa

    texts = [name for name, column in zip(table.column_names, table.columns, strict=True) if column.type == pa.string()]
    for name in texts:
        cells = [cell and original_cell(cell) for cell in table[name].to_pylist()]
        table = table.set_column(table.column_names.index(name), name, pa.array(cells, pa.string()))
    return table


def read_finished(folder: RunFolder, ledger: LedgerAddress, made_from: str) -> WholeTable | None:
    """Return what is known about all rows if they have been labelled from the very same, and all questions answered."""
    try:
        whole = read_whole(folder)
    except TableError as error:  # which says that it is written again
        warnings.warn(str(error), PcsWarning, stacklevel=3)
        return None
    if whole is None or whole.made_from != made_from or not folder.all_votes.exists():
        return None
    if not folder_votes.all_answered(whole.tally, whole.ledger, ledger):
        return None
    return whole if signature(folder.labels, folder.path) == whole.signature else None


def _made_from(recorded: Run, model: Model, data: str, *, spreadsheet_safe: bool) -> str:
    """Return a digest of all that a file of labels depends on, the names of its columns among it."""
    asked, verdicts = recorded.start["asked"], recorded.gold.verdicts.last
    parts = data, asked, _judging(model), spreadsheet_safe, verdicts, sorted(result_names(recorded.votes.labels))
    return blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def _judging(model: Model) -> dict[str, Any]:
    """Return what decides labels, without counts of rows."""
    values = model.to_dict()
    if values["certificate"]:
        values["certificate"] = {**values["certificate"], "accepted_share": None, "review_rows": None}
    return values


def _with_coverage(learned: Learned, counts: Counts) -> Learned:
    return replace(learned, model=with_counted_coverage(learned.model, counts))


def with_counted_coverage(model: Model, counts: Counts) -> Model:
    """Return the model; its promise says how many of all rows are accepted."""
    if model.certificate is None or not counts.rows:
        return model
    accepted = counts.decisions.get("accept", 0)
    share, review = accepted / counts.rows, counts.rows - accepted
    return replace(model, certificate=replace(model.certificate, accepted_share=share, review_rows=review))


def _people(recorded: Run) -> dict[str, Any]:
    """Return item → what people said about it."""
    reviewed = recorded.gold.verdicts.by_place(len(recorded.dataset.items))
    pairs = zip(recorded.dataset.items, reviewed, strict=False)
    return {item.id: one for item, one in pairs if one is not None}


def _gold(recorded: Run) -> dict[str, str | None]:
    return dict(zip(recorded.votes.ids, recorded.gold.labels, strict=True))


def _labels_file(folder: RunFolder, stream: TableStream) -> Path:
    return folder.path / ("labels.parquet" if stream.parquet else "labels.csv")


def _count_both(sampled: Tally, whole: Tally, paid_before: Counter[str]) -> None:
    """Count a sample and all rows as one run: answers for the sample were found in the ledger the second time."""
    found_again = sampled.calls + sampled.from_ledger
    whole.calls += sampled.calls
    whole.from_ledger = max(0, whole.from_ledger - found_again) + sampled.from_ledger
    whole.reused -= paid_before
    whole.retries += sampled.retries
    _become(sampled, whole)


def _become(tally: Tally, other: Tally) -> None:
    for name in other.to_dict():
        setattr(tally, name, getattr(other, name))
