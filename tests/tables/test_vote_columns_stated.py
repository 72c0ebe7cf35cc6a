"""Stated probabilities in tables: the long form keeps them, older files have none."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pyarrow import csv as arrow_csv
from pyarrow import parquet

from pcs_annotator import ABSTAINED, NOT_ASKED, Votes
from pcs_annotator.base.errors import TableError

LABELS = ["Fake", "no, never", "Real"]
# importing pyarrow alone takes longer than a deadline
unhurried = settings(deadline=None)


def one_vote(**columns: object) -> dict[str, list[object]]:
    vote: dict[str, object] = {"id": "i", "annotator": "m/1s-top-2", "relation": "original", "label": "Fake"}
    return {name: [value] for name, value in (vote | columns).items()}


def stated_in(table: object, **options: Any) -> object:
    votes = Votes.from_table(table, **options)
    return None if votes.stated is None else votes.stated.ravel().tolist()


@st.composite
def votes_with_probabilities(draw: st.DrawFn) -> Votes:
    shape = (draw(st.integers(1, 4)), 2, 2, 2)
    codes = draw(hnp.arrays(np.int8, shape, elements=st.integers(NOT_ASKED, 2)))
    codes[0] = np.maximum(codes[0], ABSTAINED)  # names without votes are not written
    chances = st.one_of(st.floats(0, 1), st.just(np.nan))
    stated = draw(hnp.arrays(np.float64, (*shape, 3), elements=chances))
    stated[codes == NOT_ASKED] = np.nan
    ids = [f"i{row}" for row in range(shape[0])]
    return Votes(
        codes=codes, ids=ids, annotators=["m", "m/ling-1s"], relations=["original", "r"], labels=LABELS, stated=stated
    )


def assert_same(read: Votes, votes: Votes) -> None:
    assert (read.ids, read.annotators, read.relations, read.labels) == (
        votes.ids,
        votes.annotators,
        votes.relations,
        votes.labels,
    )
    np.testing.assert_array_equal(read.codes, votes.codes)
    assert votes.stated is not None
    np.testing.assert_array_equal(read.stated, votes.stated)


@given(votes_with_probabilities())
def test_the_long_form_keeps_every_stated_probability(votes: Votes) -> None:
    assert_same(Votes.from_table(votes.to_table("long"), LABELS), votes)


@given(votes_with_probabilities())
def test_files_keep_every_stated_probability(tmp_path_factory: pytest.TempPathFactory, votes: Votes) -> None:
    folder = tmp_path_factory.mktemp("votes")
    arrow_csv.write_csv(votes.to_table("long"), folder / "votes.csv")
    parquet.write_table(votes.to_table("long"), folder / "votes.parquet")
    for name in ("votes.csv", "votes.parquet"):
        assert_same(Votes.from_table(folder / name, LABELS), votes)


def test_nothing_stated_is_an_empty_cell_also_in_pandas() -> None:
    votes = Votes(
        codes=np.array([[[0]], [[NOT_ASKED]]], dtype=np.int8),
        ids=["i", "j"],
        annotators=["m/1s-top-2"],
        relations=["original"],
        labels=["Fake", "Real"],
        stated=np.array([0.5, np.nan, np.nan, np.nan]).reshape(2, 1, 1, 1, 2),
    )
    table = votes.to_table("long")
    assert table["stated_Fake"].to_pylist() == [0.5, None]
    assert table["stated_Real"].to_pylist() == [None, None]
    assert_same(Votes.from_table(table.to_pandas(), ["Fake", "Real"]), votes)


def test_without_stated_probabilities_there_are_no_columns_for_them() -> None:
    votes = Votes.from_table(one_vote(), ["Fake", "Real"])
    assert votes.stated is None
    assert votes.to_table("long").column_names == ["id", "annotator", "relation", "draw", "label"]


def test_the_wide_form_holds_labels_only() -> None:
    votes = Votes.from_table(one_vote(stated_Fake=0.5), ["Fake", "Real"])
    assert votes.stated is not None
    wide = votes.to_table("wide")
    assert wide.column_names == ["id", "m/1s-top-2|original"]
    assert Votes.from_table(wide, ["Fake", "Real"]).stated is None


def test_labels_without_votes_are_known_by_their_probabilities() -> None:
    votes = Votes.from_table(one_vote(stated_Real=0.2, stated_fake=0.7, **{"stated_no, never": None}))
    assert votes.labels == ("Fake", "Real", "no, never")
    assert votes.stated is not None
    np.testing.assert_array_equal(votes.stated.ravel(), [0.7, 0.2, np.nan])


def test_other_columns_with_the_prefix_are_ignored() -> None:
    assert stated_in(one_vote(stated_at="Monday")) is None
    assert Votes.from_table(one_vote(stated_at="Monday")).labels == ("Fake",)
    assert stated_in(one_vote(stated_at="Monday", stated_Fake=1), labels=["Fake"]) == [1.0]


@pytest.mark.parametrize("value", [1, "1", "1.0", "1e0", 1.0, "+1", " 1 ", Decimal("1.0"), np.float32(1)])
def test_numbers_may_be_written_in_any_way(value: object) -> None:
    assert stated_in(one_vote(stated_Fake=value), labels=["Fake"]) == [1.0]


@pytest.mark.parametrize("value", ["80 %", "0,8", "nan", "-0.1", "1.5", "inf", "sure"])
def test_other_values_are_refused_with_their_row(value: str) -> None:
    table = pd.concat([pd.DataFrame(one_vote(stated_Fake="0.5")), pd.DataFrame(one_vote(id="j", stated_Fake=value))])
    with pytest.raises(TableError, match=r"^the table, row 2, column 'stated_Fake': .*probability.*0 to 1"):
        Votes.from_table(table)


def test_two_columns_for_two_spellings_of_a_new_label_are_refused() -> None:
    with pytest.raises(TableError, match=r"the table: columns 'stated_Real' and 'stated_real'.*remove one"):
        Votes.from_table(one_vote(stated_Fake=0.5, stated_Real=0.2, stated_real=0.3))


def test_rows_with_only_an_id_state_nothing() -> None:
    blank = {"id": "j", "annotator": None, "relation": None, "label": None, "stated_Fake": 0.9}
    table = pa.Table.from_pylist([{name: values[0] for name, values in one_vote(stated_Fake=0.5).items()}, blank])
    votes = Votes.from_table(table, ["Fake"])
    assert votes.stated is not None
    np.testing.assert_array_equal(votes.stated.ravel(), [0.5, np.nan])
