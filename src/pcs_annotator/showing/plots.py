"""Figures for papers: class AUROC against gold rows, and PCS against a rival, as PNG and SVG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pcs_annotator.base.errors import MissingPackage, UndefinedMetric
from pcs_annotator.core.result_table import Curve, Pair

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN_WIDTH = 3.35
"""Inches: one column of a paper."""
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


def draw_curves(curves: Sequence[Curve], stem: Path) -> list[Path]:
    """Draw class AUROC against gold rows, a line with its band per dataset and method; return the files written.

    Args:
        curves: What to draw; datasets differ in colour and marker, methods in line style.
        stem: Path without a file extension; `.png` and `.svg` are written.
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
