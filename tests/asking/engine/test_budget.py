import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from pcs_annotator import Annotator, CollectSettings, Item, Task, collect
from pcs_annotator.asking.engine import budget as budgets
from pcs_annotator.asking.engine.budget import (
    FIRST_ANSWER,
    UNLIMITED_ANSWER,
    AnswerLengths,
    Budget,
    BudgetTracker,
    Cost,
    Elsewhere,
    LedgerSpending,
    Tokens,
    expected_tokens,
)
from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.asking.ledger.admin import LedgerEntry
from pcs_annotator.asking.ledger.open_ledger import open_ledger
from pcs_annotator.asking.ledger.sqlite import Ledger, entry_of
from pcs_annotator.base.errors import BudgetReached
from pcs_annotator.core.chat import THINKING_TOKENS, Message, Reply, Request, Usage
from pcs_annotator.core.ledger_address import LedgerAddress
from pcs_annotator.models.resolve import resolve_model
from tests.stub import Behaviour, stub_process


@pytest.mark.parametrize("budget", [Budget(usd=1.0), Budget(tokens=100), Budget(calls=2)])
def test_calls_in_flight_cannot_overspend_together(budget: Budget) -> None:
    tracker = BudgetTracker(budget)
    each = Cost(0.5, 50)
    assert tracker.hold(each)
    assert tracker.hold(each)
    assert not tracker.hold(each)
    tracker.release(each)
    assert tracker.hold(each)


def test_an_unused_reservation_can_be_spent_again() -> None:
    tracker = BudgetTracker(Budget(usd=1.0))
    assert tracker.hold(Cost(0.9, 10))
    tracker.pay(Cost(0.1, 5))
    tracker.release(Cost(0.9, 10))
    assert tracker.hold(Cost(0.9, 10))
    assert tracker.usd == pytest.approx(0.1)
    assert (tracker.tokens, tracker.calls) == (5, 1)


def test_an_unknown_price_is_recorded_and_not_counted_as_zero() -> None:
    tracker = BudgetTracker(Budget())
    assert tracker.hold(Cost(None, 10))
    tracker.pay(Cost(None, 10))
    tracker.release(Cost(None, 10))
    assert tracker.price_unknown
    assert tracker.usd == 0


def test_expected_tokens_include_thinking_and_answers_without_a_limit() -> None:
    key = {"OPENAI_API_KEY": "sk-test"}
    plain, thinking = resolve_model("openai:gpt-4o-mini", key), resolve_model("openai:o3-mini", key)
    short = Request(messages=(Message("user", "Hello."),), max_tokens=16)
    assert expected_tokens(plain, short).output == 16
    assert expected_tokens(thinking, short).output == 16 + THINKING_TOKENS
    assert expected_tokens(plain, Request(messages=short.messages)).output == UNLIMITED_ANSWER


def test_characters_that_take_many_tokens_are_counted_as_such() -> None:
    model = resolve_model("scripted:hash", {})
    latin, chinese = (Request(messages=(Message("user", text),)) for text in ("a" * 100, "\u5b57" * 100))
    assert expected_tokens(model, chinese).input > 3 * expected_tokens(model, latin).input


def test_earlier_calls_count_in_the_folder_and_those_of_today_for_the_day(monkeypatch: pytest.MonkeyPatch) -> None:
    tracker = BudgetTracker(
        Budget(usd=3, usd_per_day=1), lambda: Elsewhere(usd=1.5, usd_today=0.5 if budgets.today() < 10**6 else 0)
    )
    tracker.check(Cost(0.5, 1))
    with pytest.raises(BudgetReached, match="--budget-per-day is reached"):
        tracker.check(Cost(0.6, 1))
    monkeypatch.setattr(budgets, "today", lambda: 10**6)
    tracker.check(Cost(0.6, 1))
    tracker.pay(Cost(0.6, 1))
    with pytest.raises(BudgetReached, match="--budget is reached"):
        tracker.check(Cost(1.0, 1))


def test_what_is_left_of_every_limit_is_known_and_a_day_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    assert BudgetTracker(Budget()).left() == {}
    tracker = BudgetTracker(Budget(usd=3, usd_per_day=1, tokens=30, calls=2), lambda: Elsewhere(usd=1.5))
    tracker.pay(Cost(0.75, 40))
    assert tracker.left() == {"budget": 0.75, "budget_per_day": 0.25, "max_tokens": 0, "max_calls": 1}
    monkeypatch.setattr(budgets, "today", lambda: 10**6)
    assert tracker.left()["budget_per_day"] == 1
    tracker.pay(Cost(0.5, 1))
    assert tracker.left()["budget_per_day"] == 0.5


