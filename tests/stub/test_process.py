"""The stub in a separate process."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest

from tests.stub import Behaviour, stub_process
from tests.stub.talking import Got, post, question

pytestmark = [pytest.mark.system, pytest.mark.enable_socket]

ROOT = Path(__file__).resolve().parents[2]


async def ask_process(url: str, count: int) -> list[Got]:
    async with aiohttp.ClientSession() as session:
        asked = (post(session, f"{url}/chat/completions", question(f"text {number}")) for number in range(count))
        return await asyncio.gather(*asked)


def refuses_connections(root: str) -> bool:
    async def run() -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", urlsplit(root).port)
        except OSError:
            return True
        writer.close()
        return False

    return asyncio.run(run())


def test_process_serves_counts_changes_and_ends_with_its_block() -> None:
    with stub_process(Behaviour(labels=("x", "y"), record_times=True)) as stub:
        assert {got.text for got in asyncio.run(ask_process(stub.url, 20))} == {"<label>x</label>", "<label>y</label>"}
        stats = stub.stats(full=True)
        assert (stats.requests, stats.answered, stats.by_status) == (20, 20, {200: 20})
        assert len(stats.arrivals) == stats.questions == 20
        stub.change(share_500=1, labels=["z"])
        assert {got.status for got in asyncio.run(ask_process(stub.url, 5))} == {500}
        assert stub.stats().asked_again == 5
        with pytest.raises(ValueError, match="no such behaviour"):
            stub.change(nonsense=1)
        stub.reset()
        assert stub.stats().requests == 0
    assert refuses_connections(stub.root)


def test_process_ends_when_its_parent_is_killed() -> None:
    code = "import os\nfrom tests.stub import stub_process\nwith stub_process() as stub:\n"
    code += "    print(stub.root, flush=True)\n    os.kill(os.getpid(), 9)"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    until = time.monotonic() + 60
    while not refuses_connections(result.stdout.strip()):
        assert time.monotonic() < until
        time.sleep(0.05)


def test_command_line_prints_the_url_and_stops_after_its_time() -> None:
    command = [sys.executable, "-m", "tests.stub", "--behaviour", '{"rate": 100}', "--max-seconds", "0.1"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout.startswith("http://127.0.0.1:")
    assert result.stderr == ""
