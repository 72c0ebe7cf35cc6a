"""PyPI's `pcs-annotator` is imported under our name: being mixed with it is noticed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pcs_annotator

pytestmark = pytest.mark.system

OURS = Path(pcs_annotator.__file__).parent


def run_with(site: Path, code: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(site), str(OURS.parent)])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)


def test_the_command_explains_that_another_distribution_took_the_place_of_ours(tmp_path: Path) -> None:
    theirs = tmp_path / "pcs_annotator"
    theirs.mkdir()
    (theirs / "__init__.py").write_text("raise ImportError('langchain')")
    (theirs / "TextMutator.py").touch()
    found = run_with(tmp_path, "import perceived_confidence; perceived_confidence.run()")
    assert found.returncode == 2
    assert "pip uninstall --yes pcs-annotator perceived-confidence" in found.stderr
    assert "Traceback" not in found.stderr


def test_importing_ours_warns_of_leftover_files_of_the_other(tmp_path: Path) -> None:
    mixed = tmp_path / "pcs_annotator"
    mixed.mkdir()
    shutil.copy(OURS / "__init__.py", mixed)
    shutil.copy(OURS / "version.py", mixed)
    (mixed / "TextMutator.py").touch()
    found = run_with(tmp_path, "import pcs_annotator")
    assert found.returncode == 0
    assert "its files overwrite those of perceived-confidence" in found.stderr
