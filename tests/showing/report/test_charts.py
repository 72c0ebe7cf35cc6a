import math
import re
import warnings
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator import PcsWarning, RunResult
from pcs_annotator.runs.learn import learn_if_possible
from pcs_annotator.showing.report.charts import WIDE, reliability_diagram, risk_chart, roc_chart
from pcs_annotator.showing.report.page import render
from pcs_annotator.showing.svg_plot import BOTTOM, LEFT, RIGHT, TOP, Axes, Axis, Plot, nice_ticks, short
from tests.builders import the
from tests.showing.report.reading import Page, section
from tests.showing.report.results import QUICK, QUICKER, Made, made_run

NASTY = (
    "<script>alert(1)</script>",
    "\"quoted\" & 'twice'",
    "שלום עולם",
    "label " * 20,
    "标签标签标签标签标签标签标签标签",
    "\ud83d\u200b",
)
SQUARE = Axes(Axis(title=""), Axis(title=""))
SVG = "{http://www.w3.org/2000/svg}"


def drawn(result: RunResult) -> dict[str, Plot]:
    curves = the(result.learned.curves)
    made = [reliability_diagram(curves), risk_chart(curves, result.learned.model.certificate), roc_chart(curves)]
    return {plot.name: plot for plot in made}


def numbers(drawing: str) -> list[float]:
    """Return all numbers in the shapes of a drawing."""
    values = re.findall(r' (?:d|x|y|x1|x2|y1|y2|cx|cy|r|width|height)="([^"]*)"', drawing)
    return [float(one) for value in values for one in re.findall(r"-?[\d.]+", value)]


@given(st.floats(allow_nan=False), st.floats(0.01, 1))
def test_every_value_lies_inside_the_frame(value: float, high: float) -> None:
    x, y = Axes(Axis(title="", high=high), Axis(title="", high=high)).at(value, value)
    assert LEFT <= x <= RIGHT
    assert TOP <= y <= BOTTOM


@given(st.floats(0, 1))
def test_ticks_reach_the_value_and_are_few_and_round(value: float) -> None:
    ticks = nice_ticks(value)
    assert ticks[0] == 0
    assert ticks[-1] >= value
    assert 4 <= len(ticks) <= 7
    assert all(math.isclose(100 * tick, round(100 * tick)) for tick in ticks)


def test_an_axis_reaches_its_end_however_large_the_value() -> None:
    assert nice_ticks(3.0)[-1] == 1.0


def test_the_corners_of_the_frame_are_the_ends_of_the_axes() -> None:
    axes = Axes(Axis(title="", high=0.5), Axis(title=""))
    assert axes.at(0, 0) == (LEFT, BOTTOM)
    assert axes.at(0.5, 1) == (RIGHT, TOP)


def test_names_are_cut_to_what_a_legend_holds_wide_letters_counting_twice() -> None:
    assert short("fake") == "\u2068fake\u2069"
    assert len(short("a" * 50)) == 20
    assert len(short("字" * 50)) == 11


@pytest.mark.parametrize(
    "made",
    [
        Made(),
        Made(rows=90, learn=replace(QUICK, max_error=0.3, certainty=0.8)),
        Made(rows=90, learn=replace(QUICK, max_error=0.3, promise="false-discoveries")),
        Made(learn=replace(QUICK, max_error=None, calibration="none")),
        Made(labels=NASTY, rows=120, learn=QUICKER),
        Made(skills=(1.0, 1.0)),
    ],
    ids=["no promise", "promise", "other promise", "uncalibrated", "nasty labels", "never wrong"],
)
def test_a_drawing_is_well_formed_and_stays_inside_its_box(made: Made, tmp_path: Path) -> None:
    for plot in drawn(made_run(tmp_path, made)).values():
        root = ET.fromstring(plot.file())
        assert root.tag == f"{SVG}svg"
        assert "nan" not in plot.inline()
        assert "inf" not in plot.inline().replace("information", "")
        assert all(-1 <= value <= max(plot.axes.width, plot.height) for value in numbers(plot.inline()))
        assert root.find(f"{SVG}title") is not None
        assert root.find(f"{SVG}desc") is not None
        assert not root.findall(f".//{SVG}script")


