"""Passages and values on the review page, in a real browser."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.chromium import findings
from tests.faces.review.conftest import PHONE
from tests.faces.review.extracted import gold_of, make_extraction, page_of_extraction, text_of
from tests.faces.review.made import OPTIONS, undone, verdicts
from tests.made_once import made_once
from tests.simulated import copy_run

expect.set_options(timeout=20_000)
Visit = Callable[..., Page]
OPEN = replace(OPTIONS, blind=False)


@pytest.fixture(scope="session")
def extraction(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "extraction", make_extraction) / "run"


@pytest.fixture
def run(extraction: Path, tmp_path: Path) -> Path:
    return copy_run(extraction, tmp_path / "run")


def quoted(label: str | None, row: int) -> list[str]:
    return [text_of(row)[one["start"] : one["end"]] for one in json.loads(label or "[]")]


def test_a_text_is_judged_by_keyboard_alone_and_taken_back(run: Path, visit: Visit) -> None:
    with page_of_extraction(run, OPEN) as url:
        page = visit(f"{url}/row?id=t41")
        assert page.locator(".found .how").all_inner_texts() == ["undecided", "right", "right", "right"]
        page.keyboard.press("x")
        page.keyboard.press("j")
        page.keyboard.press("Alt+Shift+ArrowLeft")  # with the space before it
        page.keyboard.press("]")
        page.keyboard.press("Tab")
        page.keyboard.press("1")
        page.keyboard.press("1")
        assert page.evaluate("document.activeElement.id") == "save"
        page.keyboard.press("Enter")
        expect(page.locator("#status")).to_contain_text("Saved · row t41")
        assert [verdicts(run, part)[0].label for part in ("claims", "year", "tone")] == [gold_of(41), "2001", "calm"]
        page.goto(f"{url}/row?id=t41")
        assert page.locator(".found .how").all_inner_texts() == ["not right", "right", "right", "right"]
        page.keyboard.press("u")
        expect(page.locator("#status")).to_contain_text("Undone: row t41")
        assert undone(run, "claims") == [verdicts(run, "claims")[0].number]


def test_blind_candidates_say_nothing_and_the_models_come_after_the_verdict(run: Path, visit: Visit) -> None:
    with page_of_extraction(run) as url:
        page = visit(f"{url}/?queue=random")
        row = int(page.locator("#item-title bdi").inner_text()[1:])
        assert set(page.locator(".found .how").all_inner_texts()) == {"undecided"}
        assert page.locator("main .number:visible").count() == 0
        page.keyboard.press("0")
        page.keyboard.press("Tab")
        page.keyboard.press("0")
        page.keyboard.press("1")
        page.keyboard.press("Enter")
        expect(page.locator("#status")).to_contain_text("models differ on claims (")
        assert "passages)" in page.locator("#status").inner_text()
        assert verdicts(run, "claims")[0].label == "[]"
        assert verdicts(run, "claims")[0].blind
        assert quoted(verdicts(run, "claims")[0].proposed, row)


def test_what_was_marked_stays_when_it_cannot_be_stored(run: Path, visit: Visit) -> None:
    with page_of_extraction(run, OPEN) as url:
        page = visit(f"{url}/row?id=t41")
        page.keyboard.press("x")
        page.locator("fieldset[data-variable=year] input[type=text]").fill("long ago")
        page.locator("#save").click()
        expect(page.locator("#status")).to_contain_text("no unambiguous number")
        assert page.locator(".found .how").all_inner_texts()[0] == "not right"
        assert verdicts(run, "claims") == []
        page.locator("fieldset[data-variable=year] input[type=text]").fill("2001")
        page.locator("#save").click()
        expect(page.locator("#status")).to_contain_text("Saved · row t41")
        assert verdicts(run, "year")[0].label == "2001"


def test_who_settles_a_conflict_reads_what_others_marked(run: Path, visit: Visit) -> None:
    with page_of_extraction(run, replace(OPEN, double=1.0)) as url:
        for name, key in (("Ana", "x"), ("Ben", "a")):
            page = visit(f"{url}/row?id=t41", name)
            page.keyboard.press(key)
            page.locator("#save").click()
            expect(page.locator("#status")).to_contain_text("Saved · row t41")
        page = visit(f"{url}/?queue=conflicts", "Cleo")
        said = page.locator("fieldset[data-variable=claims] .said")
        expect(said).to_contain_text("Ben: “Case 41” (claim), “tar harms lungs” (claim)")
        page = visit(f"{url}/people", "Cleo")
        expect(page.locator("#agreement tbody tr")).to_have_count(3)


def test_all_keys_are_explained(run: Path, visit: Visit) -> None:
    with page_of_extraction(run) as url:
        page = visit(url)
        page.keyboard.press("?")
        expect(page.locator("#keys")).to_contain_text("its start: one word back, or forward")


@pytest.mark.parametrize("device", [{}, PHONE])
def test_the_page_is_accessible_and_fits(run: Path, visit: Visit, device: dict[str, Any]) -> None:
    with page_of_extraction(run, OPEN) as url:
        page = visit(f"{url}/row?id=t41", bypass_csp=True, **device)
        page.locator("#answers").evaluate("fold => { fold.open = true; }")
        assert findings(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
