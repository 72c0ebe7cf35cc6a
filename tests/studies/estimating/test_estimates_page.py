"""The pages of estimates, with invented figures."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from pcs_annotator.core.result_table import Figure
from pcs_annotator.core.weights import Interval
from pcs_annotator.studies.estimating.answers import Estimated, Line
from pcs_annotator.studies.estimating.estimates_page import headline, page
from pcs_annotator.studies.estimating.robust import Robust, Specification, robust_page
from tests.chromium import CHROMIUM, MISSING, QUIET, findings, page_errors
from tests.showing.report.reading import Page, section

pytestmark = pytest.mark.system

ATTACK = "<script>alert(1)</script>"


def about(value: float) -> Figure:
    return Figure(value, Interval(value - 0.1, value + 0.12))


def line(name: str, group: str, value: float, p_value: float | None = None) -> Line:
    return Line(name, group, about(value), about(value + 0.05), about(value - 0.2), 40, 0.8, p_value)


ESTIMATED = Estimated(
    kind="share",
    lines=[line("hateful", "north", 0.4), line(ATTACK, "south", 0.3)],
    differences=[line("hateful", "south − north", -0.1, 0.04)],
    rows=1000,
    labels=["hateful", ATTACK],
    notes=["3 rows have no group"],
)
SPECIFICATIONS = [
    Specification(
        (f"model {number}" * number, "original", "lr" if number % 2 else "uniform"), about(0.1 * number), about(0.2)
    )
    for number in range(1, 9)
]
ROBUST = Robust(name="hateful", reference=0.0, made=SPECIFICATIONS[0], specifications=SPECIFICATIONS)


def test_the_page_has_the_answer_the_question_and_the_data_first_then_the_differences_that_are_clear_of_zero() -> None:
    more = [line("hateful", "east − north", 0.05, 0.6), line("hateful", "west − north", -0.3, 0.01)]
    differences = [line("hateful", "south − north", -0.2, 0.04), *more]
    html = page(replace(ESTIMATED, title="Share of hateful by region", data="news.csv", differences=differences))
    shown = Page(html)
    top = shown.text.index("2 of 3 differences are clear of zero")
    assert top < shown.text.index("Share of hateful by region · news.csv · 1,000 texts")
    text = section(html, "differences")
    assert "The largest: hateful, west − north: -30.0 percentage points" in text
    assert (
        text.index("west − north") < text.index("south − north") < text.index("1 difference that is not clear of zero")
    )
    assert text.index("1 difference that is not clear of zero") < text.index("east − north")
    assert "“clear of zero” allows for all 3." in section(html, "notes")
    assert html.index('id="differences"') < html.index('id="estimates"') < html.index('id="notes"')


def test_each_label_has_a_dot_plot_with_a_row_per_group() -> None:
    html = page(ESTIMATED)
    shown = Page(html)
    assert len(shown.with_class("whisker")) == 3
    assert len(shown.with_class("reference")) == 3
    text = section(html, "estimates")
    assert "hateful group 0 60 share, % 95 % interval naive gold rows north 40.0 30.0 to 52.0 20.0 40" in text
    assert ATTACK not in html
    alone = page(replace(ESTIMATED, differences=[], lines=[line("hateful", "", 0.4), line("other", "", 0.6)]))
    assert 'id="differences"' not in alone
    assert "hateful 40.0 30.0 to 52.0 20.0 40 other 60.0" in section(alone, "estimates")


def test_the_headline_is_what_tests_say_or_the_largest_share_or_else_the_question() -> None:
    alone = replace(ESTIMATED, differences=[], lines=[line("hateful", "", 0.6), line("other", "", 0.4)])
    assert headline(alone) == "60.0 % of the texts are hateful"
    terms = replace(alone, kind="regression", lines=[line("a", "", 0.6, 0.01), line("b", "", 0.4, 0.2)])
    assert headline(terms) == "1 of 2 coefficients are clear of zero"
    assert headline(replace(alone, kind="mean", lines=[line("mean", "", 3.0)], title="Mean of x")) == "Mean of x"


def test_whiskers_end_within_their_axis_and_dashed_lines_are_always_naive() -> None:
    drawn = Page(page(replace(ESTIMATED, differences=[line("hateful", "south − north", -0.3, 0.04)])))
    ends = [float(one[end] or "nan") for one in drawn.with_class("whisker") for end in ("x1", "x2")]
    assert all(0 < end < 100 for end in ends)
    assert [one["x1"] for one in drawn.with_class("zero")] == ["100", "0", "0"]  # of −50 to 0, and of 0 to 60 twice
    assert len(drawn.with_class("reference")) == len(drawn.with_class("whisker")) == 3


def test_the_specification_curve_names_every_choice_and_marks_this_run() -> None:
    html = robust_page([ROBUST], "Share of hateful", "news.csv")
    shown = Page(html)
    assert "Share of hateful · news.csv" in shown.text
    assert len(shown.with_class("dot")) == 2 * len(SPECIFICATIONS)  # corrected, and what machine labels alone give
    assert len(shown.with_class("c1")) == 2 + 3  # the estimate, its interval, and a mark for each part of the choice
    assert "original · lr (this run)" in shown.text
    curve = section(html, "q0")
    assert all(name in curve for name in ("models", "relations", "learning", "original", "lr", "uniform", "model 1"))


@pytest.mark.skipif(CHROMIUM is None, reason=MISSING)
@pytest.mark.parametrize("html", [page(ESTIMATED), robust_page([ROBUST])], ids=["estimates", "robust"])
def test_pages_throw_nothing(html: str, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(html, encoding="utf-8")
    assert page_errors(file.as_uri()) == []


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason=MISSING)
@pytest.mark.parametrize(("width", "scheme"), [(320, "light"), (768, "dark"), (1280, "light")])
def test_pages_fit_any_screen_and_axe_finds_nothing(
    tmp_path: Path, width: int, scheme: Literal["light", "dark"]
) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=[*QUIET])
        for name, html in (("estimates", page(ESTIMATED)), ("robust", robust_page([ROBUST]))):
            file = tmp_path / f"{name}.html"
            file.write_text(html, encoding="utf-8")
            # the page's own policy would block axe
            context = browser.new_context(
                viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True
            )
            opened = context.new_page()
            opened.goto(file.as_uri())
            assert opened.evaluate("document.documentElement.scrollWidth") <= width
            drawings = opened.locator("#estimates td.chart svg, svg.specifications")
            assert drawings.first.is_visible()
            assert findings(opened) == []
            context.close()
        browser.close()
