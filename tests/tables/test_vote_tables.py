"""The wide form: one column per cell."""

from __future__ import annotations

from pathlib import Path

import pytest

from pcs_annotator import ABSTAINED, NOT_ASKED, PcsWarning, UserError, Votes
from pcs_annotator.base.errors import LabelError, TableError
from pcs_annotator.tables.vote_tables import read_vote_table

TWO = {"id": ["1", "2"], "a|original": ["fake", "real"], "b|original": ["real", ""]}


def test_columns_name_annotators_and_relations_in_their_order() -> None:
    votes = Votes.from_table({"id": ["1"], "b|voice": ["x"], "a|voice": ["y"], "b|original": ["x"]})

    assert (votes.annotators, votes.relations) == (("b", "a"), ("voice", "original"))
    assert votes.codes[0, :, :, 0].tolist() == [[0, 0], [1, NOT_ASKED]]


def test_order_of_columns_does_not_matter() -> None:
    turned = Votes.from_table(dict(reversed(TWO.items())))
    votes = Votes.from_table(TWO)

    assert turned.ids == votes.ids
    assert turned.select(annotators=votes.annotators).codes.tolist() == votes.codes.tolist()


def test_empty_cell_is_an_abstention_and_a_missing_column_was_not_asked() -> None:
    votes = Votes.from_table({"id": ["1", "2"], "a|original": ["x", None], "a|voice": ["", "x"], "b|original": "xx"})

    assert votes.codes[..., 0].tolist() == [[[0, ABSTAINED], [0, NOT_ASKED]], [[ABSTAINED, 0], [0, NOT_ASKED]]]


def test_numbered_columns_are_draws() -> None:
    votes = Votes.from_table({"id": ["1"], "a|r|0": ["x"], "a|r|2": ["y"], "b|r": ["y"]})

    assert votes.codes.tolist() == [[[[0, NOT_ASKED, 1]], [[1, NOT_ASKED, NOT_ASKED]]]]


def test_labels_default_to_those_seen_sorted() -> None:
    assert Votes.from_table({"id": ["1"], "a|r": ["real"], "b|r": ["fake"], "gold": ["mixed"]}).labels == (
        "fake",
        "mixed",
        "real",
    )


def test_given_labels_keep_their_order() -> None:
    votes = Votes.from_table(TWO, labels=["real", "unsure", "fake"])

    assert votes.labels == ("real", "unsure", "fake")
    assert votes.codes.ravel().tolist() == [2, 0, 0, ABSTAINED]


def test_case_of_votes_does_not_matter() -> None:
    votes = Votes.from_table({"id": "123", "a|r": ["Real", "real", "REAL"], "b|r": ["real", "fake", "Fake"]})

    assert votes.labels == ("Fake", "real")  # of two equally frequent spellings, the first in alphabetical order
    assert votes.codes[:, 0].ravel().tolist() == [1, 1, 1]


@pytest.mark.parametrize("gold", ["none", "a;b"])
def test_gold_that_is_probably_no_label_is_refused_unless_models_answer_with_it(gold: str) -> None:
    columns = {"id": ["1", "2"], "gold": [gold, "a"], "m|original": ["a", "b"]}
    with pytest.raises(LabelError, match=f"the table, column 'gold': '{gold}' .*, or name all labels with --labels"):
        read_vote_table(columns)
    assert read_vote_table({**columns, "m|original": ["a", gold]}).gold == (gold, "a")
    assert read_vote_table(columns, ["a", "b", gold]).gold == (gold, "a")


def test_spelling_of_gold_wins_over_the_most_frequent() -> None:
    votes = Votes.from_table({"id": "123", "a|r": ["real", "real", "real"], "gold": ["Real", None, None]})

    assert votes.labels == ("Real",)


def test_gold_is_kept_apart_from_votes() -> None:
    table = read_vote_table({**TWO, "gold": ["Fake", ""]})

    assert table.gold == ("Fake", None)
    assert table.votes.labels == ("Fake", "real")
    assert table.votes.annotators == ("a", "b")


def test_table_without_gold_has_none_for_every_item() -> None:
    assert read_vote_table(TWO).gold == (None, None)


def test_numbers_serve_as_ids_and_labels() -> None:
    votes = Votes.from_table({"id": [10, 11], "a|r": [1.0, None], "b|r": [0, 1]})

    assert (votes.ids, votes.labels) == (("10", "11"), ("0", "1"))
    assert votes.codes.ravel().tolist() == [1, 0, ABSTAINED, 1]


def test_unknown_label_can_count_as_an_abstention() -> None:
    votes = Votes.from_table(TWO, labels=["fake"], unknown="abstain")

    assert votes.codes.ravel().tolist() == [0, ABSTAINED, ABSTAINED, ABSTAINED]


def test_unknown_label_names_row_column_and_a_way_out() -> None:
    with pytest.raises(LabelError) as caught:
        Votes.from_table({"id": ["x7", "x8"], "a|r": ["fake", "maybe"]}, labels=["fake", "real"])

    parts = ["column 'a|r', id 'x8'", "'maybe'", "'fake', 'real'", "unknown='abstain'"]
    assert [part for part in parts if part not in str(caught.value)] == []


def test_spaces_around_a_label_are_named_as_the_cause() -> None:
    with pytest.raises(LabelError, match=r"id '1': 'fake '.*spaces around 'fake'"):
        Votes.from_table({"id": ["1"], "a|r": ["fake "]}, labels=["fake"])


def test_table_without_ids_is_numbered_with_a_warning_at_the_callers_line() -> None:
    with pytest.warns(PcsWarning, match="the table.*'id'.*from 1") as caught:
        votes = Votes.from_table({"a|r": ["x", "y"]})

    assert votes.ids == ("1", "2")
    assert caught[0].filename == __file__


