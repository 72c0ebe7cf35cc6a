"""One writer per ledger: who may ask, who waits, and for whom."""

import asyncio
import os
import platform
import sqlite3
import sys
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from pcs_annotator.base.errors import LedgerError, PcsError, warn_user
from pcs_annotator.core.chat import Reply
from pcs_annotator.core.ledger_address import LedgerAddress, on_server, without_password

LOCK_ATTEMPT_SECONDS = 0.05
SILENT_SECONDS = 0.5  # a shorter wait for a lock is not worth a word
ANSWERS_REMEMBERED = 50_000  # far more calls than come between looking for a reply and asking for it

Say = Callable[[str], None]  # takes a sentence for the user
Refusal = Callable[[str], PcsError]  # makes the error about a lock that is held from the name of its holder
_Own = tuple[int, LedgerAddress]  # a process and a ledger
_HELD: ContextVar[frozenset[_Own]] = ContextVar("ledgers that this thread or task holds", default=frozenset())


@contextmanager
def lock_ledger(ledger: LedgerAddress, *, wait: bool = True, say: Say = warn_user) -> Iterator[None]:
    """Hold the lock of a ledger, so that no call is paid for twice; code that holds it already just goes on.

    SQLite locks an empty file next to the ledger. This works on every system, between threads as well as between
    processes, and the lock is released when its holder dies. Another file says who the holder is. A ledger on a server
    has no lock: there, every call is claimed. If the lock is held, that is an error without `wait`; with it, `say` is
    called once, with the holder.
    """
    state = _own(ledger)
    if holds_lock(ledger):
        yield
        return
    with _attempts(ledger, None if wait else _in_use(ledger), say) as attempt:
        while not attempt():
            time.sleep(LOCK_ATTEMPT_SECONDS)
        with _holding(state):
            yield


@contextmanager
def lock_or_refuse(path: Path | str, refuse: Refusal) -> Iterator[None]:
    """Hold a lock of the same kind on something else than a ledger, or raise what `refuse` makes of its holder."""
    with _attempts(path, refuse, warn_user) as attempt:
        attempt()
        yield


@dataclass(slots=True)
class SharedCalls:
    """What the tasks of an event loop that hold a ledger together share."""

    lock: ExitStack = field(default_factory=ExitStack)  # releases the lock
    tasks: int = 0  # how many tasks hold it
    # key of a call → who asks, and the reply to come
    under_way: dict[bytes, tuple[object, asyncio.Future[Reply]]] = field(default_factory=dict)
    # keys of the latest calls. A task that looked for a reply too early checks here before it pays again.
    answered: OrderedDict[bytes, None] = field(default_factory=OrderedDict)

    def note_answer(self, key: bytes) -> None:
        """Remember that a call was answered."""
        self.answered[key] = None
        if len(self.answered) > ANSWERS_REMEMBERED:
            self.answered.popitem(last=False)  # of a dict, the first key is ever further from its beginning


_SHARED: dict[tuple[asyncio.AbstractEventLoop, _Own], SharedCalls] = {}


@asynccontextmanager
async def lock_ledger_async(ledger: LedgerAddress, *, wait: bool = True) -> AsyncIterator[SharedCalls]:
    """Do the same as `lock_ledger` in an event loop, which goes on while the lock is waited for.

    Tasks of one loop hold the lock together, so that many can ask at the same time. They share the calls under way.
    """
    state = _own(ledger)
    here = (asyncio.get_running_loop(), state)
    if holds_lock(ledger):
        yield _SHARED.get(here) or SharedCalls()
        return
    with ExitStack() as lock:
        if here not in _SHARED:
            attempt = lock.enter_context(_attempts(ledger, None if wait else _in_use(ledger), warn_user))
            while here not in _SHARED and not attempt():
                await asyncio.sleep(LOCK_ATTEMPT_SECONDS)
        if here not in _SHARED:
            _SHARED[here] = SharedCalls(lock.pop_all())
    shared = _SHARED[here]
    shared.tasks += 1
    try:
        with _holding(state):
            yield shared
    finally:
        shared.tasks -= 1
        if not shared.tasks:
            del _SHARED[here]
            shared.lock.close()


def holds_lock(ledger: LedgerAddress) -> bool:
    """Return whether this thread or task holds the lock of a ledger."""
    return _own(ledger) in _HELD.get()


def _in_use(ledger: LedgerAddress) -> Refusal:
    remedy = "run again when that has ended, or wait for it (without --no-wait; in Python, with wait=True)"
    return lambda holder: LedgerError(f"{ledger} is in use by {holder}: {remedy}")


def _own(ledger: LedgerAddress) -> _Own:
    return os.getpid(), ledger if on_server(ledger) else Path(ledger).resolve()


@contextmanager
def _holding(state: _Own) -> Iterator[None]:
    before = _HELD.set(_HELD.get() | {state})
    try:
        yield
    finally:
        _HELD.reset(before)


@contextmanager
def _attempts(ledger: LedgerAddress, refuse: Refusal | None, say: Say) -> Iterator[Callable[[], bool]]:
    """Yield a function that tries to take a lock and returns whether it did; release the lock at the end.

    If it is held, that raises what `refuse` makes of its holder; without that, the lock is waited for.
    """
    if on_server(ledger):
        yield lambda: True
        return
    path, holder = Path(f"{ledger}-turn"), Path(f"{ledger}-holder")
    remedy = "put the ledger in a folder that you can write to"
    started, announced, taken = time.monotonic(), False, False

    def attempt() -> bool:
        nonlocal announced, taken
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise LedgerError(f"{path} cannot be locked ({error}): {remedy}") from error
            if refuse is not None:
                raise refuse(_holder(holder)) from None
            if not announced and time.monotonic() - started >= SILENT_SECONDS:
                announced, other = True, _holder(holder)
                if _process() not in other:
                    say(f"waiting for {other}, which is using {ledger}; Ctrl-C stops waiting")
            return False
        taken = True
        with suppress(OSError):
            holder.write_text(_this_process(), encoding="utf-8")
        return True

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise LedgerError(f"{path} cannot be opened ({error}): {remedy}") from error
    with closing(connection):
        try:
            yield attempt
        finally:
            if taken:
                with suppress(OSError):
                    holder.unlink(missing_ok=True)


def _this_process() -> str:
    # the first words of the command, because later ones may be long or private
    program, *words = sys.argv or [""]
    name = "python" if program in ("", "-c") else Path(program).name
    shown = [without_password(word.removeprefix("--ledger=")) for word in words[:2]]
    command = " ".join([Path(program).parent.name if name == "__main__.py" else name, *shown])
    return f"{command} ({_process()}, since {datetime.now().isoformat(' ', 'seconds')})"


def _process() -> str:
    return f"process {os.getpid()} on {platform.node()}"


def _holder(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8") or "another process"
    except (OSError, ValueError):
        return "another process"