def test_what_others_pay_beside_a_command_counts_at_once(new_ledger: Callable[[], LedgerAddress]) -> None:
    def entry(key: bytes, usd: float | None) -> LedgerEntry:
        return entry_of(key * 16, "m", "label", Reply(text="x", usage=Usage(input_tokens=1, output_tokens=1)), usd)

    async def main() -> None:
        with open_ledger(address) as here, open_ledger(address) as there:
            await there.put(entry(b"0", 0.1))
            await there.put(entry(b"1", None))  # at the price that is known here
            tracker = BudgetTracker(Budget(usd=1, usd_per_day=1), LedgerSpending(here, lambda *_: 0.2).now)
            await there.put(entry(b"2", 0.1))
            await there.put(entry(b"2", 0.1))  # paid for twice
            for key in (b"3", b"4"):
                await here.claim(key * 16)
                await here.put(entry(key, 0.1))
                tracker.pay(Cost(0.1, 2))
            await asyncio.sleep(2 * budgets.LOOK_EVERY)
            assert tracker.hold(Cost(0.3, 2))
            assert not tracker.hold(Cost(0.01, 2))
            tracker.release(Cost(0.3, 2))
            there.prune(before=4e9)  # what was paid for stays paid for
            await there.put(entry(b"5", 0.3))
            await here.claim(b"6" * 16)
            await asyncio.sleep(2 * budgets.LOOK_EVERY)
            with pytest.raises(BudgetReached, match="--budget is reached"):
                await tracker.reserve(lambda: Cost(0.01, 2))

    address = new_ledger()
    asyncio.run(main())


def test_a_call_that_does_not_fit_waits_for_those_in_flight() -> None:
    async def calls() -> None:
        tracker = BudgetTracker(Budget(usd=1))
        first = await tracker.reserve(lambda: Cost(0.9, 1))
        waiting = asyncio.create_task(tracker.reserve(lambda: Cost(0.4, 1)))
        await asyncio.sleep(0)
        assert not waiting.done()
        tracker.pay(Cost(0.6, 1))
        tracker.release(first)
        second = await waiting
        third = asyncio.create_task(tracker.reserve(lambda: Cost(0.4, 1)))
        await asyncio.sleep(0)
        tracker.pay(Cost(0.4, 1))
        tracker.release(second)
        with pytest.raises(BudgetReached):
            await third

    asyncio.run(calls())


def test_what_calls_take_is_learned_from_the_answers_so_far() -> None:
    model, most = resolve_model("scripted:hash", {}), Tokens(100, 4096)
    lengths = AnswerLengths({(model.name, "rewrite"): 50.0})
    assert lengths.expected(model, "label", most) == (100, FIRST_ANSWER)
    assert lengths.expected(model, "rewrite", most) == (100, 50)
    assert lengths.expected(model, "rewrite", Tokens(100, 16)) == (100, 16)
    for _ in range(2):
        lengths.learn(model, "label", most, Usage(input_tokens=80, output_tokens=300))
    lengths.learn(model, "label", most, Usage())
    assert lengths.expected(model, "label", most) == (80, 300)


@pytest.mark.parametrize("max_tokens", [16, 4096, None])
def test_a_budget_is_used_and_hardly_passed_however_long_answers_may_be(max_tokens: int | None, tmp_path: Path) -> None:
    items = [Item(id=str(row), text=f"Text {row}, " + "and more " * (row % 7)) for row in range(400)]
    task, ledger = Task("How does it feel?", ["good", "bad"]), tmp_path / "ledger.db"

    def spend(usd: float, prices: dict[str, tuple[float, float]], url: str) -> tuple[float, Tally]:
        settings = CollectSettings(prices=prices, environment={}, in_flight=16, tally=Tally())
        annotator = Annotator(url, max_tokens=max_tokens)
        asyncio.run(collect(task, items, [annotator], ledger=ledger, budget_usd=usd, settings=settings))
        with Ledger(ledger) as opened:
            return LedgerSpending(opened, lambda *_: None).now().usd, settings.tally

    with stub_process(Behaviour(latency_s=0.005)) as stub:
        url = f"{stub.url}#m"
        for usd in (0.02, 0.05):  # the second command may spend what is left
            spent, tally = spend(usd, {url: (1.0, 4.0)}, url)
            each = spent / stub.stats().requests
            assert 0.95 * usd <= spent <= usd + 16 * each
            assert tally.failed["budget reached"]
        asked = stub.stats().requests
        assert spend(0.05, {url: (1.0, 4.0)}, url)[1].calls == stub.stats().requests - asked <= 1
