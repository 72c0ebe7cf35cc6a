"""Votes as tables: one column per cell (wide), or one row per vote (long)."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from pcs_annotator.base.errors import TableError, warn_user
from pcs_annotator.base.text import row_number
from pcs_annotator.core.arrays import CODE, Array, Integers, Mask
from pcs_annotator.core.task import check_labels, label_lookup, refuse_doubtful
from pcs_annotator.core.votes import NOT_ASKED, Form, Unknown, Votes
from pcs_annotator.tables import vote_columns
from pcs_annotator.tables.arrow import columns_of, pa, text_column
from pcs_annotator.tables.find import as_arrow, source_name
from pcs_annotator.tables.vote_columns import TextColumn, VoteColumns

MAX_DRAWS = 1000


class VoteTable(NamedTuple):
    """Votes, and for every item its gold label or None."""

    votes: Votes
    gold: tuple[str | None, ...]


class CellName(NamedTuple):
    """The annotator, relation and draw of a column of votes."""

    annotator: str
    relation: str
    draw: int


def read_vote_table(
    table: object, labels: Iterable[str] | None = None, *, unknown: Unknown = "error", name: str = ""
) -> VoteTable:
    """Read votes and gold from a table in wide or long form, called `name` in messages; see `Votes.from_table`."""
    columns = VoteColumns(columns_of(as_arrow(table)), name or source_name(table))
    if not len(columns):
        raise TableError(f"{columns.table} has no rows: it needs at least one item with votes")
    return (read_long if is_long(columns.columns) else _read_wide)(columns, labels, unknown)


def is_long(names: Collection[str]) -> bool:
    """Return whether a table with these columns has one row per vote."""
    prefixes = (vote_columns.GRADE.prefix, vote_columns.LOG_GRADE.prefix)
    graded = any(sum(name.startswith(prefix) for name in names) > 1 for prefix in prefixes)
    return ("label" in names or graded) and "annotator" in names and "relation" in names


def _read_wide(columns: VoteColumns, labels: Iterable[str] | None, unknown: Unknown) -> VoteTable:
    ids = _unique_ids(columns)
    cells = _cells(columns)
    texts = {name: columns.texts(name) for name in cells}
    gold = columns.texts("gold") if "gold" in columns.columns else None
    # only the long form has columns of probabilities
    checked = _check_labels(labels, list(texts.values()), gold, VoteColumns({}, columns.table))
    annotators = list(dict.fromkeys(cell.annotator for cell in cells.values()))
    relations = list(dict.fromkeys(cell.relation for cell in cells.values()))
    draws = 1 + max(cell.draw for cell in cells.values())
    codes = np.full((len(ids), len(annotators), len(relations), draws), NOT_ASKED, dtype=CODE)
    for name, (annotator, relation, draw) in cells.items():
        column = vote_columns.label_codes(texts[name], checked, unknown, ids)
        codes[:, annotators.index(annotator), relations.index(relation), draw] = column
    votes = Votes(codes=codes, ids=ids, annotators=annotators, relations=relations, labels=checked)
    return VoteTable(votes, (None,) * len(ids) if gold is None else gold.texts())


def read_long(columns: VoteColumns, labels: Iterable[str] | None, unknown: Unknown) -> VoteTable:
    """Read votes and gold from a table with one row per vote."""
    row_ids = _row_ids(columns)
    _, ids, item = row_ids
    nothing = TextColumn("label", [], np.full(len(columns), -1, dtype=np.intp))
    votes = columns.texts("label") if "label" in columns.columns else nothing
    gold = _gold_by_item(columns.texts("gold"), row_ids, columns.table) if "gold" in columns.columns else None
    checked = _check_labels(labels, [votes], gold, columns)
    _, annotators, annotator = columns.texts("annotator")
    _, relations, relation = columns.texts("relation")
    values = vote_columns.label_codes(votes, checked, unknown, row_ids)
    empty, grades = votes.positions < 0, vote_columns.read_grades(columns, checked, unknown)
    if grades is not None:
        values = vote_columns.graded_codes(values, empty, grades, checked)
        empty &= np.isnan(grades[:, 0])
        grades[values < 0] = np.nan
    elif votes is nothing:
        listed = ", ".join(map(repr, checked))
        raise TableError(f"{columns.table} has no votes: add a column 'label', or grades of the labels {listed}")
    asked = _asked({"annotator": annotator, "relation": relation}, empty, columns)
    draw = np.where(asked, _draws(columns), 0)
    shape = (len(ids), len(annotators), len(relations), 1 + int(draw.max()))
    cells = (item[asked], annotator[asked], relation[asked], draw[asked])
    codes = np.full(shape, NOT_ASKED, dtype=CODE)
    codes[cells] = values[asked]
    if np.count_nonzero(codes != NOT_ASKED) < len(cells[0]):
        raise _repeated(np.ravel_multi_index(cells, shape), np.flatnonzero(asked), row_ids, columns.table)
    stated = vote_columns.read_stated(columns, checked)
    read_votes = Votes(
        codes=codes,
        ids=ids,
        annotators=annotators,
        relations=relations,
        labels=checked,
        stated=None if stated is None else in_cells(stated[asked], cells, shape),
        grades=None if grades is None else in_cells(grades[asked], cells, shape),
    )
    return VoteTable(read_votes, (None,) * len(ids) if gold is None else gold.texts())


def in_cells(values: Array, cells: tuple[Array, ...], shape: Sequence[int]) -> Array:
    """Return probabilities of labels in their cells, `[item, annotator, relation, draw, label]`, nan elsewhere."""
    whole = np.full((*shape, values.shape[-1]), np.nan, dtype=values.dtype)
    whole[cells] = values
    whole.flags.writeable = False  # else `Votes` would copy it
    return whole


def _check_labels(
    labels: Iterable[str] | None, votes: Sequence[TextColumn], gold: TextColumn | None, columns: VoteColumns
) -> tuple[str, ...]:
    """Return the labels that the user names, or those in votes, gold and the names of columns with probabilities."""
    if labels is not None:
        return check_labels(labels)
    if gold is not None:
        # a gold value that is probably not a label is refused, unless models answer with it
        answered = label_lookup(vote_columns.seen_labels(votes, None, columns))
        unsure = [text if text and text.casefold() not in answered else None for text in gold.texts()]
        refuse_doubtful(unsure, [f"{columns.table}, column 'gold'"] * len(unsure), "name all labels with --labels")
    seen = vote_columns.seen_labels(votes, gold, columns)
    if not seen:
        raise TableError(
            f"{columns.table}: all votes are empty and no gold is given: name the labels yourself, or check the file"
        )
    return check_labels(seen, seen=True)


def _row_ids(columns: VoteColumns) -> TextColumn:
    problem = "but there is no such column"
    if "id" in columns.columns:
        ids = columns.texts("id")
        if (ids.positions >= 0).all():
            return ids
        problem = f"but row {row_number(columns.table, int(np.argmax(ids.positions < 0)) + 1)} has none"
    raise TableError(f"{columns.table}: the long form needs an 'id' in every row, {problem}")


def _asked(who: Mapping[str, Integers], blank: Mask, columns: VoteColumns) -> Mask:
    """Return which rows hold a vote; a row with only an id stands for an item that was not asked about."""
    empty = np.all([positions < 0 for positions in who.values()], axis=0) & blank
    for column, positions in who.items():
        half = np.flatnonzero((positions < 0) & ~empty)
        if len(half):
            raise TableError(f"{columns.where(half[0])}: column {column!r} is empty; fill it in, or remove the row")
    return ~empty


def _unique_ids(columns: VoteColumns) -> list[str]:
    """Return the ids with ` (2)`, ` (3)` … added to repeated ones: every row is an item, and none may be lost."""
    if "id" not in columns.columns:
        warn_user(f"{columns.table} has no column 'id': its rows are numbered from 1")
        return [str(row) for row in range(1, len(columns) + 1)]
    ids: list[str | None] = text_column("id", columns.columns["id"]).to_pylist()
    rows, taken, unique, notes = dict[str, int](), {*ids}, list[str](), list[str]()
    for row, name in enumerate(ids, row_number(columns.table, 1)):
        if not name:
            raise TableError(f"{columns.table}, row {row}: the id is empty; give every row an id")
        first, number, new = rows.setdefault(name, row), 2, name
        while first != row and new in taken:
            new, number = f"{name} ({number})", number + 1
        if new != name:
            notes.append(f"{name!r} of row {first} again at row {row}, now {new!r}")
        taken.add(new)
        unique.append(new)
    if notes:
        more = f" and {len(notes) - 3} more" if len(notes) > 3 else ""
        warn_user(f"{columns.table}: repeated ids are treated as separate items: {'; '.join(notes[:3])}{more}")
    return unique


def _cells(columns: VoteColumns) -> dict[str, CellName]:
    """Return the cell of each vote column; other columns are skipped with a warning."""
    names = [name for name in columns.columns if name not in ("id", "gold")]
    cells: dict[CellName, str] = {}
    for name in (name for name in names if "|" in name):
        match = re.fullmatch(r"([^|]+)\|([^|]+)(?:\|(\d+))?", name)
        if match is None:
            form = "'<model>|<relation>' or '<model>|<relation>|<draw>'"
            raise TableError(f"{columns.table}: column {name!r} is not {form}: rename it")
        cell = CellName(match[1], match[2], _draw(match[3] or "0", f"{columns.table}, column {name!r}"))
        if cells.setdefault(cell, name) != name:
            both = f"columns {cells[cell]!r} and {name!r}"
            raise TableError(f"{columns.table}: {both} name the same cell: number the draws")
    if not cells:
        listed = ", ".join(map(repr, names)) or "nothing but ids"
        raise TableError(
            f"{columns.table} has no votes: name its columns '<model>|<relation>' (wide) or use the columns "
            f"id, annotator, relation, label (long); found {listed}"
        )
    others = [name for name in names if "|" not in name and name != "text"]  # texts are read, but not as votes
    if others:
        warn_user(f"{columns.table}: columns that are not read as votes: {', '.join(map(repr, others))}")
    return {name: cell for cell, name in cells.items()}


def _draw(text: str, where: str) -> int:
    # the length is checked first, because int rejects thousands of digits
    if not text.isdecimal() or len(text) > 9 or int(text) >= MAX_DRAWS:
        raise TableError(f"{where}: draw {text!r} is not a whole number from 0 to {MAX_DRAWS - 1}")
    return int(text)


def _draws(columns: VoteColumns) -> Integers:
    if "draw" not in columns.columns:
        return np.zeros(len(columns), dtype=np.intp)
    draws: list[int] = []
    texts = columns.texts("draw")
    for position, text in enumerate(texts.distinct):
        where = f"{columns.where(np.argmax(texts.positions == position))}, column 'draw'"
        # pandas writes whole numbers as 0.0 into a file as soon as one cell is empty
        draws.append(_draw(text.removesuffix(".0") or "0", where))
    return np.array([*draws, 0], dtype=np.intp)[texts.positions]


def _gold_by_item(column: TextColumn, ids: TextColumn, table: str) -> TextColumn:
    """Return one gold entry per item from one per vote; two different ones for an item are an error."""
    by_item = np.full(len(ids.distinct), -1, dtype=np.intp)
    rows = np.flatnonzero(column.positions >= 0)
    item = ids.positions[rows]
    by_item[item] = column.positions[rows]
    folded = np.unique([text.casefold() for text in column.distinct], return_inverse=True)[1]
    clash = item[folded[by_item[item]] != folded[column.positions[rows]]]
    if len(clash):
        raise TableError(f"{table}: id {ids.distinct[clash[0]]!r} has two gold labels: keep one")
    return TextColumn("gold", column.distinct, by_item)


def _repeated(cells: Integers, rows: Integers, ids: TextColumn, table: str) -> TableError:
    order = np.argsort(cells, kind="stable")
    twin = np.flatnonzero(np.diff(cells[order]) == 0)[0]
    first, second = (row_number(table, int(row) + 1) for row in rows[order[twin : twin + 2]])
    name = ids.distinct[ids.positions[rows[order[twin]]]]
    return TableError(
        f"{table}: rows {first} and {second} are the same question about id {name!r}: remove one, or number "
        "repetitions in a column 'draw'"
    )


def write_vote_table(votes: Votes, form: Form) -> pa.Table:
    """Return the votes as a table that `read_vote_table` reads back."""
    return _write_long(votes) if form == "long" else _write_wide(votes)


def _write_wide(votes: Votes) -> pa.Table:
    barred = [name for name in (*votes.annotators, *votes.relations) if "|" in name]
    if barred:
        raise TableError(f"{barred[0]!r} contains '|', which separates names in wide columns: use the long form")
    names = np.array([*votes.labels, None, None], dtype=object)  # the last two stand for codes −2 and −1
    columns: dict[str, object] = {"id": pa.array(votes.ids, pa.string())}
    draws = votes.codes.shape[3]
    for (a, annotator), (r, relation), draw in product(
        enumerate(votes.annotators), enumerate(votes.relations), range(draws)
    ):
        cell = votes.codes[:, a, r, draw]
        if not draw or (cell != NOT_ASKED).any():
            columns[f"{annotator}|{relation}{f'|{draw}' if draws > 1 else ''}"] = pa.array(names[cell], pa.string())
    return pa.table(columns)


def _write_long(votes: Votes) -> pa.Table:
    asked = votes.codes != NOT_ASKED
    cells = np.nonzero(asked)
    item, annotator, relation, draw = cells
    unasked = np.flatnonzero(~asked.any(axis=(1, 2, 3)))
    blank = np.full(len(unasked), -1)

    def named(names: Sequence[str], positions: Integers) -> pa.Array:
        positions = np.concatenate([positions, blank])
        return pa.array(names, pa.string()).take(pa.array(positions, mask=positions < 0))

    rows = np.concatenate([item, unasked])
    draws = np.concatenate([draw, blank])
    columns = {
        "id": pa.array(votes.ids, pa.string()).take(pa.array(rows)),
        "annotator": named(votes.annotators, annotator),
        "relation": named(votes.relations, relation),
        "draw": pa.array(draws, pa.int64(), mask=draws < 0),
        "label": named(votes.labels, votes.codes[cells].astype(np.intp)),
    }
    for kind, values in ((vote_columns.STATED, votes.stated), (vote_columns.GRADE, votes.grades)):
        if values is not None:  # empty where it is nan, and in the rows of items that were not asked about
            by_row = np.pad(values[cells], ((0, len(unasked)), (0, 0)), constant_values=np.nan)
            for code, label in enumerate(votes.labels):
                columns[f"{kind.prefix}{label}"] = pa.array(by_row[:, code], from_pandas=True)
    # items keep their order, because gold may be a list in that order
    return pa.table(columns).take(pa.array(np.argsort(rows, kind="stable")))
