"""The long form: one row per vote."""

from __future__ import annotations

from pathlib import Path

import pytest

from pcs_annotator import ABSTAINED, NOT_ASKED, Votes
from pcs_annotator.base.errors import LabelError, TableError
from pcs_annotator.tables.vote_tables import read_vote_table

LONG = {
    "id": ["1", "1", "2"],
    "annotator": ["b", "a", "b"],
    "relation": ["original", "voice", "original"],
    "label": ["real", "", "fake"],
}


def test_names_are_in_order_of_appearance() -> None:
    votes = Votes.from_table(LONG)

    assert (votes.ids, votes.annotators, votes.relations) == (("1", "2"), ("b", "a"), ("original", "voice"))


def test_row_without_label_is_an_abstention_and_a_missing_row_was_not_asked() -> None:
    assert Votes.from_table(LONG).codes[..., 0].tolist() == [
        [[1, NOT_ASKED], [NOT_ASKED, ABSTAINED]],
        [[0, NOT_ASKED], [NOT_ASKED, NOT_ASKED]],
    ]


def test_long_and_wide_form_of_the_same_votes_agree() -> None:
    wide = Votes.from_table({"id": ["1", "2"], "a|r|0": ["x", "y"], "a|r|1": ["y", "y"], "b|r|0": ["x", None]})
    long = Votes.from_table(
        {
            "id": [1, 1, 1, 2, 2, 2],
            "annotator": list("aabaab"),
            "relation": list("rrrrrr"),
            "draw": [0, 1, 0, 0, 1, None],
            "label": ["x", "y", "x", "y", "y", None],
        }
    )

    assert (long.ids, long.annotators, long.relations, long.labels) == (
        wide.ids,
        wide.annotators,
        wide.relations,
        wide.labels,
    )
    assert long.codes.tolist() == wide.codes.tolist()


def test_draws_may_be_written_as_pandas_writes_them_beside_empty_cells() -> None:
    rows = {"id": "iii", "annotator": "aaa", "relation": "rrs", "label": "xyx", "draw": ["0.0", "1.0", ""]}

    assert Votes.from_table({name: list(cells) for name, cells in rows.items()}).codes.tolist() == [
        [[[0, 1], [0, NOT_ASKED]]]
    ]


def test_order_of_rows_does_not_matter() -> None:
    votes = Votes.from_table(LONG)
    turned = Votes.from_table({name: values[::-1] for name, values in LONG.items()})

    assert turned.ids == ("2", "1")
    same = turned.select(annotators=votes.annotators, relations=votes.relations)
    assert same.codes[::-1].tolist() == votes.codes.tolist()


def test_row_with_only_an_id_is_an_item_that_was_not_asked_about() -> None:
    votes = Votes.from_table({name: [*values, "3" if name == "id" else None] for name, values in LONG.items()})

    assert votes.ids == ("1", "2", "3")
    assert (votes.codes[2] == NOT_ASKED).all()


def test_other_columns_are_ignored() -> None:
    assert Votes.from_table({**LONG, "cost": [0.1, 0.2, 0.3]}).annotators == ("b", "a")


def test_gold_may_be_in_any_row_of_an_item() -> None:
    table = read_vote_table({**LONG, "gold": [None, "Real", ""]})

    assert table.gold == ("Real", None)
    assert table.votes.labels == ("Real", "fake")


def test_gold_of_one_item_may_differ_in_case() -> None:
    gold = read_vote_table({**LONG, "gold": ["real", "Real", "fake"]}).gold

    assert [None if label is None else label.casefold() for label in gold] == ["real", "fake"]


def test_given_labels_are_used() -> None:
    assert Votes.from_table(LONG, labels=["real", "fake"]).codes[:, 0, 0, 0].tolist() == [0, 1]


def test_unknown_label_names_row_column_and_a_way_out() -> None:
    with pytest.raises(LabelError, match=r"column 'label', id '2': 'fake'.*unknown='abstain'"):
        Votes.from_table(LONG, labels=["real"])


def test_unknown_label_can_count_as_an_abstention() -> None:
    votes = Votes.from_table(LONG, labels=["real"], unknown="abstain")

    assert votes.codes[1, 0, 0, 0] == ABSTAINED


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        pytest.param({"id": ["1", None, "2"]}, ["'id'", "row 2"], id="missing id"),
        pytest.param({"id": ["1", "1", ""]}, ["'id'", "row 3"], id="empty id"),
        pytest.param(
            {"annotator": ["b", "b", "b"], "relation": ["r", "r", "r"]},
            ["rows 1 and 2", "id '1'", "'draw'"],
            id="same question twice",
        ),
        pytest.param({"draw": ["0", "one", "0"]}, ["row 2", "'draw'", "'one'"], id="draw in words"),
        pytest.param({"draw": [0.0, 0.5, None]}, ["row 2", "'draw'", "'0.5'"], id="half a draw"),
        pytest.param({"draw": [0, 0, -1]}, ["row 3", "'draw'", "'-1'"], id="negative draw"),
        pytest.param({"draw": ["0", "²", "0"]}, ["row 2", "'draw'", "'²'"], id="digit that is no number"),
        pytest.param({"draw": [0, 1000, 0]}, ["row 2", "'draw'", "1000", "0 to 999"], id="huge draw"),
        pytest.param({"draw": ["0", "9" * 5000, "0"]}, ["row 2", "'draw'", "0 to 999"], id="draw beyond int"),
        pytest.param({"gold": ["real", "fake", None]}, ["id '1'", "two gold labels"], id="two golds"),
        pytest.param({"relation": ["r", None, "r"]}, ["row 2", "'relation'", "empty"], id="no relation"),
        pytest.param({"annotator": ["b", "a", ""]}, ["row 3", "'annotator'", "empty"], id="no annotator"),
        pytest.param(
            {"annotator": ["b", "a", None], "relation": ["r", "r", None]},
            ["row 3", "'annotator'", "empty"],
            id="label without an annotator",
        ),
        pytest.param({"label": [None, None, None]}, ["votes are empty"], id="all votes empty"),
    ],
)
def test_unusable_table_is_refused(changes: dict[str, list[object]], parts: list[str]) -> None:
    with pytest.raises(TableError) as caught:
        Votes.from_table({**LONG, **changes})

    message = str(caught.value)
    assert [part for part in parts if part not in message] == []


def test_table_without_ids_is_refused() -> None:
    with pytest.raises(TableError, match=r"the table.*'id'"):
        Votes.from_table({name: values for name, values in LONG.items() if name != "id"})


def test_refusal_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("id,annotator,relation,label\n1,a,r,x\n1,a,r,y\n")

    with pytest.raises(TableError, match=r"^long\.csv: rows 2 and 3.*'1'"):
        Votes.from_table(path)
