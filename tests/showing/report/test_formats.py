from __future__ import annotations

import math

import pytest

from pcs_annotator.core.weights import Interval
from pcs_annotator.showing.blocks import Level, Spot
from pcs_annotator.showing.formats import dollars, interval, number, percent, signed
from pcs_annotator.showing.to_html import bar, drawing

NAN = math.nan


def test_what_is_not_a_number_is_a_dash_or_nothing() -> None:
    assert number(NAN) == number(math.inf) == signed(NAN) == "–"
    assert interval(Interval(NAN, 1.0)) == ""
    assert dollars(NAN) == "price unknown"


@pytest.mark.parametrize(("part", "text"), [(0, "0 %"), (1, "0.1 %"), (830, "83 %"), (999, "99.9 %"), (1000, "100 %")])
def test_small_and_nearly_full_shares_are_not_rounded_away(part: int, text: str) -> None:
    assert percent(part, 1000) == text


def test_differences_carry_their_sign() -> None:
    assert signed(0.0441) == "+0.044"
    assert signed(-0.0441) == "−0.044"
    assert signed(0.0) == "0.000"


def test_drawings_stay_inside_their_box_whatever_the_numbers() -> None:
    for drawn in (
        bar(float("nan")),
        bar(7.0),
        drawing(Level(2.0, Interval(-1, 9), top=1.0, reference=5)),
        drawing(Spot(0.5, Interval(0.5, 0.5), low=0.5, high=0.5)),
    ):
        assert "nan" not in drawn
        assert 'x1="-' not in drawn
        assert 'width="700' not in drawn
