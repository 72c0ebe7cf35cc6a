"""Probabilities in tables of votes: grades or their logarithms, what annotators stated, and what is refused."""

import math
from collections.abc import Sequence
from contextlib import nullcontext
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator import ABSTAINED, NOT_ASKED, PcsWarning, UserError, Votes
from pcs_annotator.base.errors import LabelError, TableError
from pcs_annotator.core.votes import GRADE_TOLERANCE
from pcs_annotator.tables.vote_columns import MIN_MASS
from pcs_annotator.tables.vote_tables import read_vote_table


def table(**columns: Sequence[object]) -> dict[str, Sequence[object]]:
    """One row per value; the labels are `fake` unless given."""
    rows = len(next(iter(columns.values())))
    names: dict[str, Sequence[object]] = {
        "id": [f"i{row}" for row in range(rows)],
        "annotator": ["m"] * rows,
        "relation": ["original"] * rows,
        "label": ["fake"] * rows,
    }
    return names | columns


def grades_in(given: object, **options: Any) -> list[list[float]] | None:
    """Grades of every row of a table with one vote per item, to four digits."""
    votes = Votes.from_table(given, **options)
    return None if votes.grades is None else votes.grades[:, 0, 0, 0].astype(float).round(4).tolist()


HARD = [pytest.approx(math.nan, nan_ok=True)] * 2


NOTHING = (None, math.nan)
HALF = [math.log(0.25)] * 2
READ: list[tuple[Any, list[str] | None, list[Any]]] = [
    # in the order of the labels
    ({"p_real": [0.25, 0.5], "p_Fake": [0.75, 0.4]}, None, [[0.75, 0.25], [0.4, 0.5]]),
    ({"p_real": [0.25, 0.5], "p_Fake": [0.75, 0.4]}, ["real", "fake"], [[0.25, 0.75], [0.5, 0.4]]),
    # rows without grades are hard votes
    *(({"p_fake": [0.7, gap], "p_real": [0.3, gap]}, None, [[0.7, 0.3], HARD]) for gap in NOTHING),
    ({"p_fake": ["0.7", ""], "p_real": ["0.3", ""]}, None, [[0.7, 0.3], HARD]),
    # logarithms are natural, and scaled to one where they sum to more, or to the mass
    ({"logp_fake": [math.log(0.6)], "logp_real": [math.log(0.1)]}, None, [[0.6, 0.1]]),
    ({"logp_fake": [math.log(0.9)], "logp_real": [math.log(0.6)]}, None, [[0.6, 0.4]]),
    *(
        (
            {"logp_fake": [math.log(0.75 * share)], "logp_real": [math.log(0.25 * share)], "mass": [mass]},
            None,
            [[0.15, 0.05]],
        )
        for share in (1.0, 0.5, 1e-3, 1.3)
        for mass in (0.2, "0.2")
    ),
    ({"logp_fake": HALF, "logp_real": HALF, "mass": [None, 0.2]}, None, [[0.25, 0.25], [0.1, 0.1]]),
    (
        {"logp_fake": ["0", "0", "-0.0", "-inf"], "logp_real": ["-inf", "-9999", "-1e308", "-inf"]},
        None,
        [[1, 0], [1, 0], [1, 0], [0, 0]],
    ),
    ({"logp_fake": [-np.inf], "logp_real": [-np.inf], "mass": [0.5]}, None, [[0, 0]]),
    # rounding errors
    ({"logp_fake": [1e-7], "logp_real": [-20.0]}, None, [[1, 0]]),
    ({"p_fake": [1.0], "p_real": [-1e-17]}, None, [[1, 0]]),
    # beside probabilities, mass is a column of the user
    ({"p_fake": [0.7], "p_real": [0.3], "mass": ["12 kg"]}, None, [[0.7, 0.3]]),
    # labels without a grade get zero where the others sum to one
    ({"p_fake": [1.0], "p_real": [None]}, None, [[1, 0]]),
    ({"logp_fake": [0.0], "logp_real": [None], "mass": [0.5]}, None, [[0.5, 0]]),
    ({"p_fake": [0.4], "p_real": [0.6]}, ["fake", "mixed", "real"], [[0.4, 0, 0.6]]),
]


@pytest.mark.parametrize(("columns", "labels", "grades"), READ)
def test_grades_are_read(columns: dict[str, Sequence[object]], labels: list[str] | None, grades: list[Any]) -> None:
    assert grades_in(table(**columns), labels=labels) == grades


