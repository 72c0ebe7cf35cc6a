"""One short path through every command that matters, with real files and sockets; the quick tests walk it each time."""

import asyncio
import csv
import json
from pathlib import Path
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

[relations]
use = ["original", "frame"]

[learn]
optimiser = "lr"
text = false
folds = 3
resamples = 5
max_error = 0.3
"""
ONE_VARIABLE = '[task]\nlabels = ["good", "bad"]\n'
CODEBOOK = '[variables.look]\nlabels = ["good", "bad"]\n[variables.mood]\nlabels = ["good", "bad"]\n'


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_texts(Path("data.csv"), range(60), gold_rows=50)
    write_texts(Path("new.csv"), range(100, 110))


def rows_of(path: str) -> list[dict[str, str]]:
    with Path(path).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


async def served_label(folder: Path) -> str:
    async with running(folder) as service:
        _, body = await service.classify("Case 7 looks good.")
    return str(body["data"][0]["label"])


def test_from_a_table_to_conclusions(capsys: pytest.CaptureFixture[str]) -> None:
    Path("pcs.toml").write_text(SETTINGS + ONE_VARIABLE, encoding="utf-8")
    folder = Path("runs/data")
    with simulated_models():
        assert main(["run", "data.csv", "-q"]) == 0
        rows = rows_of("runs/data/labels.csv")
        assert sum(row["pcs_label"] == row["gold"] for row in rows[:50]) > 35
        assert {row["pcs_decision"] for row in rows} <= {"accept", "review"}
        assert "</html>" in (folder / "report.html").read_text(encoding="utf-8")
        assert main(["label", "new.csv", "--run", "runs/data", "-o", "labels.csv", "-q"]) in (0, 4)
        assert {row["pcs_label"] for row in rows_of("labels.csv")} == {"good", "bad"}
        assert asyncio.run(served_label(folder)) in ("good", "bad")
        with pcs.load_run(folder) as labeller:
            assert [outcome.label for outcome in labeller.label(["Case 7 looks good."])] == ["good"]
    with page_of(folder, reviewer="Ann") as url, urlopen(url, timeout=30) as page:
        assert "looks" in page.read().decode()
    assert main(["fit", "runs/data", "-q"]) == 0
    capsys.readouterr()
    assert main(["estimate", "runs/data", "--of", "good", "--json"]) == 0
    assert 0 < json.loads(capsys.readouterr().out)["estimates"][0]["corrected"]["value"] < 1


def test_a_codebook() -> None:
    Path("pcs.toml").write_text(SETTINGS + CODEBOOK, encoding="utf-8")
    table = Path("data.csv").read_text(encoding="utf-8")
    Path("data.csv").write_text(table.replace("gold", "look", 1), encoding="utf-8")
    with simulated_models():
        assert main(["run", "data.csv", "-q"]) == 0
        assert {"pcs_look", "pcs_mood_confidence"} <= rows_of("runs/data/labels.csv")[0].keys()
        assert main(["label", "new.csv", "--run", "runs/data", "-o", "labels.csv", "-q"]) in (0, 4)
    assert len(rows_of("labels.csv")) == 10
