"""Votes as tables: one column per cell (wide), or one row per vote (long)."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from pcs_annotator.base.errors import PcsWarning, TableError
from pcs_annotator.core.arrays import Array, Codes, Floats, Grades, Integers, Mask
from pcs_annotator.core.doubtful_labels import refuse_doubtful
from pcs_annotator.core.task import check_labels, label_lookup
from pcs_annotator.core.vote import NOT_ASKED
from pcs_annotator.tables import probability_columns, vote_columns
from pcs_annotator.tables.tabular import as_arrow, columns_of, table_name, text_column

if TYPE_CHECKING:
    import pyarrow as pa

Form = Literal["wide", "long"]

MAX_DRAWS = 1000


class VoteArrays(NamedTuple):
    """The content of a table of votes, as in `Votes`: codes, names on the axes and probabilities."""

    codes: Codes
    ids: Sequence[str]
    annotators: Sequence[str]
    relations: Sequence[str]
    labels: Sequence[str]
    stated: Floats | None = None
    grades: Grades | None = None


class ParsedTable(NamedTuple):
    """Votes, and for every item its gold label or None."""

    votes: VoteArrays
    gold: tuple[str | None, ...]


class ColumnPlace(NamedTuple):
    """The annotator, relation and draw of a column of votes."""

    annotator: str
    relation: str
    draw: int


def parse_vote_table(
    table: object, labels: Iterable[str] | None, unknown: vote_columns.Unknown, name: str = ""
) -> ParsedTable:
    """Read votes and gold from a table in wide or long form, called `name` in messages."""
    name = name or table_name(table)
    columns = columns_of(as_arrow(table))
    if not columns or not len(next(iter(columns.values()))):
        raise TableError(f"{name} has no rows: it needs at least one item with votes")
    return (_read_long if is_long(columns) else _read_wide)(columns, labels, unknown, name)


def is_long(columns: Collection[str]) -> bool:
    """Return whether a table with these columns has one row per vote."""
    labelled = "label" in columns or probability_columns.look_graded(columns)
    return labelled and "annotator" in columns and "relation" in columns


def _read_wide(
    columns: Mapping[str, pa.ChunkedArray], labels: Iterable[str] | None, unknown: vote_columns.Unknown, name: str
) -> ParsedTable:
    ids = _unique_ids(_ids(columns, name), name)
    cells = _cells([column for column in columns if column not in ("id", "gold")], name)
    texts = {column: vote_columns.indexed(column, columns[column]) for column in cells}
    gold = vote_columns.indexed("gold", columns["gold"]) if "gold" in columns else None
    known = check_labels(_seen(texts.values(), gold, (), name) if labels is None else labels)
    annotators = list(dict.fromkeys(cell.annotator for cell in cells.values()))
    relations = list(dict.fromkeys(cell.relation for cell in cells.values()))
    draws = 1 + max(cell.draw for cell in cells.values())
    codes = np.full((len(ids), len(annotators), len(relations), draws), NOT_ASKED, dtype=np.int8)
    for column, cell in cells.items():
        place = (slice(None), annotators.index(cell.annotator), relations.index(cell.relation), cell.draw)
        codes[place] = vote_columns.label_codes(texts[column], known, unknown, ids)
    return ParsedTable(VoteArrays(codes, ids, annotators, relations, known), vote_columns.texts_of(gold, len(ids)))


def _read_long(
    columns: Mapping[str, pa.ChunkedArray], labels: Iterable[str] | None, unknown: vote_columns.Unknown, name: str
) -> ParsedTable:
    row_ids = vote_columns.indexed("id", columns["id"]) if "id" in columns else None
    if row_ids is None:
        raise TableError(f"{name}: the long form needs an 'id' in every row, but there is no such column")
    if (row_ids.positions < 0).any():
        row = int(np.flatnonzero(row_ids.positions < 0)[0]) + 1
        raise TableError(f"{name}: the long form needs an 'id' in every row, but row {row} has none")
    ids, item = vote_columns.in_order(row_ids)
    votes, gold = _labels_given(columns), None
    if "gold" in columns:
        gold = _gold_by_item(vote_columns.indexed("gold", columns["gold"]), ids, item, name)
    known = check_labels(_seen([votes], gold, columns, name) if labels is None else labels)
    annotators, annotator = vote_columns.in_order(vote_columns.indexed("annotator", columns["annotator"]))
    relations, relation = vote_columns.in_order(vote_columns.indexed("relation", columns["relation"]))
    row_names = [ids[position] for position in item]
    values = vote_columns.label_codes(votes, known, unknown, row_names)
    empty, grades = votes.positions < 0, probability_columns.read_grades(columns, known, unknown, name)
    if grades is None and "label" not in columns:
        listed = ", ".join(map(repr, known))
        raise TableError(f"{name} has no votes: add a column 'label', or grades of the labels {listed}")
    if grades is not None:
        values = probability_columns.graded_codes(values, empty, grades, known)
        empty &= np.isnan(grades[:, 0])
        grades[values < 0] = np.nan
    asked = _asked({"annotator": annotator, "relation": relation}, empty, name)
    draw = _draws(columns.get("draw"), len(item), name)
    draw[~asked] = 0
    shape = (len(ids), len(annotators), len(relations), 1 + int(draw.max()))
    place = (item[asked], annotator[asked], relation[asked], draw[asked])
    _refuse_repeated(np.ravel_multi_index(place, shape), np.flatnonzero(asked), row_names, name)
    codes = np.full(shape, NOT_ASKED, dtype=np.int8)
    codes[place] = values[asked]
    stated = probability_columns.read_stated(columns, known, name)
    probabilities = (_in_cells(given, asked, place, shape) for given in (stated, grades))
    arrays = VoteArrays(codes, ids, annotators, relations, known, *probabilities)
    return ParsedTable(arrays, vote_columns.texts_of(gold, len(ids)))


def _labels_given(columns: Mapping[str, pa.ChunkedArray]) -> vote_columns.Column:
    if "label" in columns:
        return vote_columns.indexed("label", columns["label"])
    return vote_columns.Column("label", [], np.full(len(columns["id"]), -1, dtype=np.intp))


def _seen(
    votes: Iterable[vote_columns.Column], gold: vote_columns.Column | None, columns: Collection[str], table: str
) -> tuple[str, ...]:
    """Return the labels found in votes, gold and the names of columns with probabilities."""
    votes = list(votes)
    seen = vote_columns.seen_labels(votes, gold)
    labels = probability_columns.with_named_labels(seen, columns, table)
    if gold is not None:
        answered = probability_columns.with_named_labels(vote_columns.seen_labels(votes, None), columns, table)
        _refuse_doubtful_gold(gold, answered, table)
    if not labels:
        raise TableError(
            f"{table}: all votes are empty and no gold is given: name the labels yourself, or check the file"
        )
    return labels


def _refuse_doubtful_gold(gold: vote_columns.Column, answered: Sequence[str], table: str) -> None:
    """Raise for a gold value that is probably no label, unless models answer with it."""
    known = label_lookup(answered)
    unsure = [text if text and text.casefold() not in known else None for text in vote_columns.texts_of(gold, 0)]
    refuse_doubtful(unsure, [f"{table}, column 'gold'"] * len(unsure), "name all labels with --labels")


def _in_cells(values: Array | None, asked: Mask, place: tuple[Integers, ...], shape: Sequence[int]) -> Array | None:
    """Return `[row, label]` as `[item, annotator, relation, draw, label]`, nan in cells without a row."""
    if values is None:
        return None
    cells = np.full((*shape, values.shape[1]), np.nan, dtype=values.dtype)
    cells[place] = values[asked]
    cells.flags.writeable = False  # else `Votes` would copy it
    return cells


def _asked(who: Mapping[str, Integers], blank: Mask, table: str) -> Mask:
    """Return which rows hold a vote; a row with only an id stands for an item that was not asked about."""
    empty = np.all([positions < 0 for positions in who.values()], axis=0) & blank
    for column, positions in who.items():
        half = np.flatnonzero((positions < 0) & ~empty)
        if len(half):
            raise TableError(f"{table}, row {half[0] + 1}: column {column!r} is empty; fill it in, or remove the row")
    return ~empty


def _ids(columns: Mapping[str, pa.ChunkedArray], name: str) -> list[str]:
    if "id" not in columns:
        rows = len(next(iter(columns.values())))
        warnings.warn(f"{name} has no column 'id': its rows are numbered from 1", PcsWarning, stacklevel=5)
        return [str(row) for row in range(1, rows + 1)]
    ids: list[str | None] = text_column("id", columns["id"]).to_pylist()
    for row, value in enumerate(ids, start=1):
        if not value:
            raise TableError(f"{name}, row {row}: the id is empty; give every row an id")
    return [value for value in ids if value]


def _unique_ids(ids: Sequence[str], name: str) -> list[str]:
    """Return the ids with ` (2)`, ` (3)` … added to repeated ones: every row is an item, and none may be lost."""
    taken, repeated = set(ids), []
    first: dict[str, int] = {}
    result: list[str] = []
    for row, given in enumerate(ids, start=1):
        if first.setdefault(given, row) == row:
            result.append(given)
            continue
        number = 2
        while (fresh := f"{given} ({number})") in taken:
            number += 1
        taken.add(fresh)
        result.append(fresh)
        repeated.append(f"{given!r} of row {first[given]} again at row {row}, now {fresh!r}")
    if repeated:
        more = f" and {len(repeated) - 3} more" if len(repeated) > 3 else ""
        shown = "; ".join(repeated[:3])
        warnings.warn(f"{name}: repeated ids are treated as separate items: {shown}{more}", PcsWarning, stacklevel=6)
    return result


def _cells(names: Sequence[str], table: str) -> dict[str, ColumnPlace]:
    """Return the place of each vote column; other columns are skipped with a warning."""
    cells: dict[str, ColumnPlace] = {}
    others = [name for name in names if "|" not in name]
    for name in names:
        if "|" not in name:
            continue
        cell = _cell(name, table)
        twin = next((column for column, other in cells.items() if other == cell), None)
        if twin is not None:
            raise TableError(f"{table}: columns {twin!r} and {name!r} name the same cell: number the draws")
        cells[name] = cell
    if not cells:
        found = ", ".join(repr(name) for name in names) or "nothing but ids"
        raise TableError(
            f"{table} has no votes: name its columns '<annotator>|<relation>' (wide) or use the columns "
            f"id, annotator, relation, label (long); found {found}"
        )
    if others:
        listed = ", ".join(repr(name) for name in others)
        warnings.warn(f"{table}: columns that are not read as votes: {listed}", PcsWarning, stacklevel=5)
    return cells


def _cell(name: str, table: str) -> ColumnPlace:
    match = re.fullmatch(r"([^|]+)\|([^|]+)(?:\|(\d+))?", name)
    if match is None:
        raise TableError(
            f"{table}: column {name!r} is not '<annotator>|<relation>' or '<annotator>|<relation>|<draw>': rename it"
        )
    return ColumnPlace(match[1], match[2], _draw(match[3] or "0", f"{table}, column {name!r}"))


def _draw(text: str, where: str) -> int:
    # the length is checked first, because int rejects thousands of digits
    if not text.isdecimal() or len(text) > 9 or int(text) >= MAX_DRAWS:
        raise TableError(f"{where}: draw {text!r} is not a whole number from 0 to {MAX_DRAWS - 1}")
    return int(text)


def _draws(column: pa.ChunkedArray | None, rows: int, table: str) -> Integers:
    if column is None:
        return np.zeros(rows, dtype=np.intp)
    draws: list[int] = []
    texts = vote_columns.indexed("draw", column)
    for position, text in enumerate(texts.distinct):
        row = int(np.argmax(texts.positions == position)) + 1
        # pandas writes whole numbers as 0.0 into a file as soon as one cell is empty
        draws.append(_draw(text.removesuffix(".0") or "0", f"{table}, row {row}, column 'draw'"))
    return np.array([*draws, 0], dtype=np.intp)[texts.positions]


def _gold_by_item(column: vote_columns.Column, ids: Sequence[str], item: Integers, table: str) -> vote_columns.Column:
    """Return one gold entry per item from one per vote; two different ones for an item are an error."""
    result = np.full(len(ids), -1, dtype=np.intp)
    given = np.flatnonzero(column.positions >= 0)
    result[item[given]] = column.positions[given]
    folded = np.unique([text.casefold() for text in column.distinct], return_inverse=True)[1]
    clash = given[folded[result[item[given]]] != folded[column.positions[given]]]
    if len(clash):
        raise TableError(f"{table}: id {ids[item[clash[0]]]!r} has two gold labels: keep one")
    return vote_columns.Column("gold", column.distinct, result)


def _refuse_repeated(place: Integers, rows: Integers, row_names: Sequence[str], table: str) -> None:
    order = np.argsort(place, kind="stable")
    twins = np.flatnonzero(np.diff(place[order]) == 0)
    if len(twins):
        first, second = rows[order[twins[0]]], rows[order[twins[0] + 1]]
        raise TableError(
            f"{table}: rows {first + 1} and {second + 1} are the same question about id {row_names[first]!r}: "
            "remove one, or number repetitions in a column 'draw'"
        )


def write_vote_table(votes: VoteArrays, form: Form) -> pa.Table:
    """Return the votes as a table that `parse_vote_table` reads back."""
    return _write_long(votes) if form == "long" else _write_wide(votes)


def _write_wide(votes: VoteArrays) -> pa.Table:
    import pyarrow as pa

    barred = [name for name in (*votes.annotators, *votes.relations) if "|" in name]
    if barred:
        raise TableError(f"{barred[0]!r} contains '|', which separates names in wide columns: use the long form")
    names = np.array([*votes.labels, None, None], dtype=object)  # the last two stand for codes −2 and −1
    columns: dict[str, object] = {"id": pa.array(votes.ids, pa.string())}
    for a, annotator in enumerate(votes.annotators):
        for r, relation in enumerate(votes.relations):
            for draw in range(votes.codes.shape[3]):
                cell = votes.codes[:, a, r, draw]
                if draw and (cell == NOT_ASKED).all():
                    continue
                name = f"{annotator}|{relation}" if votes.codes.shape[3] == 1 else f"{annotator}|{relation}|{draw}"
                columns[name] = pa.array(names[cell], pa.string())
    return pa.table(columns)


def _write_long(votes: VoteArrays) -> pa.Table:
    import pyarrow as pa

    asked = votes.codes != NOT_ASKED
    place = np.nonzero(asked)
    item, annotator, relation, draw = place
    unasked = np.flatnonzero(~asked.any(axis=(1, 2, 3)))
    blank = np.full(len(unasked), -1)

    def named(names: Sequence[str], positions: Integers) -> pa.Array:
        positions = np.concatenate([positions, blank])
        return pa.array(names, pa.string()).take(pa.array(positions, mask=positions < 0))

    rows = np.concatenate([item, unasked])
    draws = np.concatenate([draw, blank])
    table = pa.table(
        {
            "id": pa.array(votes.ids, pa.string()).take(pa.array(rows)),
            "annotator": named(votes.annotators, annotator),
            "relation": named(votes.relations, relation),
            "draw": pa.array(draws, pa.int64(), mask=draws < 0),
            "label": named(votes.labels, votes.codes[place].astype(np.intp)),
            **_write_probabilities(votes, place, len(unasked)),
        }
    )
    # items keep their order, because gold may be a list in that order
    return table.take(pa.array(np.argsort(rows, kind="stable")))


def _write_probabilities(votes: VoteArrays, place: tuple[Integers, ...], empty_rows: int) -> dict[str, pa.Array]:
    columns: dict[str, pa.Array] = {}
    for kind, values in ((probability_columns.STATED, votes.stated), (probability_columns.GRADE, votes.grades)):
        if values is not None:
            columns |= probability_columns.write_columns(kind, values[place], votes.labels, empty_rows)
    return columns
