import pytest

from pcs_annotator.core.bill import Bill, Plan


def bill(calls: int, usd: float | None) -> Bill:
    return Bill(model="m", purpose="label", calls=calls, input_tokens=10, output_tokens=1, usd=usd)


def test_a_plan_adds_up_calls_and_cost() -> None:
    plan = Plan(rows=5, models=(bill(2, 0.5), bill(3, 0.0)))

    assert (plan.calls, plan.usd) == (5, 0.5)


def test_one_unknown_price_makes_the_total_unknown() -> None:
    assert Plan(rows=5, models=(bill(2, 0.5), bill(3, None))).usd is None


def test_a_plan_for_more_rows_is_rounded_up() -> None:
    bill = Bill(model="m", purpose="label", calls=3, input_tokens=100, output_tokens=10, usd=0.5)
    free = Bill(model="n", purpose="label", calls=1, input_tokens=1, output_tokens=1, usd=None)
    plan = Plan(rows=3, models=(bill, free))
    more = plan.for_rows(10)
    assert more.rows == 10
    assert [one.calls for one in more.models] == [10, 4]
    assert more.models[0].input_tokens == 334
    assert more.models[0].usd == pytest.approx(5 / 3)
    assert more.models[1].usd is None
    assert plan.for_rows(3) is plan


def test_what_is_left_of_a_plan_is_what_the_ledger_has_no_answers_to() -> None:
    asked = Bill(model="m", purpose="label", calls=10, input_tokens=100, output_tokens=10, usd=0.5)
    other = Bill(model="n", purpose="label", calls=4, input_tokens=8, output_tokens=4, usd=None)
    plan = Plan(rows=5, models=(asked, other), known={("m", "label"): 4, ("n", "label"): 9})
    first, second = plan.left.models
    assert (first.calls, first.input_tokens, first.output_tokens) == (6, 60, 6)
    assert first.usd == pytest.approx(0.3)
    assert (second.calls, second.usd) == (0, None)  # another run asked more draws
    assert plan.for_rows(10).left.calls == 12
    assert Plan(rows=5, models=(asked,)).left.calls == 10
