"""The system's Chromium, if there is one, and how to start it without a window and without a network of its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
MISSING = "no Chromium on this machine: apt-get install chromium"
QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-sync",
    "--no-first-run",
)


def started_browser() -> Iterator[Browser]:
    """Yield a browser, for a fixture; without Chromium, the test is skipped."""
    from playwright.sync_api import sync_playwright

    if CHROMIUM is None:
        pytest.skip(MISSING)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield started
        started.close()


def findings(page: Page) -> list[str]:
    """Return what axe finds on a page; its own policy must not block axe (`bypass_csp`)."""
    from axe_playwright_python.sync_playwright import Axe

    return [str(each["id"]) for each in Axe().run(page).response["violations"]]


def page_errors(address: str) -> list[str]:
    """Return what a page throws, or complains about on its console, when it is opened."""
    from playwright.sync_api import sync_playwright

    found = list[str]()
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=[*QUIET])
        opened = browser.new_page()
        opened.on("pageerror", lambda error: found.append(str(error)))
        opened.on("console", lambda said: found.append(said.text) if said.type == "error" else None)
        opened.goto(address)
        browser.close()
    return found
