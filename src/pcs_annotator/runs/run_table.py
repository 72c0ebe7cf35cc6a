"""The table of a run: its size, the sample of rows that the run learns from, and whether a folder is about it."""

import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from pcs_annotator.base.errors import ConfigError, PcsError, PcsWarning, warn_user
from pcs_annotator.base.text import listed, row_number
from pcs_annotator.core.arrays import Array, Mask
from pcs_annotator.core.events import FiledLabel, Picked, Verdict
from pcs_annotator.core.identity import same_text
from pcs_annotator.core.task import Item, label_code
from pcs_annotator.runs import resolve_config
from pcs_annotator.runs.draw_registry import has_results, read_events
from pcs_annotator.runs.paths import SAMPLED, RunFolder
from pcs_annotator.runs.run_request import RunRequest, earlier_run
from pcs_annotator.runs.settings import Config
from pcs_annotator.tables.arrow import pa
from pcs_annotator.tables.chunks import Dataset, IdCheck, TableStream, read_source

IN_MEMORY_ROWS = 50_000  # a table with at most this many rows is kept in memory, and completely in the run folder
SAMPLE_ROWS = 20_000
ID = "id"
_HIGHEST = 62  # the number of random bits of a lot; the bits above them say which rows come first


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTable:
    """The table of a run; a small one is its own sample."""

    stream: TableStream  # reads it in chunks
    data: str  # what changes whenever its rows do
    rows: int  # how many it has
    sample: Dataset  # the rows that the run folder keeps and learns from
    known: tuple[Item, ...]  # those, and the rows of an earlier sample that are still there
    sampled: bool = True  # whether it has more rows than its sample


def is_large(stream: TableStream) -> bool:
    """Return whether a table is to be read in chunks: because of its size."""
    if stream.rows is not None:
        return stream.rows > IN_MEMORY_ROWS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PcsWarning)  # reading it again warns again
        return any(rows > IN_MEMORY_ROWS for rows in accumulate(len(chunk.items) for chunk in stream.chunks()))


def open_table(stream: TableStream, folder: RunFolder, config: Config) -> RunTable:
    """Return a table with the rows to learn from: all, or of a large one a sample, the earlier one if it still fits."""
    if not is_large(stream):
        all_rows = stream.read()
        items, digest = all_rows.items, blake2b(digest_size=16)
        for item in sorted(items, key=lambda item: item.id):  # rows may be in any order
            digest.update(f"{item.id}\0{item.text}\0".encode("utf-8", "replace"))
        data = digest.hexdigest()
        return RunTable(stream=stream, data=data, rows=len(items), sample=all_rows, known=items, sampled=False)
    data = data_hash_of(stream)
    earlier = _earlier_sample(folder, stream, config)
    if earlier is not None and earlier.data == data:
        return earlier
    before = () if earlier is None else earlier.sample.items
    surveyed = survey(stream, _seen_by_people(folder), {item.id for item in before})
    for label, row in surveyed.first_gold.items() if config.task.labels else ():  # the sample no longer knows its row
        where = f"{stream.name}, row {row_number(stream.name, row)}, column {stream.columns.gold_source}"
        label_code(label, config.task.labels, where)  # raises for one that is not in the label set
    items_known = (*surveyed.sample.items, *surveyed.found)
    return RunTable(stream=stream, data=data, rows=surveyed.rows, sample=surveyed.sample, known=items_known)


def _earlier_sample(folder: RunFolder, stream: TableStream, config: Config) -> RunTable | None:
    """Return the sample that a run folder has; None if it has none, or, warned, none that can be read."""
    try:
        before = earlier_run(folder)
        if before is not None and before.sampled:
            columns, start = resolve_config.columns_of(config), before.start
            sample = read_source(folder.items, replace(columns, id=columns.id or stream.columns.id))
            about = {"data": start.get("data_hash", ""), "rows": start[SAMPLED], "known": sample.items}
            return RunTable(stream=stream, sample=replace(sample, name=stream.name), **about)
    except PcsError as error:
        warn_user(f"{error}; a new sample of the rows is drawn")
    return None


