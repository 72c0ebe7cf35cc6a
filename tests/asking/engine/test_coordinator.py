from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pcs_annotator.asking.engine.budget import Budget, BudgetTracker, Cost
from pcs_annotator.asking.engine.coordinator import Coordinator, Grants, Wishes
from pcs_annotator.asking.engine.pace import CallsPerSecond
from pcs_annotator.asking.engine.remote_calls import RemoteBudget, RemoteCalls
from pcs_annotator.asking.ledger.ledger import Ledger, LedgerEntry, entry_of
from pcs_annotator.asking.ledger.open_ledger import open_ledger
from pcs_annotator.base.errors import BudgetReached, LedgerError
from pcs_annotator.core.chat import Reply, Usage
from tests.asking.virtual_time import VirtualLoop, run_virtually
from tests.postgres import PostgresServer

KEY = b"k" * 16
pytestmark = pytest.mark.asyncio


def entry(key: bytes = KEY, text: str = "good") -> LedgerEntry:
    return entry_of(key, "m", "label", Reply(text=text, usage=Usage(input_tokens=10, output_tokens=2)), 0.5)


class Site:
    """A coordinator, and workers that reach it without a network between them."""

    def __init__(self, coordinator: Coordinator) -> None:
        self.coordinator = coordinator
        self.messages: list[tuple[str, Wishes]] = []

    def worker(self, name: str) -> RemoteCalls:
        async def send(wishes: Wishes) -> Grants:
            self.messages.append((name, wishes))
            return await self.coordinator.exchange(name, wishes)

        return RemoteCalls(send, {})


@asynccontextmanager
async def site(folder: Path, budget: Budget | None = None, rate: float | None = None) -> AsyncIterator[Site]:
    with Ledger(folder / "ledger.db") as ledger:
        limit = None if rate is None else CallsPerSecond(rate)
        yield Site(Coordinator(ledger, BudgetTracker(budget or Budget()), limit))


