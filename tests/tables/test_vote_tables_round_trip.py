"""Votes are read back as they were written, with what was stated and graded, from files and from data frames."""

import csv
import gzip
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pyarrow import csv as arrow_csv
from pyarrow import parquet

from pcs_annotator import ABSTAINED, NOT_ASKED, Votes
from pcs_annotator.base.errors import TableError
from pcs_annotator.core.votes import Form
from pcs_annotator.tables.write import write_table
from tests.builders import votes_of

LABELS = ["Straße", "no, never", 'so-called "real"', "semi;colon", "two  spaces", "1", "2"]
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="|\0\n"), min_size=1, max_size=5)


@st.composite
def some_votes(draw: st.DrawFn, *, silent: bool = True, probable: bool = True) -> Votes:
    """Votes with any names; of the first item all cells were asked, because names without votes are not written."""
    axis = st.lists(NAMES, min_size=1, max_size=3, unique=True)
    ids, annotators, relations = draw(axis), draw(axis), draw(axis)
    shape = (len(ids), len(annotators), len(relations), draw(st.integers(1, 2)))
    codes = draw(hnp.arrays(np.int8, shape, elements=st.integers(NOT_ASKED if silent else ABSTAINED, len(LABELS) - 1)))
    codes[0] = np.maximum(codes[0], ABSTAINED)
    kinds = draw(st.sampled_from(["hard", "graded", "mixed"])) if probable else "hard"
    values: dict[str, Any] = {}
    if kinds != "hard":
        weights = draw(hnp.arrays(np.float32, (*shape, len(LABELS) + 1), elements=st.floats(0, 1, width=32)))
        weights[..., -1] += 0.001  # what goes to no label
        grades = (weights / weights.sum(axis=-1, keepdims=True))[..., :-1]
        grades[(draw(hnp.arrays(bool, shape)) if kinds == "mixed" else False) | (codes < 0)] = np.nan
        chances = st.one_of(st.floats(0, 1), st.just(np.nan))
        stated = draw(hnp.arrays(np.float64, (*shape, len(LABELS)), elements=chances))
        stated[codes == NOT_ASKED] = np.nan
        values = {"stated": stated, "grades": None if np.isnan(grades).all() else grades}
    return Votes(codes=codes, ids=ids, annotators=annotators, relations=relations, labels=LABELS, **values)


def assert_same(votes: Votes, other: Votes) -> None:
    for axis in ("ids", "annotators", "relations", "labels"):
        assert getattr(votes, axis) == getattr(other, axis)
    for name in ("codes", "stated", "grades"):
        values, others = getattr(votes, name), getattr(other, name)
        assert (values is None) == (others is None)
        if values is not None:
            assert values.dtype == others.dtype
            np.testing.assert_array_equal(values, others)


@given(some_votes())
def test_the_long_form_keeps_everything(votes: Votes) -> None:
    table = votes.to_table("long")
    for same in (table, table.to_pandas(), pl.DataFrame(table)):
        assert_same(Votes.from_table(same, LABELS), votes)


@given(some_votes())
def test_files_keep_everything(tmp_path_factory: pytest.TempPathFactory, votes: Votes) -> None:
    folder, table = tmp_path_factory.mktemp("votes"), votes.to_table("long")
    arrow_csv.write_csv(table, folder / "arrow.csv")
    write_table(folder / "ours.csv", table)
    if "\r" not in "".join([*votes.ids, *votes.annotators, *votes.relations]):  # pandas leaves it without quotes
        table.to_pandas().to_csv(folder / "pandas.csv", index=False)
    pl.DataFrame(table).write_csv(folder / "polars.csv")
    parquet.write_table(table, folder / "votes.parquet")
    for path in sorted(folder.iterdir()):
        assert_same(Votes.from_table(path, LABELS), votes)


@given(some_votes(probable=False))
def test_the_wide_form_keeps_everything_but_the_kind_of_silence(votes: Votes) -> None:
    back = Votes.from_table(votes.to_table(), LABELS)
    assert (back.ids, back.annotators, back.relations) == (votes.ids, votes.annotators, votes.relations)
    np.testing.assert_array_equal(np.maximum(back.codes, ABSTAINED), np.maximum(votes.codes, ABSTAINED))


