from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faces.serve.processes import stub_run
from tests.faces.serve.running import running_in_thread
from tests.simulated import copy_run, simulated_models
from tests.stub import StubProcess, stub_process


@pytest.fixture
def run(promising_run: Path, tmp_path: Path) -> Iterator[Path]:
    """A fitted run with models that answer at once."""
    copy_run(promising_run, tmp_path / "run")
    with simulated_models():
        yield tmp_path / "run"


@pytest.fixture(scope="session")
def shared_stub() -> Iterator[StubProcess]:
    with stub_process() as stub:
        yield stub


@pytest.fixture(scope="session")
def made_with_stub(shared_stub: StubProcess, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stub_run(shared_stub.url, tmp_path_factory.mktemp("stub"), ("one",), ("original",))


@pytest.fixture
def stub(shared_stub: StubProcess) -> Iterator[StubProcess]:
    """A stub that behaves well, at first and afterwards."""
    shared_stub.reset()
    yield shared_stub
    shared_stub.change(latency_s=0.0, models=[], max_chars=None, share_429=0.0, faults_only_first=False)


@pytest.fixture
def stub_folder(made_with_stub: Path, stub: StubProcess, tmp_path: Path) -> Path:
    """A fitted run with a model of the stub."""
    return copy_run(made_with_stub, tmp_path / "run")


@pytest.fixture
def url(run: Path) -> Iterator[str]:
    with running_in_thread(run) as address:
        yield address
