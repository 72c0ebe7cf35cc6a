import csv
from pathlib import Path

import pytest

import pcs_annotator as pcs
from pcs_annotator.showing import answer
from pcs_annotator.showing.report.page import right_of


def silent(question: str) -> str:
    return "I cannot say."


def test_nothing_is_said_of_labels_that_no_row_has(tmp_path: Path) -> None:
    """The texts tell the labels of gold rows, but a text gets no label without an answer."""
    rows = [(f"Case {row}: {('good', 'bad')[row % 2]} indeed", ("good", "bad")[row % 2]) for row in range(60)]
    with (tmp_path / "data.csv").open("w") as file:
        csv.writer(file).writerows([("text", "gold"), *rows])
    with pytest.warns(pcs.PcsWarning):
        result = pcs.run(
            tmp_path / "data.csv", labels=["good", "bad"], models=[silent], relations=["original"], out=tmp_path / "run"
        )
    assert not result.learned.figures  # rows without an answer say nothing of quality
    assert dict(answer.of_run(result).lines)["quality"] == "unknown: no row has a label"
    assert right_of({"tone": result}) == {}
