"""`run_sync` calls asynchronous code from ordinary code; `gather_all` runs several awaitables to the end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


def run_sync(start: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine in a thread with its own event loop, and return its result.

    Works in a script and where a loop is already running, such as a notebook. Ctrl-C cancels the coroutine, waits for
    its cleanup to finish, and is then raised here.
    """
    running: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = Future()
    result: Future[T] = Future()

    async def supervised() -> None:
        task = asyncio.ensure_future(start())
        running.set_result((asyncio.get_running_loop(), task))
        try:
            result.set_result(await task)
        except BaseException as error:
            result.set_exception(error)

    # daemon: a second Ctrl-C ends the process even while the first is being handled
    thread = threading.Thread(target=lambda: asyncio.run(supervised()), name="pcs-engine", daemon=True)
    thread.start()
    try:
        _wait(result)
    except KeyboardInterrupt:
        loop, task = running.result()
        loop.call_soon_threadsafe(task.cancel)
        _wait(result)
        raise
    finally:
        thread.join(timeout=10)
    return result.result()


async def gather_all(work: Iterable[Awaitable[T]]) -> list[T]:
    """Run awaitables concurrently, all of them to the end, and then raise the first error.

    An error does not cancel the others: a request that was sent is paid for, so its reply must be kept. A single
    awaitable is awaited without the cost of a task.
    """
    parts = list(work)
    if len(parts) < 2:
        return [await part for part in parts]
    results = await asyncio.gather(*parts, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]


def _wait(result: Future[Any]) -> None:
    """Wait in short slices, because a wait without a timeout cannot be interrupted on every system."""
    done = threading.Event()
    result.add_done_callback(lambda _: done.set())
    while not done.wait(0.2):
        pass
