"""What several tests share: the plug-ins, loaded once, the development data, and a PostgreSQL server, where present."""

import gc
import os
import signal
import warnings
from collections.abc import Callable, Generator, Iterator
from itertools import count
from pathlib import Path

import pytest
import pytest_randomly
from hypothesis import settings

from pcs_annotator import PcsWarning
from pcs_annotator.core.ledger_address import LedgerAddress
from pcs_annotator.judging.fit_weights import optimisers
from pcs_annotator.relations.base import relations
from tests.command_line import Pcs
from tests.postgres import PostgresServer, postgres_server, programs

# No deadline, because a busy machine is slow. At a desk, every run tries other cases; CI tries many, and the same ones
# every time, so that a change is judged by itself. `PROPERTIES=explore` searches for long.
settings.register_profile("fast", deadline=None, max_examples=10)
settings.register_profile("ci", deadline=None, max_examples=100, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("PROPERTIES") or ("ci" if os.environ.get("CI") else "fast"))
SYSTEM_FIXTURES = {"postgres", "browser", "shared_stub"}
PROCESSES = {"subprocess", "Popen", "stub_process", "in_a_fresh_interpreter", "service_process"}
# An installed thinc would seed torch before and after every test, and load it in every process; random and numpy are
# seeded in any case.
pytest_randomly.entrypoint_reseeds = []


def pytest_sessionstart() -> None:
    """Load the plug-ins before any test or doctest does: one of them is broken on purpose, and warnings are errors."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # by a shell in the background; processes would inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PcsWarning)
        optimisers.names()
        relations.names()


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None]:
    """Collect thousands of tests without looking for garbage among them; nor later, since all of them stay."""
    gc.disable()
    found = yield
    gc.freeze()
    gc.enable()
    return found


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs a server, a browser or another process as `system`, so that none slips into the quick run."""
    for item in items:
        needed = set(getattr(item, "fixturenames", ()))
        used = {*item.function.__code__.co_names} if isinstance(item, pytest.Function) else set()
        if needed & SYSTEM_FIXTURES or used & PROCESSES or "postgresql" in item.name:
            item.add_marker(pytest.mark.system)


@pytest.fixture(autouse=True, scope="session")
def less_work() -> Iterator[None]:
    """List at most 20 rows in reports, which most tests that make one do not read; those of reports list all again.

    Fits of the same votes and gold are remembered for as long as tests run.
    """
    from pcs_annotator.judging import heldout as crossfit
    from pcs_annotator.showing.report import view

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COLUMNS", raising=False)  # workers set it, and then messages are wrapped
        patch.setattr(view, "MOST_ROWS", 20)
        patch.setattr(crossfit, "MAX_REMEMBERED", 1000)
        yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The development data, which is not part of the project."""
    place = os.environ.get("PCS_SHARED_DATA")
    folder = Path(place) if place else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the development data is not on this machine (set PCS_SHARED_DATA to its folder)")
    return folder


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server that tests may stop, if they start it again."""
    pytest.importorskip("psycopg")
    if programs() is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    with postgres_server() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def new_ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], LedgerAddress]:
    """Returns addresses of new ledgers: files, and then on a server."""
    if request.param == "sqlite":
        numbers = count()
        return lambda: tmp_path / "deep" / f"ledger{next(numbers)}.db"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.new_ledger


@pytest.fixture(scope="session")
def promising_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 260 rows, 150 with gold, whose promise holds: made once, and copied by every test."""
    from tests.simulated import simulated_once

    return simulated_once(tmp_path_factory, 260, 150)


@pytest.fixture(scope="session")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 60 rows, 20 with gold."""
    from tests.simulated import simulated_once

    return simulated_once(tmp_path_factory, 60, 20)


@pytest.fixture
def pcs(capsys: pytest.CaptureFixture[str]) -> Pcs:
    """The command line."""
    return Pcs(capsys)
