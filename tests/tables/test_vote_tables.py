"""Votes in tables: the wide form, one column per cell, and the long form, one row per vote."""

from pathlib import Path

import pytest

from pcs_annotator import ABSTAINED, NOT_ASKED, PcsWarning, UserError, Votes
from pcs_annotator.base.errors import LabelError, TableError
from pcs_annotator.tables.vote_tables import read_vote_table

LONG = {
    "id": ["1", "1", "2"],
    "annotator": ["b", "a", "b"],
    "relation": ["original", "voice", "original"],
    "label": ["real", "", "fake"],
}
TWO = {"id": ["1", "2"], "a|original": ["fake", "real"], "b|original": ["real", ""]}


def test_columns_name_annotators_and_relations_in_their_order() -> None:
    votes = Votes.from_table({"id": ["1"], "b|voice": ["x"], "a|voice": ["y"], "b|original": ["x"]})
    assert (votes.annotators, votes.relations) == (("b", "a"), ("voice", "original"))
    assert votes.codes[0, :, :, 0].tolist() == [[0, 0], [1, NOT_ASKED]]


@pytest.mark.parametrize("table", [TWO, LONG])
def test_order_of_columns_and_rows_does_not_matter(table: dict[str, list[str]]) -> None:
    votes = Votes.from_table(table)
    turned = Votes.from_table({name: cells[::-1] for name, cells in reversed(table.items())})
    assert turned.ids == ("2", "1")
    same = turned.select(annotators=votes.annotators, relations=votes.relations)
    assert same.codes[::-1].tolist() == votes.codes.tolist()


def test_empty_cell_is_an_abstention_and_a_missing_column_was_not_asked() -> None:
    votes = Votes.from_table({"id": ["1", "2"], "a|original": ["x", None], "a|voice": ["", "x"], "b|original": "xx"})
    assert votes.codes[..., 0].tolist() == [[[0, ABSTAINED], [0, NOT_ASKED]], [[ABSTAINED, 0], [0, NOT_ASKED]]]


def test_numbered_columns_are_draws() -> None:
    votes = Votes.from_table({"id": ["1"], "a|r|0": ["x"], "a|r|2": ["y"], "b|r": ["y"]})
    assert votes.codes.tolist() == [[[[0, NOT_ASKED, 1]], [[1, NOT_ASKED, NOT_ASKED]]]]


def test_labels_default_to_those_seen_sorted() -> None:
    votes = Votes.from_table({"id": ["1"], "a|r": ["real"], "b|r": ["fake"], "gold": ["mixed"]})
    assert votes.labels == ("fake", "mixed", "real")


def test_given_labels_keep_their_order() -> None:
    votes = Votes.from_table(TWO, labels=["real", "unsure", "fake"])
    assert votes.labels == ("real", "unsure", "fake")
    assert votes.codes.ravel().tolist() == [2, 0, 0, ABSTAINED]


def test_case_of_votes_does_not_matter_and_gold_or_the_most_frequent_decides() -> None:
    votes = Votes.from_table({"id": "123", "a|r": ["Real", "real", "REAL"], "b|r": ["real", "fake", "Fake"]})
    assert votes.labels == ("Fake", "real")  # of two equally frequent spellings, the first in alphabetical order
    assert votes.codes[:, 0].ravel().tolist() == [1, 1, 1]
    votes = Votes.from_table({"id": "123", "a|r": ["real", "real", "real"], "gold": ["Real", None, None]})
    assert votes.labels == ("Real",)


@pytest.mark.parametrize("gold", ["none", "a;b"])
def test_gold_that_is_probably_no_label_is_refused_unless_models_answer_with_it(gold: str) -> None:
    columns = {"id": ["1", "2"], "gold": [gold, "a"], "m|original": ["a", "b"]}
    with pytest.raises(LabelError, match=f"the table, column 'gold': '{gold}' .*, or name all labels with --labels"):
        read_vote_table(columns)
    assert read_vote_table({**columns, "m|original": ["a", gold]}).gold == (gold, "a")
    assert read_vote_table(columns, ["a", "b", gold]).gold == (gold, "a")


def test_gold_is_kept_apart_from_votes() -> None:
    table = read_vote_table({**TWO, "gold": ["Fake", ""]})
    assert table.gold == ("Fake", None)
    assert table.votes.labels == ("Fake", "real")
    assert table.votes.annotators == ("a", "b")
    assert read_vote_table(TWO).gold == (None, None)


def test_numbers_serve_as_ids_and_labels() -> None:
    votes = Votes.from_table({"id": [10, 11], "a|r": [1.0, None], "b|r": [0, 1]})
    assert (votes.ids, votes.labels) == (("10", "11"), ("0", "1"))
    assert votes.codes.ravel().tolist() == [1, 0, ABSTAINED, 1]


def test_unknown_label_can_count_as_an_abstention() -> None:
    votes = Votes.from_table(TWO, labels=["fake"], unknown="abstain")
    assert votes.codes.ravel().tolist() == [0, ABSTAINED, ABSTAINED, ABSTAINED]
    assert Votes.from_table(LONG, labels=["real"], unknown="abstain").codes[1, 0, 0, 0] == ABSTAINED