def test_other_columns_are_ignored_with_a_warning_at_the_callers_line() -> None:
    with pytest.warns(PcsWarning, match="the table.*'note'") as caught:
        votes = Votes.from_table({"text": ["Hm."], **{name: values[:1] for name, values in TWO.items()}, "note": ["-"]})

    assert votes.annotators == ("a", "b")
    assert caught[0].filename == __file__


def test_table_without_votes_is_readable_when_the_labels_are_given() -> None:
    assert Votes.from_table({"id": ["1"], "a|r": [None]}, labels=["x"]).silent.all()


@pytest.mark.parametrize(
    ("table", "parts"),
    [
        pytest.param({}, ["the table", "no rows"], id="no columns"),
        pytest.param({"id": [], "a|r": []}, ["the table", "no rows"], id="no rows"),
        pytest.param({"id": ["1", ""], "a|r": "xy"}, ["row 2", "id is empty"], id="empty id"),
        pytest.param({"id": [1.0, None], "a|r": "xy"}, ["row 2", "id is empty"], id="missing id"),
        pytest.param({"id": ["1"]}, ["no votes", "<model>|<relation>"], id="no vote columns"),
        pytest.param(
            {"id": ["1"], "text": ["Hm."], "annotator": ["a"]},
            ["no votes", "annotator, relation, label", "'text', 'annotator'"],
            id="neither form",
        ),
        pytest.param({"id": ["1"], "a|": ["x"]}, ["'a|'", "<model>|<relation>"], id="no relation"),
        pytest.param({"id": ["1"], "|r": ["x"]}, ["'|r'"], id="no annotator"),
        pytest.param({"id": ["1"], "a|b|c|d": ["x"]}, ["'a|b|c|d'"], id="too many parts"),
        pytest.param({"id": ["1"], "a|b|x": ["x"]}, ["'a|b|x'", "<draw>"], id="draw that is no number"),
        pytest.param({"id": ["1"], "a|b|-1": ["x"]}, ["'a|b|-1'"], id="negative draw"),
        pytest.param({"id": ["1"], "a|b|1000": ["x"]}, ["'a|b|1000'", "0 to 999"], id="huge draw"),
        pytest.param({"id": ["1"], f"a|b|{'9' * 5000}": ["x"]}, ["a|b|999", "0 to 999"], id="draw beyond int"),
        pytest.param(
            {"id": ["1"], "a|r": ["x"], "a|r|0": ["x"]},
            ["'a|r'", "'a|r|0'", "draws"],
            id="same cell twice",
        ),
        pytest.param({"id": ["1"], "a|r": [""]}, ["votes are empty"], id="all votes empty"),
        pytest.param({"id": ["1"], "a|r": [None], "gold": [""]}, ["votes are empty"], id="all empty, gold too"),
        pytest.param({"id": ["1"], "a|r": [["x"]]}, ["'a|r'", "list"], id="column of lists"),
        pytest.param({"id": ["1"], "a|r": [" "]}, ["' '"], id="blank label"),
        pytest.param(
            {"id": [*range(128)], "a|r": [f"label {n}" for n in range(128)]}, ["128 labels", "127"], id="free texts"
        ),
    ],
)
def test_unusable_table_is_refused(table: dict[str, list[object]], parts: list[str]) -> None:
    with pytest.raises(UserError) as caught:
        Votes.from_table(table)

    assert [part for part in parts if part not in str(caught.value)] == []


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        pytest.param("id,a|r\n", ["votes.csv has no rows"], id="header only"),
        pytest.param("id,a|r\n1,x\n,y\n", ["votes.csv, row 3", "id is empty"], id="empty id"),
        pytest.param("id,text\n1,Hm.\n", ["votes.csv has no votes", "'text'"], id="no vote columns"),
        pytest.param("id,a|\n1,x\n", ["votes.csv: column 'a|'"], id="malformed column"),
        pytest.param("id,a|b|1000\n1,x\n", ["votes.csv, column 'a|b|1000'"], id="huge draw"),
    ],
)
def test_refusal_names_the_file(tmp_path: Path, content: str, parts: list[str]) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(content)

    with pytest.raises(TableError) as caught:
        Votes.from_table(path)

    assert [part for part in parts if part not in str(caught.value)] == []


def test_refusal_uses_the_name_it_is_given() -> None:
    with pytest.raises(TableError, match=r"^mine\.csv has no rows"):
        read_vote_table({}, name="mine.csv")


def test_rows_with_the_same_id_stay_separate_items_and_are_listed() -> None:
    table = {"id": ["1", "2", "1", "1 (2)", "1"], "a|r": "xyxyy"}
    with pytest.warns(PcsWarning, match=r"'1' of row 1.*row 3.*'1 \(3\)'.*'1' of row 1.*row 5"):
        votes = Votes.from_table(table)
    assert votes.ids == ("1", "2", "1 (3)", "1 (2)", "1 (4)")
    assert votes.codes.ravel().tolist() == [0, 1, 0, 1, 1]


def test_of_many_repeated_ids_three_are_listed_and_the_rest_counted() -> None:
    with pytest.warns(PcsWarning, match="and 6 more"):
        Votes.from_table({"id": ["1"] * 10, "a|r": "xyxyyxyxyx"})


def test_an_open_quote_is_an_error_in_its_row_and_not_a_label(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text('id,gold,a|r\n1,x,x\n2,y,"y\n3,x,x\n4,y,y\n')
    with pytest.raises(TableError, match=r"column 'a\|r', row 3:.*quote"):
        Votes.from_table(tmp_path / "votes.csv")
