from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator import UserError, Votes
from pcs_annotator.base.errors import GoldError, InputError, LabelError, TableError, UnknownNameError
from pcs_annotator.core.arrays import CODE, Floats, Mask
from pcs_annotator.core.gold_codes import (
    UNLABELLED,
    Coders,
    Once,
    coder_columns,
    gold_codes,
    majority_labels,
    once_per_text,
    refuse_contradictions,
    same_grades,
)
from pcs_annotator.core.identity import same_text, same_texts, text_hash, with_copies
from pcs_annotator.tables.chunks import Columns, Dataset, coder_labels, read_source
from pcs_annotator.tables.people import read_gold
from tests.builders import the, votes_of


def three_items(*labels: str) -> Votes:
    return votes_of([[[0]], [[0]], [[0]]], labels)


def test_labels_become_positions_in_the_label_set() -> None:
    codes = gold_codes(three_items("fake", "real"), ["real", "fake", "real"])
    assert codes.tolist() == [1, 0, 1]
    assert codes.dtype == CODE


@pytest.mark.parametrize(
    "gap",
    [
        pytest.param(None, id="None"),
        pytest.param("", id="empty text"),
        pytest.param(float("nan"), id="nan"),
        pytest.param(np.float32("nan"), id="narrow nan"),
        pytest.param(pd.NA, id="pandas NA"),
        pytest.param(pd.NaT, id="pandas NaT"),
    ],
)
def test_every_kind_of_missing_value_is_unlabelled(gap: object) -> None:
    assert gold_codes(three_items("fake", "real"), [gap, "real", gap]).tolist() == [UNLABELLED, 1, UNLABELLED]


@pytest.mark.parametrize(
    "gold",
    [
        pytest.param([1, None, 0], id="ints"),
        pytest.param([1.0, float("nan"), 0.0], id="floats, as pandas turns ints with gaps"),
        pytest.param(["1", "", "0"], id="texts"),
        pytest.param((value for value in ["1", None, "0"]), id="generator"),
        pytest.param(np.array([1.0, np.nan, 0.0]), id="numpy"),
        pytest.param(np.array([1.0, np.nan, 0.0], dtype=np.float32), id="narrow numpy"),
        pytest.param(np.array([1, None, 0], dtype=object), id="numpy objects"),
        pytest.param(pd.Series([1, None, 0]), id="pandas floats"),
        pytest.param(pd.Series([1, None, 0], dtype="Int64"), id="pandas Int64 with NA"),
        pytest.param(pd.Series(["1", None, "0"], dtype="string"), id="pandas strings with NA"),
        pytest.param(pd.Series(["1", None, "0"], dtype="category"), id="pandas categories"),
        pytest.param(pl.Series([1, None, 0]), id="polars"),
        pytest.param(pa.array([1, None, 0]), id="pyarrow array"),
        pytest.param(pa.chunked_array([["1"], [None, "0"]]), id="pyarrow column"),
        pytest.param({"i2": 0, "i0": 1}, id="mapping"),
        pytest.param({"i0": "1", "i1": None, "i2": 0.0}, id="mapping with a gap"),
    ],
)
def test_codes_do_not_depend_on_the_container(gold: Iterable[object] | Mapping[str, object]) -> None:
    assert gold_codes(three_items("0", "1"), gold).tolist() == [1, UNLABELLED, 0]


def test_fraction_stays_a_fraction() -> None:
    assert gold_codes(three_items("0.5", "1"), [0.5, 1.0, None]).tolist() == [0, 1, UNLABELLED]


@given(st.lists(st.sampled_from(["negative", "neutral", "positive"]), min_size=3, max_size=3), st.data())
def test_case_does_not_matter(gold: list[str], data: st.DataObject) -> None:
    votes = three_items("negative", "neutral", "positive")
    change = st.sampled_from([str.upper, str.title, str.swapcase, str.lower])

    assert gold_codes(votes, [data.draw(change)(label) for label in gold]).tolist() == gold_codes(votes, gold).tolist()


def test_mapping_finds_items_whose_ids_are_numbers() -> None:
    votes = Votes.from_table({"id": [7, 8], "a|original": ["fake", "real"]})

    gold: dict[Any, object] = {7: "fake", np.int64(8): "real"}  # as data frames give them

    assert gold_codes(votes, gold).tolist() == [0, 1]


def test_order_of_a_mapping_does_not_matter() -> None:
    votes = three_items("fake", "real")
    gold = {"i0": "fake", "i1": "real", "i2": "real"}

    assert gold_codes(votes, dict(reversed(gold.items()))).tolist() == gold_codes(votes, gold).tolist()


