"""The pages of estimates, with invented figures."""

from pathlib import Path
from typing import Literal

import pytest

from pcs_annotator.core.result_table import Figure
from pcs_annotator.core.weights import Interval
from pcs_annotator.studies.estimating.answers import Estimated, Line
from pcs_annotator.studies.estimating.page import page, robust_page
from pcs_annotator.studies.estimating.robust import Robust, Specification
from tests.chromium import CHROMIUM, MISSING, QUIET, page_errors
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
SPECIFICATIONS = [Specification(f"model {number}" * number, about(0.1 * number), about(0.2)) for number in range(1, 9)]
ROBUST = Robust(name="hateful", reference=0.0, made=SPECIFICATIONS[0], specifications=SPECIFICATIONS)


def test_each_quantity_is_drawn_in_three_ways_on_a_scale_with_zero() -> None:
    html = page(ESTIMATED)
    shown = Page(html)
    assert len(shown.with_class("whisker")) == 9
    assert len(shown.with_class("reference")) == 9
    text = section(html, "estimates")
    assert "hateful · north corrected 40.0 [30.0, 52.0] gold only 45.0 [35.0, 57.0]" in text
    assert "0 to 57" in text  # shares
    assert "−40 to 7" in text  # differences
    assert ATTACK not in html


@pytest.mark.skipif(CHROMIUM is None, reason=MISSING)
@pytest.mark.parametrize("html", [page(ESTIMATED), robust_page([ROBUST])], ids=["estimates", "robust"])
def test_pages_throw_nothing(html: str, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(html, encoding="utf-8")
    assert page_errors(file.as_uri()) == []


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason=MISSING)
@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (768, "dark"), (1280, "light")])
def test_pages_fit_any_screen_and_axe_finds_nothing_serious(
    tmp_path: Path, width: int, scheme: Literal["light", "dark"]
) -> None:
    from axe_playwright_python.sync_playwright import Axe
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
            drawings = opened.locator("td.chart svg")
            assert drawings.first.is_visible()
            found = Axe().run(opened).response["violations"]
            assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == []
            context.close()
        browser.close()
