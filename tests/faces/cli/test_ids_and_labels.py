"""Ids that occur twice, labels that are more than a word, and settings for a table with other column names."""

import csv
import json
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from pcs_annotator.faces.cli.main import main
from pcs_annotator.runs import run_table
from pcs_annotator.runs.paths import RunFolder, read_start
from tests.command_line import Pcs
from tests.simulated import read_csv

LABELS = ["sports, games", "politics/economy", 'says "no"', "新闻 👍"]
ASK = ["--model", "scripted:hash", "-q"]
TWICE = [("7", "The city bought buses.", "good"), ("7", "The train was late.", "bad"), ("8", "Nobody likes it.", "")]


def write(path: str, rows: Sequence[tuple[str, ...]], header: tuple[str, ...] = ("id", "text", "gold")) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


def test_rows_with_the_same_id_are_numbered_on_request(pcs: Pcs) -> None:
    write("data.csv", TWICE)
    command = ["run", "data.csv", "--labels", "good,bad", *ASK]
    error = pcs.refused(*command)
    assert "rows 2 and 3 have the same id '7'" in error
    assert "--id-column row" in error
    assert main([*command, "--id-column", "row"]) == 0
    write("data.csv", [*TWICE, ("8", "A new row.", "")])
    assert main([*command, "--id-column", "row"]) == 0
    assert [row["id"] for row in read_csv(Path("runs/data/labels.csv"))] == ["7", "7", "8", "8"]
    assert {row["id"] for row in read_csv(Path("runs/data/to_label.csv"))} <= {"3", "4"}
    write("gold.csv", [("4", "good")], ("id", "gold"))
    assert main(["fit", "runs/data", "--gold", "gold.csv", "-q"]) == 0
    label = ["label", "data.csv", "--run", "runs/data", "--id-column", "row", "-q", "--replace"]
    assert [main(label), main(label)] == [0, 0]
    assert main(["exchange", "export", "runs/data", "label-studio", "-o", "tasks.json", "--decision", "all"]) == 0
    tasks = json.loads(Path("tasks.json").read_text(encoding="utf-8"))
    assert [task["data"]["pcs_id"] for task in tasks] == ["1", "2", "3", "4"]


def test_rows_of_a_large_table_are_numbered_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_table, "IN_MEMORY_ROWS", 2)
    write("data.csv", TWICE)
    command = ["run", "data.csv", "--labels", "good,bad", "--id-column", "row", *ASK]
    assert [main(command), main(command)] == [0, 0]
    assert [row["id"] for row in read_csv(Path("runs/data/labels.csv"))] == ["7", "7", "8"]
    assert main(["fit", "runs/data", "-q"]) == 0


def test_a_column_called_row_is_used_if_there_is_one(pcs: Pcs) -> None:
    write("data.csv", [("a", "One text."), ("a", "Another text.")], ("row", "text"))
    assert "same row 'a'" in (
        error := pcs.refused("run", "data.csv", "--labels", "good,bad", *ASK, "--id-column", "row")
    )
    assert "rename the column 'row' and number the rows with --id-column row" in error


def test_labels_with_commas_quotes_slashes_and_other_scripts_work_to_the_end(
    pcs: Pcs, capsys: pytest.CaptureFixture[str]
) -> None:
    write("data.csv", [(str(row), f"Text number {row}.", LABELS[row % 4] if row < 5 else "") for row in range(6)])
    given = [part for label in LABELS for part in ("--label", label)]
    assert main(["run", "data.csv", *given, *ASK]) == 0
    rows = read_csv(Path("runs/data/labels.csv"))
    assert {row["pcs_label"] for row in rows} <= set(LABELS)
    assert sum(float(rows[0][f"score_{label}"]) for label in LABELS) == pytest.approx(1)
    assert read_start(RunFolder(Path("runs/data")))["config"]["task"]["labels"] == LABELS
    assert main(["fit", "runs/data", "-q"]) == 0
    Path("pcs.toml").write_text(f"[task]\nlabels = {json.dumps(LABELS, ensure_ascii=False)}\n", encoding="utf-8")
    capsys.readouterr()
    assert pcs.json("run", "data.csv", *ASK[:2])["calls"] == 0


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (["--labels", "good", "--label", "Good"], "differ only in case"),
        (["--label", "good", "--label", "b\nad"], "line break"),
        (["--label", "good", "--label", " good "], "given twice"),
    ],
)
def test_labels_that_would_be_confused_are_refused(given: list[str], complaint: str, pcs: Pcs) -> None:
    write("data.csv", [("1", "One text.", "")])
    assert complaint in pcs.refused("run", "data.csv", *given, *ASK)


def test_init_writes_the_columns_that_it_is_given() -> None:
    write("data.csv", [("u1", "One text.", "a, b"), ("u2", "Another.", "c")], ("user", "said", "code"))
    columns = ["--text-column", "said", "--id-column", "user", "--gold-column", "code"]
    assert main(["init", "data.csv", *columns]) == 0
    settings = tomllib.loads(Path("pcs.toml").read_text(encoding="utf-8"))
    assert settings["data"] == {"text_column": "said", "id_column": "user", "gold_column": "code"}
    assert settings["task"] == {"instruction": 'Which label fits the text best: "a, b", "c"?', "labels": ["a, b", "c"]}
    assert main(["run", "data.csv", *ASK]) == 0
