"""The pace in virtual time, against a simulated server with a token bucket; every run is the same."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from pcs_annotator.asking.engine.pace import GONE_AFTER, NEVER_ANSWERED_AFTER, Pace
from pcs_annotator.base.errors import Interrupted, ModelDown, PcsWarning
from pcs_annotator.core.chat import RateHint
from tests.asking.virtual_time import run_virtually


@dataclass
class Bucket:
    """A server that limits calls per second and calls at once."""

    rate: float
    burst: float
    latency: float
    retry_after: float | None = None
    tokens: float = 0.0
    seen_at: float = 0.0
    answered: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tokens = self.burst

    def allows(self, now: float) -> bool:
        self.tokens = min(self.burst, self.tokens + self.rate * (now - self.seen_at))
        self.seen_at = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


async def send_calls(server: Bucket, pace: Pace, callers: int, seconds: float) -> None:
    clock = asyncio.get_running_loop().time
    rng = random.Random(1)

    async def caller() -> None:
        while clock() < seconds:
            sent_at = await pace.enter()
            latency = 0.0005 + server.latency * rng.uniform(0.8, 1.2)
            await asyncio.sleep(latency / 2)
            allowed = server.allows(clock())
            await asyncio.sleep(latency / 2)
            if allowed:
                pace.answered()
                server.answered.append(clock())
            else:
                pace.refused(sent_at, server.retry_after)
                server.refused.append(clock())
            pace.leave()
            if not allowed:
                await asyncio.sleep(server.retry_after or rng.uniform(0, 0.5))

    await asyncio.gather(*(caller() for _ in range(callers)))


def in_virtual_time(work: Callable[[Pace], Awaitable[None]], max_in_flight: int = 64) -> Pace:
    async def main() -> Pace:
        pace = Pace(max_in_flight, name="groq:llama", clock=asyncio.get_running_loop().time)
        await work(pace)
        return pace

    return run_virtually(main)


@pytest.mark.parametrize(
    ("burst", "latency", "retry_after"),
    [(100, 0.0, None), (10, 0.02, None), (10, 0.02, 1.0), (100, 0.05, None), (200, 0.01, None)],
)
def test_an_unknown_limit_is_found_and_used_with_few_refusals(
    burst: float, latency: float, retry_after: float | None
) -> None:
    server = Bucket(100, burst, latency, retry_after)
    in_virtual_time(lambda pace: send_calls(server, pace, 64, 25.0))
    late = [when for when in server.answered if 5 <= when < 25]
    assert len(late) / 20 >= 95
    refused_late = [when for when in server.refused if 5 <= when < 25]
    assert len(refused_late) <= 0.02 * len(late)
    assert len(server.refused) <= 0.03 * len(server.answered)  # the start included


@dataclass
class Moody(Bucket):
    """A server that also refuses some calls at random, and all of them during an outage."""

    refused_share: float = 0.0
    outage: tuple[float, float] = (0.0, 0.0)
    random: random.Random = field(default_factory=lambda: random.Random(3))

    def allows(self, now: float) -> bool:
        if self.outage[0] <= now < self.outage[1] or self.random.random() < self.refused_share:
            return False
        return not self.rate or super().allows(now)


@pytest.mark.parametrize("share", [0.005, 0.03, 0.1, 0.2])
def test_refusals_that_do_not_depend_on_the_rate_do_not_slow_calls_down(share: float) -> None:
    server = Moody(0, 0, 0.02, 0.05, refused_share=share)
    in_virtual_time(lambda pace: send_calls(server, pace, 64, 24.0))
    assert sum(16 <= when < 24 for when in server.answered) / 8 >= 1000


@pytest.mark.parametrize("share", [0.03, 0.1])
def test_a_limit_is_found_although_some_calls_are_refused_at_random(share: float) -> None:
    server = Moody(100, 10, 0.02, refused_share=share)
    in_virtual_time(lambda pace: send_calls(server, pace, 64, 30.0))
    assert sum(15 <= when < 30 for when in server.answered) / 15 >= 80
    assert sum(15 <= when < 30 for when in server.refused) / 15 <= 50


@pytest.mark.filterwarnings("ignore:groq.llama has only answered 429")
@pytest.mark.parametrize("began", [0.0, 5.0])
@pytest.mark.parametrize("share", [0.0, 0.03])
def test_ten_seconds_after_an_outage_a_server_is_used_as_before_it(began: float, share: float) -> None:
    server = Moody(0, 0, 0.05, refused_share=share, outage=(began, began + 45))
    in_virtual_time(lambda pace: send_calls(server, pace, 128, began + 58))
    late = [when for when in server.answered if began + 55 <= when < began + 58]
    assert len(late) / 3 >= 0.9 * 64 / 0.05
    during = sum(began + 10 <= when < began + 45 for when in server.refused)
    assert 8 <= during <= 100  # asked every few seconds, not hammered


def test_a_limit_that_rises_is_found_again() -> None:
    server = Bucket(50, 10, 0.02)

    async def rising(pace: Pace) -> None:
        await send_calls(server, pace, 64, 15.0)
        server.rate = 200
        await send_calls(server, pace, 64, 75.0)

    in_virtual_time(rising)
    assert sum(65 <= when < 75 for when in server.answered) / 10 >= 190


def test_without_refusals_calls_are_not_held_back() -> None:
    server = Bucket(1e9, 1e9, 0.2)
    in_virtual_time(lambda pace: send_calls(server, pace, 256, 10.0), max_in_flight=256)
    assert len(server.answered) >= 0.9 * 256 * 10 / 0.2


def test_no_more_calls_are_in_flight_than_allowed() -> None:
    most = 0

    async def crowd(pace: Pace) -> None:
        async def caller() -> None:
            nonlocal most
            await pace.enter()
            most = max(most, pace.in_flight)
            await asyncio.sleep(1)
            pace.answered()
            pace.leave()

        await asyncio.gather(*(caller() for _ in range(100)))

    assert in_virtual_time(crowd, max_in_flight=7).in_flight == 0
    assert most == 7


def test_rate_limit_headers_are_obeyed_before_the_server_refuses() -> None:
    async def hinted(pace: Pace) -> None:
        clock = asyncio.get_running_loop().time
        await pace.enter()
        pace.answered(RateHint(remaining=0, reset_after=3.0))
        pace.leave()
        await pace.enter()
        assert clock() == pytest.approx(3.0)
        pace.answered(RateHint(remaining=50, reset_after=3.0))
        pace.leave()
        await pace.enter()
        assert clock() == pytest.approx(3.0)

    in_virtual_time(hinted)


def test_a_long_retry_after_is_obeyed_by_all_calls() -> None:
    async def refused(pace: Pace) -> None:
        clock = asyncio.get_running_loop().time
        sent_at = await pace.enter()
        pace.refused(sent_at, 20.0)
        pace.leave()
        await pace.enter()
        assert 20 <= clock() < 21

    in_virtual_time(refused)


def test_a_server_that_never_answers_is_given_up_soon() -> None:
    async def dead(pace: Pace) -> None:
        waiting = [asyncio.create_task(pace.enter()) for _ in range(80)]
        await asyncio.sleep(1)
        for _ in range(NEVER_ANSWERED_AFTER):
            pace.failed("connection refused")
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert sum(isinstance(result, ModelDown) for result in results) == 80 - 16
        with pytest.raises(ModelDown, match=r"groq:llama.* 12 calls .*connection refused"):
            await pace.enter()

    in_virtual_time(dead)


def test_a_server_that_answered_before_may_fail_more_often() -> None:
    async def flaky(pace: Pace) -> None:
        pace.answered()
        for _ in range(GONE_AFTER - 1):
            pace.failed("500")
        await pace.enter()
        pace.leave()
        pace.answered()
        for _ in range(GONE_AFTER):
            pace.failed("500")
        with pytest.raises(ModelDown, match=rf"groq:llama.* {GONE_AFTER} calls .*500"):
            await pace.enter()

    in_virtual_time(flaky)


def test_many_failures_narrow_the_window_and_answers_widen_it_again() -> None:
    async def trouble(pace: Pace) -> None:
        pace.answered()
        for _ in range(12):
            pace.failed("500")
        inside = [asyncio.create_task(pace.enter()) for _ in range(64)]
        await asyncio.sleep(0)
        assert pace.in_flight == 8
        for _ in range(64):
            pace.answered()
            await asyncio.sleep(0.05)
        pace.leave()
        await asyncio.gather(*inside)
        assert pace.in_flight == 63

    in_virtual_time(trouble)


def test_waiting_can_be_cancelled_at_any_moment_without_losing_a_place() -> None:
    async def cancelled(pace: Pace) -> None:
        await pace.enter()
        waiting = asyncio.create_task(pace.enter())
        admitted = asyncio.create_task(pace.enter())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.sleep(0)
        pace.leave()  # admits the second call …
        admitted.cancel()  # … which is cancelled before it resumes
        await asyncio.gather(waiting, admitted, return_exceptions=True)
        assert pace.in_flight == 0

    in_virtual_time(cancelled, max_in_flight=1)


async def only_refused(pace: Pace, told: list[float], warned: pytest.WarningsRecorder) -> None:
    """Ask once a second, and note when something is said."""
    clock = asyncio.get_running_loop().time
    while True:
        pace.refused(await pace.enter())
        pace.leave()
        if len(warned) > len(told):
            told.append(clock())
        await asyncio.sleep(1)


def test_a_server_that_only_refuses_is_named_again_and_again_and_given_up_at_the_limit(
    recwarn: pytest.WarningsRecorder,
) -> None:
    told: list[float] = []

    async def work() -> None:
        clock = asyncio.get_running_loop().time
        pace = Pace(name="groq:llama", clock=clock, max_wait=300.0)
        with pytest.raises(ModelDown, match=r"only refused for 30\d s \(429\): .* set max_wait higher"):
            await only_refused(pace, told, recwarn)
        assert 300 <= clock() < 320

    run_virtually(work)
    assert 10 <= told[0] < 20
    assert all(30 <= later - earlier < 40 for earlier, later in pairwise(told))
    assert len(told) >= 8
    words = r"groq:llama has only answered 429 \(too many requests\) for 1\d s: trying again in [1-4] s, giving up"
    assert re.match(words, str(recwarn[0].message))


def test_an_absurd_wait_is_cut_and_said_at_once_and_an_answer_ends_the_count() -> None:
    async def work() -> None:
        clock = asyncio.get_running_loop().time
        pace = Pace(name="groq:llama", clock=clock, max_wait=100.0)
        with pytest.warns(PcsWarning, match="asks to wait 99,999,999,999 s: trying again in 60 s"):
            pace.refused(await pace.enter(), 99_999_999_999.0)
        pace.leave()
        await pace.enter()
        assert clock() == pytest.approx(60, abs=1)
        pace.answered()
        pace.leave()
        await asyncio.sleep(90)
        pace.refused(clock(), 1.0)
        pace.raise_if_closed()

    run_virtually(work)


def test_only_the_waiting_calls_of_one_owner_are_turned_away() -> None:
    async def work(pace: Pace) -> None:
        await pace.enter("mine")
        waiting = {name: asyncio.create_task(pace.enter(name)) for name in ("mine", "other")}
        await asyncio.sleep(0)
        pace.turn_away("mine", Interrupted("stopped"))
        pace.turn_away("mine", Interrupted("stopped"))
        with pytest.raises(Interrupted):
            await waiting["mine"]
        pace.leave()
        await waiting["other"]

    in_virtual_time(work, max_in_flight=1)