def _seen_by_people(folder: RunFolder) -> Collection[str]:
    events = read_events(folder.draws, folder.part)
    return {event.id for event in events if isinstance(event, Verdict | Picked | FiledLabel)}


def data_hash_of(stream: TableStream) -> str:
    """Return what changes whenever the rows of a table do, or the columns that are read."""
    columns = stream.columns
    return f"{stream.fingerprint()} {columns.text} {columns.id} {columns.gold or ' '.join(columns.coders) or None}"


def refuse_other_work(request: RunRequest, config: Config, table: RunTable) -> bool:
    """Raise if the folder has results of other work; with `request.replace`, return whether it has."""
    other = _other_work(request.run_folder, config, table)
    if other and not request.replace:
        limit = "" if request.limit is None else ", leave out --limit"
        raise ConfigError(
            f"{request.run_folder.home} has results {other}: name another folder with -o{limit}, or add --replace, "
            "which keeps the old results under a dated name"
        )
    return bool(other)


def _other_work(folder: RunFolder, config: Config, table: RunTable) -> str:
    """Return why results in a folder are of other work than this: other data, labels or instruction; empty if not."""
    before_now = earlier_run(folder) if has_results(folder) else None
    if before_now is None:
        return ""
    earlier, start = before_now.config, before_now.start
    other = _other_task(earlier, config)
    if other or start.get("data_hash") == table.data or not folder.items.exists():
        return other
    return lost_rows(before_now.dataset.items, table.known, table.sample.name)


def _other_task(earlier: Config, config: Config) -> str:
    ours, theirs = resolve_config.task_of(config), resolve_config.task_of(earlier)
    if {*map(str.casefold, ours.labels)} != {*map(str.casefold, theirs.labels)}:
        return f"with other labels ({', '.join(theirs.labels)})"
    asked = (config.task.instruction, earlier.task.instruction)
    if (any(asked) and ours.instruction.split() != theirs.instruction.split()) or ours.meanings != theirs.meanings:
        return f"of another instruction or other meanings of the labels ({theirs.instruction!r})"
    return ""


def lost_rows(before: Sequence[Item], now: Sequence[Item], name: str) -> str:
    """Return which rows have another text now, in the table of that name, or are missing; empty if none are."""
    texts = {item.id: item.text for item in now}
    pairs = ((item, texts[item.id]) for item in before if item.id in texts)
    if changed := [item.id for item, text in pairs if item.text != text and not same_text(item.text, text)]:
        names = listed(map(repr, changed), len(changed))
        return f"of other data: {len(changed)} of {len(before)} rows have another text in {name} ({names})"
    if gone := [item.id for item in before if item.id not in texts]:
        names = listed(map(repr, gone), len(gone))
        return f"for {len(before)} rows, and {len(gone)} of them are missing now ({names})"
    return ""


class Survey(NamedTuple):
    """What a look at all rows of a table found."""

    rows: int  # how many there are
    sample: Dataset  # those to learn from, in the order of the table; always with a column of ids
    found: Sequence[Item]  # rows whose ids were asked for
    first_gold: dict[str, int]  # gold label → the first row that has it, from 1


