"""`--executor ray` on two machines, which are network namespaces of this one; one of them is lost."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pcs_annotator.asking.ledger.open_ledger import open_ledger
from tests.postgres import PASSWORD, programs
from tests.stub import Behaviour, StubProcess
from tests.two_machines import SETTINGS, Cluster, reason_against, two_machines

pytestmark = pytest.mark.system

ROWS, IN_FLIGHT = 400, 8
SERVER = Behaviour(labels=("good", "bad"), logprobs="ignored", latency_s=0.2, key="sk-secret")


@pytest.fixture(scope="module")
def machines() -> Iterator[Cluster]:
    pytest.importorskip("ray")
    pytest.importorskip("psycopg")
    if programs() is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    if reason := reason_against():
        pytest.skip(reason)
    with two_machines() as made:
        yield made


@pytest.fixture
def cluster(machines: Cluster) -> Cluster:
    """Two machines, each with a Ray node that has no variables of ours."""
    machines.start_missing()
    return machines


@pytest.fixture
def server(cluster: Cluster) -> Iterator[StubProcess]:
    with cluster.stub(SERVER) as stub:
        yield stub


@pytest.fixture
def folder(tmp_path: Path, server: StubProcess) -> Path:
    """A folder with texts and settings."""
    rows = [f"{row},Case {row} is here.,{('good', 'bad')[row % 2] if row < 60 else ''}" for row in range(ROWS)]
    (tmp_path / "texts.csv").write_text("\n".join(["id,text,gold", *rows]) + "\n")
    (tmp_path / "pcs.toml").write_text(SETTINGS.format(url=server.url, in_flight=IN_FLIGHT))
    (tmp_path / ".env").write_text("PCS_API_KEY=sk-secret\n")
    return tmp_path


def on_cluster(cluster: Cluster, ledger: str, *options: str) -> list[str]:
    where = ["--executor", "ray", "--ray-address", cluster.address, "--ledger", ledger]
    return ["run", "texts.csv", "-o", "run", "--json", *where, *options]


def result(cluster: Cluster, folder: Path, *arguments: str, code: int = 0) -> dict[str, Any]:
    process = cluster.start_pcs(folder, *arguments)
    out, err = process.communicate(timeout=300)
    assert process.returncode == code, err
    assert "Traceback" not in err
    assert PASSWORD not in out + err
    assert "sk-secret" not in out + err
    values: dict[str, Any] = json.loads(out) if code == 0 else {}
    return values


def stored(cluster: Cluster, ledger: str) -> int:
    with cluster.head.inside(), open_ledger(ledger.replace("@", f":{PASSWORD}@", 1)) as opened:
        return opened.count()


@pytest.mark.enable_socket
def test_both_machines_ask_within_one_budget_and_nothing_is_paid_for_twice(
    cluster: Cluster, folder: Path, server: StubProcess
) -> None:
    ledger = cluster.ledger()
    result(cluster, folder, *on_cluster(cluster, ledger, "--max-calls", str(ROWS // 2)), code=3)
    paid = server.stats()
    assert ROWS // 2 <= paid.answered <= ROWS // 2 + IN_FLIGHT  # those that the other machine had in flight
    assert result(cluster, folder, *on_cluster(cluster, ledger))["rows_without_label"] == 0
    seen = server.stats()
    assert (seen.requests, seen.questions, stored(cluster, ledger)) == (ROWS, ROWS, ROWS)
    assert min(seen.by_machine["head"], seen.by_machine["worker"]) >= ROWS // 4


@pytest.mark.enable_socket
def test_a_machine_that_is_lost_costs_no_row_and_only_the_calls_that_it_had_in_flight(
    cluster: Cluster, folder: Path, server: StubProcess
) -> None:
    ledger = cluster.ledger()
    run = cluster.start_pcs(folder, *on_cluster(cluster, ledger))
    while not (server.stats().by_machine.get("worker", 0) > 0 and server.stats().answered >= ROWS // 3):
        assert run.poll() is None, run.communicate()
        time.sleep(0.02)
    cluster.worker.kill()
    out, err = run.communicate(timeout=300)
    assert run.returncode == 0, err
    assert json.loads(out)["rows_without_label"] == 0
    seen = server.stats()
    assert (seen.questions, stored(cluster, ledger)) == (ROWS, ROWS)
    assert seen.requests - ROWS <= IN_FLIGHT
    result(cluster, folder, "run", "texts.csv", "-o", "local", "--json", "--ledger", "own.db")
    assert (folder / "run" / "labels.csv").read_text() == (folder / "local" / "labels.csv").read_text()
