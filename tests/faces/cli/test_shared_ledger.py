import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from pcs_annotator.asking.ledger.open_ledger import open_ledger
from pcs_annotator.core.ledger_address import LedgerAddress
from pcs_annotator.faces.cli.main import main
from pcs_annotator.runs.folder_votes import SETTLED_AFTER
from tests.command_line import Pcs
from tests.postgres import PASSWORD, PostgresServer

pytestmark = pytest.mark.system

TEXTS = [f"The bus number {number} was {'late' if number % 3 else 'fine'}." for number in range(12)]
ASK = ["--labels", "fine,late", "--model", "scripted:hash", "--relations", "original"]


@pytest.fixture(autouse=True)
def with_data() -> None:
    rows = "".join(f"{number},{text}\n" for number, text in enumerate(TEXTS))
    Path("data.csv").write_text(f"id,text\n{rows}")


def test_runs_in_two_folders_share_the_answers_of_one_ledger(
    new_ledger: Callable[[], LedgerAddress], pcs: Pcs, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = str(new_ledger())
    first = pcs.json("run", "data.csv", *ASK, "-o", "one", "--ledger", ledger)
    second = pcs.json("run", "data.csv", *ASK, "-o", "two", "--ledger", ledger)
    assert (first["calls"], second["calls"], second["known_already"]) == (12, 0, 12)
    # each folder says what its answers cost, whoever paid for them
    assert second["bills"] == first["bills"] != []
    again = pcs.json("run", "data.csv", *ASK, "-o", "one", "--ledger", ledger)
    assert (again["calls"], again["known_already"]) == (0, 12)
    assert not Path("one/ledger.db").exists()
    monkeypatch.chdir("one")  # later commands find the ledger, wherever they are started
    assert pcs.json("fit", ".")["bills"] == first["bills"]
    labelled = pcs.json("label", "../data.csv", "--run", ".", "-o", "labels-again.csv")
    assert (labelled["calls"], labelled["known_already"]) == (0, 12)


def test_a_plan_knows_what_a_shared_ledger_has(
    new_ledger: Callable[[], LedgerAddress], pcs: Pcs, capsys: pytest.CaptureFixture[str]
) -> None:
    asking = ["data.csv", *ASK, "--ledger", str(new_ledger()), "--price", "scripted:hash=1,1"]
    assert pcs.json("plan", *asking)["known_already"] == 0
    assert pcs.json("run", *asking, "-o", "one", "--limit", "8")["calls"] == 8
    found = pcs.json("plan", *asking)
    assert (found["calls"], found["known_already"], found["left"]["calls"]) == (12, 8, 4)
    assert found["left"]["usd"] == pytest.approx(found["usd"] / 3)
    capsys.readouterr()
    assert "the ledger already has the answers to 8 of them: 4 calls are left" in pcs("plan", *asking)
    assert pcs.json("run", *asking, "-o", "two")["calls"] == 4


def test_a_plan_without_its_ledger_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    Path("broken.db").write_text("this is no ledger, and was never one" * 50)
    assert main(["plan", "data.csv", *ASK, "--ledger", "broken.db"]) == 0
    captured = capsys.readouterr()
    assert "12 calls" in captured.out
    assert "which answers there are already is not known" in " ".join((captured.out + captured.err).split())


def test_a_ledger_in_a_settings_file_is_found_from_any_folder(pcs: Pcs, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("project").mkdir()
    Path("project/pcs.toml").write_text('[ask]\nledger = "shared.db"\n')
    asking = ["run", "data.csv", *ASK, "-c", "project/pcs.toml"]
    assert pcs.json(*asking, "-o", "one")["calls"] == 12
    monkeypatch.chdir("project")
    assert pcs.json("run", "../data.csv", *ASK, "-o", "../two")["calls"] == 0
    assert [path.name for path in Path().iterdir() if path.suffix == ".db"] == ["shared.db"]


def test_a_run_whose_ledger_was_moved_pays_for_nothing_again(pcs: Pcs, capsys: pytest.CaptureFixture[str]) -> None:
    asking = ["run", "data.csv", *ASK, "-o", "one"]
    assert pcs.json(*asking, "--ledger", "shared.db")["calls"] == 12
    Path("shared.db").rename("moved.db")
    for command in ([*asking, "--ledger", "shared.db"], ["label", "data.csv", "--run", "one"]):
        assert "is gone: put it back, or say with --ledger where it is now" in pcs.refused(*command)
    assert not Path("shared.db").exists()
    for command in (["fit", "one"], ["report", "one"], ["compare", "one", "one:optimiser=majority"]):
        assert main(command) == 0, capsys.readouterr().err  # what needs no answers goes on
    assert pcs.json("label", "data.csv", "--run", "one", "--ledger", "moved.db")["calls"] == 0
    assert pcs.json(*asking, "--ledger", "moved.db")["calls"] == 0
    assert pcs.json(*asking, "--ledger", "new.db")["calls"] == 12


def test_results_that_are_replaced_say_what_the_new_answers_cost(pcs: Pcs) -> None:
    asking = ["run", "data.csv", *ASK, "--ledger", "shared.db"]
    assert pcs.json(*asking, "-o", "one", "--instruction", "Late?")["calls"] == 12
    assert pcs.json(*asking, "-o", "two")["calls"] == 12
    assert main([*asking, "-o", "one", "--replace", "--quiet"]) == 0
    found = pcs.json(*asking, "-o", "one")
    assert [bill["calls"] for bill in found["bills"]] == [12]


def test_a_folder_waits_while_another_one_uses_the_ledger_and_says_for_whom(
    pcs: Pcs, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pcs_annotator.asking.ledger.lock.SILENT_SECONDS", 0.0)
    code = (
        "import sys, time; from pcs_annotator.asking.ledger.lock import lock_ledger\n"
        "with lock_ledger('shared.db'): print(flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        other.stdout.readline()
        asking = ["run", "data.csv", *ASK, "--ledger", "shared.db", "-o", "one"]
        assert f"process {other.pid}" in (refused := pcs.refused(*asking, "--no-wait"))
        assert "run again when that has ended" in " ".join(refused.split())
        threading.Timer(0.3, other.stdin.close).start()
        assert main(asking) == 0
    waited = " ".join(capsys.readouterr().err.split())
    assert "waiting for python" in waited
    assert f"process {other.pid}" in waited


def test_a_ledger_that_was_pruned_is_noticed_also_on_a_server(
    postgres: PostgresServer, pcs: Pcs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pcs_annotator.runs.folder_votes.SETTLED_AFTER", -SETTLED_AFTER)
    asking = ["run", "data.csv", *ASK, "--ledger", (address := postgres.new_ledger())]
    assert [pcs.json(*asking)["calls"] for _ in range(2)] == [12, 0]
    assert main(["ledger", "prune", address, "--model", "scripted:hash", "--yes"]) == 0
    assert pcs.json(*asking)["calls"] == 12


def test_a_password_reaches_no_file_and_no_message(
    postgres: PostgresServer,
    pcs: Pcs,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    address = postgres.new_ledger(with_password=True)
    Path("pcs.toml").write_text(f'[ask]\nledger = "{address}"\n')
    monkeypatch.setattr("sys.argv", ["pcs", "run", f"--ledger={address}"])
    assert pcs.json("plan", "data.csv", *ASK)["calls"] == 12
    run = pcs.json("run", "data.csv", *ASK)
    assert run["calls"] == 12
    Path("pcs.toml").unlink()
    assert main(["fit", "runs/data", "--ledger", address]) == 0
    assert main(["label", "data.csv", "--run", "runs/data", "--ledger", address]) == 0
    assert main(["ledger", "size", address]) == 0
    # without it, what needs no answers goes on, and the rest says what to do
    capsys.readouterr()
    assert " so far labels runs/data/labels.csv" in pcs("fit", "runs/data")
    assert "set PGPASSWORD" in pcs.refused("label", "data.csv", "--run", "runs/data")
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert main(["label", "data.csv", "--run", "runs/data", "--replace"]) == 0
    assert main(["run", "data.csv", *ASK, "--ledger", address.replace(PASSWORD, "wrong-word"), "-o", "other"]) == 2
    captured = capsys.readouterr()
    assert PASSWORD not in captured.out + captured.err
    assert "wrong-word" not in captured.err
    assert not Path("other").exists()
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) > 10
    assert not [path for path in written if PASSWORD.encode() in path.read_bytes()]


def test_fresh_does_not_set_a_shared_ledger_aside(pcs: Pcs) -> None:
    assert "leave one of --fresh and --ledger out" in pcs.refused(
        "run", "data.csv", *ASK, "--ledger", "shared.db", "--fresh"
    )


def test_a_server_that_goes_away_ends_the_run_with_a_message_and_the_next_one_goes_on(
    postgres: PostgresServer, pcs: Pcs, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from pcs_annotator.asking.ledger.on_server import PostgresLedger

    address = postgres.new_ledger()
    monkeypatch.setattr("pcs_annotator.asking.ledger.on_server.PATIENCE_SECONDS", 0.2)
    put, stopped = PostgresLedger.put, list[bool]()

    async def put_and_lose(self: PostgresLedger, entry: object) -> None:
        if not stopped:
            stopped.append(True)
            postgres.stop()
        await put(self, entry)  # type: ignore[arg-type]  # as it came

    monkeypatch.setattr(PostgresLedger, "put", put_and_lose)
    try:
        assert main(["run", "data.csv", *ASK, "--ledger", address]) == 2
    finally:
        postgres.start()
    message = " ".join(capsys.readouterr().err.split())
    assert "the server cannot be reached" in message
    assert "the next command in this folder stores them" in message
    found = pcs.json("run", "data.csv", *ASK, "--ledger", address)
    assert found["calls"] + found["known_already"] == 12
    assert found["known_already"]
    with open_ledger(address) as ledger:
        assert ledger.count() == sum(bill.calls for bill in ledger.bills()) == 12
