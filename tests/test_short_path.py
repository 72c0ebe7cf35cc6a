"""One short path through every command that matters, with real files and sockets; the quick tests walk it each time."""

import asyncio
import csv
import json
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

import pcs_annotator as pcs
from pcs_annotator.faces.cli.main import main
from tests.faces.review.made import page_of
from tests.faces.serve.running import running
from tests.simulated import MODELS, simulated_models, write_texts

SETTINGS = f"""
[ask]
models = {list(MODELS[:2])}
together = false

[relations]
use = ["original", "frame"]

[learn]
optimiser = "lr"
text = false
folds = 3
resamples = 5
max_error = 0.3
"""
LABELS = 'labels = ["good", "bad"]'
BOOKS = {"": f"[task]\n{LABELS}", "look": f"[variables.look]\n{LABELS}"}
BOOKS["mood"] = f"[variables.look]\n{LABELS}\n[variables.mood]\n{LABELS}"
"""The last variable of a run → the settings of all: one without a name, one with a name, and two."""


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_texts(Path("data.csv"), range(60), gold_rows=50)
    write_texts(Path("new.csv"), range(100, 110))


def rows_of(path: str) -> list[dict[str, str]]:
    with Path(path).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


async def served_label(folder: Path, name: str) -> str:
    async with running(folder) as service:
        _, body = await service.classify("Case 7 looks good.")
    (item,) = body["data"]
    return str((item[name] if name else item)["label"])


@pytest.mark.parametrize("name", BOOKS)
def test_from_a_table_to_conclusions(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("pcs.toml").write_text(f"{SETTINGS}{BOOKS[name]}", encoding="utf-8")
    table = Path("data.csv").read_text(encoding="utf-8")
    Path("data.csv").write_text(table.replace("gold", name or "gold", 1), encoding="utf-8")
    folder, column, about = Path("runs/data"), f"pcs_{name or 'label'}", f"pcs_{name}_" if name else "pcs_"
    with simulated_models():
        assert main(["run", "data.csv", "-q"]) == 0
        rows = rows_of("runs/data/labels.csv")
        assert sum(row[column] == row[name or "gold"] for row in rows[:50]) > 35
        assert {row[f"{about}decision"] for row in rows} <= {"accept", "review"}
        assert "</html>" in (folder / "report.html").read_text(encoding="utf-8")
        assert main(["label", "new.csv", "--run", "runs/data", "-o", "labels.csv", "-q"]) in (0, 4)
        assert {row[column] for row in rows_of("labels.csv")} == {"good", "bad"}
        assert asyncio.run(served_label(folder, name)) == "good"
        with pcs.load_run(folder) as labeller:
            labelled: Any = labeller.label(["Case 7 looks good."])
            assert [outcome.label for outcome in (labelled[name] if name else labelled)] == ["good"]
            assert column in labeller.label_table({"text": ["Case 7 looks good."]}).column_names
    with page_of(folder, reviewer="Ann") as url, urlopen(url, timeout=30) as page:
        assert "looks" in page.read().decode()
    assert main(["fit", "runs/data", "-q"]) == 0
    capsys.readouterr()
    assert main(["estimate", "runs/data", "--json"]) == 0
    estimated = json.loads(capsys.readouterr().out)
    assert 0 < (estimated["shares"] if name else estimated)["estimates"][0]["corrected"]["value"] < 1
