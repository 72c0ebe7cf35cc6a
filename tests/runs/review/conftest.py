"""One simulated run for all tests of a review; each works on its own copy."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulated import copy_run, simulated_run


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("review")
    simulated_run(folder, rows=60, gold_rows=20)
    return folder / "run"


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return copy_run(made, tmp_path / "run")
