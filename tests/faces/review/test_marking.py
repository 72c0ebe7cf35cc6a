"""Passages of a text are marked in a real browser, by mouse, by keyboard and by touch."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from pcs_annotator.core.passages import Extraction
from pcs_annotator.faces.review.passage_form import passage_field
from tests.chromium import findings
from tests.faces.review.conftest import PHONE
from tests.faces.review.marking import (
    CANDIDATES,
    EXTRACTION,
    TEXT,
    VALUES,
    Sent,
    blind,
    marked_page,
    marking_page,
    page_with,
    passage,
    valued_page,
)

expect.set_options(timeout=20_000)
Visit = Callable[..., Page]
WHERE = """words => {
  const walker = document.createTreeWalker(document.getElementById('text'), NodeFilter.SHOW_TEXT);
  const whole = document.getElementById('text').textContent;
  let [start, end, at] = [whole.indexOf(words), whole.indexOf(words) + words.length, 0];
  const range = document.createRange();
  for (let node = walker.nextNode(); node; at += node.length, node = walker.nextNode()) {
    if (at <= start && start < at + node.length) range.setStart(node, start - at);
    if (at < end && end <= at + node.length) range.setEnd(node, end - at);
  }
  const box = range.getBoundingClientRect();
  return [box.left, box.right, (box.top + box.bottom) / 2];
}"""


def saved(page: Page, sent: Sent) -> list[tuple[int, int, str]]:
    """Save by key and return the passages that were sent."""
    before = len(sent)
    page.keyboard.press("Enter")
    expect(page.locator("#status")).to_have_text(f"Saved {before + 1}")
    return sent.passages()


def spans(*marked: Any) -> list[tuple[int, int, str]]:
    return sorted(each[:3] for each in marked)


def in_hand(page: Page) -> str:
    return page.locator(".in-hand q").inner_text()


def hows(page: Page) -> list[str]:
    return page.locator(".found .how").all_inner_texts()


def test_candidates_are_decided_by_keyboard_and_characters_are_counted_as_in_python(visit: Visit) -> None:
    first, _, third, fourth, fifth = (each.passage for each in CANDIDATES)
    with page_with(marked_page()) as (url, sent):
        page = visit(url)
        assert hows(page) == ["right", "undecided", "right", "undecided", "undecided"]
        assert in_hand(page) == "tar damages lungs"
        page.keyboard.press("x")
        assert in_hand(page) == "1,200 cafe\u0301s"
        page.keyboard.press("3")  # another type, and so it is right
        page.keyboard.press("j")
        page.keyboard.press("a")
        assert saved(page, sent) == spans(first, third, fourth._replace(type="rebuttal"), fifth)
        page.keyboard.press("k")
        page.keyboard.press("ArrowUp")
        assert in_hand(page).startswith("A 2019 study")
        page.keyboard.press("x")
        assert saved(page, sent) == spans(first, fourth._replace(type="rebuttal"), fifth)
        page.keyboard.press("0")
        expect(page.locator("[data-do=none]")).to_have_attribute("aria-pressed", "true")
        assert saved(page, sent) == []
        page.keyboard.press("-")
        page.keyboard.press("Enter")
        expect(page.locator("#status")).to_have_text("Saved 4")
        assert sent[-1]["claims"] == ""


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (["["], "because tar damages lungs"),
        (["[", "]", "]"], "damages lungs"),
        (["{"], "tar damages"),
        (["}"], "tar damages lungs. A"),
        (["Alt+ArrowRight"], "tar damages lungs."),
        (["Alt+Shift+ArrowLeft"], " tar damages lungs"),
        (["Alt+["], " tar damages lungs"),
        (["["] * 4, "Smoking 🚬 causes cancer, because tar damages lungs"),
        (["]"] * 9, "lungs"),
    ],
)
def test_borders_move_by_words_and_characters(visit: Visit, keys: list[str], words: str) -> None:
    with page_with(marked_page(CANDIDATES[1:2])) as (url, sent):
        page = visit(url)
        for key in keys:
            page.keyboard.press(key)
        assert saved(page, sent) == spans(passage(words, "evidence"))


def test_characters_that_people_see_as_one_stay_whole(visit: Visit) -> None:
    with page_with(marked_page([CANDIDATES[3]._replace(passage=passage("1,200 caf", "claim"))])) as (url, sent):
        page = visit(url)
        page.keyboard.press("Alt+ArrowRight")
        assert saved(page, sent) == spans(passage("1,200 cafe\u0301"))
        page.locator(".grip.end").focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Shift+ArrowRight")
        assert page.evaluate("document.activeElement.className") == "grip end"
        page.locator("fieldset").focus()
        assert saved(page, sent) == spans(passage("1,200 cafe\u0301s shows"))


def test_a_selection_by_mouse_becomes_a_passage(visit: Visit) -> None:
    with page_with(marked_page(())) as (url, sent):
        page = visit(url)
        left, right, height = page.evaluate(WHERE, "people disagree: ")
        page.mouse.move(left + 1, height)
        page.mouse.down()
        page.mouse.move(right - 1, height, steps=4)
        assert page.locator(".adding").is_hidden()  # it would be in the way
        page.mouse.up()
        page.locator(".adding button", has_text="rebuttal").click()
        assert hows(page) == ["right, added"]
        left, right, height = page.evaluate(WHERE, "grandfathers")
        page.mouse.dblclick((left + right) / 2, height)
        page.keyboard.press("1")
        assert saved(page, sent) == spans(passage("people disagree:", "rebuttal"), passage("grandfathers"))


@pytest.mark.parametrize("device", [{}, PHONE])
@pytest.mark.parametrize(
    ("side", "to", "words"),
    [
        ("end", "lungs. A 2019", "tar damages lungs. A 2019"),
        ("start", "cancer, because tar", "cancer, because tar damages lungs"),
    ],
)
def test_borders_are_dragged(visit: Visit, device: dict[str, Any], side: str, to: str, words: str) -> None:
    with page_with(marked_page(CANDIDATES[1:2])) as (url, sent):
        page = visit(url, **device)
        box = page.locator(f".grip.{side}").bounding_box()
        assert box is not None
        left, right, height = page.evaluate(WHERE, to[-4:] if side == "end" else to[:6])
        start = box["x"], box["y"] + box["height"] + 8  # at the knob, under the line
        goal = (right if side == "end" else left), height + box["height"] / 2 + 8
        if device:
            touch(page, start, goal)
        else:
            page.mouse.move(*start)
            page.mouse.down()
            page.mouse.move(*goal, steps=5)
            page.mouse.up()
        assert saved(page, sent) == spans(passage(words, "evidence"))


def touch(page: Page, start: tuple[float, float], goal: tuple[float, float]) -> None:
    """Drag a finger."""
    session = page.context.new_cdp_session(page)
    steps = [
        (start[0] + (goal[0] - start[0]) * step / 6, start[1] + (goal[1] - start[1]) * step / 6) for step in range(7)
    ]
    for at, (x, y) in enumerate(steps):
        points = [{"x": x, "y": y}]
        session.send("Input.dispatchTouchEvent", {"type": "touchMove" if at else "touchStart", "touchPoints": points})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_clicks_take_the_innermost_of_overlapping_passages_then_the_others(visit: Visit) -> None:
    with page_with(marked_page()) as (url, _):
        page = visit(url)
        left, right, height = page.evaluate(WHERE, "1,200")
        page.mouse.click((left + right) / 2, height)
        assert in_hand(page).startswith("1,200")
        expect(page.locator("#text mark.over")).to_have_attribute(
            "title", "evidence, 0.88, right; claim, 0.12, undecided"
        )
        page.mouse.click((left + right) / 2, height)
        assert in_hand(page).startswith("A 2019")
        assert page.locator("#text").text_content() == TEXT


def test_who_saves_with_something_undecided_is_told_what_it_counts_as(visit: Visit) -> None:
    with page_with(marked_page(blind(CANDIDATES))) as (url, sent):
        page = visit(url)
        assert hows(page) == ["undecided"] * 5
        assert page.locator(".found .number").all_inner_texts() == [""] * 5
        assert "0.97" not in page.content()
        page.keyboard.press("a")
        page.keyboard.press("Enter")
        expect(page.locator("#status")).to_contain_text("4 undecided will count as not right")
        assert sent == []
        page.keyboard.press("x")
        page.keyboard.press("Enter")
        expect(page.locator("#status")).to_contain_text("3 undecided will count as not right")
        assert saved(page, sent) == spans(CANDIDATES[0].passage)
        page.reload()
        page.keyboard.press("s")
        expect(page.locator("#status")).to_have_text("Saved 2")
        assert sent[-1]["skip"] == "1"


def test_nothing_marked_must_be_meant(visit: Visit) -> None:
    with page_with(marked_page(())) as (url, sent):
        page = visit(url)
        page.keyboard.press("Enter")
        expect(page.locator("#status")).to_contain_text("No passage is marked in this text")
        assert saved(page, sent) == []
        page.keyboard.press("m")
        page.keyboard.press("m")
        page.keyboard.press("x")
        assert saved(page, sent) == spans(passage("Smoking"))


def test_of_two_variables_the_text_shows_the_one_in_focus(visit: Visit) -> None:
    dates = Extraction(("date",))
    fields = {
        "claims": list(passage_field("claims", TEXT, EXTRACTION, CANDIDATES[:2])),
        "dates": list(passage_field("dates", TEXT, dates, [CANDIDATES[3]._replace(passage=passage("2019", "date"))])),
    }
    with page_with(marking_page(fields)) as (url, sent):
        page = visit(url)
        assert page.locator("#text mark").count() == 2
        page.keyboard.press("a")
        page.keyboard.press("Tab")
        assert page.locator("#text mark").all_inner_texts() == ["2019"]
        page.keyboard.press("a")
        assert len(saved(page, sent)) == 2
        assert sent[-1]["dates"] == f'[{{"start":{TEXT.index("2019")},"end":{TEXT.index("2019") + 4},"type":"date"}}]'


def test_on_a_phone_a_finger_is_enough(visit: Visit) -> None:
    with page_with(marked_page()) as (url, sent):
        page = visit(url, **PHONE)
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        smallest = "all => Math.min(...all.flatMap(one => one.offsetWidth ? [one.offsetHeight, one.offsetWidth] : []))"
        assert page.locator(".marking button, .marking select").evaluate_all(smallest) >= 40
        page.locator("#text mark", has_text="grandfathers").first.tap()
        assert in_hand(page) == "grandfathers smoked until 90"
        page.locator("[data-do=wrong]").tap()
        page.locator("[data-type]").select_option("claim")
        page.locator("[data-do=right]").tap()
        page.evaluate("getSelection().selectAllChildren(document.querySelector('#text > :last-child'))")
        page.locator(".adding button", has_text="claim").tap()
        page.get_by_role("button", name="Save").tap()
        expect(page.locator("#status")).to_contain_text("1 undecided will count as not right")
        page.get_by_role("button", name="Save").tap()
        expect(page.locator("#status")).to_have_text("Saved 1")
        first, second, third, *_ = (each.passage for each in CANDIDATES)
        last = passage(TEXT[TEXT.index(". <b>Still") :])
        assert sent.passages() == spans(first, second._replace(type="claim"), third, last)


def test_a_value_is_chosen_or_written_down(visit: Visit) -> None:
    with page_with(valued_page()) as (url, sent):
        page = visit(url)
        page.keyboard.press("Enter")  # nothing is chosen yet
        page.keyboard.press("2")
        assert page.locator("#text .now").inner_text() == "2019"
        page.keyboard.press("Enter")
        expect(page.locator("#status")).to_have_text("Saved 1")
        assert sent[-1]["people"] == "2019"
        page.locator("#text mark", has_text="25").click()
        page.keyboard.press("Enter")
        expect(page.locator("#status")).to_have_text("Saved 2")
        assert sent[-1]["people"] == "25"
        page.locator(".values input[type=text]").fill("90")
        page.keyboard.press("Escape")
        page.keyboard.press("Enter")
        expect(page.locator("#status")).to_have_text("Saved 3")
        assert (sent[-1]["people"], sent[-1]["people=typed"]) == ("another value", "90")
        page.keyboard.press("0")
        page.keyboard.press("Enter")
        expect(page.locator("#status")).to_have_text("Saved 4")
        assert sent[-1]["people"] == "none"


@pytest.mark.parametrize("content", [marked_page(), marked_page(blind(CANDIDATES)), valued_page(VALUES, "1200")])
@pytest.mark.parametrize("device", [{}, PHONE, {"color_scheme": "dark"}])
def test_axe_finds_nothing(visit: Visit, content: str, device: dict[str, Any]) -> None:
    with page_with(content) as (url, _):
        assert findings(visit(url, bypass_csp=True, **device)) == []
