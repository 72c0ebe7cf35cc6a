"""`--executor ray` on a real local cluster and a real PostgreSQL server; workers are killed."""

import asyncio
import json
import os
import pickle
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path

import pytest

from pcs_annotator import Item, Task
from pcs_annotator.asking.ledger.open_ledger import open_ledger
from pcs_annotator.base.errors import ClusterError, ConfigError, MissingPackage
from pcs_annotator.faces.cli.main import main
from pcs_annotator.runs import ask, ray_cluster
from pcs_annotator.runs.executors import ask_job
from tests.postgres import PostgresServer
from tests.ray_cluster import kill_one, start_ray
from tests.simulated import read_csv
from tests.stub import Behaviour, StubProcess, stub_process

pytestmark = pytest.mark.system

ROWS, IN_FLIGHT, RATE = 300, 8, 20
SERVER = Behaviour(labels=("good", "bad"), logprobs="ignored", latency_s=0.05, key="sk-secret")
SETTINGS = f"""
[task]
labels = ["good", "bad"]
[ask]
models = ["{{url}}#m"]
answers = "hard"
concurrency = {IN_FLIGHT}
executor = "ray"
ledger = "{{ledger}}"
workers = 2
[relations]
use = ["original", "order"]
[learn]
optimiser = "lr"
folds = 3
resamples = 0
"""


@pytest.fixture
def server() -> Iterator[StubProcess]:
    with stub_process(SERVER) as stub:
        yield stub


@pytest.fixture
def ledger(postgres: PostgresServer) -> str:
    return postgres.new_ledger()


@pytest.fixture
def folder(tmp_path: Path, server: StubProcess, ledger: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with texts and settings, in which commands run."""
    rows = [
        f"{row},Case {row} is about the weather.,{('good', 'bad')[row % 2] if row < 60 else ''}" for row in range(ROWS)
    ]
    (tmp_path / "texts.csv").write_text("\n".join(["id,text,gold", *rows]) + "\n")
    (tmp_path / "pcs.toml").write_text(SETTINGS.format(url=server.url, ledger=ledger))
    (tmp_path / ".env").write_text("PCS_API_KEY=sk-secret\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pcs(*arguments: str, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    code = main([*arguments, "--json"])
    said = capsys.readouterr()
    assert code == 0, said.err
    found: dict[str, object] = json.loads(said.out)
    return found


def meanwhile(server: StubProcess, answered: int, disturb: Callable[[], object]) -> threading.Thread:
    """Do something once the server has given so many answers."""

    def wait() -> None:
        while server.stats().answered < answered:
            time.sleep(0.01)
        disturb()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # in Ray Data itself
@pytest.mark.enable_socket  # Ray's own address is that of the machine
def test_a_run_survives_the_loss_of_a_worker_and_gives_the_labels_of_a_run_without_a_cluster(
    folder: Path, ledger: str, server: StubProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    start_ray()
    disturbing = meanwhile(server, ROWS // 2, lambda: kill_one("MapWorker"))
    found = pcs("run", "texts.csv", "-o", "run", capsys=capsys)
    disturbing.join()
    assert found["rows"] == ROWS
    assert found["rows_without_label"] == 0
    assert found["calls"] == 2 * ROWS
    # the calls that the lost worker had in flight
    assert server.stats().requests - 2 * ROWS <= IN_FLIGHT
    with open_ledger(ledger) as opened:
        assert opened.count() == 2 * ROWS
    again = pcs("label", "texts.csv", "--run", "run", "--executor", "local", "-o", "out.csv", capsys=capsys)
    assert again["calls"] == 0
    pcs("run", "texts.csv", "-o", "local", "--executor", "local", "--ledger", "own.db", capsys=capsys)
    labels = (folder / "run" / "labels.csv").read_text()
    assert labels == (folder / "local" / "labels.csv").read_text()
    assert [row["pcs_label"] for row in read_csv(folder / "out.csv")] == [
        row["pcs_label"] for row in read_csv(folder / "run" / "labels.csv")
    ]


def test_a_cluster_needs_a_ledger_that_its_workers_can_reach(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ray")
    settings = (folder / "pcs.toml").read_text()
    (folder / "pcs.toml").write_text("\n".join(line for line in settings.splitlines() if "ledger" not in line))
    assert main(["run", "texts.csv", "-o", "run"]) == 2
    assert 'set ledger = "postgresql://…" under [ask]' in capsys.readouterr().err
    assert not (folder / "run").exists()


@pytest.fixture
def head(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a cluster that is not this process's own."""
    pytest.importorskip("ray")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(16))
    ray = Path(sys.executable).with_name("ray")
    how = ["--num-cpus=2", "--include-dashboard=false", "--object-store-memory=80000000", "--disable-usage-stats"]
    subprocess.run([ray, "start", "--head", f"--port={port}", *how], check=True, capture_output=True)

    try:
        yield f"127.0.0.1:{port}"
    finally:
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                title = (process / "cmdline").read_text()
                if str(port) in title and ("/raylet" in title or "gcs_server" in title):
                    os.kill(int(process.name), signal.SIGKILL)


