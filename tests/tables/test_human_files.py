from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pcs_annotator.base.errors import TableError
from pcs_annotator.tables.human_files import (
    DrawnRow,
    GivenGold,
    read_drawn,
    read_gold,
    write_drawn,
    write_gold,
    write_to_label,
)
from pcs_annotator.tables.tables import Columns


def written(folder: Path, content: str) -> Path:
    path = folder / "filled.csv"
    path.write_text(content, encoding="utf-8")
    return path


def test_rows_to_label_have_an_empty_column_for_the_person(tmp_path: Path) -> None:
    path = tmp_path / "to_label.csv"
    write_to_label(path, [("a", 'says "no", then\nyes', "informative"), ("b", "Two", "at random")])
    lines = path.read_text(encoding="utf-8")
    assert lines.startswith("id,text,gold,drawn\n") or lines.startswith('"id","text","gold","drawn"\n')
    with pytest.raises(TableError, match=r"to_label\.csv.*gold is empty"):
        read_gold(path)


def test_no_gold_is_a_table_without_rows(tmp_path: Path) -> None:
    write_gold(tmp_path / "gold.csv", [])
    assert (tmp_path / "gold.csv").read_text(encoding="utf-8").strip().replace('"', "") == "id,gold,drawn,text_hash"


def test_gold_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    gold = [
        GivenGold(2, "a", "good", "informative", text_hash="h1"),
        GivenGold(3, "b", "bad"),
        GivenGold(4, "c", "bad", "for review"),
    ]
    write_gold(tmp_path / "gold.csv", gold)
    assert read_gold(tmp_path / "gold.csv") == gold


def test_empty_rows_are_left_out_and_the_others_keep_their_numbers(tmp_path: Path) -> None:
    path = written(tmp_path, "ID, Gold ,text\na,,One\nb, good ,Two\n7,bad,Three\n")
    assert read_gold(path) == [GivenGold(3, "b", "good", text="Two"), GivenGold(4, "7", "bad", text="Three")]


def test_texts_may_be_in_the_column_that_they_have_in_the_data(tmp_path: Path) -> None:
    path = written(tmp_path, "id,Headline,text,gold\na,Short,Long,good\n")
    assert [one.text for one in (*read_gold(path, Columns(text="headline")), *read_gold(path))] == ["Short", "Long"]


def test_without_a_kind_a_row_was_chosen_by_a_person(tmp_path: Path) -> None:
    path = written(tmp_path, "id,gold,drawn\na,good,\nb,bad,informative\n")
    assert [one.kind for one in read_gold(path)] == ["by a person", "informative"]


def test_rows_written_out_for_people_are_remembered(tmp_path: Path) -> None:
    drawn = [DrawnRow("a", "at random", "h1"), DrawnRow("=b", "for audit", "h2")]
    write_drawn(tmp_path / "drawn.csv", drawn)
    assert read_drawn(tmp_path / "drawn.csv") == drawn
    write_drawn(tmp_path / "drawn.csv", [])
    assert read_drawn(tmp_path / "drawn.csv") == []


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("id,label\na,good\n", r"filled\.csv.*'gold'.*id, label"),
        ("gold\ngood\n", "'id'"),
        ("id,gold,drawn\na,good,by me\n", r"row 2.*'by me'.*at random,.* informative"),
    ],
)
def test_unusable_gold_is_an_error(content: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(TableError, match=problem):
        read_gold(written(tmp_path, content))


def test_a_spreadsheet_runs_no_cell_and_every_cell_is_read_back(tmp_path: Path) -> None:
    ids = ["=1+1", "+1", "-1", "@x", "'=x", "''-x", "'quoted'", "a=b"]
    write_gold(tmp_path / "gold.csv", [GivenGold(row, name, name) for row, name in enumerate(ids, 1)])
    lines = (tmp_path / "gold.csv").read_text(encoding="utf-8").splitlines()
    assert [line.partition(",")[0] for line in lines[1:]] == [
        "'=1+1",
        "'+1",
        "'-1",
        "'@x",
        "''=x",
        "'''-x",
        "'quoted'",
        "a=b",
    ]
    assert [(one.id, one.label) for one in read_gold(tmp_path / "gold.csv")] == [(name, name) for name in ids]
    write_to_label(tmp_path / "to_label.csv", [("a", "\t=cmd()", "at random")])
    assert "\na,'\t=cmd(),,at random\n" in (tmp_path / "to_label.csv").read_text(encoding="utf-8")


def test_gold_is_read_from_the_columns_of_the_data(tmp_path: Path) -> None:
    path = written(tmp_path, "Case,said,code\nc1,One,good\nc2,Two,\n")
    used = Columns(text="said", id="case", gold="code")
    assert read_gold(path, used) == [GivenGold(2, "c1", "good", text="One")]
    numbered = replace(used, id=None)
    assert read_gold(path, numbered) == [GivenGold(2, "1", "good", text="One")]
    with pytest.raises(TableError, match="no column 'id'"):
        read_gold(written(tmp_path, "code\ngood\n"), numbered)
