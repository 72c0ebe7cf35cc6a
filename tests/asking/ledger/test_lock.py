import asyncio
import subprocess
import sys
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pcs_annotator import NOT_ASKED, Annotator, CollectSettings, Item, Task, Votes, collect
from pcs_annotator.asking.engine.budget import Budget
from pcs_annotator.asking.ledger.lock import lock_ledger
from pcs_annotator.base.concurrency import run_sync
from pcs_annotator.base.errors import LedgerError

pytestmark = pytest.mark.system


def enter_lock(ledger: Path, *, wait: bool = True) -> None:
    with lock_ledger(ledger, wait=wait):
        pass


def test_the_lock_of_a_ledger_is_waited_for(tmp_path: Path) -> None:
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


def test_a_lock_that_cannot_be_opened_or_taken_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LedgerError, match=r"ledger\.db-turn cannot be opened"):
        enter_lock(tmp_path / "file" / "ledger.db")
    (tmp_path / "own.db-turn").write_text("something else, and rather long " * 40)
    with pytest.raises(LedgerError, match=r"own\.db-turn cannot be locked"):
        enter_lock(tmp_path / "own.db")


HOLD = (
    "import os, sys; from pcs_annotator.asking.ledger.lock import lock_ledger\n"
    "with lock_ledger(sys.argv[1]): print('mine', flush=True); sys.stdin.read() or os._exit(9)"
)


@contextmanager
def held_elsewhere(ledger: Path) -> Iterator[subprocess.Popen[str]]:
    """Hold a ledger in another process, which dies when its input is closed."""
    command = [sys.executable, "-c", HOLD, str(ledger)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "mine\n"
        yield process
        process.stdin.close()


def test_the_holder_is_named_once_and_its_lock_is_free_when_it_dies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pcs_annotator.asking.ledger.lock.SILENT_SECONDS", 0)
    ledger, said = tmp_path / "ledger.db", list[str]()
    with held_elsewhere(ledger) as other:
        with pytest.raises(LedgerError, match=rf"in use by python .*process {other.pid} on .*since 20.*--no-wait"):
            enter_lock(ledger, wait=False)

        def say(text: str) -> None:
            said.append(text)
            assert other.stdin is not None
            other.stdin.close()

        with lock_ledger(ledger, say=say), lock_ledger(ledger):
            assert other.wait() == 9
    assert len(said) == 1
    assert f"waiting for python {ledger} (process {other.pid} on " in said[0]
    assert not Path(f"{ledger}-holder").exists()


def test_the_event_loop_goes_on_while_a_ledger_is_waited_for(tmp_path: Path) -> None:
    ledger, items = tmp_path / "ledger.db", [Item(id="a", text="Fine.")]
    task, settings = Task("Feel?", ["good", "bad"]), CollectSettings(environment={})

    def asking() -> Coroutine[Any, Any, Votes]:
        return collect(task, items, ["scripted:hash"], ledger=ledger, settings=settings)

    async def wait_and_give_up() -> None:
        waiting = asyncio.create_task(asking())
        await asyncio.sleep(0.1)  # would not return if the loop were blocked
        assert not waiting.done()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    with held_elsewhere(ledger):
        asyncio.run(wait_and_give_up())
    with lock_ledger(ledger):
        assert len(run_sync(asking)) == 1  # whoever holds it asks without waiting for itself


def test_tasks_of_one_event_loop_ask_together_and_pay_once(tmp_path: Path) -> None:
    asked: list[str] = []

    async def together() -> list[Votes]:
        both = asyncio.Barrier(2)

        async def good(prompt: str) -> str:
            asked.append(prompt)
            await asyncio.wait_for(both.wait(), 5)
            return "<label>good</label>"

        def asking(text: str, **more: Any) -> Coroutine[Any, Any, Votes]:
            settings = CollectSettings(environment={}, **more)
            task, items = Task("Feel?", ["good", "bad"]), [Item(id="a", text=text)]
            annotator = Annotator(good, name="good", version="1")
            return collect(task, items, [annotator], ledger=tmp_path / "l.db", settings=settings)

        refused = asking("Fine.", budget=Budget(calls=0))
        return list(await asyncio.gather(refused, asking("Fine."), asking("Fine."), asking("Not so fine.")))

    none, *others = asyncio.run(together())
    assert none.codes.ravel() == [NOT_ASKED]
    assert [votes.codes.ravel().tolist() for votes in others] == [[0]] * 3
    assert len(asked) == 2
    assert not Path(tmp_path / "l.db-holder").exists()
    enter_lock(tmp_path / "l.db", wait=False)
