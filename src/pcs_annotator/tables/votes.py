"""Votes as tables: one column per cell (wide), or one row per vote (long)."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pcs_annotator.base.errors import TableError, warn_user
from pcs_annotator.base.text import row_number
from pcs_annotator.core.arrays import CODE, Array, Integers, Mask
from pcs_annotator.core.doubtful_labels import refuse_doubtful
from pcs_annotator.core.task import check_labels, label_lookup
from pcs_annotator.core.votes import NOT_ASKED, Form, Unknown, Votes
from pcs_annotator.tables import vote_columns
from pcs_annotator.tables.arrow import pa
from pcs_annotator.tables.tabular import as_arrow, columns_of, table_name, text_column
from pcs_annotator.tables.vote_columns import TextColumn, VoteColumns

MAX_DRAWS = 1000


class VoteTable(NamedTuple):
    """Votes, and for every item its gold label or None."""

    votes: Votes
    gold: tuple[str | None, ...]


class ColumnPlace(NamedTuple):
    """The annotator, relation and draw of a column of votes."""

    annotator: str
    relation: str
    draw: int


def read_vote_table(
    table: object, labels: Iterable[str] | None = None, *, unknown: Unknown = "error", name: str = ""
) -> VoteTable:
    """Read votes and gold from a table in wide or long form, called `name` in messages; see `Votes.from_table`."""
    columns = VoteColumns(columns_of(as_arrow(table)), name or table_name(table))
    if not len(columns):
        raise TableError(f"{columns.table} has no rows: it needs at least one item with votes")
    return (read_long if is_long(columns.columns) else _read_wide)(columns, labels, unknown)


def is_long(names: Collection[str]) -> bool:
    """Return whether a table with these columns has one row per vote."""
    prefixes = (vote_columns.GRADE.prefix, vote_columns.LOG_GRADE.prefix)
    graded = any(sum(name.startswith(prefix) for name in names) > 1 for prefix in prefixes)
    return ("label" in names or graded) and "annotator" in names and "relation" in names


def _read_wide(columns: VoteColumns, labels: Iterable[str] | None, unknown: Unknown) -> VoteTable:
    ids = _unique_ids(_ids(columns), columns.table)
    cells = _cells([name for name in columns.columns if name not in ("id", "gold")], columns.table)
    texts = {name: columns.texts(name) for name in cells}
    gold = columns.texts("gold") if "gold" in columns.columns else None
    # only the long form has columns of probabilities
    seen = _seen(list(texts.values()), gold, VoteColumns({}, columns.table)) if labels is None else labels
    known = check_labels(seen, seen=labels is None)
    annotators = list(dict.fromkeys(cell.annotator for cell in cells.values()))
    relations = list(dict.fromkeys(cell.relation for cell in cells.values()))
    draws = 1 + max(cell.draw for cell in cells.values())
    codes = np.full((len(ids), len(annotators), len(relations), draws), NOT_ASKED, dtype=CODE)
    for name, cell in cells.items():
        place = (slice(None), annotators.index(cell.annotator), relations.index(cell.relation), cell.draw)
        codes[place] = vote_columns.label_codes(texts[name], known, unknown, ids)
    votes = Votes(codes=codes, ids=ids, annotators=annotators, relations=relations, labels=known)
    return VoteTable(votes, (None,) * len(ids) if gold is None else gold.texts())


def read_long(columns: VoteColumns, labels: Iterable[str] | None, unknown: Unknown) -> VoteTable:
    """Read votes and gold from a table with one row per vote."""
    row_ids, nothing = _row_ids(columns), TextColumn("label", [], np.full(len(columns), -1, dtype=np.intp))
    votes = columns.texts("label") if "label" in columns.columns else nothing
    _, ids, item = row_ids
    gold = _gold_by_item(columns.texts("gold"), ids, item, columns.table) if "gold" in columns.columns else None
    known = check_labels(_seen([votes], gold, columns) if labels is None else labels, seen=labels is None)
    _, annotators, annotator = columns.texts("annotator")
    _, relations, relation = columns.texts("relation")
    values = vote_columns.label_codes(votes, known, unknown, row_ids)
    empty, grades = votes.positions < 0, vote_columns.read_grades(columns, known, unknown)
    if grades is None and "label" not in columns.columns:
        listed = ", ".join(map(repr, known))
        raise TableError(f"{columns.table} has no votes: add a column 'label', or grades of the labels {listed}")
    if grades is not None:
        values = vote_columns.graded_codes(values, empty, grades, known)
        empty &= np.isnan(grades[:, 0])
        grades[values < 0] = np.nan
    asked = _asked({"annotator": annotator, "relation": relation}, empty, columns.table)
    draw = np.where(asked, _draws(columns), 0)
    shape = (len(ids), len(annotators), len(relations), 1 + int(draw.max()))
    place = (item[asked], annotator[asked], relation[asked], draw[asked])
    codes = np.full(shape, NOT_ASKED, dtype=CODE)
    codes[place] = values[asked]
    if np.count_nonzero(codes != NOT_ASKED) < len(place[0]):
        raise _repeated(np.ravel_multi_index(place, shape), np.flatnonzero(asked), row_ids, columns.table)
    stated = vote_columns.read_stated(columns, known)
    found = Votes(
        codes=codes,
        ids=ids,
        annotators=annotators,
        relations=relations,
        labels=known,
        stated=None if stated is None else in_cells(stated[asked], place, shape),
        grades=None if grades is None else in_cells(grades[asked], place, shape),
    )
    return VoteTable(found, (None,) * len(ids) if gold is None else gold.texts())


def in_cells(values: Array, place: tuple[Array, ...], shape: Sequence[int]) -> Array:
    """Return probabilities of labels in their cells, `[item, annotator, relation, draw, label]`, nan elsewhere."""
    cells = np.full((*shape, values.shape[-1]), np.nan, dtype=values.dtype)
    cells[place] = values
    cells.flags.writeable = False  # else `Votes` would copy it
    return cells


def _row_ids(columns: VoteColumns) -> TextColumn:
    if "id" not in columns.columns:
        raise TableError(f"{columns.table}: the long form needs an 'id' in every row, but there is no such column")
    found = columns.texts("id")
    if (found.positions < 0).any():
        row = row_number(columns.table, int(np.argmax(found.positions < 0)) + 1)
        raise TableError(f"{columns.table}: the long form needs an 'id' in every row, but row {row} has none")
    return found


def _seen(votes: Sequence[TextColumn], gold: TextColumn | None, columns: VoteColumns) -> tuple[str, ...]:
    """Return the labels found in votes, gold and the names of columns with probabilities."""
    labels = vote_columns.with_named_labels(vote_columns.seen_labels(votes, gold), columns)
    if gold is not None:
        # a gold value that is probably not a label is refused, unless models answer with it
        known = label_lookup(vote_columns.with_named_labels(vote_columns.seen_labels(votes, None), columns))
        unsure = [text if text and text.casefold() not in known else None for text in gold.texts()]
        refuse_doubtful(unsure, [f"{columns.table}, column 'gold'"] * len(unsure), "name all labels with --labels")
    if not labels:
        raise TableError(
            f"{columns.table}: all votes are empty and no gold is given: name the labels yourself, or check the file"
        )
    return labels


def _asked(who: Mapping[str, Integers], blank: Mask, table: str) -> Mask:
    """Return which rows hold a vote; a row with only an id stands for an item that was not asked about."""
    empty = np.all([positions < 0 for positions in who.values()], axis=0) & blank
    for column, positions in who.items():
        half = np.flatnonzero((positions < 0) & ~empty)
        if len(half):
            row = row_number(table, half[0] + 1)
            raise TableError(f"{table}, row {row}: column {column!r} is empty; fill it in, or remove the row")
    return ~empty


def _ids(columns: VoteColumns) -> list[str]:
    if "id" not in columns.columns:
        warn_user(f"{columns.table} has no column 'id': its rows are numbered from 1")
        return [str(row) for row in range(1, len(columns) + 1)]
    ids: list[str | None] = text_column("id", columns.columns["id"]).to_pylist()
    for row, value in enumerate(ids, row_number(columns.table, 1)):
        if not value:
            raise TableError(f"{columns.table}, row {row}: the id is empty; give every row an id")
    return [value for value in ids if value]


def _unique_ids(ids: Sequence[str], name: str) -> list[str]:
    """Return the ids with ` (2)`, ` (3)` … added to repeated ones: every row is an item, and none may be lost."""
    taken, repeated = set(ids), []
    first: dict[str, int] = {}
    result: list[str] = []
    for row, given in enumerate(ids, row_number(name, 1)):
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
        warn_user(f"{name}: repeated ids are treated as separate items: {shown}{more}")
    return result


def _cells(names: Sequence[str], table: str) -> dict[str, ColumnPlace]:
    """Return the place of each vote column; other columns are skipped with a warning."""
    cells: dict[str, ColumnPlace] = {}
    others = [name for name in names if "|" not in name and name != "text"]  # texts are read, but not as votes
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
            f"{table} has no votes: name its columns '<model>|<relation>' (wide) or use the columns "
            f"id, annotator, relation, label (long); found {found}"
        )
    if others:
        listed = ", ".join(repr(name) for name in others)
        warn_user(f"{table}: columns that are not read as votes: {listed}")
    return cells


def _cell(name: str, table: str) -> ColumnPlace:
    match = re.fullmatch(r"([^|]+)\|([^|]+)(?:\|(\d+))?", name)
    if match is None:
        raise TableError(
            f"{table}: column {name!r} is not '<model>|<relation>' or '<model>|<relation>|<draw>': rename it"
        )
    return ColumnPlace(match[1], match[2], _draw(match[3] or "0", f"{table}, column {name!r}"))


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
        row = row_number(columns.table, int(np.argmax(texts.positions == position)) + 1)
        # pandas writes whole numbers as 0.0 into a file as soon as one cell is empty
        draws.append(_draw(text.removesuffix(".0") or "0", f"{columns.table}, row {row}, column 'draw'"))
    return np.array([*draws, 0], dtype=np.intp)[texts.positions]


def _gold_by_item(column: TextColumn, ids: Sequence[str], item: Integers, table: str) -> TextColumn:
    """Return one gold entry per item from one per vote; two different ones for an item are an error."""
    result = np.full(len(ids), -1, dtype=np.intp)
    given = np.flatnonzero(column.positions >= 0)
    result[item[given]] = column.positions[given]
    folded = np.unique([text.casefold() for text in column.distinct], return_inverse=True)[1]
    clash = given[folded[result[item[given]]] != folded[column.positions[given]]]
    if len(clash):
        raise TableError(f"{table}: id {ids[item[clash[0]]]!r} has two gold labels: keep one")
    return TextColumn("gold", column.distinct, result)


def _repeated(cells: Integers, rows: Integers, ids: TextColumn, table: str) -> TableError:
    order = np.argsort(cells, kind="stable")
    twin = np.flatnonzero(np.diff(cells[order]) == 0)[0]
    first, second = rows[order[twin]], rows[order[twin + 1]]
    shown = [row_number(table, int(row) + 1) for row in (first, second)]
    return TableError(
        f"{table}: rows {shown[0]} and {shown[1]} are the same question about id "
        f"{ids.distinct[ids.positions[first]]!r}: remove one, or number repetitions in a column 'draw'"
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
    for a, annotator in enumerate(votes.annotators):
        for r, relation in enumerate(votes.relations):
            for draw in range(votes.codes.shape[3]):
                cell = votes.codes[:, a, r, draw]
                if draw and (cell == NOT_ASKED).all():
                    continue
                name = f"{annotator}|{relation}" if votes.codes.shape[3] == 1 else f"{annotator}|{relation}|{draw}"
                columns[name] = pa.array(names[cell], pa.string())
    return pa.table(columns)


def _write_long(votes: Votes) -> pa.Table:
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


def _write_probabilities(votes: Votes, place: tuple[Integers, ...], empty_rows: int) -> dict[str, pa.Array]:
    """Return a column per label and kind of probability, empty where it is nan, and in empty rows at the end."""
    columns: dict[str, pa.Array] = {}
    for kind, values in ((vote_columns.STATED, votes.stated), (vote_columns.GRADE, votes.grades)):
        if values is None:
            continue
        given = np.pad(values[place], ((0, empty_rows), (0, 0)), constant_values=np.nan)
        for code, label in enumerate(votes.labels):
            columns[f"{kind.prefix}{label}"] = pa.array(given[:, code], from_pandas=True)
    return columns
