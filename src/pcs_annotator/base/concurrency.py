"""Asynchronous code called from ordinary code and the reverse, awaitables that all run to the end, and deadlines."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import Future, wait
from contextvars import copy_context
from typing import Any, TypeVar

from pcs_annotator.base.errors import PcsError
from pcs_annotator.base.stopping import STOPPED

T = TypeVar("T")

LONGEST_GRACE = 1.0
LONG_TEXT = 5_000  # characters: rules for letters take some milliseconds
STALL = 0.01  # seconds by which a timer of a loop that is only busy may be late


def run_sync(start: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine in a thread with its own event loop, and return its result.

    Works in a script and where a loop is already running, such as a notebook. Ctrl-C cancels the coroutine, waits for
    its cleanup to finish, and is then raised here.
    """
    stopped = STOPPED.get()
    if stopped is not None and stopped.is_set():
        raise KeyboardInterrupt
    running: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = Future()
    result: Future[T] = Future()

    async def supervised() -> None:
        task = asyncio.ensure_future(start())
        running.set_result((asyncio.get_running_loop(), task))
        try:
            result.set_result(await task)
        except PcsError as error:  # several tasks may have raised it, and each added its frames
            result.set_exception(error.with_traceback(None))
        except BaseException as error:
            result.set_exception(error)

    def main() -> None:
        work = supervised()
        try:
            asyncio.run(work)
        except BaseException as error:  # no loop could be made, as when no file can be opened
            work.close()
            if not result.done():
                result.set_exception(error)

    # with the caller's context, so that it knows which locks are held here;
    # daemon: a second Ctrl-C ends the process even while the first is being handled
    thread = threading.Thread(target=copy_context().run, args=(main,), name="pcs-engine", daemon=True)
    thread.start()
    try:
        _wait(result, stopped)
    except KeyboardInterrupt:
        loop, task = running.result()
        loop.call_soon_threadsafe(task.cancel)
        _wait(result)
        raise
    finally:
        thread.join(timeout=10)
    return result.result()


async def run_in_thread(work: Callable[[], T]) -> T:
    """Run ordinary code in a thread of its own, so that the loop goes on, and return its result.

    Cancelling does there what Ctrl-C does in a script: coroutines that `run_sync` runs are cancelled and clean up, and
    only then is the cancellation raised here.
    """
    stopped = threading.Event()
    result: Future[T] = Future()

    def main() -> None:
        STOPPED.set(stopped)
        try:
            result.set_result(work())
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=copy_context().run, args=(main,), name="pcs-work", daemon=True).start()
    waiting = asyncio.wrap_future(result)
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        stopped.set()
        await asyncio.wait([waiting])
        waiting.exception()  # marked as retrieved: the caller knows that it was stopped
        raise


async def off_loop(characters: int, work: Callable[[], T]) -> T:
    """Do work on a text, a long one in a thread, so that a service goes on answering others."""
    return await asyncio.to_thread(work) if characters > LONG_TEXT else work()


async def gather_all(work: Iterable[Awaitable[T]]) -> list[T]:
    """Run awaitables concurrently, all of them to the end, and then raise the first error.

    An error does not cancel the others: a request that was sent is paid for, so its reply must be kept. A single
    awaitable is awaited without the cost of a task.
    """
    parts = list(work)
    if len(parts) == 1:
        return [await parts[0]]
    results = await asyncio.gather(*parts, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]


def _wait(result: Future[Any], stopped: threading.Event | None = None) -> None:
    """Wait in short slices, because a wait without a timeout cannot be interrupted on every system."""
    while not wait([result], timeout=0.2).done:
        if stopped is not None and stopped.is_set():
            raise KeyboardInterrupt


class deadline:
    """Raise TimeoutError after this time; if the process was frozen at that moment, it first reads what has arrived.

    Otherwise it does what `asyncio.timeout` does, at half the cost: every call to a model has one.
    """

    __slots__ = ("_cancelling", "_due", "_expired", "_loop", "_seconds", "_task", "_timer")

    def __init__(self, seconds: float) -> None:
        self._seconds, self._expired = seconds, False

    def __enter__(self) -> None:
        self._loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        self._task, self._cancelling = task, task.cancelling()
        self._due = self._loop.time() + self._seconds
        self._timer = self._loop.call_at(self._due, self._read_first)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        self._timer.cancel()
        # somebody else may have cancelled the task, too
        if self._expired and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def _read_first(self) -> None:
        late = self._loop.time() - self._due
        # After a stall, what was sent late has not been waited for at all, and may just be on its way.
        self._timer = self._loop.call_later(LONGEST_GRACE if late > STALL else late, self._expire)

    def _expire(self) -> None:
        self._expired = True
        self._task.cancel()
