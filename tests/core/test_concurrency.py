"""The door between ordinary and asynchronous code, with real threads and real signals."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time

import pytest

from pcs_annotator.core.concurrency import run_sync


async def double(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


def test_it_works_in_a_plain_script() -> None:
    assert run_sync(lambda: double(21)) == 42


def test_it_works_where_a_loop_is_already_running() -> None:
    async def notebook() -> int:
        return run_sync(lambda: double(21))

    assert asyncio.run(notebook()) == 42


def test_errors_come_out_as_they_are() -> None:
    async def fail() -> None:
        raise LookupError("nothing here")

    with pytest.raises(LookupError, match="nothing here"):
        run_sync(fail)


SCRIPT = """
import asyncio, sys
from pcs_annotator.core.concurrency import run_sync

async def work():
    print("started", flush=True)
    try:
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0.2)
        print("put in order", flush=True)

try:
    run_sync(work)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(130)
"""


def test_ctrl_c_lets_the_work_put_itself_in_order_first() -> None:
    process = subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=120)
    assert out == "put in order\ninterrupted\n"
    assert process.returncode == 130
