import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pcs_annotator import CollectSettings, Item, Task, collect
from pcs_annotator.asking.engine.budget import LOOK_EVERY, Budget, BudgetTracker, Cost, LedgerSpending
from pcs_annotator.asking.ledger.admin import LedgerEntry
from pcs_annotator.asking.ledger.open_ledger import open_ledger, open_server_ledger
from pcs_annotator.asking.ledger.sqlite import Ledger, entry_of
from pcs_annotator.base.concurrency import run_sync
from pcs_annotator.base.errors import BudgetReached, LedgerError, MissingPackage
from pcs_annotator.core.chat import Reply, Usage
from pcs_annotator.core.ledger_address import LedgerAddress, on_server
from tests.postgres import GUEST, PASSWORD, USER, PostgresServer
from tests.stub import Behaviour, StubProcess, stub_process

pytestmark = pytest.mark.system

MODULE = "pcs_annotator.asking.ledger.on_server"
ROOT = Path(__file__).resolve().parents[3]
ROWS = 160
KEY = b"k" * 16


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where answers are kept that no server takes


@pytest.fixture
def address(postgres: PostgresServer) -> str:
    return postgres.new_ledger()


def paid(key: bytes = KEY, text: str = "yes") -> LedgerEntry:
    return entry_of(key, "m", "label", Reply(text=text, usage=Usage(input_tokens=10, output_tokens=2)), 0.001)


def test_a_call_is_claimed_once_and_others_wait_for_its_reply(address: str) -> None:
    async def main() -> None:
        with open_ledger(address) as first, open_ledger(address) as second:
            assert await first.claim(KEY) is None
            waiting = [asyncio.create_task(ledger.claim(KEY)) for ledger in (second, second, first)]
            await asyncio.sleep(0.3)
            assert not any(task.done() for task in waiting)
            await first.put(paid())
            replies = await asyncio.gather(*waiting, second.claim(KEY))
            assert [reply and reply.text for reply in replies] == ["yes"] * 4

    asyncio.run(main())


def test_a_call_that_fails_or_is_cancelled_can_be_claimed_by_another(address: str) -> None:
    async def main() -> None:
        with open_ledger(address) as first, open_ledger(address) as second:
            assert await first.claim(KEY) is None
            waiting, cancelled = (asyncio.create_task(second.claim(KEY)) for _ in range(2))
            await asyncio.sleep(0.2)
            cancelled.cancel()
            first.give_up(KEY)
            assert await waiting is None
            leaving = asyncio.create_task(second.claim(b"2" * 16))
            await asyncio.sleep(0)
            leaving.cancel()
            assert await first.claim(b"2" * 16) is None
        with open_ledger(address) as third:  # closing ends claims as well
            assert await third.claim(KEY) is None

    asyncio.run(main())


