"""`pcs report` on a small run, from the command line."""

import csv
import shutil
from pathlib import Path

import pytest

from pcs_annotator.faces.cli.main import main
from tests.showing.report.reading import section


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, made once."""
    place = tmp_path_factory.mktemp("made")
    with open(place / "data.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text", "gold"])
        writer.writerows([f"r{row}", f"Text number {row} is here.", ("good", "bad")[row % 2]] for row in range(24))
    options = ["--labels", "good,bad", "--model", "scripted:hash", "--relations", "original,frame"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        assert main(["run", "data.csv", *options, "--optimiser", "lr", "-o", "run", "-q"]) == 0
    return place


@pytest.fixture
def run(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "run"


def test_a_page_written_again_is_the_page_that_the_run_wrote(run: Path) -> None:
    written = (run / "report.html").read_text(encoding="utf-8")
    assert main(["report", str(run)]) == 0
    again = (run / "report.html").read_text(encoding="utf-8")
    for part in ("look-at", "rows", "quality", "questions"):
        assert section(written, part) == section(again, part)