@given(some_votes(silent=False, probable=False))
def test_the_wide_form_is_exact_where_every_cell_was_asked(votes: Votes) -> None:
    assert_same(Votes.from_table(votes.to_table(), LABELS), votes)


@given(some_votes(probable=False), st.sampled_from(["wide", "long"]))
def test_case_in_a_table_does_not_matter(votes: Votes, form: Form) -> None:
    table = votes.to_table(form)
    shouted = [
        column if name in ("id", "annotator", "relation", "draw") else pc.utf8_upper(column)
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    assert_same(Votes.from_table(pa.table(shouted, names=table.column_names), LABELS), Votes.from_table(table, LABELS))


def test_long_form_keeps_the_order_of_items_that_were_not_asked_about() -> None:
    # gold may be a list in the order of the ids
    votes = votes_of([[[NOT_ASKED]], [[0]], [[NOT_ASKED]], [[1]]])
    assert Votes.from_table(votes.to_table("long"), votes.labels).ids == ("i0", "i1", "i2", "i3")


def test_draw_that_was_never_asked_gets_no_column() -> None:
    votes = votes_of([[[[0, 1], [1, NOT_ASKED]]]])
    assert votes.to_table().column_names == ["id", "a0|original|0", "a0|original|1", "a0|r1|0"]


@pytest.mark.parametrize("axis", ["annotators", "relations"])
def test_name_that_a_wide_column_cannot_hold_is_refused(axis: str) -> None:
    # `m|r|1` would come back as another draw of `m|r`
    names: dict[str, Any] = {"annotators": ["m"], "relations": ["original"], axis: ["r|1"]}
    votes = Votes(codes=np.zeros((1, 1, 1), dtype=np.int8), ids=["i"], labels=["x"], **names)
    with pytest.raises(TableError, match=r"'r\|1'.*'\|'"):
        votes.to_table("wide")
    assert_same(Votes.from_table(votes.to_table("long")), votes)


@st.composite
def csv_rows(draw: st.DrawFn) -> list[list[str]]:
    columns = draw(st.lists(st.sampled_from(["a|r", "a|s", "b|r", "gold"]), min_size=1, max_size=4, unique=True))
    count = draw(st.integers(1, 4))
    ids = draw(st.sampled_from([["7", "8", "9", "10"], ["i-1", "i,2", "i;3", "é4"]]))[:count]
    # one cell is filled, because a table without votes has no labels
    given = {name: ["", *(label for label in LABELS if name != "gold" or ";" not in label)] for name in columns}
    cells = [[draw(st.sampled_from(given[name])) for name in columns] for _ in range(count)]
    cells[0][0] = cells[0][0] or "Straße"
    return [["id", "x|original", *columns], *([name, "1", *row] for name, row in zip(ids, cells, strict=True))]


@settings(deadline=None, max_examples=15)
@given(rows=csv_rows(), delimiter=st.sampled_from(",;\t"), mark=st.booleans())
def test_votes_do_not_depend_on_the_kind_of_table(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], delimiter: str, mark: bool
) -> None:
    path = tmp_path_factory.mktemp("same") / "votes.csv"
    with path.open("w", encoding="utf-8-sig" if mark else "utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows(rows)
    before = path.read_bytes()
    packed, stored = path.with_suffix(".csv.gz"), path.with_suffix(".parquet")
    packed.write_bytes(gzip.compress(before))
    columns = {name: list(values) for name, *values in zip(*rows, strict=True)}
    parquet.write_table(pa.table(columns), stored)
    votes = Votes.from_table(path)
    for other in (packed, str(path), stored, columns, pa.table(columns), pd.DataFrame(columns), pl.DataFrame(columns)):
        assert_same(Votes.from_table(other), votes)
    assert_same(Votes.from_table(pd.read_csv(path, sep=delimiter)), votes)
    assert_same(Votes.from_table(pl.read_csv(path, separator=delimiter)), votes)
    assert path.read_bytes() == before
    assert {child.name for child in path.parent.iterdir()} == {path.name, packed.name, stored.name}
