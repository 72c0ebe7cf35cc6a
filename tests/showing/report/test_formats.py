import math

import pytest

from pcs_annotator.core.weights import Interval
from pcs_annotator.showing.blocks import Spot
from pcs_annotator.showing.diff import clipped
from pcs_annotator.showing.formats import (
    dollars,
    interval,
    label_name,
    number,
    percent,
    percent_interval,
    signed,
    total_cost,
)
from pcs_annotator.showing.markup import tag
from pcs_annotator.showing.to_html import bar, drawing

NAN = math.nan


def test_what_is_not_a_number_is_a_dash_or_nothing() -> None:
    assert number(NAN) == number(math.inf) == signed(NAN) == "–"
    assert interval(Interval(NAN, 1.0)) == ""
    assert dollars(NAN) == "price unknown"


@pytest.mark.parametrize(("part", "text"), [(0, "0 %"), (1, "0.1 %"), (830, "83 %"), (999, "99.9 %"), (1000, "100 %")])
def test_small_and_nearly_full_shares_are_not_rounded_away(part: int, text: str) -> None:
    assert percent(part, 1000) == text


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (number(0.8333), "0.83"),
        (number(None), "–"),
        (number(-0.001), "0.00"),
        (signed(0.0441), "+0.044"),
        (signed(-0.0441), "−0.044"),
        (signed(0.0), "0.000"),
        (percent(0, 0), "–"),
        (interval(Interval(0.791, 0.862)), "[0.79, 0.87]"),
        (percent_interval(Interval(0.791, 0.862)), "95 % interval 79–87 %"),
        (label_name("good, mostly"), "“good, mostly”"),
        (label_name("a very long name of a label", 15), "a very … label"),
        (dollars(12.3), "$12.30"),
        (dollars(0.0009), "$0.0009"),
        (dollars(0.00001), "below $0.0001"),
        (dollars(0.0), "$0.00"),
        (total_cost([1.0, None]), "at least $1.00"),
        (total_cost([None]), "price unknown"),
        (total_cost([]), "$0.00"),
        (clipped("one two three", 9), "one two …"),
        (tag("td", "a < b", class_="number", hidden=True), '<td class="number" hidden>a &lt; b</td>'),
    ],
)
def test_numbers_and_names_read_as_people_write_them(shown: str, text: str) -> None:
    assert shown == text


def test_drawings_stay_inside_their_box_whatever_the_numbers() -> None:
    for drawn in (
        bar(float("nan")),
        bar(7.0),
        drawing(Spot(2.0, Interval(-1, 9), 0.0, 1.0, 5, "level")),
        drawing(Spot(0.5, Interval(0.5, 0.5), low=0.5, high=0.5)),
    ):
        assert "nan" not in drawn
        assert 'x1="-' not in drawn
        assert 'width="700' not in drawn