def test_without_any_grades_all_votes_are_hard() -> None:
    for nothing in (None, "", math.nan):
        votes = Votes.from_table(table(p_fake=[nothing], p_real=[nothing]))
        assert (votes.grades, votes.labels) == (None, ("fake", "real"))


def test_cells_that_were_not_asked_or_gave_nothing_have_no_grades() -> None:
    votes = Votes.from_table(
        table(id=["i", "i", "j"], relation=["a", "b", "a"], label=["x", "", "x"], p_x=[1, None, 0.5], p_y=[0, None, 0])
    )
    assert votes.codes[..., 0].tolist() == [[[0, ABSTAINED]], [[0, NOT_ASKED]]]
    assert votes.grades is not None
    assert np.isnan(votes.grades[:, 0, :, 0, 0]).tolist() == [[False, True], [False, True]]


def test_grades_of_several_draws_stay_apart() -> None:
    votes = Votes.from_table(table(id=["i", "i"], draw=[1, 0], p_fake=[0.9, 0.6], p_real=[0.1, 0.4]))
    assert votes.grades is not None
    np.testing.assert_allclose(votes.grades[0, 0, 0], [[0.6, 0.4], [0.9, 0.1]])


def test_labels_without_votes_are_known_by_their_grades_and_spelt_like_gold() -> None:
    assert Votes.from_table(table(p_fake=[0.5], p_real=[0.2], p_mixed=[0.3])).labels == ("fake", "mixed", "real")
    assert Votes.from_table(table(logp_fake=[-1], logp_Real=[-2])).labels == ("Real", "fake")
    votes, gold = read_vote_table(table(gold=["Real"], p_fake=[0.5], p_real=[0.5]))
    assert (votes.labels, gold) == (("Real", "fake"), ("Real",))


def test_a_graded_row_without_a_label_is_a_vote_for_the_most_probable_one_or_the_first_in_the_alphabet() -> None:
    votes = Votes.from_table(table(label=["", None, "fake"], p_fake=[0.2, 0.3, 0.1], p_real=[0.1, 0.7, 0.9]))
    assert votes.codes.ravel().tolist() == [0, 1, 0]
    given = table(label=[None], p_real=[0.5], p_fake=[0.5])
    assert Votes.from_table(given, ["real", "fake"]).codes.ravel().tolist() == [1]


def test_a_row_without_a_label_in_which_no_label_is_probable_is_an_abstention() -> None:
    votes = Votes.from_table(table(label=[None, "fake"], p_fake=[0, 0], p_real=[0, 0]))
    assert votes.codes.ravel().tolist() == [ABSTAINED, 0]
    assert votes.grades is not None
    assert np.isnan(votes.grades[0]).all()
    assert (votes.grades[1] == 0).all()


@pytest.mark.parametrize("prefix", ["p_", "logp_"])
def test_labels_may_be_known_from_the_grades_alone(prefix: str) -> None:
    given = table(**{f"{prefix}fake": ["0"], f"{prefix}real": ["0"]})
    for empty in ({**given, "label": [None]}, {name: cell for name, cell in given.items() if name != "label"}):
        assert Votes.from_table(empty).labels == ("fake", "real")


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"p_x": [None], "p_y": [None]}, r"^the table has no votes: .*'label'.*'x', 'y'"),
        ({"label": [None], "p_value": [0.03]}, "the table: all votes are empty"),
        ({"p_value": [0.03]}, "no votes"),  # one column alone does not make a label of its name
    ],
)
def test_neither_labels_nor_grades_are_no_votes(columns: dict[str, list[object]], problem: str) -> None:
    with pytest.raises(TableError, match=problem):
        Votes.from_table({"id": ["i"], "annotator": ["m"], "relation": ["original"], **columns})


def test_the_wide_form_has_no_grades() -> None:
    with pytest.warns(PcsWarning, match="not read as votes: 'p_x', 'p_y'"):
        votes = Votes.from_table({"id": ["i"], "m|original": ["x"], "p_x": [0.5], "p_y": [0.5]})
    assert votes.grades is None
    graded = Votes.from_table(table(p_fake=[0.7], p_real=[0.3]))
    assert graded.to_table().column_names == ["id", "m|original"]


@pytest.mark.parametrize("column", ["p_value", "logp_value", "p_", "p_ "])
def test_a_column_that_names_no_label_belongs_to_the_user(column: str) -> None:
    for labels in (None, ["fake", "real"]):
        votes = Votes.from_table(table(**{column: ["n.s."]}), labels)
        assert votes.grades is None
        assert votes.labels == tuple(labels or ["fake"])