@pytest.mark.parametrize(
    ("gold", "error", "parts"),
    [
        pytest.param(["real", "maybe", None], LabelError, ["row 2", "'i1'", "'maybe'", "'real'"], id="outside the set"),
        pytest.param({"i2": "maybe"}, LabelError, ["row 3", "'i2'", "'maybe'"], id="mapping outside the set"),
        pytest.param(["real", "real ", None], LabelError, ["'real '", "spaces"], id="spaces around"),
        pytest.param(["real"], GoldError, ["1 gold labels", "3 items"], id="too few"),
        pytest.param(["real"] * 4, GoldError, ["4 gold labels", "3 items"], id="too many"),
        pytest.param({"x9": "real"}, UnknownNameError, ["'x9'", "i0, i1, i2"], id="mapping with an unknown id"),
        pytest.param("abc", GoldError, ["'abc'", "list"], id="one string instead of a list"),
        pytest.param(
            pd.DataFrame({"a": ["real"] * 3, "b": ["real"] * 3, "c": [""] * 3}),
            InputError,
            ["gold is a DataFrame with the columns a, b, c"],
            id="table with as many columns as items",
        ),
    ],
)
def test_unusable_gold_is_refused(
    gold: Iterable[object] | Mapping[str, object], error: type[UserError], parts: list[str]
) -> None:
    with pytest.raises(error) as caught:
        gold_codes(three_items("fake", "real"), gold)

    assert [part for part in parts if part not in str(caught.value)] == []


@pytest.mark.parametrize("votes", [pd.DataFrame({"id": [1]}), "votes.csv"])
def test_what_is_no_votes_is_refused_with_its_type(votes: Any) -> None:
    with pytest.raises(InputError, match=f"votes is a {type(votes).__name__}: make votes of a table .* Votes.from_tab"):
        gold_codes(votes, ["real"])


def test_error_about_one_id_does_not_list_a_million() -> None:
    votes = votes_of(np.zeros((5000, 1, 1)))

    with pytest.raises(UnknownNameError) as caught:
        gold_codes(votes, {"x9": "real"})

    assert "i0, i1" in str(caught.value)
    assert len(str(caught.value)) < 500


def test_the_same_text_with_two_labels_is_refused_and_both_rows_are_named() -> None:
    with pytest.raises(GoldError, match=r"data\.csv, rows 2 and 4.*'a' and 'b'"):
        refuse_contradictions(["One", "Two", " One\n"], ["a", "a", "b"], "data.csv")


@pytest.mark.parametrize(
    ("texts", "gold"),
    [
        pytest.param(["One", "One"], ["a", "A"], id="case only"),
        pytest.param(["One", "One"], ["a", None], id="one unlabelled"),
        pytest.param(["One", "One"], ["", "a"], id="one empty"),
        pytest.param(["One", "Two"], ["a", "b"], id="other texts"),
        pytest.param(["", " "], ["a", "b"], id="no texts"),
        pytest.param([], [], id="nothing"),
    ],
)
def test_labels_that_do_not_contradict_each_other_pass(texts: list[str], gold: list[str | None]) -> None:
    refuse_contradictions(texts, gold, "data.csv")


@pytest.mark.parametrize(
    ("cell", "text", "same"),
    [
        ("One\r\ntwo ", "One\ntwo", True),
        ("'=1+1", "=1+1", True),
        ("=1+1", "'=1+1", True),
        ("One", "Two", False),
        ("", "Two", False),
        ("One", "One more", False),
        ("a b " * 8000, "a b " * 9000, True),
        ("a b " * 8000, "a c " * 9000, False),
    ],
)
def test_a_cell_holds_a_text_whatever_a_spreadsheet_did_to_it(cell: str, text: str, same: bool) -> None:
    assert same_text(cell, text) == same
    if len(cell) < 100:
        assert (text_hash(cell) == text_hash(text)) == same


def test_only_the_first_contradictions_are_listed() -> None:
    texts = [f"text {row // 3}" for row in range(60)]
    with pytest.raises(GoldError) as caught:
        refuse_contradictions(texts, ["a", "b", "a"] * 20, "data.csv")
    message = str(caught.value)
    assert "rows 2 and 3 and 4 have the same text but the gold labels 'a' and 'b'" in message
    assert "32 and 33 and 34, and 9 more (60 rows in all)" in message


def dataset(tmp_path: Path, table: str, columns: Columns | None = None) -> Dataset:
    path = tmp_path / "coded.csv"
    path.write_text(table, encoding="utf-8")
    return read_source(path, columns or Columns())


def test_columns_of_coders_are_named_after_people() -> None:
    assert coder_columns(["gold", "gold_", " Gold_Anna ", "gold_b", "golden"]) == (" Gold_Anna ", "gold_b")