HOLD = """
import asyncio, sys
from pcs_annotator.asking.ledger import on_server as ledger_postgres

ledger_postgres.LEASE_SECONDS = 1.0

async def main():
    with ledger_postgres.PostgresLedger(sys.argv[1]) as ledger:
        assert await ledger.claim(b"k" * 16) is None
        print("claimed", flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


def test_the_claims_of_a_process_that_is_killed_pass_to_others(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{MODULE}.LEASE_SECONDS", 1.0)
    command = [sys.executable, "-c", HOLD, address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "claimed\n"

        async def main() -> None:
            with open_ledger(address) as ledger:
                waiting = asyncio.create_task(ledger.claim(KEY))
                await asyncio.sleep(1.5)  # longer than the lease: it is alive, so its claim is
                assert not waiting.done()
                process.send_signal(signal.SIGKILL)
                assert await asyncio.wait_for(waiting, 60) is None

        asyncio.run(main())


@pytest.mark.parametrize("crash", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_restart_of_the_server_loses_no_reply_and_no_claim(
    crash: bool, postgres: PostgresServer, address: str
) -> None:
    async def main() -> None:
        with open_ledger(address) as first, open_ledger(address) as second:
            assert await first.claim(KEY) is None
            await first.put(paid(b"1" * 16))
            postgres.stop(crash=crash)
            waiting = asyncio.create_task(second.claim(KEY))
            wishes = asyncio.gather(second.find([b"1" * 16]), second.claim(b"2" * 16), first.put(paid(b"3" * 16)))
            await asyncio.sleep(0.3)
            postgres.start()
            found, claimed, _ = await wishes
            assert (list(found), claimed, waiting.done()) == ([b"1" * 16], None, False)
            await first.put(paid())
            assert await waiting is not None
            assert first.count() == sum(bill.calls for bill in first.bills()) == 3

    asyncio.run(main())


def test_a_reply_that_is_written_again_after_a_lost_connection_is_not_counted_twice(address: str) -> None:
    entry = paid()
    with open_ledger(address) as ledger:
        for one in (entry, entry, paid(text="another reply")):
            asyncio.run(ledger.put(one))
        assert [bill.calls for bill in ledger.bills()] == [2]


def test_replies_that_the_server_does_not_take_are_kept_and_stored_later(
    postgres: PostgresServer, address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(f"{MODULE}.PATIENCE_SECONDS", 0.2)

    async def lose() -> None:
        with open_ledger(address) as ledger:
            await ledger.put(paid(b"1" * 16))
            postgres.stop()
            try:
                with pytest.raises(LedgerError, match=r"cannot be reached.*kept in .*rescued-calls-\w+\.db"):
                    await ledger.put(paid(b"2" * 16))
                with pytest.raises(LedgerError, match="cannot be reached"):
                    await ledger.find([b"1" * 16])
                with pytest.raises(LedgerError, match="cannot be reached"):
                    ledger.count()
            finally:
                postgres.start()
            assert await ledger.find([b"1" * 16])  # a service goes on when the server is back

    asyncio.run(lose())
    (kept,) = tmp_path.glob("rescued-calls-*.db")
    with Ledger(kept) as file:
        assert [entry.key for entry in file.entries()] == [b"2" * 16]
    with open_ledger(address) as ledger:
        assert ledger.count() == 2
    assert not kept.exists()


FULL_DISK = """CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$;
CREATE TRIGGER full_disk BEFORE INSERT ON calls EXECUTE FUNCTION fail();"""


def test_a_full_disk_is_reported_and_nothing_is_lost(address: str) -> None:
    from pcs_annotator.asking.ledger import postgres

    with open_ledger(address) as ledger:
        asyncio.run(ledger.put(paid(b"1" * 16)))
        with postgres.connect(address) as connection:
            connection.execute(FULL_DISK)
        with pytest.raises(LedgerError, match=r"disk is full .*free some space.*kept in .*rescued-calls"):
            asyncio.run(ledger.put(paid(b"2" * 16)))
        assert "disk is full" in refusal(address)  # what was kept cannot be stored yet
        with postgres.connect(address) as connection:
            connection.execute("DROP TRIGGER full_disk ON calls")
    with open_ledger(address) as ledger:
        assert {entry.key for entry in ledger.entries()} == {b"1" * 16, b"2" * 16}


def refusal(address: str) -> str:
    """Return why a ledger cannot be opened."""
    with pytest.raises(LedgerError) as caught, open_ledger(address):
        pass
    return str(caught.value)


def test_a_wrong_address_is_explained(address: str) -> None:
    assert "127.0.0.1:1/team: the server cannot be reached" in refusal("postgresql://nobody@127.0.0.1:1/team")
    assert "create it with createdb" in refusal(address.replace("/team?", "/other?"))
    unreadable = refusal("postgresql://me:se@cret/word@host/db")
    assert "cannot be read: write postgresql://USER@HOST" in unreadable
    assert "cret" not in unreadable


def test_a_password_comes_from_the_address_or_the_environment_and_is_never_shown(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = postgres.new_ledger(with_password=True)
    with open_ledger(address) as ledger:
        assert ledger.count() == 0
    stored = address.replace(f":{PASSWORD}", "")
    assert "does not let this user in (" in refusal(stored)
    assert "set PGPASSWORD" in refusal(stored)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with open_ledger(stored) as ledger:
        assert ledger.count() == 0
    assert "another-word" not in refusal(address.replace(PASSWORD, "another-word"))


def test_a_user_without_rights_and_a_newer_ledger_are_explained(address: str) -> None:
    from pcs_annotator.asking.ledger import postgres

    with open_ledger(address):
        pass
    assert "GRANT USAGE" in refusal(address.replace(f"{USER}@", f"{GUEST}@"))
    with postgres.connect(address) as connection:
        connection.execute("UPDATE version SET version = version + 1")
    assert "newer version" in refusal(address)


@pytest.mark.parametrize(
    "edit",
    [
        r"UPDATE calls SET reply = '\xff00'",
        "UPDATE calls SET finish = 'never'",
        r"UPDATE calls SET logprobs = '\x0102030405'",
        "UPDATE calls SET input_tokens = NULL; ALTER TABLE calls ALTER reply TYPE text USING encode(reply, 'hex')",
    ],
)
def test_an_answer_that_somebody_has_changed_is_named_with_the_remedy(address: str, edit: str) -> None:
    from pcs_annotator.asking.ledger import postgres

    with open_ledger(address) as ledger:
        asyncio.run(ledger.put(paid()))
        with postgres.connect(address) as connection:
            connection.execute(edit.encode())
        changed = rf"somebody has changed an answer in it \(.*DELETE FROM calls WHERE key = '\\x{KEY.hex()}'"
        for look in (lambda: ledger.find([KEY]), lambda: ledger.claim(KEY)):
            with pytest.raises(LedgerError, match=changed):
                asyncio.run(look())
        with pytest.raises(LedgerError, match=changed):
            list(ledger.entries())
        with postgres.connect(address) as connection:  # the remedy
            connection.execute(rf"DELETE FROM calls WHERE key = '\x{KEY.hex()}'".encode())
        assert asyncio.run(ledger.find([KEY])) == {}


def test_tables_that_somebody_has_changed_are_named_with_the_remedy(address: str) -> None:
    from pcs_annotator.asking.ledger import postgres

    with open_ledger(address) as ledger:
        with postgres.connect(address) as connection:
            connection.execute("ALTER TABLE calls DROP COLUMN logprobs")
        with pytest.raises(LedgerError, match=r"not those of a ledger \(.*logprobs.*put them back"):
            asyncio.run(ledger.find([KEY]))


def test_a_colleague_adds_to_the_sums_of_a_budget_without_rights_on_them(address: str) -> None:
    from pcs_annotator.asking.ledger import postgres

    guest = address.replace(f"{USER}@", f"{GUEST}@")
    with open_ledger(address) as ledger:
        with postgres.connect(address) as connection:
            (schema,) = connection.execute("SELECT current_schema()").fetchone() or ("",)
            connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO {GUEST}".encode())
            connection.execute(
                f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {GUEST}".encode()
            )
        with open_ledger(guest) as other:
            with pytest.raises(LedgerError, match="its owner must use a budget in dollars there once"):
                other.keep_sums()
            ledger.keep_sums()
            asyncio.run(other.put(paid()))
            assert [*other.keep_sums().by_day(lambda *_: None).values()] == [0.001]


def test_the_workers_of_a_run_see_what_the_others_pay_and_when_its_leader_is_gone(address: str) -> None:
    async def main() -> None:
        with open_server_ledger(address) as leader:
            run = leader.lead_run()
            with (
                open_server_ledger(address, worker="one", run=run) as one,
                open_server_ledger(address, worker="two", run=run) as two,
            ):
                tracker = BudgetTracker(Budget(calls=3), LedgerSpending(two, lambda *_: None).now)
                for key in (b"1" * 16, b"2" * 16):
                    await one.put(paid(key))
                assert tracker.hold(Cost(None, 12))
                await two.put(paid(b"3" * 16))
                tracker.pay(Cost(None, 12))
                time.sleep(2 * LOOK_EVERY)
                assert not tracker.hold(Cost(None, 12))
                with pytest.raises(BudgetReached, match="--max-calls is reached"):
                    tracker.check(Cost(None, 12))
                assert leader.paid_in_run() == (3, 36)
                assert two.run_is_led()
                assert await one.claim(KEY) is None
                # a worker that was lost is started again under its name, and takes over its claims and what it paid
                with open_server_ledger(address, worker="one", run=run) as again:
                    assert await again.claim(KEY) is None
                    assert LedgerSpending(again, lambda *_: None).now().beside == (3, 36)
                leader.__exit__()
                assert not two.run_is_led()
        with open_server_ledger(address) as leader:
            leader.lead_run()
            assert leader.paid_in_run() == (0, 0)

    asyncio.run(main())


def test_a_server_that_is_starting_up_is_waited_for(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import psycopg

    from pcs_annotator.asking.ledger import postgres

    opened, said = postgres.open_ledger_tables, ["shutting down", "starting up"]

    def not_yet(address: str) -> postgres.Connection:
        if said:
            raise psycopg.OperationalError(f"FATAL:  the database system is {said.pop()}")
        return opened(address)

    monkeypatch.setattr(postgres, "open_ledger_tables", not_yet)
    with open_ledger(address) as ledger:
        assert ledger.count() == 0
    assert not said


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for name in (MODULE, "pcs_annotator.asking.ledger.postgres"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(MissingPackage, match=r"perceived-confidence\[postgres\]"):
        open_ledger("postgresql://host/db")


def collected(url: str, ledger: LedgerAddress, first: int = 0) -> list[int]:
    """Ask about all rows, beginning with one of them, and return the codes."""
    rows = [*range(first, ROWS), *range(first)]
    items = (Item(id=str(row), text=f"Text number {row} is rather nice.") for row in rows)
    settings = CollectSettings(environment={}, in_flight=16)
    task = Task("How does the writer feel?", ["positive", "neutral", "negative"])
    votes = run_sync(lambda: collect(task, items, [f"{url}#m"], ledger=ledger, settings=settings))
    return [code for _, code in sorted(zip(rows, votes.codes.ravel().tolist(), strict=True))]


SCRIPT = """
import sys
from tests.asking.ledger.test_on_server import collected
from pcs_annotator.core.ledger_address import on_server
from pathlib import Path

