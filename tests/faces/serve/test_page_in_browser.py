"""The page of the service labels a text in a browser."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.chromium import findings, started_browser
from tests.faces.serve.running import running_in_thread

ATTACK = "</textarea><img src=x onerror=alert(1)> it's"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from started_browser()


@pytest.mark.system
@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (320, "dark")])
def test_a_text_is_labelled_in_a_browser(browser: Browser, run: Path, width: int, scheme: Any) -> None:
    viewport: Any = {"width": width, "height": 900}
    with running_in_thread(run) as url:
        # the page's own policy would block axe
        context = browser.new_context(viewport=viewport, color_scheme=scheme, bypass_csp=True)
        page, complaints = context.new_page(), list[str]()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda line: complaints.append(line.text) if line.type == "error" else None)
        page.goto(url)
        page.fill("textarea", ATTACK)
        page.click("button")
        page.wait_for_selector("#answer .label")
        assert page.locator("img").count() == 0
        assert "it'\\''s" in page.inner_text("#curl")
        assert '"label"' in str(page.locator("#reply").text_content())
        assert findings(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert complaints == []
        context.close()