def survey(stream: TableStream, kept: Collection[str] = (), wanted: Collection[str] = ()) -> Survey:
    """Read all rows of a table and return a sample of them; two rows with the same id are an error.

    Rows that people have seen (`kept`) come first, then those with a gold label, then others at random. A hash of the
    id decides, so that the sample hardly changes when rows are added. `wanted` are the ids of rows to return as well.
    """
    check, asked_for, first_gold = IdCheck(), list[Item](), dict[str, int]()
    parts, lots, limit = list[Dataset](), np.empty(0, dtype=np.uint64), np.iinfo(np.uint64).max
    for chunk in stream.chunks():
        before = check.rows
        check.add(item.id for item in chunk.items)
        first = {row for row, gold in _gold(chunk) if first_gold.setdefault(gold, before + row) == before + row}
        drawn = _lots(chunk, kept, first)
        rows = np.flatnonzero(drawn < np.uint64(limit))
        lots, parts = np.concatenate([lots, drawn[rows]]), [*parts, taken(chunk, rows)]
        if len(lots) > 2 * SAMPLE_ROWS:
            lots, parts = _lowest(lots, parts)
            limit = int(lots.max())
        if wanted:
            asked_for += [item for item in chunk.items if item.id in wanted]
    check.refuse_twins(stream)
    (sample,) = _lowest(lots, parts)[1]
    return Survey(check.rows, _with_ids(sample), asked_for, {gold: row + 1 for gold, row in first_gold.items()})


def _gold(chunk: Dataset) -> list[tuple[int, str]]:
    return [(row, gold) for row, gold in enumerate(chunk.gold) if gold is not None]


def lots_of(ids: Sequence[str]) -> Array:
    """Return a number for every id, the same in every process, that is as good as random."""
    digests = b"".join(
        blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8, person=b"sample").digest() for name in ids
    )
    return np.frombuffer(digests, dtype="<u8") >> np.uint64(64 - _HIGHEST)


def sampled_rows(chunk: Dataset, of: int) -> Mask:
    """Return which rows of a chunk are in a random sample of the `of` rows of a table."""
    limit = min(1.0, SAMPLE_ROWS / of) * 2.0**_HIGHEST
    return np.asarray(lots_of([item.id for item in chunk.items]) < limit)


def _lots(chunk: Dataset, kept: Collection[str], first: Collection[int]) -> Array:
    rank = np.full(len(chunk.items), 2, dtype=np.uint64)
    rank[[row for row, _ in _gold(chunk)]] = 1
    rank[list(first)] = 0
    if kept:
        rank[[row for row, item in enumerate(chunk.items) if item.id in kept]] = 0
    return lots_of([item.id for item in chunk.items]) | rank << np.uint64(_HIGHEST)


def taken(rows_of: Dataset, rows: Array) -> Dataset:
    """Return some rows of a table; they are copied, because a slice would keep all of them in memory."""
    items, gold = rows_of.items, rows_of.gold
    return replace(
        rows_of,
        table=rows_of.table.take(rows),
        items=tuple(items[row] for row in rows.tolist()),
        gold=tuple(gold[row] for row in rows.tolist()) if gold else (),
    )


def joined(parts: Sequence[Dataset]) -> Dataset:
    """Return the rows of several parts of a table as one."""
    return replace(
        parts[0],
        table=pa.concat_tables([part.table for part in parts]),
        items=tuple(item for part in parts for item in part.items),
        gold=tuple(gold for part in parts for gold in part.gold),
    )


def _lowest(lots: Array, parts: Sequence[Dataset]) -> tuple[Array, list[Dataset]]:
    """Return the rows with the lowest lots, in the order of the table."""
    rows = np.arange(len(lots))
    if len(lots) > SAMPLE_ROWS:
        rows = np.sort(np.argpartition(lots, SAMPLE_ROWS - 1)[:SAMPLE_ROWS])
    return lots[rows], [taken(joined(parts), rows)]


def _with_ids(sample: Dataset) -> Dataset:
    """Return a sample with a column of ids: rows without one have their number, which is another one in a sample."""
    columns, table = sample.columns, sample.table.combine_chunks()
    ids = pa.array([item.id for item in sample.items], pa.string())
    if columns.id is None:
        columns = replace(columns, id=columns.id_setting or ID, numbered=False)
        table = table.append_column(columns.id, ids)
    else:
        table = table.set_column(table.column_names.index(columns.id), columns.id, ids)
    return replace(sample, table=table, columns=columns)
