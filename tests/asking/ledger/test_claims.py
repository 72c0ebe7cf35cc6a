import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from pcs_annotator.asking.ledger.open_ledger import open_ledger
from pcs_annotator.asking.ledger.sqlite import entry_of
from pcs_annotator.core.chat import Reply

pytestmark = pytest.mark.system

if sys.platform == "win32":
    pytest.skip("Windows has no such locks", allow_module_level=True)

KEYS = [letter * 16 for letter in (b"a", b"b", b"c")]
OTHER = """
import asyncio, sys
from pcs_annotator.asking.ledger.sqlite import entry_of
from pcs_annotator.asking.ledger.open_ledger import open_ledger
from pcs_annotator.core.chat import Reply

async def main():
    with open_ledger(sys.argv[1]) as ledger:
        for key in (b"a" * 16, b"b" * 16, b"c" * 16):
            assert await ledger.claim(key) is None
        print("claimed", flush=True)
        sys.stdin.readline()
        await ledger.put(entry_of(b"a" * 16, "m", "label", Reply(text="good"), None))
        ledger.give_up(b"b" * 16)
        print("answered", flush=True)
        sys.stdin.readline()

asyncio.run(main())
"""


def test_a_call_of_another_process_is_waited_for_until_it_is_answered_given_up_or_its_process_is_lost(
    tmp_path: Path,
) -> None:
    path = tmp_path / "ledger.db"
    command = [sys.executable, "-c", OTHER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline() == "claimed\n"
        lines = other.stdin, other.stdout

        async def main() -> None:
            with open_ledger(path) as ledger:
                answered, given_up, lost = (asyncio.create_task(ledger.claim(key)) for key in KEYS)
                await asyncio.sleep(0.2)
                assert not any(task.done() for task in (answered, given_up, lost))
                lines[0].write("go on\n")
                lines[0].flush()
                assert lines[1].readline() == "answered\n"
                assert await answered == Reply(text="good")
                assert await given_up is None
                assert not lost.done()
                other.kill()
                assert await lost is None

        asyncio.run(main())


def test_what_was_stored_between_looking_and_claiming_is_not_paid_for_again(tmp_path: Path) -> None:
    async def main() -> None:
        with open_ledger(tmp_path / "ledger.db") as ledger:
            ledger.give_up(KEYS[0])  # nothing has been claimed
            assert await ledger.claim(KEYS[0]) is None
            await ledger.put(entry_of(KEYS[0], "m", "label", Reply(text="good"), None))
            assert await ledger.claim(KEYS[0]) == Reply(text="good")

    asyncio.run(main())
