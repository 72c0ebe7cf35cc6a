"""Votes and variants of a run, written and read back."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow.parquet import read_table, write_table

from pcs_annotator import ABSTAINED, NOT_ASKED, Item, UserError, Variant, Votes
from pcs_annotator.base.errors import TableError, UnknownNameError
from pcs_annotator.core.variant import CheckResult, VariantCount
from pcs_annotator.tables.vote_files import (
    VariantsByItem,
    VoteAxes,
    count_variants,
    read_variants,
    read_votes,
    write_votes,
    writing_variants,
)
from tests.builders import votes_of


def with_stated() -> Votes:
    """Three items and draws of which not all were asked about; only the second annotator states probabilities."""
    votes = votes_of(
        [[[[0, 1]], [[1, NOT_ASKED]]], [[[0, 0]], [[ABSTAINED, 0]]], [[[NOT_ASKED] * 2], [[NOT_ASKED] * 2]]]
    )
    stated = np.full((3, 2, 1, 2, 2), np.nan)
    stated[0, 1, 0, 0] = 0.25, 0.75
    stated[1, 1, 0, 1, 0] = 2 / 3
    return replace(votes, annotators=["m", "m/1s-top-2"], stated=stated)


def with_grades() -> Votes:
    """The same votes, and the first annotator is graded, except for one hard vote."""
    grades = np.full((3, 2, 1, 2, 2), np.nan, dtype=np.float32)
    grades[0, 0, 0, 0] = 0.7, 0.1
    grades[0, 0, 0, 1] = 1 / 3, 2 / 3
    grades[1, 0, 0, 1] = 1e-9, 0.0
    return replace(with_stated(), grades=grades)


def axes_of(votes: Votes) -> VoteAxes:
    return VoteAxes(votes.ids, votes.annotators, votes.relations, votes.labels, votes.codes.shape[3])


def assert_same(votes: Votes, other: Votes) -> None:
    for name in ("codes", "stated", "grades"):
        assert (getattr(votes, name) is None) == (getattr(other, name) is None)
        np.testing.assert_array_equal(getattr(votes, name), getattr(other, name))


def test_probabilities_requested_but_not_given_differ_from_none_requested(tmp_path: Path) -> None:
    for stated in (None, np.full((3, 2, 1, 2, 2), np.nan)):
        votes = replace(with_stated(), stated=stated)
        write_votes(tmp_path / "votes.parquet", votes)
        assert (read_votes(tmp_path / "votes.parquet", axes_of(votes)).stated is None) == (stated is None)


@pytest.mark.parametrize("name", ["votes.parquet", "votes.csv"])
@pytest.mark.parametrize("votes", [with_stated(), with_grades(), with_grades().hard()])
def test_votes_are_read_back_as_they_were_written(name: str, votes: Votes, tmp_path: Path) -> None:
    write_votes(tmp_path / name, votes)
    assert_same(read_votes(tmp_path / name, axes_of(votes)), votes)


def test_names_that_are_not_in_the_file_keep_their_place(tmp_path: Path) -> None:
    votes = with_grades()
    write_votes(tmp_path / "votes.parquet", votes)
    axes = axes_of(votes)._replace(
        ids=["new", *reversed(votes.ids)], annotators=["m/1s-top-2", "other", "m"], relations=["r", "original"], draws=3
    )
    read = read_votes(tmp_path / "votes.parquet", axes)
    assert read.codes.shape == (4, 3, 2, 3)
    assert (read.codes[0] == NOT_ASKED).all()
    again = read.take(np.array([3, 2, 1])).select(annotators=votes.annotators, relations=votes.relations, draws=2)
    assert_same(again, votes)
    assert read.grades is not None
    assert np.isfinite(read.grades).all(axis=-1).sum() == 3
    assert read.stated is not None
    assert np.nansum(read.stated) == pytest.approx(1 + 2 / 3)


def test_a_name_that_the_run_does_not_have_is_an_error(tmp_path: Path) -> None:
    votes = with_stated()
    write_votes(tmp_path / "votes.parquet", votes)
    with pytest.raises(UnknownNameError, match=r"model.*'m/1s-top-2'"):
        read_votes(tmp_path / "votes.parquet", axes_of(votes)._replace(annotators=["m"]))


def test_a_table_that_somebody_changed_is_read_all_the_same(tmp_path: Path) -> None:
    votes, path = with_grades(), tmp_path / "votes.parquet"
    write_votes(path, votes)
    table = read_table(path)
    write_table(table.append_column("note", table["id"]), path)
    assert_same(read_votes(path, axes_of(votes)), votes)


def test_ids_with_line_breaks_are_read_back(tmp_path: Path) -> None:
    votes, path = replace(with_grades(), ids=["a\nb", "c", "d"]), tmp_path / "votes.parquet"
    write_votes(path, votes)
    assert read_votes(path, axes_of(votes)).ids == votes.ids


def test_votes_that_were_spoilt_are_an_error(tmp_path: Path) -> None:
    votes, path = with_grades(), tmp_path / "votes.parquet"
    write_votes(path, votes)
    table = read_table(path)
    twice = pa.concat_tables([table, table.slice(0, 1)])
    other_label = table.set_column(4, "label", pa.array(["maybe"] * len(table)))
    half_graded = table.set_column(table.column_names.index("p_fake"), "p_fake", pa.nulls(len(table), pa.float32()))
    for changed, problem in (
        (twice, "are the same question about id"),
        (other_label, "'maybe' is not one of the labels"),
        (half_graded, "column 'p_fake' is empty"),
    ):
        write_table(changed, path)
        with pytest.raises(UserError, match=problem):
            read_votes(path, axes_of(votes))
    path.write_bytes(b"PAR1 and nothing else")
    with pytest.raises(TableError, match=r"votes\.parquet cannot be read"):
        read_votes(path, axes_of(votes))


ITEMS = [Item(id=name, text=f"text {name}") for name in "abc"]
CHANGED = Variant(relation="voice", status="changed", text="rewritten")
IDLE = Variant(relation="voice", status="not_applicable", reason="no object")
REFUSED = Variant(relation="synonym", status="rejected", reason="a number changed", refused="text 7")


def file_with_variants(folder: Path) -> Path:
    path = folder / "variants.parquet"
    with writing_variants(path) as note:
        for item in ITEMS:
            note(item, Variant(relation="original", status="original", text=item.text))
            note(item, CHANGED if item.id == "a" else IDLE)
            note(item, REFUSED)
    return path


def test_variants_are_read_back_by_item_and_relation_of_all_items_or_some(tmp_path: Path) -> None:
    path = file_with_variants(tmp_path)
    voices = {(item.id, "voice"): CHANGED if item.id == "a" else IDLE for item in ITEMS}
    assert read_variants(path) == voices | {(item.id, "synonym"): REFUSED for item in ITEMS}
    assert {item for item, _ in read_variants(path, ["a", "unknown"])} == {"a"}
    assert read_variants(path, []) == {}


def test_results_of_rewrites_are_counted_the_most_common_first(tmp_path: Path) -> None:
    assert list(count_variants(file_with_variants(tmp_path))) == [
        VariantCount("synonym", "rejected", "a number changed", 3),
        VariantCount("voice", "not_applicable", "no object", 2),
        VariantCount("voice", "changed", "", 1),
    ]


def test_reasons_are_counted_without_details_of_the_text_if_the_run_kept_them(tmp_path: Path) -> None:
    path = tmp_path / "variants.parquet"
    checks = (CheckResult("numbers", False, "the number 5 is missing"),)
    rejected = Variant(relation="voice", status="rejected", reason=checks[0].detail, refused="-", checks=checks)
    with writing_variants(path) as note:
        note(Item(id="a", text="5"), rejected)
    assert [one.reason for one in count_variants(path)] == ["failed the check of numbers"]


def test_without_a_file_there_are_no_variants(tmp_path: Path) -> None:
    assert read_variants(tmp_path / "variants.parquet") == {}
    assert list(count_variants(tmp_path / "variants.parquet")) == []


def test_variants_of_one_item_are_found_without_reading_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pcs_annotator.tables.vote_files.ROWS_AT_ONCE", 3)  # several parts of the file
    monkeypatch.setattr("pcs_annotator.tables.vote_files.ROWS_IN_MEMORY", 2)
    path = file_with_variants(tmp_path)
    found = VariantsByItem(path, [item.id for item in ITEMS])
    assert found.of(0) == [CHANGED, REFUSED]
    assert found.of(1) == [IDLE, REFUSED]  # the first batch of its group of rows has none of them
    assert found.of(2) == [IDLE, REFUSED]
    assert VariantsByItem(path, ["other"]).of(0) == []
    with writing_variants(path) as note:
        note(ITEMS[1], CHANGED)
    assert found.of(0) == []
    assert found.of(1) == [CHANGED]
    path.unlink()
    assert found.of(1) == []


def test_variants_that_cannot_be_read_are_an_error_and_not_none(tmp_path: Path) -> None:
    path = file_with_variants(tmp_path)
    found = VariantsByItem(path, [item.id for item in ITEMS])
    for spoil in (lambda: path.write_bytes(b"nothing"), lambda: write_table(pa.table({"id": ["a"]}), path)):
        spoil()
        with pytest.raises(
            TableError, match=r"variants\.parquet is damaged or not a file of variants .*pcs run writes"
        ):
            found.of(0)
