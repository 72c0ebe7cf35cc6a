"""A model in this process: loaded at the first question, and asked in batches by worker threads."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, Literal, NamedTuple, TypeVar

from pcs_annotator.core.chat import Reply, Request

Engine = TypeVar("Engine")
Style = Literal["chat", "plain"]
# The questions of a run arrive almost at once; waiting this long makes the first batch a full one.
GATHERING = 0.003


class Manner(NamedTuple):
    """How the embedded model is asked: in which style, and whether its bias on empty texts is subtracted."""

    style: Style = "chat"
    prior: bool = True


class Ask(NamedTuple):
    """A request, and how an engine that knows several ways is to put it."""

    request: Request
    manner: Manner


@dataclass(slots=True)
class WaitingQuestion:
    """A question, the future of its answer, and whether nobody waits for it any more: it may then stay unanswered."""

    question: Ask
    answer: Future[Reply] = field(default_factory=Future)
    abandoned: bool = False


class Runner(Generic[Engine]):
    """Loads a model at the first question; worker threads answer waiting questions in batches.

    It is not tied to an event loop: questions may come from several, in turn or at once.

    Args:
        load: Returns the loaded model, after downloading it if needed.
        threads: Batches at once.
        size: Most questions in a batch.
    """

    def __init__(self, load: Callable[[], Engine], *, threads: int, size: int) -> None:
        self._load = load
        self._engine: Engine | None = None
        self._loading = threading.Lock()
        self._size = size
        self._waiting: deque[WaitingQuestion] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._threads = [threading.Thread(target=self._run, name="local model", daemon=True) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    async def ask(self, request: Request, manner: Manner) -> Reply:
        """Return the answer; a question whose caller is cancelled is dropped, or marked if it is being worked on."""
        job = WaitingQuestion(Ask(request, manner))
        with self._changed:
            if self._closing:
                raise RuntimeError("the runner is closed")
            self._waiting.append(job)
            self._changed.notify()
        try:
            return await asyncio.wrap_future(job.answer)
        except asyncio.CancelledError:
            job.abandoned = True
            raise

    def close(self) -> None:
        """Answer the waiting questions, then end the threads and free the memory."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        self._engine = None

    def engine(self) -> Engine:
        """Return the loaded model."""
        with self._loading:
            if self._engine is None:
                self._engine = self._load()
            return self._engine

    def _work(self, jobs: Sequence[WaitingQuestion]) -> None:
        """Answer a batch by setting the result or exception of each job; what it raises is set on all the others."""
        raise NotImplementedError

    def _run(self) -> None:
        while self._has_work():
            self._answer([job for job in self._take() if job.answer.set_running_or_notify_cancel()])

    def _answer(self, jobs: Sequence[WaitingQuestion]) -> None:
        problem: BaseException = RuntimeError("the question was left unanswered")
        try:
            if jobs:
                self._work(jobs)
        except BaseException as error:  # passed on to the waiting callers
            problem = error
        for job in jobs:
            if not job.answer.done():
                job.answer.set_exception(problem)

    def _has_work(self) -> bool:
        """Wait for questions; return False once the runner is closed and none is left."""
        with self._changed:
            while not self._waiting:
                if self._closing:
                    return False
                self._changed.wait()
            if len(self._waiting) < self._size and not self._closing:
                self._changed.wait(GATHERING)
            return True

    def _take(self) -> list[WaitingQuestion]:
        """Return this thread's share of the waiting questions; none if other threads took them all."""
        with self._changed:
            share = -(-len(self._waiting) // len(self._threads))
            return [self._waiting.popleft() for _ in range(min(self._size, share))]
