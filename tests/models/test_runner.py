import asyncio
import threading
from collections.abc import Callable, Sequence
from unittest.mock import Mock

import pytest

from pcs_annotator.core.chat import Message, Reply, Request
from pcs_annotator.models.local.runner import Runner, WaitingQuestion

Jobs = Sequence[WaitingQuestion]


class Batcher(Runner):
    """A runner that is asked about numbers, with a function in place of a model."""

    def __init__(self, work: Callable[[Jobs], None], *, threads: int, size: int) -> None:
        self._function = work
        super().__init__("numbers", Mock, context_tokens=None, threads=threads, size=size)

    def _work(self, jobs: Jobs) -> None:
        self._function(jobs)

    async def asked(self, number: int) -> int:
        reply = await self.ask(Request(messages=(Message("user", str(number)),)), "chat")
        return int(reply.text)


def number_in(job: WaitingQuestion) -> int:
    return int(job.request.messages[0].content)


def double(jobs: Jobs) -> None:
    for job in jobs:
        job.answer.set_result(Reply(text=str(2 * number_in(job))))


def test_questions_that_wait_together_are_answered_together() -> None:
    sizes: list[int] = []

    def work(jobs: Jobs) -> None:
        sizes.append(len(jobs))
        double(jobs)

    batcher = Batcher(work, threads=1, size=4)

    async def go() -> list[int]:
        return list(await asyncio.gather(*(batcher.asked(number) for number in range(10))))

    assert asyncio.run(go()) == [2 * number for number in range(10)]
    assert max(sizes) == 4
    assert sum(sizes) == 10
    batcher.close()


def test_an_error_reaches_all_callers_of_the_batch_and_the_next_batch_works() -> None:
    broken = [True]

    def work(jobs: Jobs) -> None:
        if broken:
            broken.pop()
            raise ValueError("out of order")
        double(jobs)

    batcher = Batcher(work, threads=1, size=8)

    async def go() -> list[object]:
        return list(await asyncio.gather(*(batcher.asked(number) for number in range(3)), return_exceptions=True))

    assert all(isinstance(error, ValueError) for error in asyncio.run(go()))
    assert asyncio.run(go()) == [0, 2, 4]
    batcher.close()


def test_an_unanswered_question_raises_instead_of_waiting_forever_and_a_closed_batcher_takes_none() -> None:
    batcher = Batcher(lambda jobs: None, threads=1, size=8)
    with pytest.raises(RuntimeError, match="unanswered"):
        asyncio.run(batcher.asked(1))
    batcher.close()
    with pytest.raises(RuntimeError, match="closed"):
        asyncio.run(batcher.asked(1))


def test_a_question_cancelled_while_waiting_is_not_answered() -> None:
    go_on, begun = threading.Event(), threading.Event()
    seen: list[int] = []

    def work(jobs: Jobs) -> None:
        begun.set()
        assert go_on.wait(10)
        seen.extend(map(number_in, jobs))
        double(jobs)

    batcher = Batcher(work, threads=1, size=1)

    async def go() -> int:
        first = asyncio.create_task(batcher.asked(1))
        await asyncio.to_thread(begun.wait, 10)
        second, third = asyncio.create_task(batcher.asked(2)), asyncio.create_task(batcher.asked(3))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        go_on.set()
        return await first + await third

    assert asyncio.run(go()) == 8
    assert seen == [1, 3]
    batcher.close()
