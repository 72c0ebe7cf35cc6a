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
    assert (tmp_path / "gold.csv").read_text(encoding="utf-8").strip().replace('"', "") == "id,gold,drawn"


def test_gold_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    gold = [GivenGold(1, "a", "good", "informative"), GivenGold(2, "b", "bad"), GivenGold(3, "c", "bad", "for review")]
    write_gold(tmp_path / "gold.csv", gold)
    assert read_gold(tmp_path / "gold.csv") == gold


def test_empty_rows_are_left_out_and_the_others_keep_their_numbers(tmp_path: Path) -> None:
    path = written(tmp_path, "ID, Gold ,text\na,,One\nb, good ,Two\n7,bad,Three\n")
    assert read_gold(path) == [GivenGold(2, "b", "good"), GivenGold(3, "7", "bad")]


def test_without_a_kind_a_row_was_drawn_at_random(tmp_path: Path) -> None:
    path = written(tmp_path, "id,gold,drawn\na,good,\nb,bad,informative\n")
    assert [one.kind for one in read_gold(path)] == ["at random", "informative"]


def test_verdicts_may_be_written_in_several_words(tmp_path: Path) -> None:
    path = written(tmp_path, "id,text,label,verdict\na,One,good,Right\nb,Two,bad,no\nc,Three,bad,\nd,Four,bad,OK\n")
    assert read_verdicts(path) == [
        AuditedLabel(1, "a", "good", True),
        AuditedLabel(2, "b", "bad", False),
        AuditedLabel(4, "d", "bad", True),
    ]


def test_an_audit_without_verdicts_is_an_error(tmp_path: Path) -> None:
    write_audit(tmp_path / "audit.csv", [("a", "One", "good")])
    with pytest.raises(TableError, match=r"audit\.csv.*verdict is empty"):
        read_verdicts(tmp_path / "audit.csv")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("id,label\na,good\n", r"filled\.csv.*'gold'.*id, label"),
        ("gold\ngood\n", "'id'"),
        ("id,gold,drawn\na,good,by me\n", r"row 1.*'by me'.*at random, informative"),
    ],
)
def test_unusable_gold_is_an_error(content: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(TableError, match=problem):
        read_gold(written(tmp_path, content))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("id,verdict\na,right\n", "'label'"),
        ("id,label,verdict\na,good,right\nb,good,perhaps\n", "row 2.*'perhaps'.*right or wrong"),
    ],
)
def test_unusable_verdicts_are_an_error(content: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(TableError, match=problem):
        read_verdicts(written(tmp_path, content))
