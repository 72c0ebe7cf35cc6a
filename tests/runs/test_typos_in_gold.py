"""A gold label that is probably a typo is mentioned, because without --labels it becomes a label."""

import warnings
from pathlib import Path

import pytest

from pcs_annotator import PcsWarning
from pcs_annotator.runs.gold_labels import labels_seen
from pcs_annotator.tables.chunks import Columns, Dataset, read_source


def data(folder: Path, *gold: str) -> Dataset:
    rows = [f"text {row},{label}" for row, label in enumerate(gold)]
    (folder / "data.csv").write_text("\n".join(["text,gold", *rows]) + "\n")
    return read_source(folder / "data.csv", Columns())


def test_a_rare_label_that_is_almost_a_usual_one_is_mentioned(tmp_path: Path) -> None:
    dataset = data(tmp_path, *["positive"] * 12, *["negative"] * 12, "postive")
    with pytest.warns(PcsWarning, match=r"1 row has the gold label 'postive', which is almost 'positive' \(12 rows\)"):
        assert labels_seen(dataset) == ("negative", "positive", "postive")


def test_labels_that_are_common_or_of_few_letters_are_not_doubted(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labels_seen(data(tmp_path, *["male"] * 12, *["female"] * 12, "11", *["1"] * 12, *["like"] * 12, "dislike"))