def test_several_columns_that_name_no_label_are_named_in_a_warning_at_the_callers_line() -> None:
    with pytest.warns(PcsWarning, match=r"^the table: .*'p_false', 'p_true'") as caught:
        votes = Votes.from_table(table(p_false=[0.4], p_true=[0.6]))
    assert votes.grades is None
    assert caught[0].filename == __file__


def test_rows_with_only_an_id_have_no_grades_and_those_with_grades_need_an_annotator() -> None:
    blank: dict[str, list[Any]] = {"annotator": ["m", None], "relation": ["r", None], "label": ["fake", None]}
    votes = Votes.from_table(table(**blank, p_fake=[0.5, None], p_real=[0.5, None], stated_fake=[0.5, 0.9]))
    assert votes.codes.ravel().tolist() == [0, NOT_ASKED]
    np.testing.assert_array_equal(votes.stated, np.reshape([[0.5, np.nan], [np.nan, np.nan]], (2, 1, 1, 1, 2)))
    with pytest.raises(TableError, match="row 2: column 'annotator' is empty"):
        Votes.from_table(table(**blank, p_fake=[0.5, 0.5], p_real=[0.5, 0.5]))


@pytest.mark.parametrize(
    "kind", [pa.float16(), pa.float32(), pa.float64(), pa.decimal128(6, 3), pa.string(), pa.large_string()]
)
def test_columns_may_have_any_type_of_number(kind: pa.DataType) -> None:
    cells: list[object] = [0.25, 0.75]
    if pa.types.is_decimal(kind):
        cells = [Decimal("0.25"), Decimal("0.75")]
    elif not pa.types.is_floating(kind):
        cells = ["0.25", "0.75"]
    first, second = (pa.array([cell, None], kind) for cell in cells)
    given = pa.table(table(p_fake=[0, 0], p_real=[0, 0])).drop_columns(["p_fake", "p_real"])
    given = given.append_column("p_fake", first).append_column("p_real", second)
    assert grades_in(given) == [[0.25, 0.75], HARD]


def test_pandas_and_polars_give_the_same() -> None:
    whole = pd.DataFrame(table(p_fake=[1, 0], p_real=["0", "1"])).astype({"p_real": "category"})
    assert grades_in(whole) == [[1, 0], [0, 1]]
    given = table(p_fake=[0.7, None], p_real=[0.3, None])
    for frame in (pd.DataFrame(given), pl.DataFrame(given), pd.DataFrame(given).astype({"p_fake": "Float64"})):
        assert grades_in(frame) == [[0.7, 0.3], HARD]


def test_a_mass_rounded_beyond_0_or_1_counts_as_the_nearest_possible() -> None:
    half = [math.log(0.5)] * 2
    votes = Votes.from_table(table(logp_fake=half, logp_real=half, mass=[0.0, 1.006]))
    assert votes.grades is not None
    np.testing.assert_allclose(votes.grades.sum(axis=-1).ravel(), [MIN_MASS, 1])


