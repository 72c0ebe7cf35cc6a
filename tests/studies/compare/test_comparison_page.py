from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import pcs_annotator
from pcs_annotator.studies.compare.comparison import Comparison
from pcs_annotator.studies.compare.comparison_page import MOST_EXAMPLES, render, verdict
from pcs_annotator.tables.write import STRICT
from tests.chromium import CHROMIUM, MISSING, findings, page_errors
from tests.showing.report.reading import Page, listed, section
from tests.studies.compare.runs import ATTACK, Runs

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def found(runs: Runs) -> Comparison:
    return pcs_annotator.compare(runs.a, runs.b, repeats=1, resamples=50)


def test_the_page_shows_the_verdict_both_sides_and_every_row_on_which_they_differ(found: Comparison) -> None:
    html = render(found)
    page = Page(html)
    first, *others = verdict(found)
    assert first.rstrip(".") in page.text
    assert all(" ".join(said.split()) in section(html, "verdict") for said in others)
    assert len(listed(html)) == found.differing
    assert [one["href"] for one in page.of("a")][2:] == [f"#{one['id']}" for one in page.of("section")]
    assert "both are right on" in section(html, "quality")
    assert "Was it late?" in section(html, "settings")
    assert f"only A is right {sum('a-right' in one.marks for one in found.examples)}" in section(html, "rows")


def test_texts_cannot_break_out_and_set_their_own_direction(found: Comparison) -> None:
    html = render(found)
    assert ATTACK not in html
    assert all(one.get("dir") == "auto" for one in Page(html).of("bdi"))


def test_many_rows_are_cut_to_those_with_gold_and_many_labels_to_the_most_frequent_pairs(found: Comparison) -> None:
    one = found.examples[0]
    many = [one._replace(gold=None)] * 300 + [one] * 10
    html = render(replace(found, examples=many))
    assert len(listed(html)) == MOST_EXAMPLES
    labels = [f"label {number}" for number in range(30)]
    table = np.zeros((31, 31), dtype=np.intp)
    table[3, 4], table[5, 6], table[7, 7] = 2, 9, 50
    text = section(render(replace(found, labels=labels, table=table)), "labels")
    assert text.endswith("A → B rows share label 5 → label 6 9 100 % label 3 → label 4 2 100 %")


def test_without_figures_examples_or_settings_the_page_says_why(found: Comparison) -> None:
    html = render(replace(found, figures=None, no_figures="no gold", examples=[], settings=[], notes=["<b>note</b>"]))
    assert "Not known yet. No gold." in section(html, "quality")
    assert "None: no row has two different labels." in section(html, "rows")
    assert "None: the two runs have the same settings." in section(html, "settings")
    assert "<b>note</b>" in section(html, "verdict")
    unlabelled = replace(found.examples[0].outcomes[0], label=None)
    table = np.pad(found.table[:-1, :-1], (0, 1), constant_values=1)
    mute = found.examples[0]._replace(outcomes=(unlabelled, found.examples[0].outcomes[1]), gold=None)
    page = render(replace(found, examples=[mute], table=table))
    assert [cell[:2] for cell in listed(page)[0]["cells"]] == [["said", None], ["said", mute.outcomes[1].label]]
    assert section(page, "labels").count("no label") == 2


@pytest.mark.skipif(CHROMIUM is None, reason=MISSING)
@pytest.mark.parametrize("rows", [0, 3])
def test_the_page_throws_nothing_with_rows_or_without(found: Comparison, tmp_path: Path, rows: int) -> None:
    path = STRICT.write_page(tmp_path / "compare.html", render(replace(found, examples=found.examples[:rows])))
    assert page_errors(path.as_uri()) == []


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason=MISSING)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(found: Comparison, tmp_path: Path, scheme: Literal["light", "dark"]) -> None:
    from playwright.sync_api import sync_playwright

    path = STRICT.write_page(tmp_path / "compare.html", render(found))
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for width in (1280, 320):
            # the page's own policy would block axe
            page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True)
            page.goto(path.as_uri())
            page.evaluate("document.querySelectorAll('#list details').forEach((row) => { row.open = true })")
            assert findings(page) == []
            assert page.evaluate("document.documentElement.scrollWidth") == width
        browser.close()