COMMAND = """
import sys, ray
{}
from pcs_annotator.faces.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def started_run(address: str, before: str = "0") -> subprocess.Popen[str]:
    arguments = ["run", "texts.csv", "-o", "run", "--quiet", "--ray-address", address]
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND.format(before), *arguments], text=True, stderr=subprocess.PIPE
    )


@pytest.mark.slow
def test_a_run_on_another_cluster_is_interrupted_and_the_next_one_continues(
    folder: Path, ledger: str, server: StubProcess, head: str
) -> None:
    server.change(latency_s=0.2)
    run = started_run(head, "ray.__version__ = '9.9'")
    said = run.communicate(timeout=300)[1]
    assert run.returncode == 2
    assert "Ray: 9.9" in said
    assert "with the same versions of Ray and Python as here" in said
    run = started_run(head)
    stopping = meanwhile(server, ROWS // 4, partial(run.send_signal, signal.SIGINT))
    said = run.communicate(timeout=300)[1]
    stopping.join()
    assert "Traceback" not in said
    with open_ledger(ledger) as opened:  # calls in flight were finished
        assert server.stats().answered == opened.count() < 2 * ROWS
    assert main(["run", "texts.csv", "-o", "run", "--executor", "local", "-q"]) == 0
    assert server.stats().answered == 2 * ROWS


LIMITED = """
import json, sys
from pcs_annotator.asking.ledger.open_ledger import open_ledger
from pcs_annotator.core.ledger_address import LedgerAddress
from pcs_annotator.faces.cli.main import main
from pcs_annotator.runs import run_table

def paid():
    with open_ledger(sys.argv[1]) as ledger:
        (bill,) = ledger.bills()
    return bill.calls, bill.input_tokens + bill.output_tokens, bill.usd

run_table.IN_MEMORY_ROWS = 10  # so that all rows are labelled in chunks
found = [(main(["run", "texts.csv", "-o", "run", "-q"]), *paid())]
limits = ("calls", "--max-calls", "20"), ("tokens", "--max-tokens", "3000"), ("dollars", "--budget", None)
for name, option, limit in limits:
    limit = limit or str(paid()[2] + 0.003)
    arguments = ["label", f"{name}.csv", "--run", "run", "--ask", "all", "-q", "-o", f"{name}-out.csv", option, limit]
    found.append((main([*arguments, "--max-per-second", "500"]), *paid()))
