"""One run for all tests of the page, of which each has its own copy, and one browser."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests.chromium import started_browser
from tests.faces.review.made import make_run
from tests.made_once import made_once
from tests.simulated import copy_run

PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "page", partial(make_run, rows=100)) / "run"


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return copy_run(made, tmp_path / "run")


# For a module only: while playwright is open, its event loop counts as running, so that no other test could start one.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from started_browser()


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Open a page as a person with a browser of their own, unknown if the name is empty; complaints fail the test."""
    opened: list[BrowserContext] = []
    complaints: list[str] = []

    def open_page(url: str, name: str = "Ana", **settings: object) -> Page:
        context = browser.new_context(**{"reduced_motion": "reduce", **settings})  # type: ignore[arg-type]  # a mix
        opened.append(context)
        context.set_default_timeout(20_000)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(f"dialog {dialog.message}"))
        if name:
            context.add_cookies([{"name": "reviewer", "value": name, "url": url}])
        page.goto(url)
        page.wait_for_selector("html.ready")
        return page

    yield open_page
    for context in opened:
        context.close()
    assert complaints == []
