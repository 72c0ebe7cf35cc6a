from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faces.serve.processes import stub_run
from tests.faces.serve.running import running
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
    shared_stub.change(latency_s=0.0, models=[], max_chars=None)


@pytest.fixture
def stub_folder(made_with_stub: Path, stub: StubProcess, tmp_path: Path) -> Path:
    """A fitted run with a model of the stub."""
    return copy_run(made_with_stub, tmp_path / "run")


@pytest.fixture
def url(run: Path) -> Iterator[str]:
    """A service in a thread, for clients that are synchronous."""
    ready, found = threading.Event(), []
    stop: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def served() -> None:
        async with running(run) as one:
            end = asyncio.Event()
            stop.append((asyncio.get_running_loop(), end))
            found.append(str(one.client._base_url))
            ready.set()
            await end.wait()

    thread = threading.Thread(target=lambda: asyncio.run(served()))
    thread.start()
    assert ready.wait(30)
    yield found[0]
    stop[0][0].call_soon_threadsafe(stop[0][1].set)
    thread.join(30)
