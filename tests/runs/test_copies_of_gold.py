"""Rows whose text stands in a gold row, too."""

from pathlib import Path

import pytest

from pcs_annotator import run
from tests.simulated import read_csv, write_csv


@pytest.mark.filterwarnings("ignore:the votes carry nothing")
def test_the_final_label_of_a_copy_of_a_gold_text_is_gold(tmp_path: Path) -> None:
    rows = [{"text": f"Case {row}.", "gold": "good" if row % 2 else "bad"} for row in range(20)]
    copies = [{"text": f"case {row}. ", "gold": ""} for row in range(8)]
    data = write_csv(tmp_path / "data.csv", [*rows, *copies, {"text": "Another case.", "gold": ""}])
    result = run(
        data,
        labels=["good", "bad"],
        models=["scripted:hash"],
        relations=["original", "order"],
        gold_sample="random",
        out=tmp_path / "run",
    )
    labels = read_csv(tmp_path / "run" / "labels.csv")
    assert [row["pcs_final_label"] for row in labels[:28]] == [row["gold"] for row in (*rows, *rows[:8])]
    assert labels[28]["pcs_final_label"] == labels[28]["pcs_label"] == result.outcomes[28].label
    assert result.counts.to_review == sum(one.decision == "review" for one in result.outcomes[28:])
