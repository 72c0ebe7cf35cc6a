"""Charts as SVG, for the page and as files: axes, marks, and a legend below, where nothing can overlap."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from math import ceil, floor, log, log10
from typing import NamedTuple

from pcs_annotator.core.weights import Interval
from pcs_annotator.showing.markup import Markup, joined, tag

WIDTH = 400.0
LEFT, RIGHT, TOP, BOTTOM = 46.0, 380.0, 34.0, 290.0
UNDER_AXIS, LEGEND_TOP, LEGEND_ROW = 330.0, 356.0, 21.0
PAPER_MARGIN = 12.0
LONGEST_NAME = 18
FIFTHS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
Point = tuple[float, float]  # a position in the drawing, from the left and from the top


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A scale from `low` to `high`, with a title and ticks."""

    title: str
    low: float = 0.0
    high: float = 1.0
    ticks: Sequence[float] = FIFTHS
    percent: bool = False
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """Return the position along the axis, from 0 to 1; values outside are moved to its ends."""
        low, high = self.low, self.high
        if self.logarithmic:
            low, high, value = log(low), log(high), log(max(value, low))
        return min(max((value - low) / ((high - low) or 1.0), 0.0), 1.0)

    def tick_text(self, value: float) -> str:
        """Return the label of a tick."""
        return f"{100 * value:g} %" if self.percent else f"{value:g}"


