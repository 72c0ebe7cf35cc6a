"""Asynchronous code called from ordinary code, with real threads and real signals."""

import asyncio
import os
import signal
import socket
import threading
import time
from collections.abc import Coroutine
from typing import Any

import pytest

from pcs_annotator.base.concurrency import deadline, gather_all, off_loop, run_in_thread, run_sync
from pcs_annotator.base.errors import ConfigError
from pcs_annotator.base.stopping import stoppable


async def double(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


async def fail() -> int:
    raise LookupError("nothing here")


def test_a_plain_script_can_run_a_coroutine() -> None:
    assert run_sync(lambda: double(21)) == 42


def test_a_notebook_with_a_running_loop_can_run_a_coroutine() -> None:
    async def notebook() -> int:
        return run_sync(lambda: double(21))

    assert asyncio.run(notebook()) == 42


def test_errors_are_raised_unchanged() -> None:
    with pytest.raises(LookupError, match="nothing here"):
        run_sync(fail)


def test_ctrl_c_lets_the_coroutine_clean_up_first() -> None:
    events = []

    async def work() -> None:
        events.append("started")
        asyncio.get_running_loop().call_later(0.3, os.kill, os.getpid(), signal.SIGINT)
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.3)
            events.append("cleaned up")

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_sync(work)
    finally:
        signal.signal(signal.SIGINT, before)
    assert events == ["started", "cleaned up"]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_gathered_results_keep_their_order(count: int) -> None:
    assert run_sync(lambda: gather_all(double(number) for number in range(count))) == [2 * n for n in range(count)]


def test_an_error_is_raised_only_after_all_the_others_have_finished() -> None:
    finished = []

    async def slow() -> int:
        await asyncio.sleep(0.05)
        finished.append("slow")
        return 1

    with pytest.raises(LookupError, match="nothing here"):
        run_sync(lambda: gather_all([fail(), slow()]))
    assert finished == ["slow"]


def test_a_deadline_is_a_timeout() -> None:
    async def late() -> None:
        with deadline(0.01):
            await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        asyncio.run(late())


def test_a_task_that_is_cancelled_while_its_deadline_ends_it_is_cancelled() -> None:
    async def late() -> None:
        with deadline(0.01):
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
                raise

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(late())


def test_what_was_sent_late_because_the_process_stalled_is_waited_for() -> None:
    async def stalled() -> None:
        with deadline(0.05):
            time.sleep(0.08)  # the stall
            await asyncio.sleep(0.2)  # the answer

    asyncio.run(stalled())


def test_what_arrived_while_the_process_was_frozen_is_read_before_the_deadline_counts() -> None:
    """With `asyncio.timeout` this fails: what was read is thrown away."""

    async def read() -> bytes:
        loop = asyncio.get_running_loop()
        near, far = socket.socketpair()
        near.setblocking(False)
        with near, far, deadline(0.05):
            loop.call_soon(far.send, b"!")
            loop.call_soon(time.sleep, 0.2)
            return await loop.sock_recv(near, 1)

    assert asyncio.run(read()) == b"!"


def test_ordinary_code_runs_beside_the_loop_that_awaits_it() -> None:
    def work() -> int:
        assert woken.wait(10)
        return run_sync(lambda: double(21))

    async def both() -> int:
        waiting = asyncio.ensure_future(run_in_thread(work))
        await asyncio.sleep(0)
        woken.set()  # it is the loop that lets the work go on
        return await waiting

    woken = threading.Event()
    assert asyncio.run(both()) == 42


def test_errors_of_ordinary_code_are_raised_where_it_is_awaited() -> None:
    with pytest.raises(LookupError, match="nothing here"):
        asyncio.run(run_in_thread(lambda: run_sync(fail)))


def test_cancelling_lets_the_coroutine_clean_up_and_starts_no_other() -> None:
    events: list[str] = []
    started = threading.Event()

    async def work() -> None:
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.1)
            events.append("cleaned up")

    def ordinary() -> None:
        try:
            run_sync(work)
        finally:
            with pytest.raises(KeyboardInterrupt):
                run_sync(lambda: double(21))
            events.append("stopped")

    async def cancelled() -> None:
        waiting = asyncio.ensure_future(run_in_thread(ordinary))
        while not started.is_set():
            await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        events.append("cancelled")

    asyncio.run(cancelled())
    assert events == ["cleaned up", "stopped", "cancelled"]


def test_an_event_stops_what_runs_even_if_the_exception_of_a_signal_was_lost() -> None:
    ended: list[str] = []

    async def long() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("cleaned up")

    with stoppable() as stopped:
        threading.Timer(0.1, stopped.set).start()
        with pytest.raises(KeyboardInterrupt):
            run_sync(long)
    assert ended == ["cleaned up"]
    assert run_sync(lambda: double(21)) == 42


def test_an_error_for_the_user_is_shown_without_the_frames_of_every_task_that_raised_it() -> None:
    error = ConfigError("wrong")

    async def fail() -> None:
        raise error

    async def several() -> None:
        await asyncio.gather(*(fail() for _ in range(100)), return_exceptions=True)
        raise error

    with pytest.raises(ConfigError) as caught:
        run_sync(several)
    assert len(caught.traceback) < 10


@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")
def test_a_loop_that_cannot_be_made_is_an_error_and_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object, **__: object) -> None:
        raise OSError("too many open files")

    monkeypatch.setattr(asyncio.Runner, "_lazy_init", none)

    async def work() -> None: ...

    with pytest.raises(OSError, match="too many open files"):
        run_sync(work)


def test_what_fails_before_it_is_a_coroutine_is_raised() -> None:
    def start() -> Coroutine[Any, Any, None]:
        raise ValueError("not begun")

    with pytest.raises(ValueError, match="not begun"):
        run_sync(start)


@pytest.mark.asyncio
async def test_only_work_on_long_texts_is_done_in_a_thread() -> None:
    here = threading.get_ident()
    assert await off_loop(10, threading.get_ident) == here
    assert await off_loop(1_000_000, threading.get_ident) != here
