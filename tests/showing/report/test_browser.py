"""The page in a real browser, if one is installed."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from pcs_annotator.showing.report.page import render
from pcs_annotator.showing.report.view import select, view_of
from tests.chromium import CHROMIUM, MISSING, QUIET
from tests.showing.report.reading import Page
from tests.showing.report.results import QUICKER, Made, made_run

pytestmark = [pytest.mark.system, pytest.mark.skipif(CHROMIUM is None, reason=MISSING)]
FOR_ONE_PAGE = ("--enable-logging=stderr", "--virtual-time-budget=2000")
ATTACK = "<script>document.title='pwned'</script><img src=x onerror=\"document.title='pwned'\">"

# Clicks and types as a reader would, and records after each step what is shown; the last step stays in effect.
ACTS = """
  const steps = {};
  const rows = () => [...document.querySelectorAll("li[data-sure]")];
  const press = (name) => document.querySelector(`button[data-filter="${name}"]`).click();
  const put = (id, value, event) => {
    const field = document.getElementById(id);
    field.value = value;
    field.dispatchEvent(new Event(event));
  };
  const note = (name) => {
    steps[name] = {
      listed: rows().map((row) => !row.hidden),
      sure: rows().map((row) => Number(row.dataset.sure)),
      found: document.getElementById("found").textContent,
      nothing: !document.getElementById("nothing").hidden,
    };
    document.body.dataset.steps = JSON.stringify(steps);
  };
  const again = () => {
    for (const group of new Set([...document.querySelectorAll("button[data-filter]")].map((one) => one.parentElement)))
      group.querySelector('[data-filter="all"]').click();
  };
  press("accept"); note("accept"); again();
  press("review"); note("review"); again();
  press("accept"); press("wrong"); note("accept wrong"); again();
  press("wrong"); put("order", "sure", "change"); note("wrong, ordered"); again();
  steps.background = getComputedStyle(document.querySelector(".vote.yes")).backgroundColor;
  put("search", "Unicorn <b>", "input"); note("search");
"""


class Opened(Page):
    """A page as rendered by a browser, with the messages on its console."""

    def __init__(self, html: str, folder: Path) -> None:
        page = folder / "page.html"
        page.write_text(html, encoding="utf-8")
        command = [
            str(CHROMIUM),
            *QUIET,
            *FOR_ONE_PAGE,
            f"--user-data-dir={folder / 'profile'}",
            "--dump-dom",
            page.as_uri(),
        ]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        self.complaints = re.findall(r".*CONSOLE.*", ran.stderr)
        self.html = ran.stdout
        super().__init__(re.sub(r"<(rect|line)([^>]*)></\1>", r"<\1\2/>", ran.stdout))

    def listed(self) -> list[bool]:
        """Return for each row whether it is shown."""
        return ["hidden" not in attributes for attributes in self.of("li") if "data-sure" in attributes]


def test_the_page_opens_without_complaints_and_runs_nothing_but_its_own_script(tmp_path: Path) -> None:
    made = Made(rows=12, text=ATTACK, labels=("good", ATTACK), names=("a", ATTACK))
    page = Opened(render(made_run(tmp_path, made)), tmp_path)
    assert page.complaints == []
    assert "<title>tweets.csv" in page.html
    assert "12 of 12 rows" in page.text
    (controls,) = page.with_class("controls")
    assert "hidden" not in controls


def test_search_filters_and_order_work_together_and_a_search_without_result_shows_a_note(tmp_path: Path) -> None:
    """One page, used step by step: starting the browser takes longer than all of this."""
    made = made_run(tmp_path, Made(rows=30, skills=(0.6, 0.5)))
    outcomes = [replace(one, decision="accept" if row % 3 else "review") for row, one in enumerate(made.outcomes)]
    result = replace(made, outcomes=outcomes)
    marks = [row.marks for row in select(view_of(result)).rows]
    html = render(result)
    # The page's own policy would block the test's script.
    free = re.sub(r"<meta http-equiv[^>]*>", "", html)
    page = Opened(free.replace("</body>", f"<script>{ACTS}</script></body>"), tmp_path)
    assert page.complaints == []
    (kept,) = [attributes for attributes in page.of("body") if "data-steps" in attributes]
    steps = json.loads(str(kept["data-steps"]))

    for wanted in (("accept",), ("review",), ("accept", "wrong")):
        step = steps[" ".join(wanted)]
        assert step["listed"] == [set(wanted) <= set(one) for one in marks]
        assert 0 < sum(step["listed"]) < 30
        assert step["nothing"] is False

    ordered = steps["wrong, ordered"]
    wrong = html.count('data-is="wrong')
    assert 0 < wrong < 30
    assert sum(ordered["listed"]) == wrong
    assert ordered["found"] == f"{wrong} of 30 rows"
    assert ordered["sure"] == sorted(ordered["sure"]) != steps["accept"]["sure"]

    assert steps["background"] == "rgba(0, 0, 0, 0)"  # bold, but not coloured like the bar of decisions
    assert not any(page.listed())
    assert "0 of 30 rows" in page.text
    (nothing,) = [attributes for attributes in page.of("p") if attributes.get("id") == "nothing"]
    assert "hidden" not in nothing


LONG = tuple(f"openrouter:deepseek/deepseek_r1_distill_qwen_{number}2b:free" for number in range(6))
MANY = tuple(
    f"{how} {what}" for how in ("strongly", "somewhat", "barely", "mixed") for what in ("a", "b", "c", "d", "e")
)
WIDE = """() => {
  const all = (which) => [...document.querySelectorAll(which)];
  const box = (one) => one.getBoundingClientRect();
  const top = (row) => [...row.querySelectorAll("summary > span")].map((one) => box(one).top - box(row).top);
  return {
    page: document.documentElement.scrollWidth,
    cut: all("#weights .scroll, #labels .scroll").filter((one) => one.scrollWidth > one.clientWidth + 1).length,
    outside: all("main *").filter((one) => box(one).right > innerWidth + 1 && !one.closest(".scroll")).length,
    tops: all(".rows > li").slice(0, 9).map(top),
    last: all("main > section").at(-1).id,
  };
}"""


def test_long_names_and_many_labels_fit_on_a_screen_and_a_phone(tmp_path: Path) -> None:
    relations = ("original", *(f"order:{number}" for number in range(2, 13)))
    labels = tuple(f"{label} and rather long" for label in MANY)
    made = Made(rows=12, labels=labels, skills=(0.7,) * 6, names=LONG, relations=relations, learn=QUICKER)
    (tmp_path / "page.html").write_text(render(made_run(tmp_path, made)), encoding="utf-8")
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=CHROMIUM, args=[*QUIET]) as browser,
    ):
        page = browser.new_page()
        page.goto((tmp_path / "page.html").as_uri())
        for width in (1280, 400):
            page.set_viewport_size({"width": width, "height": 900})
            found = page.evaluate(WIDE)
            assert (found["page"], found["cut"], found["outside"]) == (width, 0, 0)
            assert found["last"] == "rows"
            if width == 1280:  # every cell of a row begins at its first line, whatever the others have below
                assert all(max(tops) - min(tops) < 8 for tops in found["tops"]), found["tops"]
