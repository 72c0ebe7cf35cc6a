from __future__ import annotations

import pytest

from tests.studies.compare.runs import Runs, two_runs


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return two_runs(tmp_path_factory.mktemp("compare"))
