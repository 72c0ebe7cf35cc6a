from __future__ import annotations

import pytest

from pcs_annotator.asking.engine.budget import Budget, Cost, Purse


@pytest.mark.parametrize("budget", [Budget(usd=1.0), Budget(tokens=100), Budget(calls=2)])
def test_calls_in_flight_cannot_overdraw_together(budget: Budget) -> None:
    purse = Purse(budget)
    each = Cost(0.5, 50)
    assert purse.hold(each)
    assert purse.hold(each)
    assert not purse.hold(each)
    purse.release(each)
    assert purse.hold(each)


def test_what_was_not_needed_can_be_spent_again() -> None:
    purse = Purse(Budget(usd=1.0))
    assert purse.hold(Cost(0.9, 10))
    purse.settle(Cost(0.9, 10), Cost(0.1, 5))
    assert purse.hold(Cost(0.9, 10))
    assert purse.usd == pytest.approx(0.1)
    assert (purse.tokens, purse.calls) == (5, 1)


def test_an_unknown_price_is_remembered_not_taken_for_nothing() -> None:
    purse = Purse(Budget())
    assert purse.hold(Cost(None, 10))
    purse.settle(Cost(None, 10), Cost(None, 10))
    assert purse.price_unknown
    assert purse.usd == 0