def test_unknown_label_names_row_column_and_a_way_out() -> None:
    with pytest.raises(LabelError) as caught:
        Votes.from_table({"id": ["x7", "x8"], "a|r": ["fake", "maybe"]}, labels=["fake", "real"])
    parts = ["column 'a|r', id 'x8'", "'maybe'", "'fake', 'real'", "unknown='abstain'"]
    assert [part for part in parts if part not in str(caught.value)] == []
    with pytest.raises(LabelError, match=r"column 'label', id '2': 'fake'.*unknown='abstain'"):
        Votes.from_table(LONG, labels=["real"])


def test_spaces_around_a_label_are_named_as_the_cause() -> None:
    with pytest.raises(LabelError, match=r"id '1': 'fake '.*spaces around 'fake'"):
        Votes.from_table({"id": ["1"], "a|r": ["fake "]}, labels=["fake"])


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"a|r": ["x", "y"], "b|r": ["x", "y"]}, "the table.*'id'.*from 1"),
        ({"text": ["Hm.", ""], **TWO, "note": ["-", ""]}, "the table.*'note'"),
    ],
)
def test_missing_ids_and_other_columns_are_a_warning_at_the_callers_line(table: dict[str, object], words: str) -> None:
    with pytest.warns(PcsWarning, match=words) as caught:
        votes = Votes.from_table(table)
    assert (votes.ids, votes.annotators) == (("1", "2"), ("a", "b"))
    assert caught[0].filename == __file__


def test_table_without_votes_is_readable_when_the_labels_are_given() -> None:
    assert Votes.from_table({"id": ["1"], "a|r": [None]}, labels=["x"]).silent.all()


@pytest.mark.parametrize(
    ("table", "parts"),
    [
        ({}, ["the table", "no rows"]),
        ({"id": [], "a|r": []}, ["the table", "no rows"]),
        ({"id": ["1", ""], "a|r": "xy"}, ["row 2", "id is empty"]),
        ({"id": [1.0, None], "a|r": "xy"}, ["row 2", "id is empty"]),
        ({"id": ["1"]}, ["no votes", "<model>|<relation>"]),
        (
            {"id": ["1"], "text": ["Hm."], "annotator": ["a"]},
            ["no votes", "annotator, relation, label", "'text', 'annotator'"],
        ),
        ({"id": ["1"], "a|": ["x"]}, ["'a|'", "<model>|<relation>"]),
        ({"id": ["1"], "|r": ["x"]}, ["'|r'"]),
        ({"id": ["1"], "a|b|c|d": ["x"]}, ["'a|b|c|d'"]),
        ({"id": ["1"], "a|b|x": ["x"]}, ["'a|b|x'", "<draw>"]),
        ({"id": ["1"], "a|b|-1": ["x"]}, ["'a|b|-1'"]),
        ({"id": ["1"], "a|b|1000": ["x"]}, ["'a|b|1000'", "0 to 999"]),
        ({"id": ["1"], f"a|b|{'9' * 5000}": ["x"]}, ["a|b|999", "0 to 999"]),
        ({"id": ["1"], "a|r": ["x"], "a|r|0": ["x"]}, ["'a|r'", "'a|r|0'", "draws"]),
        ({"id": ["1"], "a|r": [""]}, ["votes are empty"]),
        ({"id": ["1"], "a|r": [None], "gold": [""]}, ["votes are empty"]),
        ({"id": ["1"], "a|r": [["x"]]}, ["'a|r'", "list"]),
        ({"id": ["1"], "a|r": [" "]}, ["' '"]),
        ({"id": [*range(128)], "a|r": [f"label {n}" for n in range(128)]}, ["128 labels", "127"]),
    ],
)
def test_unusable_table_is_refused(table: dict[str, list[object]], parts: list[str]) -> None:
    with pytest.raises(UserError) as caught:
        Votes.from_table(table)
    assert [part for part in parts if part not in str(caught.value)] == []
    with pytest.raises(TableError, match=r"^mine\.csv has no rows"):
        read_vote_table({}, name="mine.csv")


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("id,a|r\n", ["votes.csv has no rows"]),
        ("id,a|r\n1,x\n,y\n", ["votes.csv, row 3", "id is empty"]),
        ("id,text\n1,Hm.\n", ["votes.csv has no votes", "'text'"]),
        ("id,a|\n1,x\n", ["votes.csv: column 'a|'"]),
        ("id,a|b|1000\n1,x\n", ["votes.csv, column 'a|b|1000'"]),
    ],
)
def test_refusal_names_the_file(tmp_path: Path, content: str, parts: list[str]) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(content)
    with pytest.raises(TableError) as caught:
        Votes.from_table(path)
    assert [part for part in parts if part not in str(caught.value)] == []


