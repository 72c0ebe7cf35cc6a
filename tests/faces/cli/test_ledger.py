import asyncio
import io
from collections.abc import Callable
from pathlib import Path

import pytest

from pcs_annotator import CollectSettings, Item, Task, collect
from pcs_annotator.core.ledger_address import LedgerAddress
from pcs_annotator.faces.cli.main import main
from tests.command_line import Pcs


@pytest.fixture
def ledger(new_ledger: Callable[[], LedgerAddress]) -> LedgerAddress:
    return filled(new_ledger())


def filled(ledger: LedgerAddress) -> LedgerAddress:
    items = [Item(id=str(row), text=f"Text {row}.") for row in range(5)]
    settings = CollectSettings(environment={})
    asyncio.run(collect(Task("Feel?", ["good", "bad"]), items, ["scripted:hash"], ledger=ledger, settings=settings))
    return ledger


def test_size_shows_calls_and_cost_per_model(ledger: LedgerAddress, pcs: Pcs) -> None:
    row = next(line.split() for line in pcs.out("ledger", "size", ledger).splitlines() if "scripted:hash" in line)
    assert (row[:3], row[-1]) == (["scripted:hash", "label", "5"], "$0.00")
    (model,) = pcs.json("ledger", "size", ledger)["models"]
    assert (model["model"], model["calls"], model["usd"]) == ("scripted:hash", 5, 0.0)


def test_import_brings_calls_over_once(ledger: LedgerAddress, tmp_path: Path, pcs: Pcs) -> None:
    for expected in (5, 0):
        assert pcs.json("ledger", "import", tmp_path / "new.db", ledger) == {"new": expected}


def test_prune_needs_to_know_which_calls_and_asks_for_confirmation(
    ledger: LedgerAddress, pcs: Pcs, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "--model, --before" in pcs.refused("ledger", "prune", ledger)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert main(["ledger", "prune", str(ledger), "--model", "scripted:hash"]) == 130  # no answer
    capsys.readouterr()
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert pcs.json("ledger", "prune", ledger, "--model", "scripted:hash") == {"deleted": 0}
    assert pcs.json("ledger", "prune", ledger, "--before", "2020-01-01", "--yes") == {"deleted": 0}
    assert "5 calls deleted" in pcs.out("ledger", "prune", ledger, "--model", "scripted:hash", "--yes")


def test_a_missing_ledger_is_named_and_not_created(tmp_path: Path, pcs: Pcs) -> None:
    assert "nowhere.db" in pcs.refused("ledger", "size", tmp_path / "nowhere.db")
    assert not (tmp_path / "nowhere.db").exists()


def test_a_damaged_ledger_is_refused_with_the_command_that_saves_it(tmp_path: Path, pcs: Pcs) -> None:
    ledger = tmp_path / "ledger.db"
    filled(ledger)
    ledger.write_bytes(b"overwritten" + ledger.read_bytes()[11:])
    damaged = ledger.read_bytes()
    assert f"sqlite3 {ledger} .recover | sqlite3 saved.db" in pcs.refused("ledger", "size", ledger)
    assert ledger.read_bytes() == damaged
