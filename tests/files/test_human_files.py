from __future__ import annotations

from pathlib import Path

import pytest

from pcs_annotator.errors import TableError
from pcs_annotator.files.human_files import (
    AuditedLabel,
    GivenGold,
    read_gold,
    read_verdicts,
    write_audit,
    write_gold,
    write_to_label,
)


def written(folder: Path, content: str) -> Path:
    path = folder / "handed.csv"
    path.write_text(content, encoding="utf-8")
    return path


def test_rows_to_label_have_an_empty_column_for_the_person(tmp_path: Path) -> None:
    path = tmp_path / "to_label.csv"
    write_to_label(path, [("a", 'says "no", then\nyes', "informative"), ("b", "Two", "at random")])
    lines = path.read_text(encoding="utf-8")
    assert lines.startswith("id,text,gold,drawn\n") or lines.startswith('"id","text","gold","drawn"\n')
    with pytest.raises(TableError, match="the column gold is empty: fill in some labels first"):
        read_gold(path)


def test_nothing_to_hand_out_is_a_table_without_rows(tmp_path: Path) -> None:
    write_gold(tmp_path / "gold.csv", [])
    assert (tmp_path / "gold.csv").read_text(encoding="utf-8").strip().replace('"', "") == "id,gold,drawn"


def test_gold_comes_back_as_it_was_written(tmp_path: Path) -> None:
    gold = [GivenGold(1, "a", "good", "informative"), GivenGold(2, "b", "bad"), GivenGold(3, "c", "bad", "for review")]
    write_gold(tmp_path / "gold.csv", gold)
    assert read_gold(tmp_path / "gold.csv") == gold


def test_rows_left_empty_are_left_out_and_rows_keep_their_numbers(tmp_path: Path) -> None:
    path = written(tmp_path, "ID, Gold ,text\na,,One\nb, good ,Two\n7,bad,Three\n")
    assert read_gold(path) == [GivenGold(2, "b", "good"), GivenGold(3, "7", "bad")]


def test_an_empty_word_on_how_a_row_was_drawn_means_at_random(tmp_path: Path) -> None:
    path = written(tmp_path, "id,gold,drawn\na,good,\nb,bad,informative\n")
    assert [one.kind for one in read_gold(path)] == ["at random", "informative"]


def test_verdicts_are_read_in_the_words_people_use(tmp_path: Path) -> None:
    path = written(tmp_path, "id,text,label,verdict\na,One,good,Right\nb,Two,bad,no\nc,Three,bad,\nd,Four,bad,OK\n")
    assert read_verdicts(path) == [
        AuditedLabel(1, "a", "good", True),
        AuditedLabel(2, "b", "bad", False),
        AuditedLabel(4, "d", "bad", True),
    ]


def test_an_audit_without_verdicts_says_what_to_do(tmp_path: Path) -> None:
    write_audit(tmp_path / "audit.csv", [("a", "One", "good")])
    with pytest.raises(TableError, match="the column verdict is empty: write right or wrong"):
        read_verdicts(tmp_path / "audit.csv")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("id,label\na,good\n", r"handed\.csv has no column 'gold'; there are id, label"),
        ("gold\ngood\n", "no column 'id'"),
        ("id,gold,drawn\na,good,by me\n", r"row 1: drawn is 'by me', must be one of at random, informative"),
    ],
)
def test_gold_that_cannot_be_used_says_why(content: str, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(TableError, match=complaint):
        read_gold(written(tmp_path, content))


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("id,verdict\na,right\n", "no column 'label'"),
        ("id,label,verdict\na,good,right\nb,good,perhaps\n", "row 2: the verdict is 'perhaps', must be right or wrong"),
    ],
)
def test_verdicts_that_cannot_be_used_say_why(content: str, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(TableError, match=complaint):
        read_verdicts(written(tmp_path, content))
