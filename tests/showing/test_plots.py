from __future__ import annotations

import struct
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pcs_annotator.base.errors import MissingPackage, UndefinedMetric
from pcs_annotator.core.result_table import Curve, Pair
from pcs_annotator.showing.pictures import draw_curves, draw_pairs

CURVES = [
    Curve("sentiment", "lr", (10, 30, 100), (0.8, 0.82, 0.85), (0.75, 0.8, 0.84), (0.85, 0.84, 0.86)),
    Curve("sentiment", "equal weights", (10, 30, 100), (0.79, 0.79, 0.79), (0.78, 0.78, 0.78), (0.8, 0.8, 0.8)),
    Curve("<b>$x_1$ & شائعة", "lr", (10, 30), (0.6, 0.7), (0.5, 0.6), (0.7, 0.8)),
]
PAIRS = [Pair("sentiment", "gemma", 0.87, 0.85), Pair("gossipcop", "gemma", 0.8, 0.72)]


def words(path: Path) -> str:
    return " ".join(ElementTree.parse(path).getroot().itertext())


def size(path: Path) -> tuple[int, int]:
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", data[16:24])
    return width, height


@pytest.mark.filterwarnings("ignore:Glyph .* missing from font")
def test_curves_as_png_and_svg(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    png, svg = draw_curves(CURVES, tmp_path / "deep" / "size.v1")
    assert (png.name, svg.name) == ("size.v1.png", "size.v1.svg")
    assert size(png)[0] > 900
    assert "sentiment, equal weights" in words(svg)
    assert "<b>$x_1$ & شائعة, lr" in words(svg)
    assert "Gold rows learned from" in words(svg)


def test_pairs_as_png_and_svg(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    png, svg = draw_pairs(PAIRS, "Majority vote", tmp_path / "rq3")
    assert size(png)[0] > 900
    assert "class AUROC, majority vote" in words(svg)
    assert "gossipcop" in words(svg)


def test_the_same_figure_is_the_same_file(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    one, two = (draw_pairs(PAIRS, "Zero-shot", tmp_path / name)[1].read_text() for name in ("a", "b"))
    assert one == two


def test_nothing_to_draw_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UndefinedMetric, match="learning curve"):
        draw_curves([], tmp_path / "x")
    with pytest.raises(UndefinedMetric, match="Zero-shot"):
        draw_pairs([], "Zero-shot", tmp_path / "x")


def test_without_matplotlib_the_message_has_the_pip_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingPackage, match=r"pip install 'perceived-confidence\[plots\]'"):
        draw_pairs(PAIRS, "Zero-shot", tmp_path / "x")
