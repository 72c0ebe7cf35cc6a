"""Who may stop what runs; apart from `concurrency.py`, because every command needs this and not all need asyncio."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

STOPPED: ContextVar[threading.Event | None] = ContextVar("STOPPED", default=None)
"""Set when the task that waits for this thread is cancelled, see `run_in_thread`, or on Ctrl-C, see `stoppable`."""


@contextmanager
def stoppable() -> Iterator[threading.Event]:
    """Yield an event that stops whatever `run_sync` runs within the block, as Ctrl-C does.

    A signal handler sets it before it raises KeyboardInterrupt, because Python drops an exception that happens to be
    raised while it cleans up, such as after an import.
    """
    stopped = threading.Event()
    before = STOPPED.set(stopped)
    try:
        yield stopped
    finally:
        STOPPED.reset(before)


@contextmanager
def handling_stops(handler: Callable[..., Any], replaces: Callable[[object], bool]) -> Iterator[None]:
    """Let a handler take SIGINT, SIGTERM and SIGHUP within the block, if it `replaces` the one that was there."""
    signals = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        signals = []  # only the main thread may set handlers
    before = {number: was for number in signals if replaces(was := signal.getsignal(number))}
    for number in before:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, was in before.items():
            signal.signal(number, was)
