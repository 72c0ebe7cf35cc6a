"""The page in a real browser, if one is installed."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from pcs_annotator import RunResult
from pcs_annotator.asking.engine.job import Exchange
from pcs_annotator.core.chat import Message, Reply, Usage
from pcs_annotator.runs.folder_votes import Evidence
from pcs_annotator.showing.report import replies
from pcs_annotator.showing.report.page import render, write_report
from pcs_annotator.showing.report.view import select, view_of
from tests.builders import the
from tests.chromium import CHROMIUM, MISSING, QUIET, findings
from tests.showing.report.results import QUICKER, Made, book_of, made_run
from tests.simulated import simulated_models, simulated_run

pytestmark = [pytest.mark.system, pytest.mark.skipif(CHROMIUM is None, reason=MISSING)]
ATTACK = "<script>document.title='pwned'</script><img src=x onerror=\"document.title='pwned'\">"
SCREEN, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
MOST_PIXELS, MOST_WORDS, MOST_BYTES = 8 * 900, 2_500, 400_000
TWO = ("simulated:large@92", "simulated:middle@80")
LONG = tuple(f"openrouter:deepseek/deepseek_r1_distill_qwen_{number}2b:free" for number in range(6))
LABELS = {
    "markup": ("<b>good</b>", "bad & ugly", '"quoted"'),
    "right to left": ("חיובי", "سلبي", "neutral"),
    "cjk": ("正面的标签很长很长很长", "負面", "中立"),
    "twelve long names": tuple(f"somewhat or rather strongly of the opinion number {number}" for number in range(12)),
}
FITS = """() => {
  const box = (one) => one.getBoundingClientRect();
  const outside = (one) => box(one).width && box(one).right > innerWidth + 1 && !one.closest(".scroll, nav");
  return [document.documentElement.scrollWidth, [...document.querySelectorAll("body *")].filter(outside).length];
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as play, play.chromium.launch(executable_path=CHROMIUM, args=[*QUIET]) as started:
        yield started


@contextmanager
def opened(browser: Browser, html: str, folder: Path, **how: Any) -> Iterator[Page]:
    """Open a page; what it throws or complains about is a failure."""
    (folder / "page.html").write_text(html, encoding="utf-8")
    page = browser.new_page(**{"viewport": SCREEN, **how})
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    page.goto((folder / "page.html").as_uri())
    yield page
    page.close()
    assert complaints == []


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of 300 rows and two models."""
    result = simulated_run(tmp_path_factory.mktemp("large"), rows=300, gold_rows=150, models=TWO)
    with simulated_models():
        return write_report(book_of(result))


def test_a_report_of_300_rows_is_short_and_small(browser: Browser, large: Path, tmp_path: Path) -> None:
    html = large.read_text(encoding="utf-8")
    assert len(html.encode()) <= MOST_BYTES
    with opened(browser, html, tmp_path) as page:
        assert page.evaluate("document.documentElement.scrollHeight") <= MOST_PIXELS
        assert len(page.inner_text("body").split()) <= MOST_WORDS
        assert page.locator("#list > li").count() == 25
        assert page.locator("main > section").count() <= 5


def test_the_first_screen_of_a_phone_has_the_verdict_and_the_next_command(
    browser: Browser, large: Path, tmp_path: Path
) -> None:
    with opened(browser, large.read_text(encoding="utf-8"), tmp_path, viewport=PHONE) as page:
        for part in ("h1", "header .command", ".tile >> nth=3"):
            box = the(page.locator(part).bounding_box())
            assert box["y"] + box["height"] <= PHONE["height"]
        assert page.evaluate(FITS) == [PHONE["width"], 0]
        page.set_viewport_size({"width": 320, "height": 640})
        assert page.evaluate(FITS) == [320, 0]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser: Browser, large: Path, tmp_path: Path, scheme: Literal["light", "dark"]) -> None:
    for viewport in (SCREEN, PHONE):
        # the page's own policy would block axe
        how = {"viewport": viewport, "color_scheme": scheme, "bypass_csp": True}
        with opened(browser, large.read_text(encoding="utf-8"), tmp_path, **how) as page:
            page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
            assert findings(page) == []


def test_nothing_that_a_user_writes_becomes_an_element(browser: Browser, tmp_path: Path) -> None:
    made = Made(rows=12, text=ATTACK, labels=("good", ATTACK), names=("a", ATTACK))
    with opened(browser, render(made_run(tmp_path, made)), tmp_path) as page:
        page.locator("#list summary").first.click()
        assert page.title().startswith("tweets.csv")
        assert ATTACK in page.inner_text("#list .text >> nth=0")
        assert page.locator("img").count() == 0
        assert page.inner_text("#found") == "12 of 12 rows"


@pytest.fixture
def result(tmp_path: Path) -> RunResult:
    """A run of 60 rows, of which every third is for review and has no gold."""
    made = made_run(tmp_path, Made(rows=60, skills=(0.6, 0.5)))
    outcomes = [replace(one, decision="accept" if row % 3 else "review") for row, one in enumerate(made.outcomes)]
    gold = tuple(label if row % 3 else None for row, label in enumerate(made.dataset.gold))
    return replace(made, outcomes=outcomes, gold=gold, dataset=replace(made.dataset, gold=gold))


def test_rows_are_shown_a_page_at_a_time_those_to_review_first(
    browser: Browser, result: RunResult, tmp_path: Path
) -> None:
    with opened(browser, render(result), tmp_path) as page:
        decisions = page.locator("#list .decision > span").all_inner_texts()
        assert decisions == ["review"] * 20 + ["accept"] * 5
        page.click("#more")
        assert page.locator("#list > li").count() == 50
        assert page.inner_text("#more") == "Show 10 more"
        page.click("#more")
        assert page.locator("#list > li").count() == 60
        assert page.locator("#more").is_hidden()


def test_search_filters_and_order_work_together(browser: Browser, result: RunResult, tmp_path: Path) -> None:
    rows = select(view_of(result)).rows
    with opened(browser, render(result), tmp_path) as page:
        found = page.locator("#found")
        for wanted in (("accept",), ("review",), ("accept", "wrong")):
            for name in wanted:
                page.click(f'button[data-filter="{name}"]')
            fitting = sum(set(wanted) <= set(row.marks) for row in rows)
            assert found.inner_text().startswith(f"{fitting} of 60 rows")
            for name in wanted:
                page.click(f'button[data-filter="{name}"]')
        page.click('button[data-filter="accept"]')
        page.click('button[data-filter="review"]')  # of a group, only one can be pressed
        assert found.inner_text() == "20 of 60 rows"
        page.click('button[data-filter="review"]')
        page.select_option("#order", "surest")
        sure = [float(text) for text in page.locator("#list .sure").all_inner_texts()]
        assert sure == sorted(sure, reverse=True)
        page.select_option("#label", "neutral")
        assert set(page.locator("#list .said .chip").all_inner_texts()) == {"neutral"}
        page.fill("#search", "Unicorn <b>")
        assert found.inner_text() == "0 of 60 rows"
        assert page.locator("#nothing").is_visible()


def test_a_row_opens_to_its_questions_and_answers(browser: Browser, result: RunResult, tmp_path: Path) -> None:
    with opened(browser, render(result), tmp_path) as page:
        page.select_option("#order", "file")
        assert page.locator(".votes").count() == 0
        page.locator("#list summary").first.click()
        assert page.locator(".votes tbody tr").count() == 3
        assert page.locator(".votes .vote").count() == 6
        assert page.locator(".votes ins").first.inner_text().startswith("It is said that")
        assert page.locator(".votes .vote.yes").count() + page.locator(".votes .vote.no").count() <= 6


def test_graded_and_repeated_answers_say_how_much_and_how_often(browser: Browser, tmp_path: Path) -> None:
    graded = Made(rows=12, graded=(True, True), relations=("original", "order"))
    for made, says in ((graded, r"\w+ 0\.\d\d\s+\w+ 0\.\d\d"), (Made(rows=12, draws=5), r"\w+ \d×")):
        with opened(browser, render(made_run(tmp_path, made)), tmp_path) as page:
            page.locator("#list summary").first.click()
            assert re.search(says, page.locator(".votes tbody").inner_text())


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS.keys())
def test_unusual_labels_fit_on_a_screen_and_a_phone(browser: Browser, labels: tuple[str, ...], tmp_path: Path) -> None:
    html = render(made_run(tmp_path, Made(rows=60, labels=labels, learn=QUICKER)))
    for viewport in (SCREEN, PHONE):
        with opened(browser, html, tmp_path, viewport=viewport) as page:
            page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
            assert page.evaluate(FITS) == [viewport["width"], 0]


def test_long_names_fit_on_a_screen_and_a_phone(browser: Browser, tmp_path: Path) -> None:
    relations = ("original", *(f"order:{number}" for number in range(2, 13)))
    made = Made(rows=12, labels=LABELS["markup"], skills=(0.7,) * 6, names=LONG, relations=relations, learn=QUICKER)
    html = render(made_run(tmp_path, made))
    for viewport in (SCREEN, PHONE):
        with opened(browser, html, tmp_path, viewport=viewport) as page:
            page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
            assert page.evaluate(FITS) == [viewport["width"], 0]


@pytest.mark.parametrize("width", [1440, 390, 320])
def test_prompts_and_replies_fold_out_whatever_is_in_them(
    browser: Browser, tmp_path: Path, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = (Message("system", f"{ATTACK} Decide. {'x' * 400}"), Message("user", ATTACK * 100))
    reply = Reply(text=f"</script>{ATTACK}", usage=Usage(input_tokens=70, output_tokens=None), latency=1.26)
    exchange = Exchange(0, "original", "model-1", 0, messages, reply)
    monkeypatch.setattr(replies, "evidence_of", lambda *_: Evidence([[exchange]] * 12))
    made = made_run(tmp_path, Made(rows=12))
    how = {"viewport": {"width": width, "height": 800}, "bypass_csp": True}
    with opened(browser, render(made), tmp_path, **how) as page:
        page.locator("#list summary").first.click()
        page.locator("#list .evidence > summary").first.click()
        page.locator(".exchanges > details > summary").click()
        assert page.inner_text(".exchanges summary").split(" tokens")[0].endswith("70 + –")
        assert "1.3 s" in page.inner_text(".exchanges summary")
        said = page.locator(".exchanges pre").all_inner_texts()
        assert said == [messages[0].content, messages[1].content, reply.text]
        assert page.locator("img").count() == 0
        assert page.title().startswith("tweets.csv")
        assert page.evaluate(FITS) == [width, 0]
        assert findings(page) == []


def test_a_prompt_is_put_together_with_the_text_that_was_asked_about(
    browser: Browser, large: Path, tmp_path: Path
) -> None:
    with opened(browser, large.read_text(encoding="utf-8"), tmp_path) as page:
        page.select_option("#order", "sure")
        row = page.locator("#list > li").first
        row.locator("summary").first.click()
        row.locator(".evidence > summary").click()
        row.locator(".exchanges > details > summary").last.click()
        system, user, reply = row.locator("details details[open] > pre").all_inner_texts()
        assert system.startswith("You label texts.")
        text = re.escape(row.locator(".text").inner_text())
        assert re.search(rf"(\[text \w{{12}}\])\n\1\nThe text reads: {text}\n\1\n\nAnswer with exactly one label", user)
        assert reply in ("good", "bad")
