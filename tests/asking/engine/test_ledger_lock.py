from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pcs_annotator.asking.engine.ledger_lock import lock_ledger
from pcs_annotator.errors import LedgerError


def enter(ledger: Path) -> None:
    with lock_ledger(ledger):
        pass


def test_the_turn_at_a_ledger_is_waited_for(tmp_path: Path) -> None:
    order: list[str] = []

    def second() -> None:
        with lock_ledger(tmp_path / "ledger.db"):
            order.append("second")

    waiting = threading.Thread(target=second)
    with lock_ledger(tmp_path / "ledger.db"):
        waiting.start()
        waiting.join(timeout=0.5)
        order.append("first")
    waiting.join()
    assert order == ["first", "second"]


def test_a_ledger_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LedgerError, match=r"ledger\.db-turn cannot be opened"):
        enter(tmp_path / "file" / "ledger.db")
    (tmp_path / "own.db-turn").write_text("something else, and rather long " * 40)
    with pytest.raises(LedgerError, match=r"own\.db-turn cannot be locked"):
        enter(tmp_path / "own.db")


def test_a_process_that_dies_gives_its_turn_back(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pcs_annotator.asking.engine.ledger_lock import lock_ledger\n"
        "with lock_ledger(sys.argv[1]): print('mine', flush=True); os._exit(9)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "ledger.db")]
    died = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (died.stdout, died.returncode) == ("mine\n", 9)
    enter(tmp_path / "ledger.db")