def test_a_file_contains_its_colours(tmp_path: Path) -> None:
    for plot in drawn(made_run(tmp_path)).values():
        assert "var(" not in plot.file()
        assert "#2c5fb3" in plot.file()
        assert "<style>" not in plot.inline()


def test_legend_lines_overlap_neither_each_other_nor_the_axis(tmp_path: Path) -> None:
    for plot in drawn(made_run(tmp_path, Made(labels=tuple("abcdefgh"), rows=150, learn=QUICKER))).values():
        below = [float(y) for y in re.findall(r'<text [^>]*y="([\d.]+)" class="(?:key|axis-title end)"', plot.inline())]
        steps = np.diff(sorted(below))
        assert len(below) == len(plot.legend) + 1
        assert (steps >= 16).all()
        assert max(below) < plot.height


def test_every_bin_is_a_point_with_its_interval_and_its_number_of_rows(tmp_path: Path) -> None:
    result = made_run(tmp_path, Made(rows=90))
    curves = the(result.learned.curves)
    drawing = drawn(result)["reliability"].inline()
    for colour, bins in (("c1", curves.calibrated), ("c2", curves.raw)):
        assert drawing.count(f'class="dot {colour}"') == len(bins) + 1  # and the legend's
        for one in bins:
            assert f"n {one.rows}</title>" in drawing
    first = curves.calibrated[0]
    _, y = SQUARE.at(0, first.accuracy)
    assert f'cy="{round(y, 2):g}"' in drawing


def test_at_most_six_labels_have_a_line_and_all_have_a_number(tmp_path: Path) -> None:
    labels = tuple(f"label-{number}" for number in range(9))
    result = made_run(tmp_path, Made(labels=labels, rows=180, learn=QUICKER))
    assert drawn(result)["roc"].inline().count("<path") == 6
    text = Page(render(result)).text
    by_label = text[text.index("class AUROC per label") :]
    assert all(label in by_label for label in labels)


def test_the_accepted_share_and_the_error_limit_are_marked_only_if_there_are_any(tmp_path: Path) -> None:
    promised = made_run(tmp_path, Made(rows=90, learn=replace(QUICK, max_error=0.3, certainty=0.8)))
    certificate = the(promised.learned.model.certificate)
    assert certificate.holds
    marked = drawn(promised)["risk-coverage"].inline()
    place, _ = SQUARE._replace(width=WIDE).at(certificate.accepted_share, 0)
    assert f'x1="{round(place, 2):g}"' in marked
    assert "at most 30 % wrong" in marked
    refused = drawn(made_run(tmp_path, Made()))["risk-coverage"].inline()
    assert "at most 5 % wrong" in refused
    assert "accepted:" not in refused
    unasked = drawn(made_run(tmp_path, Made(learn=replace(QUICK, max_error=None))))["risk-coverage"].inline()
    assert "at most" not in unasked


def test_the_page_has_three_charts_or_says_what_they_need(tmp_path: Path) -> None:
    page = Page(render(made_run(tmp_path)))
    assert len(page.with_class("plot")) == 3
    assert all(svg["role"] == "img" for svg in page.with_class("plot"))
    for made, why in (
        (Made(gold=False), "No gold labels"),
        (Made(rows=3), "3-fold cross-validation needs at least 6 gold rows and two classes, there are 3 rows"),
        (Made(labels=("only", "other"), rows=1), "3-fold cross-validation needs at least 6 gold rows"),
    ):
        html = render(made_run(tmp_path, made))
        assert not Page(html).with_class("plot")
        assert f"Not known yet. {why}" in section(html, "quality")


def test_gold_of_one_class_gives_no_charts_and_the_page_shows_why(tmp_path: Path) -> None:
    result = made_run(tmp_path)
    gold = ("neutral",) * 40
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PcsWarning)
        learned = learn_if_possible(result.votes, gold, QUICK)
    dataset = replace(result.dataset, gold=gold)
    page = Page(
        render(replace(result, learned=learned, dataset=dataset, outcomes=list(learned.model.judge(result.votes))))
    )
    assert not page.with_class("plot")
    assert re.search("40 gold rows .*'neutral'", page.text)
    assert not re.search(r"\bnan\b", page.text)
