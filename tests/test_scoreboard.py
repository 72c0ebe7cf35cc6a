"""The scoreboard of `benchmarks/`, on small folders in the layouts that it recognises."""

import csv
import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.local_sets import local_sets
from benchmarks.scoreboard import ROOT, measured, one_split, page_with
from benchmarks.scoreboard_picture import OURS, PANELS, gaps_in, picture, tally
from benchmarks.scoreboard_record import Row, brief, cells, front, gold_rows, record

ROWS = 140


def label(row: int, often: int) -> str:
    return "a" if (row % 2 == 0) == (row % often != 0) else "b"


def write(path: Path, header: list[str], rows: list[list[object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Five sets of the same answers, each in another layout."""
    rows = range(ROWS)
    truth = ["a" if row % 2 == 0 else "b" for row in rows]
    models = {"one": 7, "two": 5}
    said = {model: [label(row, often) for row in rows] for model, often in models.items()}
    table: list[list[object]] = [[row, f"Text {row}.", truth[row], *(said[one][row] for one in models)] for row in rows]
    write(tmp_path / "wide" / "task.csv", ["id", "text", "gold", *models], table)
    write(tmp_path / "news" / "items.csv", ["id", "text", "gold"], [line[:3] for line in table])
    votes: list[list[object]] = [[row, one, "plain", said[one][row]] for one in models for row in rows]
    write(tmp_path / "news" / "votes.csv.gz", ["id", "model", "setting", "label"], votes)
    people = {who: {str(row): truth[row] for row in rows} for who in ("x", "y")} | {"z": {"0": "b"}}
    answers = {one: {str(row): said[one][row] for row in rows} for one in models}
    for name, values in (("human", people), ("llm", answers)):
        path = tmp_path / "people" / f"{name}_annotations.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(values), encoding="utf-8")
    for one in models:
        path = tmp_path / "social" / f"answer-{one}"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{row}\t{truth[row]}\t{said[one][row]}\n" for row in rows), encoding="utf-8")
    write(tmp_path / "listed" / "tasks.csv", ["source", "task", "panel_a", "panel_b"], [["lab", "tone", "one;two", ""]])
    columns = {"text": [f"Text {row}." for row in rows], "gold": truth, **said}
    pq.write_table(pa.table(columns), tmp_path / "listed" / "lab__tone.parquet")
    return tmp_path


def test_layouts_are_recognised(folder: Path) -> None:
    found = {one.name: one for one in local_sets(folder, {})}
    assert set(found) == {"task, all models", "news", "people", "social", "tone, a"}
    for one in found.values():
        assert list(one.votes.annotators) == ["one", "two"]
        right = one.votes.codes[:, :, 0, 0] == one.truth[:, np.newaxis]
        assert right.mean(axis=0).tolist() == pytest.approx([1 - 20 / ROWS, 1 - 28 / ROWS])
    assert found["news"].votes.texts is not None
    assert found["people"].votes.texts is None


def test_a_threshold_does_not_part_rows_of_one_confidence() -> None:
    right = np.array([True, True, False, True])
    found = measured(np.array([0.9, 0.9, 0.9, 0.5]), np.zeros(4, dtype=np.int8), right, 1.0)
    assert (found.usable_5, found.usable_10, found.accuracy) == (0, 0, 0.75)
    found = measured(np.array([0.9, 0.8, 0.7, 0.5]), np.zeros(4, dtype=np.int8), right, 1.0)
    assert found.usable_5 == 0.5


@pytest.mark.system
def test_all_methods_see_the_same_rows(folder: Path) -> None:
    (one,) = local_sets(folder / "wide", {})
    split = one_split((one, 0))
    rivals = ["majority vote", "best single model", "Dawid–Skene", "naive Bayes", "stack with texts"]
    assert list(split) == [OURS, f"{OURS}, votes alone", *rivals]
    assert split["best single model"].calls == 1
    assert split["majority vote"].calls == 2
    assert np.isnan(split["majority vote"].accepted_5)
    assert 0 <= split[OURS].accepted_5 <= split[OURS].accepted_10 <= 1
    rows = [Row(one.name, method, [figures]) for method, figures in split.items()]
    page = record([one], rows, 1, "Quickly.")
    gaps = gaps_in(page, PANELS[0])
    ahead = split[OURS].accuracy - split["naive Bayes"].accuracy
    assert dict(gaps["naive Bayes"]) == {one.name: pytest.approx(ahead, abs=0.0011)}
    drawn = picture(page)
    assert drawn.count("<circle") + drawn.count("<path") == len(PANELS) * 5
    assert cells(rows[0])[:2] == [one.name, OURS]


def test_gold_rows_grow_with_the_set() -> None:
    assert [gold_rows(rows) for rows in (130, 265, 461, 5_000)] == [50, 100, 150, 200]


def test_a_difference_within_a_point_is_level() -> None:
    assert tally([0.02, 0.01, -0.01, -0.011]) == "1 / 2 / 1"


def test_picture_and_page_show_the_record() -> None:
    page = (ROOT / "benchmarks" / "results" / "scoreboard.md").read_text(encoding="utf-8")
    assert (ROOT / "docs" / "images" / "scoreboard.svg").read_text(encoding="utf-8") == picture(page)
    for path, part in (("docs/how-good.md", front), ("README.md", brief), ("docs/index.md", brief)):
        shown = (ROOT / path).read_text(encoding="utf-8")
        assert page_with(shown, part(page)) == shown