Refused = tuple[Any, list[str] | None, list[str]]
BAD_NUMBERS: list[Refused] = [
    # labels without a grade
    ({"p_fake": [0.5, 0.7], "p_real": [0.5, None]}, None, ["row 2: column 'p_real' is empty", "hard vote"]),
    ({"logp_fake": [-1.0, -0.5], "logp_real": ["-1", ""]}, None, ["row 2: column 'logp_real' is empty"]),
    ({"logp_a": [0, 0], "logp_fake": [-1, -1], "logp_b": [-1, None]}, None, ["row 2: column 'logp_b' is empty"]),
    (
        {"p_fake": [0.5, 0.5], "p_real": [0.5, 0.4]},
        ["fake", "real", "mixed"],
        ["row 2: there is no column for the label 'mixed'"],
    ),
    # numbers
    ({"p_fake": [0.5, 1.7], "p_real": [0.5, 0]}, None, ["row 2, column 'p_fake': 1.7", "0 to 1"]),
    ({"p_fake": [0.5, -0.1], "p_real": [0.5, 0]}, None, ["row 2, column 'p_fake': -0.1"]),
    ({"p_fake": ["0.5", "nan"], "p_real": [0.5, 0]}, None, ["row 2, column 'p_fake': nan", "empty"]),
    ({"p_fake": ["0.5", "80 %"], "p_real": [0.5, 0]}, None, ["row 2, column 'p_fake': 80 %"]),
    ({"p_fake": ["1", "inf"], "p_real": [0, 0]}, None, ["row 2, column 'p_fake': inf"]),
    ({"p_fake": [0.5, 1], "p_real": [True, False]}, None, ["row 1, column 'p_real': true"]),
    ({"logp_fake": [-1, 0.3], "logp_real": [-1, -1]}, None, ["row 2, column 'logp_fake': 0.3", "at most 0"]),
    ({"logp_fake": ["0", "+inf"], "logp_real": [-1, -1]}, None, ["row 2", "+inf"]),
    ({"logp_fake": [-1, -1], "logp_real": ["-1", "NaN"]}, None, ["row 2, column 'logp_real': NaN"]),
    ({"logp_fake": [0, 0], "logp_real": [-1, -1], "mass": [1, 1.7]}, None, ["row 2, column 'mass': 1.7", "rename"]),
    ({"logp_fake": [0, 0], "logp_real": [-1, -1], "mass": [1, -0.1]}, None, ["row 2, column 'mass'"]),
    ({"logp_fake": [0], "logp_real": [-1], "mass": ["heavy"]}, None, ["column 'mass': heavy"]),
    ({"p_fake": [[0.5, 0.5]], "p_real": [0]}, None, ["'p_fake'", "list"]),
    # sums and names
    (
        {"p_fake": [0.5, 0.9], "p_real": [0.5, 0.8]},
        None,
        ["row 2: the grades sum to 1.7 (p_fake 0.9, p_real 0.8)", "more than 1", "hard vote"],
    ),
    (
        {"p_fake": [0.4], "p_real": [0.6], "p_value": [0.03]},
        None,
        ["row 1: the grades sum to 1.03", "p_value 0.03", "rename"],
    ),
    ({"p_fake": [0.5], "logp_fake": [-1]}, None, ["'p_fake'", "'logp_fake'", "keep"]),
    ({"p_fake": [0.5], "p_FAKE": [0.5]}, None, ["'p_fake'", "'p_FAKE'", "remove"]),
    # what annotators stated
    (
        {"stated_fake": [0.5], "stated_real": [0.2], "stated_REAL": [0.3]},
        None,
        ["'stated_real' and 'stated_REAL'", "remove"],
    ),
    *(
        ({"stated_fake": ["0.5", value]}, None, [f"row 2, column 'stated_fake': {value}", "0 to 1"])
        for value in ("80 %", "0,8", "nan", "-0.1", "1.5", "inf", "sure")
    ),
]


@pytest.mark.parametrize(("columns", "labels", "parts"), BAD_NUMBERS)
def test_refusal_names_the_row_the_column_and_the_remedy(
    columns: dict[str, list[object]], labels: list[str] | None, parts: list[str]
) -> None:
    with pytest.raises(TableError, match=r"^the table|^column 'p_fake' holds") as caught:
        Votes.from_table(table(**columns), labels)
    assert [part for part in parts if part not in str(caught.value)] == []


def test_refusal_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "graded.csv"
    path.write_text("id,annotator,relation,label,p_x,p_y\n1,a,r,x,0.5,0.5\n2,a,r,x,0.5,0.5 \n3,a,r,x,0.9,1.2\n")
    with pytest.raises(TableError, match=r"^graded\.csv, row 4, column 'p_y': 1\.2 "):
        Votes.from_table(path)


@pytest.mark.parametrize("total", [1 + GRADE_TOLERANCE * 0.99, 1 + GRADE_TOLERANCE * 1.01])
def test_refusal_of_large_sums_follows_the_tolerance_of_votes(total: float) -> None:
    large = total > 1 + GRADE_TOLERANCE
    with pytest.raises(TableError, match="sum to") if large else nullcontext():
        assert grades_in(table(p_fake=[total - 0.4], p_real=[0.4])) is not None


@pytest.mark.parametrize("prefix", ["p_", "logp_"])
def test_a_column_for_an_unknown_label_is_refused_or_skipped(prefix: str) -> None:
    part = {"p_": 0.3, "logp_": math.log(0.3)}[prefix]
    given = table(**{f"{prefix}{label}": [part] for label in ("fake", "real", "maybe")})
    with pytest.raises(TableError) as caught:
        Votes.from_table(given, ["fake", "real"])
    parts = [f"the table, column '{prefix}maybe'", "'fake', 'real'", "rename", "unknown='abstain'"]
    assert [part for part in parts if part not in str(caught.value)] == []
    assert grades_in(given, labels=["fake", "real"], unknown="abstain") == [[0.3, 0.3]]


