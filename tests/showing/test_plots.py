from pathlib import Path
from xml.etree import ElementTree

import pytest

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.core.result_table import Curve, Pair
from pcs_annotator.showing.report.charts import draw_curves, draw_pairs

CURVES = [
    Curve("sentiment", "lr", (10, 30, 100), (0.8, 0.82, 0.85), (0.75, 0.8, 0.84), (0.85, 0.84, 0.86)),
    Curve("sentiment", "equal weights", (10, 30, 100), (0.79, 0.79, 0.79), (0.78, 0.78, 0.78), (0.8, 0.8, 0.8)),
    Curve("<b>$x_1$ & شائعة", "lr", (10, 30), (0.6, 0.7), (0.5, 0.6), (0.7, 0.8)),
]
PAIRS = [Pair("sentiment", "gemma", 0.87, 0.85), Pair("gossipcop", "gemma", 0.8, 0.72)]
SVG = "{http://www.w3.org/2000/svg}"


def words(path: Path) -> str:
    return " ".join(ElementTree.parse(path).getroot().itertext())


def test_curves_as_svg(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "size.svg"
    draw_curves(CURVES, path)
    assert "sentiment, equal weights" in words(path)
    assert "<b>$x_1$ & شائعة, lr" in words(path)
    assert "Gold rows learned from" in words(path)
    assert " 0.5 0.6 0.7 0.8 0.9 10 30 100 " in words(path), "the axes have the range of the values"


def test_gold_rows_are_on_a_logarithmic_axis(tmp_path: Path) -> None:
    draw_curves([CURVES[0]._replace(x=(10, 100, 1000))], tmp_path / "size.svg")
    line = next(
        one.get("d", "")
        for one in ElementTree.parse(tmp_path / "size.svg").iter(f"{SVG}path")
        if one.get("class") == "curve c1"
    )
    left, middle, right = (float(point.split()[0]) for point in line.removeprefix("M").split("L"))
    assert middle == pytest.approx((left + right) / 2, abs=0.01)


def test_pairs_as_svg(tmp_path: Path) -> None:
    path = tmp_path / "rq3.svg"
    draw_pairs(PAIRS, "Majority vote", path)
    assert "class AUROC, majority vote" in words(path)
    assert "gossipcop" in words(path)
    places = [
        (float(one.get("cx", 0)), float(one.get("cy", 0))) for one in ElementTree.parse(path).iter(f"{SVG}circle")
    ]
    assert len({*places}) == 4, "a dot for every pair and for every line of the legend"


def test_one_pair_has_a_chart_of_its_own(tmp_path: Path) -> None:
    draw_pairs([Pair("sentiment", "gemma", 1.0, 1.0)], "Zero-shot", tmp_path / "rq1.svg")
    assert "1" in words(tmp_path / "rq1.svg")


def test_nothing_to_draw_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UndefinedMetric, match="learning curve"):
        draw_curves([], tmp_path / "x.svg")
    with pytest.raises(UndefinedMetric, match="Zero-shot"):
        draw_pairs([], "Zero-shot", tmp_path / "x.svg")
