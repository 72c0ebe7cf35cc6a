"""One tiny run, from a CSV to its report: labels are compared byte for byte, the report by its words.

`PCS_GOLDEN=write pytest tests/golden` writes the files again; look at the diff before you commit them.
"""

import os
import re
import shutil
from html import unescape
from pathlib import Path

import pytest

from pcs_annotator.faces.cli.main import main
from pcs_annotator.version import __version__

HERE = Path(__file__).parent
# The style sheet, the script and the drawings are not words; the data of the rows, in a script of JSON, are.
LOOKS = re.compile(r"<style>.*?</style>|<script>.*?</script>", re.S)


def words_of(page: str) -> str:
    """Return the words of a page, one line for each element."""
    lines = unescape(re.sub(r"<[^<>]*>", "\n", LOOKS.sub("", page))).splitlines()
    return "\n".join(line.strip() for line in lines if line.strip()) + "\n"


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


@pytest.mark.parametrize(("name", "golden"), [("labels.csv", "labels.csv"), ("report.html", "report.txt")])
def test_a_run_says_the_same_as_before(name: str, golden: str, folder: Path) -> None:
    made = (folder / name).read_text(encoding="utf-8").replace(__version__, "VERSION")
    made = words_of(made) if name == "report.html" else made
    if os.environ.get("PCS_GOLDEN") == "write":
        (HERE / golden).write_text(made, encoding="utf-8")
    assert made == (HERE / golden).read_text(encoding="utf-8")