def test_a_majority_ignores_case_and_empty_cells_and_a_tie_has_none() -> None:
    columns = [["x", "x", "x", None, None], ["X", "y", None, None, "y"], ["y", None, None, None, "y"]]
    assert majority_labels(columns) == ["x", None, "x", None, "y"]
    assert majority_labels([]) == []


CODED = "text,gold_Anna,gold_ben,label\none,a,a,z\ntwo,a,b,z\nthree,,b,z\n"


def test_the_majority_is_the_gold_label_if_no_column_is_called_gold(tmp_path: Path) -> None:
    found = dataset(tmp_path, CODED)
    assert found.gold == ("a", None, "b")
    assert found.columns.gold_source == "majority of gold_Anna, gold_ben"
    assert coder_labels(found) == {"Anna": ["a", "a", None], "ben": ["a", "b", "b"]}


@pytest.mark.parametrize(
    ("table", "columns", "gold"),
    [
        (CODED, Columns(gold="gold_ben"), ("a", "b", "b")),
        (CODED, Columns(gold="label"), ("z", "z", "z")),
        (CODED.replace("label", "gold"), Columns(), ("z", "z", "z")),
        (CODED.replace("gold_ben", "other"), Columns(), ("a", "a", None)),
    ],
)
def test_a_column_that_is_named_or_called_gold_wins(
    tmp_path: Path, table: str, columns: Columns, gold: tuple[str, ...]
) -> None:
    found = dataset(tmp_path, table, columns)
    assert found.gold == gold
    assert found.columns.coders


def test_labels_of_people_become_codes_and_the_majority_counts() -> None:
    found = the(Coders.of({"anna": ["a", None, "B"], "ben": ["a", "b", "a"]}, ["a", "b"], ["1", "2", "3"], "coded.csv"))
    assert found.codes.tolist() == [[0, -1, 1], [0, 1, 0]]
    assert found.majority.tolist() == [0, 1, -1]
    with pytest.raises(ValueError, match="1 coders with codes of shape"):
        Coders(names=("anna",), codes=found.codes)
    three = np.array([[0, 0, 1, 1, -1, 0], [0, 1, 0, 1, -1, 1], [0, 2, -1, 1, -1, 2]], dtype=np.int8)
    assert Coders(names=("anna", "ben", "cem"), codes=three).majority.tolist() == [0, -1, -1, 1, -1, -1]


def test_a_label_outside_the_set_names_column_and_row(tmp_path: Path) -> None:
    given = coder_labels(dataset(tmp_path, "id,text,gold_ben\nr1,one,a\nr2,two,oops\n"))
    with pytest.raises(LabelError, match=r"coded\.csv, id 'r2', coder ben: 'oops' is not one of the labels 'a', 'b'"):
        Coders.of(given, ["a", "b"], ["r1", "r2"], "coded.csv")
    assert Coders.of({}, ["a", "b"], [], "coded.csv") is None


def test_columns_of_any_name_hold_the_labels_of_people_if_they_are_named(tmp_path: Path) -> None:
    coded = "id,text,Anna,Ben,gold_cem,label\n1,one,a,a,b,b\n2,two,b,,a,b\n3,three,a,b,,b\n"
    found = dataset(tmp_path, coded, Columns(coders=("Anna", "Ben")))
    assert coder_labels(found) == {"Anna": ["a", "b", "a"], "Ben": ["a", None, "b"]}
    assert found.gold == ("a", "b", None)
    with pytest.raises(
        TableError, match=r"coded\.csv has no column 'Cleo' \(--coders\); there are id, text, Anna, Ben"
    ):
        dataset(tmp_path, coded, Columns(coders=("Anna", "Cleo")))
    with pytest.raises(TableError, match="--coders names one column twice: Anna, gold_anna"):
        dataset(tmp_path, coded.replace("gold_cem", "gold_anna"), Columns(coders=("Anna", "gold_anna")))


def test_a_later_file_needs_a_gold_label_on_which_coders_agree(tmp_path: Path) -> None:
    path = tmp_path / "given.csv"
    path.write_text("id,text,gold_anna,gold_ben\n1,one,a,a\n2,two,a,b\n", encoding="utf-8")
    with pytest.raises(TableError, match=r"given\.csv has no column 'gold'; there are id, text, gold_anna, gold_ben"):
        read_gold(path)


GRADES = np.array([[[0.7, 0.2], [0.6, 0.3]], [[0.7, 0.2], [0.6, 0.3]], [[0.7, 0.2], [0.6, 0.31]]])


