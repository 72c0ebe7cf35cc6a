"""The review page in a real browser."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from tests.chromium import findings
from tests.faces.review.conftest import PHONE
from tests.faces.review.made import ATTACK, MANY, OPTIONS, make_run, page_of, undone, verdicts
from tests.simulated import MODELS, simulated_models

expect.set_options(timeout=20_000)  # a busy machine is slow
Visit = Callable[..., Page]


def shown(page: Page) -> str:
    """Return the ID of the row on screen."""
    return page.locator("#item-title bdi").inner_text()


def press(page: Page, key: str, message: str) -> None:
    """Press a key and wait until the page says what came of it, about another row than before."""
    page.evaluate("document.getElementById('status').textContent = ''")
    page.keyboard.press(key)
    expect(page.locator("#status")).to_contain_text(message)


def test_twenty_rows_by_keyboard_alone_then_five_undone_then_a_reload(run: Path, visit: Visit) -> None:
    with page_of(run) as url:
        page = visit(url, "")
        page.keyboard.type("Ana")
        page.keyboard.press("Enter")
        expect(page.locator("#item")).to_be_focused()
        seen = []
        for number in range(20):
            seen.append(shown(page))
            key, message = (("1", "Saved: good"), ("2", "Saved: bad"), ("Enter", "Saved"), ("s", "Skipped"))[number % 4]
            press(page, key, message)
        given = verdicts(run)
        assert [one.id for one in given] == seen
        assert len(set(seen)) == 20
        for number, one in enumerate(given):
            wanted = ("good", "bad", one.proposed, None)[number % 4]
            assert (one.label, one.reviewer, one.queue) == (wanted, "Ana", "learn")
            assert one.seconds is not None
            assert 0 < one.seconds < 60
        expect(page.locator("#progress")).to_contain_text("you: 15 ·")

        for key in ("u", "Control+z", "u", "Control+z", "u"):
            press(page, key, "Undone: row")
        assert undone(run) == [one.number for one in reversed(given[-5:])]
        assert shown(page) == seen[15]
        expect(page.locator("#progress")).to_contain_text("you: 12 ·")
        assert f"id={seen[15]}" in page.url

        page.reload()
        assert shown(page) == seen[15]
        press(page, "2", "Saved: bad")
        assert (verdicts(run)[-1].id, verdicts(run)[-1].queue) == (seen[15], "learn")
        assert page.url == f"{url}/?queue=learn"


@pytest.mark.slow
def test_back_and_forth_shows_own_verdicts_and_the_focus_follows(run: Path, visit: Visit) -> None:
    with page_of(run) as url:
        page = visit(url)
        first = shown(page)
        press(page, "1", "Saved")
        second = shown(page)
        press(page, "2", "Saved")
        third = shown(page)
        for key, row in (("Shift+ArrowLeft", second), ("Shift+ArrowLeft", first), ("Shift+ArrowRight", second)):
            page.keyboard.press(key)
            expect(page.locator("#item-title bdi")).to_have_text(row)
            assert page.evaluate("document.activeElement.id") == "item"
        assert page.locator(".choice:has(.yours) bdi").inner_text() == "bad"
        press(page, "1", "Saved: good")
        assert shown(page) == third
        assert [(one.id, one.label) for one in verdicts(run)] == [(first, "good"), (second, "bad"), (second, "good")]


def test_two_tabs_and_two_people_do_not_overwrite_each_other(run: Path, visit: Visit) -> None:
    with page_of(run) as url:
        address = f"{url}/row?id=t80"
        ana, ben = visit(address, "Ana"), visit(address, "Ben")
        expect(ben.locator(".item-head")).to_contain_text("Ana has this row in hand")
        press(ben, "2", "in the hands of Ana")
        assert shown(ben) != "t80"
        assert verdicts(run) == []

        other_tab = ana.context.new_page()
        other_tab.goto(address)
        press(ana, "1", "Saved: good")
        press(other_tab, "2", "was judged since it was shown to you")
        expect(other_tab.locator(".choice:has(.yours) bdi")).to_have_text("good")
        assert [(one.reviewer, one.label) for one in verdicts(run)] == [("Ana", "good")]
        press(other_tab, "2", "Saved: bad")  # after a second look it is a decision
        assert [one.label for one in verdicts(run)] == ["good", "bad"]


def test_saved_is_said_only_after_the_server_has_said_so(run: Path, visit: Visit) -> None:
    with page_of(run) as url:
        page = visit(url)
        held: list[Route] = []
        page.route("**/verdict", lambda route: held.append(route))  # noqa: PLW0108  # playwright marks what it is given
        row = shown(page)
        page.keyboard.press("1")
        expect(page.locator("#status")).to_have_text("Saving …")
        page.keyboard.press("2")  # about a row that is not there yet
        page.wait_for_function("document.body.hasAttribute('aria-busy')")
        held[0].abort()
        expect(page.locator("#status")).to_contain_text("Not saved")
        assert shown(page) == row
        assert verdicts(run) == []
        page.unroute("**/verdict")
        press(page, "1", "Saved: good")
        assert [(one.id, one.label) for one in verdicts(run)] == [(row, "good")]
        assert len(held) == 1


def test_texts_that_attack_the_page_are_only_text(run: Path, visit: Visit) -> None:
    with page_of(run) as url:
        page = visit(f"{url}/row?id=attack")
        assert page.locator("main img, main script").count() == 0
        assert "pwned" not in page.title()
        page.goto(f"{url}/row?id=reversed")
        expect(page.locator("#text .sign")).to_have_count(2)
        assert "\u202e" not in page.locator("#text").inner_text()
        page.goto(f"{url}/row?id=long")
        assert len(page.locator("#text").inner_text()) > 89_000
        assert page.locator(".choice").first.bounding_box()["y"] < 700  # type: ignore[index]  # it is on screen
        press(page, "3", "Saved: <b>neither</b>")
        assert verdicts(run)[0].label == "<b>neither</b>"
        page.goto(f"{url}/row?id=rtl")
        assert page.locator("#text").evaluate("one => getComputedStyle(one).direction") == "rtl"


def test_on_a_phone_nothing_is_cut_off_and_a_tap_saves(run: Path, visit: Visit) -> None:
    with page_of(run) as url:
        page = visit(f"{url}/row?id=long", **PHONE)
        for scrolled in (0, 3000, 10**6):  # the labels stay at the bottom of the screen
            page.evaluate(f"window.scrollTo(0, {scrolled})")
            box = page.locator(".verdict").bounding_box()
            assert box is not None
            assert box["y"] + box["height"] == pytest.approx(844, abs=2)
        page.locator(".choice", has_text="good").first.tap()
        expect(page.locator("#status")).to_contain_text("Saved: good")
        page.set_viewport_size({"width": 320, "height": 640})
        for path in ("/row?id=attack", "/row?id=long", "/people"):
            page.goto(url + path)
            assert page.evaluate("document.documentElement.scrollWidth") <= 320, path


def test_a_wide_table_of_votes_scrolls_beside_the_guidelines(run: Path, visit: Visit) -> None:
    with page_of(run, replace(OPTIONS, blind=False)) as url:
        page = visit(f"{url}/row?id=attack", viewport={"width": 1280, "height": 800})
        page.keyboard.press("v")
        page.locator("#answers table").evaluate("table => { table.style.minWidth = '100rem'; }")
        work, aside = (page.locator(part).bounding_box() for part in (".work", "aside"))
        assert work is not None
        assert aside is not None
        assert work["x"] + work["width"] <= aside["x"]


@pytest.mark.filterwarnings("ignore:no gold row says")
def test_twelve_labels_with_long_names_fit_on_any_screen(tmp_path: Path, visit: Visit) -> None:
    with page_of(make_run(tmp_path, 30, MANY)) as url:
        page = visit(f"{url}/row?id=attack", viewport={"width": 1440, "height": 900})
        assert page.locator(".choice bdi").all_inner_texts() == list(MANY)
        assert page.locator("#skip").bounding_box()["y"] < 860  # type: ignore[index]  # it is on screen
        page = visit(f"{url}/row?id=attack", **PHONE)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.locator(".verdict").bounding_box()["height"] < 844 / 2  # type: ignore[index]  # it is there
        page.locator(".choice").last.tap()  # the list of labels scrolls
        expect(page.locator("#status")).to_contain_text(f"Saved: {MANY[-1]}")


@pytest.mark.slow
def test_keys_for_going_noting_and_helping(run: Path, visit: Visit) -> None:
    with page_of(run) as url:
        page = visit(url)
        page.keyboard.press("g")
        page.keyboard.type("t77")
        page.keyboard.press("Enter")
        expect(page.locator("#item-title bdi")).to_have_text("t77")
        page.keyboard.press("n")
        page.keyboard.type("12 reasons")
        page.keyboard.press("Enter")
        assert verdicts(run) == []
        press(page, "1", "Saved")
        assert [(one.id, one.note) for one in verdicts(run)] == [("t77", "12 reasons")]

        assert not page.locator("#answers table").is_visible()
        page.keyboard.press("v")
        expect(page.locator("#answers table")).to_be_visible()
        press(page, "s", "Skipped")
        expect(page.locator("#answers table")).to_be_visible()  # until it is folded again

        page.keyboard.press("?")
        expect(page.locator("#keys")).to_be_visible()
        page.locator("#keys input[data-label=bad]").fill("b")
        page.keyboard.press("Escape")
        expect(page.locator("#keys")).to_be_hidden()
        press(page, "b", "Saved: bad")
        page.reload()
        press(page, "b", "Saved: bad")

        page.evaluate("document.dispatchEvent(new KeyboardEvent('keydown', {key: 'ы', code: 'KeyS'}))")
        expect(page.locator("#status")).to_contain_text("Skipped")

        page.keyboard.press("/")
        page.keyboard.type("case 7")
        page.keyboard.press("Enter")
        expect(page.locator(".totals")).to_contain_text("11 rows")
        page.keyboard.press("g")
        page.keyboard.type("nowhere")
        page.keyboard.press("Enter")
        expect(page.locator("#status")).to_contain_text("nowhere")


@pytest.mark.slow
def test_a_key_that_is_held_down_counts_once(run: Path, visit: Visit) -> None:
    with page_of(run) as url:
        page = visit(url)
        page.keyboard.down("1")
        expect(page.locator("#status")).to_contain_text("Saved")
        for _ in range(3):
            page.keyboard.down("1")  # repeated by the keyboard
        page.keyboard.up("1")
        press(page, "2", "Saved: bad")
        assert [one.label for one in verdicts(run)] == ["good", "bad"]


@pytest.mark.slow
def test_people_who_differ_are_shown_and_a_third_one_settles_it(run: Path, visit: Visit) -> None:
    with page_of(run, replace(OPTIONS, double=1.0)) as url:
        for name, key in (("Ana", "1"), ("Ben", "2")):
            page = visit(f"{url}/row?id=t80", name)
            expect(page.locator(".others")).to_have_count(0)  # two people judge without knowing of each other
            press(page, key, "Saved")
        page = visit(f"{url}/people", "Cleo")
        expect(page.locator("#conflicts")).to_contain_text("Settle them (1)")
        expect(page.locator("#agreement")).to_contain_text("Ana and Ben")
        page.get_by_role("link", name="Settle them").click()
        expect(page.locator("#item-title bdi")).to_have_text("t80")
        expect(page.locator(".others")).to_contain_text("Ben: bad")
        press(page, "1", "Saved: good")
        assert verdicts(run)[-1].queue == "conflicts"
        page.goto(f"{url}/people")
        expect(page.locator("#conflicts")).to_contain_text("No two people differ")


@pytest.mark.slow
@pytest.mark.parametrize("phone", [False, True])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_anywhere(run: Path, visit: Visit, scheme: str, phone: bool) -> None:
    acts = {
        "/": "",
        "/row?id=attack": "document.getElementById('keys').showModal()",
        "/row?id=rtl": "document.getElementById('go-to').showModal()",
        "/?queue=doubtful": "document.querySelector('.queues').open = true",
        "/?queue=audit": "",
        "/?queue=conflicts": "",
        "/?queue=random": "",
        "/row?id=t90": "document.getElementById('answers').open = true",
        "/people": "document.querySelector('.news').open = true",
        "/row?id=nowhere": "",
        "/reviewer": "",
    }
    with page_of(run, replace(OPTIONS, double=1.0)) as url:
        for name, key in (("Ana", "1"), ("Ben", "2")):
            page = visit(f"{url}/row?id=t80", name, color_scheme=scheme, **(PHONE if phone else {}))
            press(page, key, "Saved")
        found = {}
        for path, act in acts.items():
            page.goto(url + path)
            page.evaluate(act)
            found[path] = findings(page)
    assert not any(found.values()), found


@pytest.mark.parametrize("how", [{}, PHONE])
def test_prompts_and_replies_come_when_they_are_opened(run: Path, visit: Visit, how: dict[str, object]) -> None:
    with simulated_models(MODELS[:1]), page_of(run) as url:
        page = visit(f"{url}/row?id=attack", bypass_csp=True, **how)
        asked: list[str] = []
        page.on("request", lambda request: asked.extend({request.url} if "/evidence" in request.url else ()))
        page.locator("#answers > summary").click()
        assert not asked
        page.locator(".evidence > summary").click()
        expect(page.locator(".exchanges > details")).to_have_count(6)
        assert [where.removeprefix(url) for where in asked] == ["/evidence?id=attack"]
        page.locator(".exchanges > details > summary").nth(4).click()
        expect(page.locator(".exchanges > details[open] pre >> nth=1")).to_contain_text(ATTACK)
        assert page.locator("img").count() == 0
        assert findings(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.locator(".evidence > summary").click()
        page.locator(".evidence > summary").click()
        expect(page.locator(".exchanges > details[open]")).to_have_count(1)
        assert len(asked) == 1
