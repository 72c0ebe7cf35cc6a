import pytest

from tests.made_once import made_once
from tests.studies.compare.runs import Runs, two_runs


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(made_once(tmp_path_factory, "compare", two_runs))