def once(same: str, gold: Sequence[int], random_sample: Mask | None = None) -> Once:
    """Return one row for every letter; ids are in the order of rows."""
    ids = [f"{row:03d}" for row in range(len(same))]
    numbers = np.array([ord(letter) for letter in same], dtype=np.intp)
    return once_per_text(numbers, ids, np.array(gold, dtype=np.int8), random_sample)


def graded(grades: Floats, codes: Sequence[int] = (0, 0)) -> Votes:
    hard = votes_of([[list(codes)] for _ in grades])
    return replace(hard, grades=grades[:, np.newaxis, :, np.newaxis].astype(np.float32))


def test_texts_that_differ_in_blanks_or_case_are_the_same_and_empty_ones_are_unknown() -> None:
    assert same_texts(["Good  day", " good day\n", "Good day!", "", " "]).tolist() == [0, 0, 1, 2, 3]


def test_rows_with_the_very_same_grades_in_several_cells_are_the_same() -> None:
    assert same_grades(graded(GRADES)).tolist() == [0, 0, 2]


def test_too_few_or_hard_votes_cannot_tell_copies() -> None:
    one_cell = GRADES.copy()
    one_cell[:, 1] = np.nan
    assert same_grades(graded(one_cell, (0, -1))).tolist() == [0, 1, 2]
    assert same_grades(graded(one_cell)).tolist() == [0, 1, 2]
    assert same_grades(votes_of([[[0, 0]], [[0, 0]]])).tolist() == [0, 1]
    assert same_grades(graded(GRADES).take(slice(0))).tolist() == []


def test_each_text_counts_with_its_first_row() -> None:
    found = once("abacb", [0, 1, 0, 1, UNLABELLED])
    assert found.distinct.tolist() == [True, True, False, True, False]
    assert found.repeated == 1
    assert not len(found.contradictory)


def test_rows_with_gold_come_first_and_among_them_those_drawn_at_random() -> None:
    drawn = np.array([False, False, True, False])
    assert once("aaab", [UNLABELLED, 0, 0, 1], drawn).distinct.tolist() == [False, False, True, True]
    assert once("aaab", [UNLABELLED, 0, UNLABELLED, 1], drawn).distinct.tolist() == [False, True, False, True]


def test_copies_count_with_the_label_that_most_of_them_have() -> None:
    found = once("aaa", [1, 0, 0])
    assert found.distinct.tolist() == [False, True, False]
    assert found.repeated == 2
    assert not len(found.contradictory)


@pytest.mark.parametrize(("same", "gold", "counted"), [("aab", [0, 1, 1], [2]), ("aaa", [0, 1, UNLABELLED], [2])])
def test_copies_without_a_majority_have_no_gold(same: str, gold: Sequence[int], counted: list[int]) -> None:
    found = once(same, gold)
    assert np.flatnonzero(found.distinct).tolist() == counted
    assert found.contradictory.tolist() == [0, 1]
    assert not found.repeated


def test_copies_and_rows_that_were_drawn_are_counted_for_every_text() -> None:
    gold = np.array([0, 0, UNLABELLED, 1, UNLABELLED], dtype=np.int8)
    at_random = np.array([True, True, True, False, True])
    undecided = np.array([False, False, False, False, True])
    same, ids = np.array([0, 0, 0, 1, 2]), list("abcde")
    assert once_per_text(same, ids, gold, at_random).copies.tolist() == [3, 3, 3, 1, 1]
    assert once_per_text(same, ids, gold, at_random).drawn.tolist() == [2, 2, 2, 0, 0]
    assert once_per_text(same, ids, gold, at_random, undecided).drawn.tolist() == [2, 2, 2, 0, 1]


def test_a_row_has_the_label_of_its_text_in_whatever_row_that_is() -> None:
    assert with_copies(np.array([0, 1, 0, 2]), np.array([True, False, False, False])).tolist() == [
        True,
        False,
        True,
        False,
    ]
    assert with_copies(np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.bool_)).tolist() == []


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-1, 2), st.booleans()), min_size=1), st.randoms())
def test_the_order_of_rows_does_not_matter(rows: list[tuple[int, int, bool]], random: Random) -> None:
    ids = [f"{row:03d}" for row in range(len(rows))]
    order = list(range(len(rows)))
    random.shuffle(order)

    def kept(places: list[int]) -> set[str]:
        same, gold, drawn = (np.array([rows[place][part] for place in places]) for part in range(3))
        names = [ids[place] for place in places]
        found = once_per_text(same, names, gold.astype(np.int8), drawn)
        return {name for name, counts in zip(names, found.distinct.tolist(), strict=True) if counts}

    assert kept(order) == kept(list(range(len(rows))))
