"""The review page of a codebook in a real browser."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.chromium import findings
from tests.command_line import Pcs
from tests.faces.review.coded import make_codebook, page_of_codebook
from tests.faces.review.conftest import PHONE
from tests.faces.review.made import OPTIONS, undone, verdicts
from tests.made_once import made_once
from tests.simulated import copy_run

expect.set_options(timeout=20_000)
Visit = Callable[..., Page]


@pytest.fixture(scope="session")
def codebook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "codebook", make_codebook) / "run"


@pytest.fixture
def run(codebook: Path, tmp_path: Path) -> Path:
    return copy_run(codebook, tmp_path / "run")


def focused(page: Page) -> str | None:
    found: str | None = page.evaluate("document.activeElement.dataset.variable ?? document.activeElement.id")
    return found


def labels(run: Path) -> dict[str, str | None]:
    parts = ("topic", "frames=conflict", "frames=human interest", "frames=morality", "tone", "event")
    return {part: verdicts(run, part)[-1].label for part in parts}


def test_a_text_is_coded_by_keyboard_alone_and_taken_back(run: Path, visit: Visit) -> None:
    with page_of_codebook(run) as url:
        page = visit(f"{url}/?queue=random")
        row = page.locator("#item-title bdi").inner_text()
        assert page.locator("fieldset input:checked").count() == 0  # blind
        assert focused(page) == "topic"
        page.keyboard.press("Enter")  # nothing is chosen yet
        page.keyboard.press("2")
        assert focused(page) == "frames"
        page.keyboard.press("0")
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("1")
        page.keyboard.press("3")  # excludes “none”
        page.keyboard.press("Tab")
        assert focused(page) == "tone"
        page.keyboard.press("5")
        assert focused(page) == "event"
        page.locator("[data-filter]").fill("frau")
        assert page.locator(".options.tree .option:visible bdi").all_inner_texts() == ["fraud", "can’t tell"]
        page.keyboard.press("Enter")
        assert focused(page) == "save"
        page.keyboard.press("Enter")
        expect(page.locator("#status")).to_contain_text(f"Saved · row {row}")
        wanted = {"topic": "health", "tone": "very positive", "event": "crime/fraud"}
        frames = {"frames=conflict": "yes", "frames=human interest": "no", "frames=morality": "yes"}
        assert labels(run) == wanted | frames
        assert verdicts(run, "tone")[-1].blind
        page.keyboard.press("u")
        expect(page.locator("#status")).to_contain_text(f"Undone: row {row}")
        assert undone(run, "event") == [verdicts(run, "event")[0].number]
        assert page.locator("#item-title bdi").inner_text() == row


def test_enter_takes_what_is_proposed_and_a_text_can_be_skipped(run: Path, visit: Visit) -> None:
    with page_of_codebook(run) as url:
        page = visit(url)
        page.keyboard.press("Enter")
        expect(page.locator("#status")).to_contain_text("Saved · row")
        given = [verdicts(run, place)[0] for place in ("topic", "frames=morality", "tone", "event")]
        assert [one.label for one in given] == [one.proposed for one in given]
        page.keyboard.press("s")
        expect(page.locator("#status")).to_contain_text("Skipped · row")
        assert set(labels(run).values()) == {None}
        page.goto(f"{url}/?queue=random")
        page.keyboard.press("-")
        page.keyboard.press("Tab")
        for key in ("1", "1"):
            page.keyboard.press(key)
        page.keyboard.press("Enter")
        expect(page.locator("#status")).to_contain_text("frames has no answer: choose labels, “none”")


def test_votes_on_every_variable_unfold_with_a_key_and_doubtful_ones_say_why(run: Path, visit: Visit) -> None:
    with page_of_codebook(run, replace(OPTIONS, blind=False)) as url:
        page = visit(f"{url}/?queue=learn")
        page.keyboard.press("v")
        heads = page.locator("#answers h3").all_inner_texts()
        assert heads == ["topic", "frames=conflict", "frames=human interest", "frames=morality", "tone", "event"]
        tables = page.locator("#answers table")
        assert tables.count() == len(heads)
        assert tables.first.locator("tbody tr").count() == 2  # original and order
        doubtful = page.locator("legend", has_text="to review")
        assert doubtful.count() == page.locator("legend .reason").count()


@pytest.mark.slow
@pytest.mark.parametrize("device", [{}, PHONE])
def test_the_page_is_accessible_and_fits(run: Path, visit: Visit, device: dict[str, object]) -> None:
    with page_of_codebook(run) as url:
        page = visit(url, **device)
        for address in ("/", "/?queue=random", "/people"):
            page.goto(url + address)
            page.wait_for_selector("html.ready")
            assert findings(page) == []
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_agreement_is_shown_for_every_variable(run: Path, visit: Visit) -> None:
    with page_of_codebook(run) as url:
        page = visit(f"{url}/people")
        expect(page.locator("#agreement tbody tr")).to_have_count(6)


def test_keys_are_for_one_variable(run: Path, pcs: Pcs) -> None:
    assert "--keys is for one variable" in pcs.refused("review", run, "--keys", "abc", "--port", "0")