ledger = sys.argv[2] if on_server(sys.argv[2]) else Path(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
print(collected(sys.argv[1], ledger, int(sys.argv[3])), flush=True)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[StubProcess]:
    with stub_process(Behaviour(latency_s=0.05)) as stub:
        yield stub


def test_two_processes_on_one_ledger_pay_for_each_call_once_even_if_its_server_restarts(
    new_ledger: Callable[[], LedgerAddress], server: StubProcess, request: pytest.FixtureRequest
) -> None:
    server.reset()
    ledger = str(new_ledger())
    commands = [[sys.executable, "-c", SCRIPT, server.url, ledger, str(first)] for first in (0, ROWS // 4)]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes: list[Any] = [subprocess.Popen(one, cwd=ROOT, **pipes) for one in commands]
    for process in processes:  # a process that is still starting would find no server
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    while server.stats().answered < ROWS // 4:
        assert None in [process.poll() for process in processes]
        time.sleep(0.01)
    if on_server(ledger):
        postgres: PostgresServer = request.getfixturevalue("postgres")
        postgres.stop()
        time.sleep(0.3)
        postgres.start()
    codes = {process.communicate(timeout=120)[0] for process in processes}
    assert [process.returncode for process in processes] == [0, 0]
    assert len(codes) == 1
    assert len(codes.pop()) > ROWS
    assert (server.stats().answered, server.stats().answered_twice) == (ROWS, 0)