class Axes(NamedTuple):
    """The two axes of a chart; the title of `y` is written above it."""

    x: Axis
    y: Axis
    width: float = WIDTH  # of the drawing, in its own units

    @property
    def right(self) -> float:
        """The end of the horizontal axis."""
        return RIGHT + self.width - WIDTH

    def at(self, x: float, y: float) -> Point:
        """Return the position of a value in the drawing."""
        return LEFT + self.x.place(x) * (self.right - LEFT), BOTTOM - self.y.place(y) * (BOTTOM - TOP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A chart."""

    name: str  # its file name and the prefix of its ids
    title: str  # its name, for screen readers
    description: str  # its content in words, for screen readers
    axes: Axes  # the horizontal and the vertical axis
    parts: Sequence[Markup]  # the lines, areas and dots
    legend: Sequence[tuple[str, str]] = ()  # class of a part → its meaning

    @property
    def height(self) -> float:
        """Height of the drawing in its own units."""
        return (LEGEND_TOP + LEGEND_ROW * len(self.legend) if self.legend else UNDER_AXIS) + 4

    def inline(self) -> Markup:
        """Return the drawing for a page that has the styles."""
        return self._svg(self._body(), f"0 0 {_n(self.axes.width)} {_n(self.height)}")

    def file(self) -> str:
        """Return the drawing as a separate file: white background, styles included."""
        width, height = _n(self.axes.width + 2 * PAPER_MARGIN), _n(self.height + 2 * PAPER_MARGIN)
        corner = _n(-PAPER_MARGIN)
        ground = tag("rect", x=corner, y=corner, width=width, height=height, fill="#ffffff")
        whole = joined(tag("style", Markup(_style())), ground, self._body())
        box = f"{corner} {corner} {width} {height}"
        return f"{self._svg(whole, box, xmlns='http://www.w3.org/2000/svg', width='800')}\n"

    def _svg(self, body: Markup, box: str, **more: str) -> Markup:
        ids = f"{self.name}-name", f"{self.name}-text"
        return tag(
            "svg",
            tag("title", self.title, id=ids[0]),
            tag("desc", self.description, id=ids[1]),
            body,
            class_="plot wide" if self.axes.width > WIDTH else "plot",
            viewBox=box,
            role="img",
            aria_labelledby=" ".join(ids),
            **more,
        )

    def _body(self) -> Markup:
        legend = []
        for index, (kind, text) in enumerate(self.legend):
            y = LEGEND_TOP + index * LEGEND_ROW
            legend += [_sample(kind, y), words(text, LEFT, y + 4, "key")]
        return joined(*_axes(self.axes), *self.parts, *legend)


def path(points: Iterable[Point], kind: str, *, closed: bool = False) -> Markup:
    """Return a line through points, or the area inside it."""
    drawn = "L".join(f"{_n(x)} {_n(y)}" for x, y in points)
    return tag("path", d=f"M{drawn}{'Z' if closed else ''}", class_=kind)


def segment(start: Point, end: Point, kind: str) -> Markup:
    """Return a straight line between two points."""
    return tag("line", x1=_n(start[0]), y1=_n(start[1]), x2=_n(end[0]), y2=_n(end[1]), class_=kind)


def dot(point: Point, kind: str, tooltip: str = "") -> Markup:
    """Return a dot, with a tooltip if there is one."""
    title = tag("title", tooltip) if tooltip else None
    return tag("circle", title, cx=_n(point[0]), cy=_n(point[1]), r="4", class_=kind)


def short(name: str) -> str:
    """Return a name cut to fit into a legend, isolated from the writing direction of the text around it."""
    room, kept = LONGEST_NAME, ""
    for letter in " ".join(name.split()):
        room -= 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        if room < 1:
            kept += "…"
            break
        kept += letter
    return f"\u2068{kept}\u2069"


def nice_ticks(value: float) -> list[float]:
    """Return a few round ticks from 0 up to at least the value."""
    scales = ((0.05, 0.01), (0.1, 0.02), (0.2, 0.05), (0.3, 0.05), (0.5, 0.1), (1.0, 0.2))
    top, step = next((scale for scale in scales if value <= scale[0]), scales[-1])
    return [round(step * index, 4) for index in range(round(top / step) + 1)]


def round_scale(values: Sequence[float]) -> Interval:
    """Return round numbers that all values lie between."""
    low, high = min(values), max(values)
    power = 10.0 ** floor(log10((high - low) or 1.0) - 1)
    step = next(power * part for part in (1, 2, 5, 10) if power * part * 10 >= high - low)
    return Interval(step * floor(low / step), step * ceil(high / step))


def _axes(axes: Axes) -> list[Markup]:
    x, y, _ = axes
    parts = [words(y.title, 0, 14, "axis-title"), words(x.title, axes.right, UNDER_AXIS, "axis-title end")]
    for tick in y.ticks:
        _, height = axes.at(x.low, tick)
        parts.append(segment((LEFT, height), (axes.right, height), "base" if tick == y.low else "grid"))
        parts.append(words(y.tick_text(tick), LEFT - 7, height + 4, "tick end"))
    for tick in x.ticks:
        index, _ = axes.at(tick, y.low)
        parts.append(segment((index, BOTTOM), (index, BOTTOM + 4), "base"))
        parts.append(words(x.tick_text(tick), index, BOTTOM + 19, "tick middle"))
    return parts


def _sample(kind: str, y: float) -> Markup:
    middle = LEFT - 22
    if kind.startswith("dot"):
        return dot((middle, y), kind)
    if kind == "band":
        return tag("rect", x=_n(middle - 12), y=_n(y - 6), width="24", height="12", class_=kind)
    return segment((middle - 12, y), (middle + 12, y), kind)


def words(text: str, x: float, y: float, kind: str) -> Markup:
    """Return words in a chart."""
    return tag("text", text, x=_n(x), y=_n(y), class_=kind)


def _n(value: float) -> str:
    return f"{round(value, 2):g}"


def _style() -> str:
    """Return the chart styles with the light colours filled in: not every SVG viewer supports CSS variables."""
    folder = files("pcs_annotator.showing.report")
    light = folder.joinpath("colours.css").read_text(encoding="utf-8").split("}", 1)[0]
    colours = dict(re.findall(r"(?<![\w-])--([\w-]+): *([^;]+);", light))
    style = folder.joinpath("charts.css").read_text(encoding="utf-8")
    return re.sub(r"var\(--([\w-]+)\)", lambda match: colours[match[1]], style)
