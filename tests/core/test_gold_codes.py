from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator import UserError, Votes
from pcs_annotator.base.errors import GoldError, InputError, LabelError, UnknownNameError
from pcs_annotator.core.arrays import CODE
from pcs_annotator.core.gold_codes import UNLABELLED, gold_codes, refuse_contradictions
from pcs_annotator.core.identity import same_text, text_hash
from tests.builders import votes_of


def three_items(*labels: str) -> Votes:
    return votes_of([[[0]], [[0]], [[0]]], labels)


def test_labels_become_positions_in_the_label_set() -> None:
    assert gold_codes(three_items("fake", "real"), ["real", "fake", "real"]).tolist() == [1, 0, 1]


def test_codes_have_the_type_of_votes() -> None:
    assert gold_codes(three_items("fake", "real"), ["real", "fake", "real"]).dtype == CODE


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