def test_rows_with_the_same_id_stay_separate_items_and_are_listed() -> None:
    table = {"id": ["1", "2", "1", "1 (2)", "1"], "a|r": "xyxyy"}
    with pytest.warns(PcsWarning, match=r"'1' of row 1.*row 3.*'1 \(3\)'.*'1' of row 1.*row 5"):
        votes = Votes.from_table(table)
    assert votes.ids == ("1", "2", "1 (3)", "1 (2)", "1 (4)")
    assert votes.codes.ravel().tolist() == [0, 1, 0, 1, 1]
    with pytest.warns(PcsWarning, match="and 6 more"):
        Votes.from_table({"id": ["1"] * 10, "a|r": "xyxyyxyxyx"})


def test_an_open_quote_is_an_error_in_its_row_and_not_a_label(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text('id,gold,a|r\n1,x,x\n2,y,"y\n3,x,x\n4,y,y\n')
    with pytest.raises(TableError, match=r"column 'a\|r', row 3:.*quote"):
        Votes.from_table(tmp_path / "votes.csv")


def test_row_of_the_long_form_without_label_is_an_abstention_and_a_missing_row_was_not_asked() -> None:
    votes = Votes.from_table({**LONG, "cost": [0.1, 0.2, 0.3]})
    assert (votes.ids, votes.annotators, votes.relations) == (("1", "2"), ("b", "a"), ("original", "voice"))
    first, second = [[1, NOT_ASKED], [NOT_ASKED, ABSTAINED]], [[0, NOT_ASKED], [NOT_ASKED, NOT_ASKED]]
    assert votes.codes[..., 0].tolist() == [first, second]


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
    for axis in ("ids", "annotators", "relations", "labels"):
        assert getattr(long, axis) == getattr(wide, axis)
    assert long.codes.tolist() == wide.codes.tolist()


def test_draws_may_be_written_as_pandas_writes_them_beside_empty_cells() -> None:
    rows = {"id": "iii", "annotator": "aaa", "relation": "rrs", "label": "xyx", "draw": ["0.0", "1.0", ""]}
    assert Votes.from_table({name: list(cells) for name, cells in rows.items()}).codes.tolist() == [
        [[[0, 1], [0, NOT_ASKED]]]
    ]


def test_row_with_only_an_id_is_an_item_that_was_not_asked_about() -> None:
    votes = Votes.from_table({name: [*values, "3" if name == "id" else None] for name, values in LONG.items()})
    assert votes.ids == ("1", "2", "3")
    assert (votes.codes[2] == NOT_ASKED).all()


def test_gold_may_be_in_any_row_of_an_item() -> None:
    table = read_vote_table({**LONG, "gold": [None, "Real", ""]})
    assert table.gold == ("Real", None)
    assert table.votes.labels == ("Real", "fake")
    gold = read_vote_table({**LONG, "gold": ["real", "Real", "fake"]}).gold  # which may differ in case
    assert [None if label is None else label.casefold() for label in gold] == ["real", "fake"]


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"id": ["1", None, "2"]}, ["'id'", "row 2"]),
        ({"id": ["1", "1", ""]}, ["'id'", "row 3"]),
        ({"annotator": ["b", "b", "b"], "relation": ["r", "r", "r"]}, ["rows 1 and 2", "id '1'", "'draw'"]),
        ({"draw": ["0", "one", "0"]}, ["row 2", "'draw'", "'one'"]),
        ({"draw": [0.0, 0.5, None]}, ["row 2", "'draw'", "'0.5'"]),
        ({"draw": [0, 0, -1]}, ["row 3", "'draw'", "'-1'"]),
        ({"draw": ["0", "²", "0"]}, ["row 2", "'draw'", "'²'"]),
        ({"draw": [0, 1000, 0]}, ["row 2", "'draw'", "1000", "0 to 999"]),
        ({"draw": ["0", "9" * 5000, "0"]}, ["row 2", "'draw'", "0 to 999"]),
        ({"gold": ["real", "fake", None]}, ["id '1'", "two gold labels"]),
        ({"relation": ["r", None, "r"]}, ["row 2", "'relation'", "empty"]),
        ({"annotator": ["b", "a", ""]}, ["row 3", "'annotator'", "empty"]),
        ({"annotator": ["b", "a", None], "relation": ["r", "r", None]}, ["row 3", "'annotator'", "empty"]),
        ({"label": [None, None, None]}, ["votes are empty"]),
    ],
)
def test_unusable_long_table_is_refused(changes: dict[str, list[object]], parts: list[str]) -> None:
    with pytest.raises(TableError) as caught:
        Votes.from_table({**LONG, **changes})
    message = str(caught.value)
    assert [part for part in parts if part not in message] == []
    with pytest.raises(TableError, match=r"the table.*'id'"):
        Votes.from_table({name: values for name, values in LONG.items() if name != "id"})


def test_a_question_asked_twice_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("id,annotator,relation,label\n1,a,r,x\n1,a,r,y\n")
    with pytest.raises(TableError, match=r"^long\.csv: rows 2 and 3.*'1'"):
        Votes.from_table(path)