print(json.dumps(found), file=sys.stderr)
"""


@pytest.mark.slow
def test_a_cluster_of_this_machine_lasts_as_long_as_its_process_and_keeps_limits(
    folder: Path, ledger: str, server: StubProcess
) -> None:
    with (folder / "pcs.toml").open("a") as settings:
        settings.write(f'[ask.prices]\n"{server.url}#m" = [1.0, 2.0]\n')
    for name in ("calls", "tokens", "dollars"):
        (folder / f"{name}.csv").write_text("text\n" + "\n".join(f"Case {row} of {name}" for row in range(60)))
    done = subprocess.run([sys.executable, "-c", LIMITED, ledger], capture_output=True, text=True, check=False)
    assert "sk-secret" not in done.stdout + done.stderr
    codes, calls, tokens, dollars = zip(*json.loads(done.stderr.splitlines()[-1]), strict=True)
    assert codes == (0, 3, 3, 3)  # each budget is reached
    # beyond the budget by the calls that the other worker has in flight, at most
    assert 20 <= calls[1] - calls[0] <= 20 + IN_FLIGHT
    most = max(tokens[1] / calls[1], (tokens[2] - tokens[1]) / (calls[2] - calls[1])) * (IN_FLIGHT + 1)
    assert 3000 - 200 < tokens[2] - tokens[1] <= 3000 + most
    assert 0.003 - 0.0002 < dollars[3] - dollars[2] <= 0.003 + 2e-6 * most
    assert server.stats().answered == calls[3]
    assert server.stats().answered_twice == 0


SMALL = """
from pcs_annotator.runs import label_table, run_table
run_table.IN_MEMORY_ROWS, label_table.CHUNK_ROWS, run_table.SAMPLE_ROWS = 50, 100, 80
"""


@pytest.mark.slow
def test_a_large_table_that_is_interrupted_while_all_its_rows_are_asked_about_is_resumed(
    folder: Path, ledger: str, server: StubProcess
) -> None:
    for code in (130, 0):
        run = started_run("local", SMALL)
        stopping = meanwhile(server, 2 * 80 + 50, partial(run.send_signal, signal.SIGINT)) if code else None
        said = run.communicate(timeout=300)[1]
        if stopping is not None:
            stopping.join()
        assert run.returncode == code, said
        assert "Traceback" not in said
        with open_ledger(ledger) as opened:
            assert opened.count() == server.stats().answered
    assert (server.stats().answered, server.stats().answered_twice) == (2 * ROWS, 0)
    assert len(read_csv(folder / "run" / "labels.csv")) == ROWS


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # in Ray Data itself
@pytest.mark.enable_socket
def test_two_workers_share_one_rate_limit(folder: Path, ledger: str, server: StubProcess) -> None:
    server.change(record_times=True, latency_s=0.01)
    start_ray()
    settings = ask.CollectSettings(
        answers="hard",
        max_per_second=RATE,
        cluster=ask.ClusterSettings(workers=2),
        environment={"PCS_API_KEY": "sk-secret"},
    )
    job = ask.open_job(Task("Good?", ["good", "bad"]), [f"{server.url}#m"], ["original"], settings)
    items = [Item(id=str(row), text=f"Text {row}") for row in range(8 * RATE)]
    votes = asyncio.run(ask_job(job, items, ledger, settings))
    assert (votes.codes >= 0).all()
    times = sorted(server.stats(full=True).arrivals)
    assert len(times) == len(items)
    # in any two seconds: twice the limit, and what a busy machine delays
    assert max(bisect_left(times, start + 2.0) - place for place, start in enumerate(times)) <= 2.2 * RATE


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # in Ray Data itself
@pytest.mark.enable_socket
def test_a_model_that_cannot_be_sent_is_said_before_any_call(ledger: str) -> None:
    start_ray()
    lock = threading.Lock()

    def model(text: str) -> str:
        with lock:
            return "good"

    settings = ask.CollectSettings(cluster=ask.ClusterSettings(workers=1), environment={})
    job = ask.open_job(Task("Good?", ["good", "bad"]), [model], ["original"], settings)
    with pytest.raises(ConfigError, match=r"cannot be sent to the workers of a cluster: .*lock.*; open connections"):
        asyncio.run(ask_job(job, [Item(id="1", text="Fine.")], ledger, settings))


def test_what_cannot_be_a_cluster_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Elsewhere:
        @staticmethod
        def is_initialized() -> bool:
            return False

    job = ask.open_job(Task("Good?", ["good", "bad"]), ["scripted:hash"], ["original"], ask.CollectSettings())
    with pytest.raises(ClusterError, match="an address for Ray clients"):
        ray_cluster.connect(Elsewhere, ask.ClusterSettings(address="ray://head:10001"), job)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingPackage, match=r"needs the extra ray: pip install 'perceived-confidence\[ray\]'"):
        ray_cluster.check_cluster("postgresql://host/team")


def test_workers_are_sent_the_variables_of_the_working_folder_the_ledgers_password_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other")
    monkeypatch.setenv("PGPASSWORD", "word")
    Path(".env").write_text("PCS_API_KEY=sk-secret\nOPENAI_API_KEY=sk-older\n")
    settings = ask.CollectSettings(max_per_second=10, cluster=ask.ClusterSettings(workers=2))
    sent = pickle.loads(pickle.dumps(ray_cluster.worker_settings(settings, 2)))
    assert sent.environment == {"PCS_API_KEY": "sk-secret", "PGPASSWORD": "word"}
    assert (sent.max_per_second, sent.cluster) == (5, None)
    monkeypatch.delenv("PGPASSWORD")
    given = ask.CollectSettings(environment={"PCS_API_KEY": "mine"})
    assert ray_cluster.worker_settings(given, 2).environment == {"PCS_API_KEY": "mine"}


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:5432", "[::1]", "", "/team?host=/run/postgresql"])
def test_several_machines_need_a_ledger_whose_address_means_one_server(host: str) -> None:
    class Cluster:
        @staticmethod
        def nodes() -> list[dict[str, bool]]:
            return [{"Alive": True}, {"Alive": alive}]

    address = f"postgresql://me@{host}"
    for alive in (False, True):
        ray_cluster.refuse_own_host(Cluster, "postgresql://me@db.example.org/team")
        ray_cluster.refuse_own_host(Cluster, "postgresql:///team?host=db.example.org")
        with pytest.raises(ConfigError, match="name the server as all of them reach it") if alive else nullcontext():
            ray_cluster.refuse_own_host(Cluster, address)


@pytest.mark.parametrize(("rows", "batch"), [(None, 128), (0, 128), (3, 1), (400, 50), (10_000_000, 128)])
def test_every_worker_is_handed_some_of_a_small_table(rows: int | None, batch: int) -> None:
    assert ray_cluster.rows_per_batch(rows, workers=2) == batch
