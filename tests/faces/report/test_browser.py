"""The page in a real browser, where there is one."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from pcs_annotator.faces.report import render
from pcs_annotator.faces.report.selection import select
from pcs_annotator.faces.report.view import view_of
from tests.faces.report.reading import Page
from tests.faces.report.results import Made, made_run

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine: apt-get install chromium")
QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-sync",
    "--no-first-run",
    "--enable-logging=stderr",
    "--virtual-time-budget=2000",
)
ATTACK = "<script>document.title='pwned'</script><img src=x onerror=\"document.title='pwned'\">"


class Opened(Page):
    """What a browser made of a page, and what it complained about."""

    def __init__(self, html: str, folder: Path) -> None:
        page = folder / "page.html"
        page.write_text(html, encoding="utf-8")
        command = [str(BROWSER), *QUIET, f"--user-data-dir={folder / 'profile'}", "--dump-dom", page.as_uri()]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        self.complaints = re.findall(r".*CONSOLE.*", ran.stderr)
        self.html = ran.stdout
        super().__init__(re.sub(r"<(rect|line)([^>]*)></\1>", r"<\1\2/>", ran.stdout))

    def listed(self) -> list[bool]:
        """Return for every row whether it is shown."""
        return ["hidden" not in attributes for attributes in self.of("li") if "data-sure" in attributes]


def test_the_page_opens_without_complaints_and_runs_nothing_but_its_own_script(tmp_path: Path) -> None:
    made = Made(rows=12, text=ATTACK, labels=("good", ATTACK), names=("a", ATTACK))
    page = Opened(render(made_run(tmp_path, made)), tmp_path)
    assert page.complaints == []
    assert "<title>tweets.csv" in page.html
    assert "12 of 12 rows" in page.text
    (controls,) = page.with_class("controls")
    assert "hidden" not in controls


def test_search_filter_and_order_work_together(tmp_path: Path) -> None:
    html = render(made_run(tmp_path, Made(rows=30, skills=(0.6, 0.5))))
    wrong = html.count('data-is="wrong')
    act = """<script>
      document.querySelector('button[data-filter="wrong"]').click();
      const order = document.getElementById("order");
      order.value = "sure";
      order.dispatchEvent(new Event("change"));
    </script></body>"""
    # Our own policy would not let the test's script run.
    free = re.sub(r"<meta http-equiv[^>]*>", "", html)
    page = Opened(free.replace("</body>", act), tmp_path)
    sure = [float(str(attributes["data-sure"])) for attributes in page.of("li") if "data-sure" in attributes]
    assert page.complaints == []
    assert 0 < wrong < 30
    assert sum(page.listed()) == wrong
    assert f"{wrong} of 30 rows" in page.text
    assert sure == sorted(sure)


def test_decision_and_certainty_filter_together(tmp_path: Path) -> None:
    made = made_run(tmp_path, Made(rows=60, skills=(0.6, 0.5)))
    outcomes = [replace(one, decision="accept" if row % 3 else "review") for row, one in enumerate(made.outcomes)]
    result = replace(made, outcomes=outcomes)
    marks = [row.marks for row in select(view_of(result)).rows]
    html = re.sub(r"<meta http-equiv[^>]*>", "", render(result))
    for wanted in (("accept",), ("review",), ("accept", "wrong")):
        clicks = "".join(f"document.querySelector('button[data-filter=\"{name}\"]').click();" for name in wanted)
        page = Opened(html.replace("</body>", f"<script>{clicks}</script></body>"), tmp_path)
        assert page.complaints == []
        assert page.listed() == [set(wanted) <= set(one) for one in marks]
        assert 0 < sum(page.listed()) < 60


def test_a_search_without_result_says_so(tmp_path: Path) -> None:
    act = """<script>
      const search = document.getElementById("search");
      search.value = "Unicorn <b>";
      search.dispatchEvent(new Event("input"));
    </script></body>"""
    free = re.sub(r"<meta http-equiv[^>]*>", "", render(made_run(tmp_path, Made(rows=12))))
    page = Opened(free.replace("</body>", act), tmp_path)
    assert not any(page.listed())
    assert "0 of 12 rows" in page.text
    (nothing,) = [attributes for attributes in page.of("p") if attributes.get("id") == "nothing"]
    assert "hidden" not in nothing