async def test_wishes_of_many_calls_are_one_message(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        calls = here.worker("one")
        entries = [entry(bytes([number]) * 16, str(number)) for number in range(20)]
        await asyncio.gather(*map(calls.put, entries))
        found = await asyncio.gather(*(calls.find([one.key, KEY]) for one in entries))
        assert [reply.text for some in found for reply in some.values()] == [str(number) for number in range(20)]
        assert len(here.messages) == 2
        assert await calls.find([]) == {}


async def test_a_call_that_another_worker_makes_is_waited_for_and_not_paid_for_again(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        one, other = here.worker("one"), here.worker("other")
        assert await one.claim(KEY) is None
        assert await one.claim(KEY) is None  # asked again, because the answer to the first message was lost
        waiting = asyncio.create_task(other.claim(KEY))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        await one.put(entry())
        assert (await waiting or Reply(text="")).text == "good"


@pytest.mark.parametrize("end", ["given up", "lost"])
async def test_a_call_that_got_no_reply_is_made_by_the_worker_that_waits(end: str, tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        one, other = here.worker("one"), here.worker("other")
        await one.claim(KEY)
        waiting = asyncio.create_task(other.claim(KEY))
        await asyncio.sleep(0.02)
        other.give_up(KEY)  # it has no claim to give up
        if end == "lost":
            here.coordinator.forget("one")
        else:
            one.give_up(KEY)
            await one.drain()
        assert await waiting is None


async def test_on_a_server_calls_of_workers_are_claimed_from_other_processes_too(postgres: PostgresServer) -> None:
    address, other_key = postgres.new_ledger(), b"o" * 16
    with open_ledger(address, successor_of="job") as ledger, open_ledger(address) as elsewhere:
        worker = Site(Coordinator(ledger, BudgetTracker(Budget()))).worker("one")
        assert await elsewhere.claim(other_key) is None
        waiting = [asyncio.create_task(one) for one in (worker.claim(other_key), worker.claim(KEY))]
        assert await waiting[1] is None
        assert not waiting[0].done()
        waiting.append(asyncio.create_task(elsewhere.claim(KEY)))
        await elsewhere.put(entry(other_key))
        assert (await waiting[0] or Reply(text="")).text == "good"
        assert not waiting[2].done()
        worker.give_up(KEY)
        assert await waiting[2] is None


async def test_a_coordinator_that_is_started_again_need_not_wait_for_its_own_claims(postgres: PostgresServer) -> None:
    address = postgres.new_ledger()
    with open_ledger(address, successor_of="job") as lost:
        assert await lost.claim(KEY) is None
        with open_ledger(address, successor_of="job") as ledger:
            worker = Site(Coordinator(ledger, BudgetTracker(Budget()))).worker("one")
            assert await asyncio.wait_for(worker.claim(KEY), 15.0) is None  # half a lease


async def test_a_message_that_is_sent_twice_pays_and_reserves_once(tmp_path: Path) -> None:
    wishes = Wishes(put=[entry()], reserve={1: Cost(0.5, 12)}, claim={b"c" * 16})
    async with site(tmp_path, Budget(calls=2)) as here:
        first = await here.coordinator.exchange("one", wishes)
        again = await here.coordinator.exchange("one", Wishes(reserve=wishes.reserve, claim=wishes.claim))
        assert (first.reserved, again.reserved) == ({1: ""}, {1: ""})
        assert again.claimed == {b"c" * 16}
    async with site(tmp_path) as here:  # another coordinator, after a restart
        await here.coordinator.exchange("one", Wishes(put=wishes.put))
        await here.coordinator.exchange("one", Wishes(put=[entry()]))  # really paid for a second time
    with Ledger(tmp_path / "ledger.db") as ledger:
        assert ledger.count() == 1
        assert sum(bill.calls for bill in ledger.bills()) == 2


async def test_workers_share_one_budget_and_pass_it_by_nothing(tmp_path: Path) -> None:
    budget = Budget(calls=30)
    async with site(tmp_path, budget) as here:
        paid, refused = 0, 0

        async def work(name: str) -> None:
            nonlocal paid, refused
            calls = here.worker(name)
            tracker = RemoteBudget(budget, calls)
            assert tracker.calls_left() > 1000

            async def call(number: int) -> None:
                nonlocal paid, refused
                try:
                    tracker.check(Cost(None, 12))
                    held = await tracker.reserve(lambda: Cost(None, 12))
                except BudgetReached:
                    refused += 1
                    return
                await calls.put(entry(f"{name}-{number:014}".encode()))
                tracker.pay(Cost(None, 12))
                tracker.release(held)
                paid += 1

            await asyncio.gather(*map(call, range(25)))
            with pytest.raises(BudgetReached, match="--max-calls is reached"):
                await call_again(tracker)
            assert tracker.calls_left() == 0

        await asyncio.gather(work("a"), work("b"))
        assert (paid, refused) == (30, 20)


async def call_again(tracker: RemoteBudget) -> None:
    tracker.check(Cost(0.1, 1))  # cheaper than the call that was refused, so it is asked for
    await tracker.reserve(lambda: Cost(0.1, 1))


async def test_what_a_lost_worker_had_reserved_is_free_again(tmp_path: Path) -> None:
    async with site(tmp_path, Budget(calls=1)) as here:
        await RemoteBudget(Budget(calls=1), here.worker("one")).reserve(lambda: Cost(None, 1))
        waiting = asyncio.create_task(RemoteBudget(Budget(calls=1), here.worker("b")).reserve(lambda: Cost(None, 1)))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        here.coordinator.forget("one")
        await waiting


async def test_models_without_log_probabilities_are_remembered_by_all(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        one = here.worker("one")
        one.remember_graded("m", gives=False)
        await one.drain()
        assert one.graded_models() == here.coordinator.graded_models() == {"m": False}


Turn = Callable[[], Awaitable[None]]


def times_of_calls(turns_of: Callable[[CallsPerSecond], Sequence[Turn]], *, stall: float) -> list[float]:
    """Make 100 calls per second in virtual time, which jumps now and then as if the process had stalled."""
    times: list[float] = []

    async def call(turn: Turn, loop: VirtualLoop) -> None:
        for _ in range(30):
            await turn()
            times.append(loop.time())

    async def stalls(loop: VirtualLoop) -> None:
        while True:
            await asyncio.sleep(1.7)
            loop._now += stall

    async def start() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        stalling = asyncio.create_task(stalls(loop))
        turns = turns_of(CallsPerSecond(100, clock=loop.time))
        await asyncio.gather(*(call(turn, loop) for turn in turns for _ in range(20)))
        stalling.cancel()

    run_virtually(start)
    return times


@pytest.mark.parametrize("stall", [0.0, 0.02, 0.4])
@pytest.mark.parametrize("workers", [0, 2])
async def test_the_rate_is_held_in_every_second_also_after_a_stall(stall: float, workers: int, tmp_path: Path) -> None:
    def turns_of(limit: CallsPerSecond) -> Sequence[Turn]:
        here = Site(Coordinator(ledger, BudgetTracker(Budget()), limit))
        return [here.worker(str(number)).turn for number in range(workers)] or [limit.turn]

    with Ledger(tmp_path / "ledger.db") as ledger:
        times = await asyncio.to_thread(times_of_calls, turns_of, stall=stall)
    assert max(bisect_right(times, start + 1.0) - place for place, start in enumerate(times)) <= 105
    assert len(times) / (times[-1] - times[0]) >= 99 * 1.7 / (1.7 + stall)  # no more is lost than in the stalls


async def test_a_turn_that_is_cancelled_takes_no_other_call_s_place(tmp_path: Path) -> None:
    async with site(tmp_path, rate=200) as here:
        calls = here.worker("one")
        turns = [asyncio.create_task(calls.turn()) for _ in range(20)]
        await asyncio.sleep(0)
        turns[3].cancel()
        results = await asyncio.gather(*turns, return_exceptions=True)
        assert [place for place, result in enumerate(results) if result is not None] == [3]


async def test_moments_are_a_step_apart_and_those_that_have_passed_are_lost() -> None:
    now = 100.0
    limit = CallsPerSecond(10, clock=lambda: now)
    assert limit.moments(3, 1.0) == pytest.approx([100.0, 100.1, 100.2])
    assert limit.moments(9, 0.25) == []
    now = 200.0
    assert limit.moments(99, 0.1) == pytest.approx([200.0, 200.1])


async def test_an_error_of_the_ledger_reaches_all_that_wait(tmp_path: Path) -> None:
    async def send(wishes: Wishes) -> Grants:
        raise LedgerError("the disk is full")

    calls = RemoteCalls(send, {})
    waits: list[Callable[[], object]] = [lambda: calls.put(entry()), lambda: calls.claim(KEY), calls.turn]
    for wait in waits:
        with pytest.raises(LedgerError, match="full"):
            await wait()  # type: ignore[misc]  # all are coroutines
