"""Charts of a run as pictures for notebooks and papers: risk, calibration, ROC and confusion."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from pcs_annotator.base.errors import ConfigError, GoldError
from pcs_annotator.core.arrays import Integers
from pcs_annotator.judging.evaluation.agreement import AgainstGold
from pcs_annotator.runs.run_result import RunResult
from pcs_annotator.showing.formats import percent
from pcs_annotator.showing.markup import Markup, joined, tag
from pcs_annotator.showing.report.sections.curves import plots
from pcs_annotator.showing.report.view import view_of
from pcs_annotator.showing.svg_plot import short
from pcs_annotator.tables.files import check_ending, write_page

CHARTS = {"risk": "risk-coverage", "calibration": "reliability", "roc": "roc"}
CELL_WIDTH, CELL_HEIGHT, MARGIN, TOP = 92, 44, 150, 58
FONT = "system-ui, sans-serif"


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
    """Return a chart of a run, on gold rows that the fits did not see.

    Args:
        result: The run.
        kind: `risk` (error against coverage), `calibration`, `roc` or `confusion`.

    Raises:
        GoldError: There is too little gold for the chart.
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
