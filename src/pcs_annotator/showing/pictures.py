"""Charts as SVG pictures, for notebooks and papers: of a run, and of experiments."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path

from pcs_annotator.base.errors import ConfigError, GoldError, UndefinedMetric
from pcs_annotator.core.arrays import Integers
from pcs_annotator.core.result_table import Curve, Pair
from pcs_annotator.judging.evaluate.agreement import AgainstGold
from pcs_annotator.runs.run_result import RunResult
from pcs_annotator.showing.formats import percent
from pcs_annotator.showing.markup import Markup, joined, tag
from pcs_annotator.showing.report.sections.curves import plots
from pcs_annotator.showing.report.view import view_of
from pcs_annotator.showing.svg_plot import Axes, Axis, LegendEntry, Plot, dot, segment, short
from pcs_annotator.showing.svg_plot import path as svg_path
from pcs_annotator.tables.files import check_ending, write_page

CHARTS = {"risk": "risk-coverage", "calibration": "reliability", "roc": "roc"}
CELL_WIDTH, CELL_HEIGHT, MARGIN, TOP = 92, 44, 150, 58
FONT = "system-ui, sans-serif"
COLOURS = 6  # as many as `charts.css` has for lines and dots


@dataclass(frozen=True, slots=True)
class Picture:
    """A chart as SVG: a notebook shows it, `save` writes it."""

    name: str
    description: str  # in words
    svg: str = field(repr=False)

    def _repr_html_(self) -> str:
        return self.svg

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the chart as an SVG file, and return its path."""
        target = Path(path)
        check_ending(target, (".svg",))
        write_page(target, self.svg)
        return target


def picture(result: RunResult, kind: str) -> Picture:
    """Return a chart of a run, on gold rows that the fits did not see; without enough of them, raise `GoldError`.

    The kind is `risk` (error against coverage), `calibration`, `roc` or `confusion`.
    """
    if kind not in (*CHARTS, "confusion"):
        raise ConfigError(f"there is no chart {kind!r}; there are {', '.join(CHARTS)} and confusion")
    learned = result.learned
    if kind == "confusion" and learned.against_gold is not None:
        return confusion(learned.against_gold)
    charts = {plot.name: plot for plot in plots(view_of(result))}
    if CHARTS.get(kind) not in charts:
        why = learned.no_figures.rstrip(".") or "there are too few gold rows"
        raise GoldError(f"no chart of {kind}: {why}; label rows with pcs review {result.folder.home}, then fit again")
    chart = charts[CHARTS[kind]]
    return Picture(chart.name, chart.description, chart.file())


def confusion(against_gold: AgainstGold) -> Picture:
    """Return how often each gold label got each label; darker cells are a larger share of their gold label."""
    table = against_gold.table if against_gold.table[-1].any() else against_gold.table[:-1]
    names = [*against_gold.labels, "no label"][: len(table)]
    width, height = MARGIN + CELL_WIDTH * len(names) + 12, TOP + CELL_HEIGHT * len(against_gold.labels) + 12
    columns = [_words(short(name), MARGIN + CELL_WIDTH * (at + 0.5), TOP - 10) for at, name in enumerate(names)]
    rows = [
        joined(
            _words(short(name), MARGIN - 10, TOP + CELL_HEIGHT * (at + 0.5) + 4, anchor="end"),
            *(_cell(table, at, to) for to in range(len(names))),
        )
        for at, name in enumerate(against_gold.labels)
    ]
    right = sum(int(against_gold.table[at, at]) for at in range(len(against_gold.labels)))
    summary = f"{right:,} of {against_gold.n:,} gold rows got their gold label"
    drawing = tag(
        "svg",
        tag("title", "Confusion matrix"),
        tag("desc", summary),
        tag("rect", width=f"{width}", height=f"{height}", fill="#ffffff"),
        _words("gold ↓   given →", MARGIN - 10, TOP - 10, anchor="end"),
        _words(summary, 8, 18, anchor="start"),
        *columns,
        *rows,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {max(width, 330)} {height}",
        width=f"{max(width, 330)}",
        role="img",
        font_family=FONT,
        font_size="12.5",
    )
    return Picture("confusion", summary, f"{drawing}\n")


