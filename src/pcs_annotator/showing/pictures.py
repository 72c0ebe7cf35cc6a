"""Charts as pictures, for notebooks and papers: of a run as SVG; of experiments as PNG and SVG, drawn by matplotlib."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pcs_annotator.base.errors import ConfigError, GoldError, MissingPackage, UndefinedMetric
from pcs_annotator.core.arrays import Integers
from pcs_annotator.core.result_table import Curve, Pair
from pcs_annotator.judging.evaluation.agreement import AgainstGold
from pcs_annotator.runs.run_result import RunResult
from pcs_annotator.showing.formats import percent
from pcs_annotator.showing.markup import Markup, joined, tag
from pcs_annotator.showing.report.sections.curves import plots
from pcs_annotator.showing.report.view import view_of
from pcs_annotator.showing.svg_plot import short
from pcs_annotator.tables.files import check_ending, write_page

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


CHARTS = {"risk": "risk-coverage", "calibration": "reliability", "roc": "roc"}
CELL_WIDTH, CELL_HEIGHT, MARGIN, TOP = 92, 44, 150, 58
FONT = "system-ui, sans-serif"
COLUMN_WIDTH = 3.35  # inches: one column of a paper
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
"""Okabe & Ito: distinct with any kind of colour vision."""
MARKERS = "osD^vPX"
DASHES: tuple[Any, ...] = ("-", (0, (4, 2)), (0, (1, 1.2)), (0, (5, 1, 1, 1)))
STYLE: Any = {
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 7,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "svg.fonttype": "none",
    "svg.hashsalt": "pcs",
    "text.parse_math": False,
}


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
        place = Path(path)
        check_ending(place, (".svg",))
        write_page(place, self.svg)
        return place


def picture(result: RunResult, kind: str) -> Picture:
    """Return a chart of a run, on gold rows that the fits did not see; without enough of them, raise `GoldError`.

    The kind is `risk` (error against coverage), `calibration`, `roc` or `confusion`.
    """
    if kind not in (*CHARTS, "confusion"):
        raise ConfigError(f"there is no chart {kind!r}; there are {', '.join(CHARTS)} and confusion")
    learned = result.learned
    if kind == "confusion" and learned.against_gold is not None:
        return confusion(learned.against_gold)
    found = {plot.name: plot for plot in plots(view_of(result))}
    if CHARTS.get(kind) not in found:
        why = learned.no_figures.rstrip(".") or "there are too few gold rows"
        raise GoldError(f"no chart of {kind}: {why}; label rows with pcs review {result.folder.path}, then fit again")
    chart = found[CHARTS[kind]]
    return Picture(chart.name, chart.description, chart.file())


def confusion(found: AgainstGold) -> Picture:
    """Return how often each gold label got each label; darker cells are a larger share of their gold label."""
    table = found.table if found.table[-1].any() else found.table[:-1]
    given = [*found.labels, "no label"][: len(table)]
    width, height = MARGIN + CELL_WIDTH * len(given) + 12, TOP + CELL_HEIGHT * len(found.labels) + 12
    columns = [_words(short(name), _left(at) + CELL_WIDTH / 2, TOP - 10) for at, name in enumerate(given)]
    rows = [
        joined(
            _words(short(name), MARGIN - 10, _top(at) + CELL_HEIGHT / 2 + 4, anchor="end"),
            *(_cell(table, at, to) for to in range(len(given))),
        )
        for at, name in enumerate(found.labels)
    ]
    right = sum(int(found.table[at, at]) for at in range(len(found.labels)))
    said = f"{right:,} of {found.n:,} gold rows got their gold label"
    drawing = tag(
        "svg",
        tag("title", "Confusion matrix"),
        tag("desc", said),
        tag("rect", width=f"{width}", height=f"{height}", fill="#ffffff"),
        _words("gold ↓   given →", MARGIN - 10, TOP - 10, anchor="end"),
        _words(said, 8, 18, anchor="start"),
        *columns,
        *rows,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {max(width, 330)} {height}",
        width=f"{max(width, 330)}",
        role="img",
        font_family=FONT,
        font_size="12.5",
    )
    return Picture("confusion", said, f"{drawing}\n")


def _cell(table: Integers, gold: int, given: int) -> Markup:
    times, whole = int(table[given, gold]), int(table[:, gold].sum())
    share = times / whole if whole else 0.0
    colour = "#2f6db5" if given == gold else "#c2513a"
    box = tag(
        "rect", x=f"{_left(given)}", y=f"{_top(gold)}", width=f"{CELL_WIDTH - 2}", height=f"{CELL_HEIGHT - 2}",
        fill=colour, fill_opacity=f"{0.05 + 0.9 * share:.2f}",
    )  # fmt: skip
    shown = f"{times:,} ({percent(times, whole)})" if whole else "0"
    ink = "#ffffff" if share > 0.6 else "#1b1f24"
    return joined(box, _words(shown, _left(given) + CELL_WIDTH / 2, _top(gold) + CELL_HEIGHT / 2 + 4, ink=ink))


def _left(column: int) -> int:
    return MARGIN + CELL_WIDTH * column


def _top(row: int) -> int:
    return TOP + CELL_HEIGHT * row


def _words(text: str, x: float, y: float, *, anchor: str = "middle", ink: str = "#1b1f24") -> Markup:
    return tag("text", text, x=f"{x:g}", y=f"{y:g}", text_anchor=anchor, fill=ink)


def draw_curves(curves: Sequence[Curve], stem: Path) -> list[Path]:
    """Draw class AUROC against gold rows, a line with its band per dataset and method; return the files written.

    Datasets differ in colour and marker, methods in line style. Beside `stem`, `.png` and `.svg` are written.
    """
    _require(curves, "a learning curve")
    with _style():
        figure, axes = _canvas(COLUMN_WIDTH * 0.82)
        datasets = list(dict.fromkeys(curve.dataset for curve in curves))
        methods = list(dict.fromkeys(curve.method for curve in curves))
        for curve in sorted(curves, key=lambda one: methods.index(one.method)):
            place, dash = datasets.index(curve.dataset), methods.index(curve.method)
            colour = COLOURS[place % len(COLOURS)]
            axes.plot(
                curve.x, curve.y, color=colour, linestyle=DASHES[dash % len(DASHES)],
                marker=MARKERS[place % len(MARKERS)] if dash == 0 else "", label=f"{curve.dataset}, {curve.method}",
            )  # fmt: skip
            axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.15 if dash == 0 else 0.07, lw=0)
        axes.set_xscale("log")
        _plain_ticks(axes, curves)
        axes.set_xlabel("Gold rows learned from")
        axes.set_ylabel("class AUROC")
        _legend(axes, columns=min(2, len(methods)))
        return _saved(figure, stem)


def draw_pairs(pairs: Sequence[Pair], rival: str, stem: Path) -> list[Path]:
    """Draw PCS against a rival, one dot per model and dataset; dots above the line favour PCS."""
    _require(pairs, f"PCS against {rival}")
    with _style():
        figure, axes = _canvas(COLUMN_WIDTH)
        values = [value for pair in pairs for value in (pair.ours, pair.theirs)]
        low, high = min(values) - 0.02, max(values) + 0.02
        axes.plot([low, high], [low, high], color="0.6", linewidth=0.8, zorder=0)
        for place, dataset in enumerate(dict.fromkeys(pair.dataset for pair in pairs)):
            chosen = [pair for pair in pairs if pair.dataset == dataset]
            axes.plot(
                [pair.theirs for pair in chosen], [pair.ours for pair in chosen], linestyle="", label=dataset,
                color=COLOURS[place % len(COLOURS)], marker=MARKERS[place % len(MARKERS)], markersize=5,
                markeredgecolor="white", markeredgewidth=0.5,
            )  # fmt: skip
        axes.set_xlim(low, high)
        axes.set_ylim(low, high)
        axes.set_aspect("equal")
        axes.set_xlabel(f"class AUROC, {rival[:1].lower()}{rival[1:]}")
        axes.set_ylabel("class AUROC, PCS")
        _legend(axes, columns=3)
        return _saved(figure, stem)


def _require(things: Sequence[object], what: str) -> None:
    if not things:
        raise UndefinedMetric(f"nothing to draw for {what}: no value could be computed, see the notes of its table")


def _style() -> Any:
    """Return the drawing style as a context manager; matplotlib is first imported here."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise MissingPackage("plots need matplotlib: pip install 'perceived-confidence[plots]'") from error
    return mpl.rc_context(STYLE)


def _canvas(height: float) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure as Canvas

    figure = Canvas(figsize=(COLUMN_WIDTH, height), layout="constrained")
    return figure, figure.subplots()


def _plain_ticks(axes: Axes, curves: Sequence[Curve]) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

    sizes = {x for curve in curves for x in curve.x}
    axes.xaxis.set_major_locator(
        FixedLocator([x for x in (10, 30, 100, 300, 1000, 3000) if min(sizes) <= x <= max(sizes)])
    )
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(ScalarFormatter())


def _legend(axes: Axes, columns: int) -> None:
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns, handlelength=2.2, columnspacing=1.0)


def _saved(figure: Figure, stem: Path) -> list[Path]:
    paths = [stem.with_name(f"{stem.name}.{ending}") for ending in ("png", "svg")]
    stem.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(paths[0], dpi=300, bbox_inches="tight")
    figure.savefig(paths[1], metadata={"Date": None}, bbox_inches="tight")
    return paths
