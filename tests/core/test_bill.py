from __future__ import annotations

from pcs_annotator.core.bill import Bill, Plan


def bill(calls: int, usd: float | None) -> Bill:
    return Bill(model="m", purpose="label", calls=calls, input_tokens=10, output_tokens=1, usd=usd)


def test_a_plan_adds_up_calls_and_cost() -> None:
    plan = Plan(rows=5, models=(bill(2, 0.5), bill(3, 0.0)))

    assert (plan.calls, plan.usd) == (5, 0.5)


def test_one_unknown_price_makes_the_total_unknown() -> None:
    assert Plan(rows=5, models=(bill(2, 0.5), bill(3, None))).usd is None