def test_a_vote_for_an_unknown_label_that_counts_as_an_abstention_loses_its_grades() -> None:
    given = table(label=["maybe", "fake"], p_fake=[0.3, 0.6], p_real=[0.3, 0.4])
    with pytest.raises(LabelError, match=r"id 'i0': 'maybe'"):
        Votes.from_table(given, ["fake", "real"])
    votes = Votes.from_table(given, ["fake", "real"], unknown="abstain")
    assert votes.codes.ravel().tolist() == [ABSTAINED, 0]
    assert votes.grades is not None
    assert np.isnan(votes.grades[0]).all()


@given(st.lists(st.one_of(st.none(), st.text(max_size=4), st.floats(width=32)), min_size=2, max_size=4), st.data())
def test_any_cells_give_valid_grades_or_a_message_for_users(cells: list[object], data: st.DataObject) -> None:
    # all cells of a column have one type
    texts = [None if cell is None else str(cell) for cell in cells]
    prefix = data.draw(st.sampled_from(["p_", "logp_"]))
    given = table(**{f"{prefix}fake": [*texts], f"{prefix}real": [*data.draw(st.permutations(texts))]})
    try:
        votes = Votes.from_table(given)
    except UserError:
        return
    if votes.grades is not None:
        graded = votes.grades[~np.isnan(votes.grades).any(axis=-1)]
        assert (graded >= 0).all()
        assert (graded.sum(axis=-1) <= 1 + GRADE_TOLERANCE).all()


def test_there_are_columns_for_probabilities_only_where_there_are_some() -> None:
    votes = Votes.from_table(table(p_fake=[0.75, None], p_real=[0.25, None]))
    columns = votes.to_table("long")
    assert columns.column_names[5:] == ["p_fake", "p_real"]
    assert columns["p_real"].to_pylist() == [0.25, None]
    assert votes.hard().to_table("long").column_names == ["id", "annotator", "relation", "draw", "label"]
    stated = Votes.from_table(table(stated_fake=[0.5, None], stated_real=[None, None]))
    assert stated.to_table("long").column_names[5:] == ["stated_fake", "stated_real"]
    assert stated.to_table("long")["stated_fake"].to_pylist() == [0.5, None]
    assert stated.to_table("wide").column_names == ["id", "m|original"]


def test_labels_without_votes_are_known_by_what_was_stated() -> None:
    votes = Votes.from_table(table(stated_Real=[0.2], stated_FAKE=[0.7], **{"stated_no, never": [None]}))
    assert votes.labels == ("Real", "fake", "no, never")
    np.testing.assert_array_equal(votes.stated, np.reshape([0.2, 0.7, np.nan], (1, 1, 1, 1, 3)))


def test_other_columns_with_the_prefix_are_ignored() -> None:
    votes = Votes.from_table(table(stated_at=["Monday"]))
    assert (votes.stated, votes.labels) == (None, ("fake",))
    assert Votes.from_table(table(stated_at=["Monday"], stated_fake=[1]), ["fake"]).stated == 1


@pytest.mark.parametrize("value", [1, "1", "1.0", "1e0", 1.0, "+1", " 1 ", Decimal("1.0"), np.float32(1)])
def test_numbers_may_be_written_in_any_way(value: object) -> None:
    assert Votes.from_table(table(stated_fake=[value])).stated == 1


def test_recorded_votes_are_readable_as_they_are(shared_data: Path) -> None:
    for name in ("sentiment", "tweets", "gossipcop"):
        path = shared_data / "recorded" / f"graded_{name}.csv.gz"
        votes, gold = read_vote_table(path)
        raw = pd.read_csv(path)
        assert all(gold)
        assert votes.grades is not None
        graded = ~np.isnan(votes.grades[..., 0])
        assert graded.sum() == (votes.codes >= 0).sum() == len(raw)
        first = raw.iloc[0]
        place = (
            votes.ids.index(first["id"]),
            votes.annotators.index(first["annotator"]),
            votes.relations.index(first["relation"]),
            0,
        )
        logs = np.array([first[f"logp_{label}"] for label in votes.labels])
        np.testing.assert_allclose(votes.grades[place], first["mass"] * np.exp(logs) / np.exp(logs).sum(), rtol=1e-6)
        top = votes.grades.argmax(axis=-1)
        assert (top == votes.codes)[graded].mean() > 0.999  # the others are ties after rounding
