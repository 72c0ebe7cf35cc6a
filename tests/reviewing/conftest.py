"""One simulated run for all tests of a review; each works on its own copy."""

from pathlib import Path

import pytest

from tests.simulated import copy_run


@pytest.fixture
def run(small_run: Path, tmp_path: Path) -> Path:
    return copy_run(small_run, tmp_path / "run")
