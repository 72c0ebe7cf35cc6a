"""Who may stop what runs; apart from `concurrency.py`, because every command needs this and not all need asyncio."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

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
