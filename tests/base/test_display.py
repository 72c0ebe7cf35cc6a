import os
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from pcs_annotator import Decision, Outcome, Outcomes, Weights
from pcs_annotator.base.display import LARGEST_SHOWN, Page, html_table, in_notebook
from pcs_annotator.core.weights import Diagnostics, Flag, Interval

EVIL = "<script>alert('x')</script>\ud800"


def outcome(name: str, decision: Decision | None = "accept", confidence: float | None = 0.91) -> Outcome:
    return Outcome(id=name, label="good", scores={"good": 1.0}, confidence=confidence, decision=decision, reason="why")


def test_everything_in_a_table_is_escaped_and_can_be_written() -> None:
    shown = html_table(EVIL, [EVIL], [[EVIL]], EVIL)
    assert "<script>" not in shown
    assert shown.count("&lt;script&gt;") == 4
    shown.encode()


def test_numbers_are_rounded_and_missing_values_are_empty() -> None:
    shown = html_table("t", ["a", "b", "c"], [[0.12345, 1234, None]])
    assert ">0.123<" in shown
    assert ">1,234<" in shown
    assert '<bdi dir="auto"></bdi>' in shown


def test_no_colour_of_the_ground_is_assumed() -> None:
    assert "background" not in html_table("t", ["a"], [["accept"]])
    assert "color:" not in html_table("t", ["a"], [["accept"]]).replace("border-left:3px solid", "")


def test_many_outcomes_show_the_first_ones_and_how_many_there_are() -> None:
    many = Outcomes(outcome(str(row), "review" if row else "accept") for row in range(30))
    shown = many._repr_html_()
    assert "30 outcomes · 1 accept · 29 review" in shown
    assert "the first 20 of 30" in shown
    assert shown.count("<tr>") == 21
    assert many == list(many)


def test_one_outcome_is_shown_and_written_in_short() -> None:
    assert "1 outcome ·" in outcome("<7>")._repr_html_()
    assert "&lt;7&gt;" in outcome("<7>")._repr_html_()
    assert repr(outcome("7")) == "Outcome(id='7', label='good', confidence=0.910, decision='accept', reason='why')"
    assert repr(outcome("7", None, None)) == "Outcome(id='7', label='good', reason='why')"


def test_weights_are_shown_with_their_ranges_and_flags() -> None:
    details = Diagnostics(
        optimiser="lr",
        gold_rows=50,
        flags=(Flag("no original", "a flag"),),
        annotator_intervals={"one": Interval(0.2, 0.4)},
    )
    weights = Weights(
        annotators=["one", "two"],
        relations=["original"],
        annotator_weights=np.array([1 / 3, 2 / 3]),
        relation_weights=np.ones(1),
        diagnostics=details,
    )
    shown = weights._repr_html_()
    for words in ("Weights: lr, from 50 gold rows", ">0.333<", ">0.200<", ">0.400<", "a flag"):
        assert words in shown
    assert repr(weights) == "Weights(by_annotator={'one': 0.3333, 'two': 0.6667}, by_relation={'original': 1.0})"


def test_a_page_is_its_path_and_is_shown_unless_it_is_too_large(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text('<p class="a">page</p>')
    page = Page(path)
    assert os.fspath(page) == str(page) == str(path)
    assert 'srcdoc="&lt;p class=&quot;a&quot;&gt;page&lt;/p&gt;"' in page._repr_html_()
    os.truncate(path, LARGEST_SHOWN + 1)
    assert "iframe" not in page._repr_html_()
    assert "too large" in page._repr_html_()


@pytest.mark.parametrize(
    ("shell", "found"), [(None, False), (SimpleNamespace(), False), (SimpleNamespace(kernel=object()), True)]
)
def test_a_notebook_is_a_shell_with_a_kernel(
    shell: object | None, found: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert in_notebook() is found


def test_without_ipython_there_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert not in_notebook()