def _cell(table: Integers, gold: int, label: int) -> Markup:
    times, whole = int(table[label, gold]), int(table[:, gold].sum())
    share = times / whole if whole else 0.0
    colour = "#2f6db5" if label == gold else "#c2513a"
    left, top = MARGIN + CELL_WIDTH * label, TOP + CELL_HEIGHT * gold
    box = tag(
        "rect", x=f"{left}", y=f"{top}", width=f"{CELL_WIDTH - 2}", height=f"{CELL_HEIGHT - 2}",
        fill=colour, fill_opacity=f"{0.05 + 0.9 * share:.2f}",
    )  # fmt: skip
    shown = f"{times:,} ({percent(times, whole)})" if whole else "0"
    ink = "#ffffff" if share > 0.6 else "#1b1f24"
    return joined(box, _words(shown, left + CELL_WIDTH / 2, top + CELL_HEIGHT / 2 + 4, ink=ink))


def _words(text: str, x: float, y: float, *, anchor: str = "middle", ink: str = "#1b1f24") -> Markup:
    return tag("text", text, x=f"{x:g}", y=f"{y:g}", text_anchor=anchor, fill=ink)


def draw_curves(curves: Sequence[Curve], path: Path) -> None:
    """Write a chart of class AUROC against gold rows, a line with its band per dataset and method."""
    _require(curves, "a learning curve")
    sizes = [x for curve in curves for x in curve.x]
    ticks = [x for x in (10, 30, 100, 300, 1000, 3000) if min(sizes) <= x <= max(sizes)]
    x = Axis(title="Gold rows learned from", low=min(sizes), high=max(sizes), ticks=ticks, logarithmic=True)
    axes = Axes(x, _auroc("", [y for curve in curves for y in (*curve.low, *curve.high)]))
    parts: list[Markup] = []
    legend: list[LegendEntry] = []
    for index, curve in enumerate(curves):
        kind, there = f"curve c{index % COLOURS + 1}", list(reversed(curve.x))
        around = [*map(axes.at, curve.x, curve.low), *map(axes.at, there, reversed(curve.high))]
        parts += [svg_path(around, "band", closed=True), svg_path(map(axes.at, curve.x, curve.y), kind)]
        legend.append(LegendEntry(kind=kind, text=f"{curve.dataset}, {curve.method}"))
    _write(path, "Learning curves", axes, parts, legend)


def draw_pairs(pairs: Sequence[Pair], rival: str, path: Path) -> None:
    """Write a chart of PCS against a rival, one dot per model and dataset; dots above the line favour PCS."""
    _require(pairs, f"PCS against {rival}")
    values = [value for pair in pairs for value in (pair.ours, pair.theirs)]
    axes = Axes(_auroc(f", {rival[:1].lower()}{rival[1:]}", values), _auroc(", PCS", values))
    low, high = axes.x.low, axes.x.high
    parts = [segment(axes.at(low, low), axes.at(high, high), "ideal")]
    legend: list[LegendEntry] = []
    for index, dataset in enumerate(dict.fromkeys(pair.dataset for pair in pairs)):
        kind = f"dot c{index % COLOURS + 1}"
        dots = [(axes.at(entry.theirs, entry.ours), entry.name) for entry in pairs if entry.dataset == dataset]
        parts += [dot(where, kind, name) for where, name in dots]
        legend.append(LegendEntry(kind=kind, text=dataset, shape="dot"))
    _write(path, f"PCS against {rival}", axes, parts, legend)


def _auroc(of: str, values: Sequence[float]) -> Axis:
    first, last = int(10 * min(values)), ceil(10 * max(values))
    ticks = [tenth / 10 for tenth in range(first, max(last, first + 1) + 1)]
    return Axis(title=f"class AUROC{of}", low=ticks[0], high=ticks[-1], ticks=ticks)


def _require(things: Sequence[object], what: str) -> None:
    if not things:
        raise UndefinedMetric(f"nothing to draw for {what}: no value could be computed, see the notes of its table")


def _write(path: Path, title: str, axes: Axes, parts: Sequence[Markup], legend: Sequence[LegendEntry]) -> None:
    shown = f"{axes.y.title} against {axes.x.title}"
    chart = Plot(name=path.stem, title=title, description=shown, axes=axes, parts=parts, legend=legend)
    write_page(path, chart.file())
