from __future__ import annotations

import csv
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pcs_annotator.core.outcome import Outcome
from pcs_annotator.files.tables import with_outcomes, write_table


def outcome(name: str, label: str | None = "fake") -> Outcome:
    return Outcome(
        id=name,
        label=label,
        scores={"fake": 0.75, "real": 0.25},
        confidence=None if label is None else 0.123456789,
        decision="review" if label is None else None,
        reason="nobody voted" if label is None else "",
    )


def test_users_columns_come_first_and_in_their_order() -> None:
    table = with_outcomes({"z": [1, 2], "id": ["a", "b"]}, [outcome("a"), outcome("b", None)], ["fake", "real"])
    ours = ["label", "confidence", "decision", "reason", "pcs_fake", "pcs_real"]
    assert table.column_names == ["z", "id", *ours]
    assert table.to_pylist()[0] == {
        "z": 1,
        "id": "a",
        "label": "fake",
        "confidence": 0.123457,
        "decision": None,
        "reason": "",
        "pcs_fake": 0.75,
        "pcs_real": 0.25,
    }
    assert table["decision"].to_pylist() == [None, "review"]


def test_a_name_the_user_has_taken_is_not_overwritten() -> None:
    table = with_outcomes({"label": ["mine"], "pcs_label": ["too"]}, [outcome("a")], ["fake", "real"])
    assert table["label"].to_pylist() == ["mine"]
    assert table["pcs_pcs_label"].to_pylist() == ["fake"]


def test_a_table_with_a_row_per_vote_gives_way_to_one_row_per_item() -> None:
    table = with_outcomes({"id": ["a", "a", "b"]}, [outcome("a"), outcome("b")], ["fake", "real"])
    assert table["id"].to_pylist() == ["a", "b"]


@pytest.mark.parametrize("name", ["labels.csv", "labels.parquet"])
def test_tables_are_written_by_the_ending_of_the_name(tmp_path: Path, name: str) -> None:
    table = pa.table({"id": ["a", "b"], "text": ['says "no", then\nyes', None]})
    write_table(tmp_path / name, table)
    if name.endswith("parquet"):
        assert pq.read_table(tmp_path / name).equals(table)
    else:
        with (tmp_path / name).open(newline="") as file:
            assert list(csv.reader(file)) == [["id", "text"], ["a", 'says "no", then\nyes'], ["b", ""]]
