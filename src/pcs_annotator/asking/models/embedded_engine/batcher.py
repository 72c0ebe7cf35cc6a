"""Gathers questions that wait at the same time into batches for a few working threads.

It belongs to no event loop: questions may come from several, one after the other or at once.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, TypeVar

In = TypeVar("In")
Out = TypeVar("Out")
# Questions of one run arrive within a moment of each other; waiting for it makes the first batch a full one.
GATHERING = 0.003


@dataclass(frozen=True, slots=True)
class BatchJob(Generic[In, Out]):
    """A question and the place for its answer."""

    question: In
    answer: Future[Out] = field(default_factory=Future)


class Batcher(Generic[In, Out]):
    """Working threads and the questions that wait for them.

    Args:
        work: Answers a batch by setting each job's result or exception; what it leaves open or raises becomes the
            exception of the open ones.
        threads: How many batches are worked on at once.
        size: The most questions in a batch.
    """

    def __init__(self, work: Callable[[Sequence[BatchJob[In, Out]]], None], *, threads: int, size: int) -> None:
        self._work = work
        self._size = size
        self._waiting: deque[BatchJob[In, Out]] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._threads = [threading.Thread(target=self._run, name="embedded", daemon=True) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    async def ask(self, question: In) -> Out:
        """Return the answer; a caller that is cancelled while waiting takes its question back."""
        job: BatchJob[In, Out] = BatchJob(question)
        with self._changed:
            if self._closing:
                raise RuntimeError("the batcher is closed")
            self._waiting.append(job)
            self._changed.notify()
        return await asyncio.wrap_future(job.answer)

    def close(self) -> None:
        """Answer what waits, then end the threads."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while self._has_work():
            self._answer([job for job in self._take() if job.answer.set_running_or_notify_cancel()])

    def _answer(self, jobs: Sequence[BatchJob[In, Out]]) -> None:
        if not jobs:
            return
        problem: BaseException = RuntimeError("the question was left unanswered")
        try:
            self._work(jobs)
        except BaseException as error:  # whatever it is, somebody waits for it
            problem = error
        for job in jobs:
            if not job.answer.done():
                job.answer.set_exception(problem)

    def _has_work(self) -> bool:
        """Wait for questions; return False when there will be no more."""
        with self._changed:
            while not self._waiting:
                if self._closing:
                    return False
                self._changed.wait()
            if len(self._waiting) < self._size and not self._closing:
                self._changed.wait(GATHERING)
            return True

    def _take(self) -> list[BatchJob[In, Out]]:
        """Return this thread's share of what waits; nothing, if others were faster."""
        with self._changed:
            share = -(-len(self._waiting) // len(self._threads))
            return [self._waiting.popleft() for _ in range(min(self._size, share))]
