"""Runs whose true shares are known, made once; tests that change one copy it."""

from functools import partial
from pathlib import Path

import pytest

from tests.made_once import made_once
from tests.studies.estimating.made import make_run


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """600 rows, 200 with gold."""
    return made_once(tmp_path_factory, "estimate", make_run) / "run"


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same rows, none with gold."""
    return made_once(tmp_path_factory, "estimate-bare", partial(make_run, gold_rows=0)) / "run"
