"""One tiny run, from a CSV to its report, compared byte for byte.

`PCS_GOLDEN=write pytest tests/golden` writes the files again; look at the diff before you commit them.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from pcs_annotator.faces.cli.main import main
from pcs_annotator.version import __version__

HERE = Path(__file__).parent
FILES = ("labels.csv", "report.html")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("golden")
    shutil.copy(HERE / "data.csv", folder / "data.csv")
    before = Path.cwd()
    os.chdir(folder)
    try:
        options = ["--model", "scripted:hash", "--relations", "original,case,typo,frame", "--draws", "2"]
        assert main(["run", "data.csv", *options, "--optimiser", "lr", "-o", "run", "-q"]) == 0
    finally:
        os.chdir(before)
    return folder / "run"


@pytest.mark.parametrize("name", FILES)
def test_a_run_writes_the_same_bytes_as_before(name: str, folder: Path) -> None:
    made = (folder / name).read_text(encoding="utf-8").replace(__version__, "VERSION")
    if os.environ.get("PCS_GOLDEN") == "write":
        (HERE / name).write_text(made, encoding="utf-8")
    assert made == (HERE / name).read_text(encoding="utf-8")
