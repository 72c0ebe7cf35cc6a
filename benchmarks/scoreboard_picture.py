"""The picture of the scoreboard, drawn from its record."""

import html
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

OURS = "PCS"
LEVEL = 0.01
"""A difference up to this is called level."""
Gaps = Mapping[str, Sequence[tuple[str, float]]]
"""Rival → the sets it is on, and how far we are ahead there."""


class Panel(NamedTuple):
    """A part of the picture: its title, the column of the record, its unit, and the ends of its axis in points."""

    title: str
    column: int
    unit: float
    least: int
    most: int


PANELS = (
    Panel("accuracy", 2, 0.01, -10, 20),
    Panel("confidence AUROC × 100", 3, 1.0, -20, 30),
    Panel("share usable, ≤ 10 % wrong", 5, 0.01, -10, 50),
)
LEFT, WIDTH, GAP, TOP, STEP = 168, 180, 36, 62, 19


def gaps_in(page: str, panel: Panel) -> Gaps:
    """Return how far we are ahead in a column of the record."""
    table = page.partition("## All figures")[2].splitlines()
    lines = [line.strip("| ").split(" | ") for line in table if line.startswith("|")][2:]
    values = {(one[0], one[1]): float(one[panel.column]) * panel.unit for one in lines if one[panel.column] != "–"}
    found: dict[str, list[tuple[str, float]]] = {}
    for (name, method), value in values.items():
        if not method.startswith(OURS) and (name, OURS) in values:
            found.setdefault(method, []).append((name, round(values[name, OURS] - value, 4)))
    return found


def picture(page: str) -> str:
    """Return the record as SVG: how far PCS is ahead of each rival on each set; losses look different."""
    gaps = [gaps_in(page, panel) for panel in PANELS]
    names = list(dict.fromkeys(name for one in gaps[0].values() for name, _ in one))
    bottom = TOP + STEP * len(names)
    bands = [
        f'<rect class="band" x="0" y="{TOP + STEP * at}" width="100%" height="{STEP}"/>'
        for at in range(0, len(names), 2)
    ]
    parts = [
        *bands,
        *(f'<text x="8" y="{TOP + STEP * at + 13}">{html.escape(name)}</text>' for at, name in enumerate(names)),
    ]
    for number, (panel, found) in enumerate(zip(PANELS, gaps, strict=True)):
        across = _axis(LEFT + number * (WIDTH + GAP), panel)
        middle = (across(panel.least) + across(panel.most)) / 2
        values = [value for one in found.values() for _, value in one]
        parts += [
            f'<text class="mid head" x="{middle:.0f}" y="20">{panel.title}</text>',
            f'<text class="mid" x="{middle:.0f}" y="37">{_counts(values)}</text>',
        ]
        for points in range(panel.least, panel.most + 1, 10):
            at, kind = across(points), "tick" if points else "zero"
            label = f"{points:+d}".replace("-", "−") if points else "0"
            parts += [
                f'<line class="{kind}" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP - 4}" y2="{bottom}"/>',
                f'<text class="mid" x="{at:.1f}" y="{bottom + 16}">{label}</text>',
            ]
        parts += [
            _mark(across, 100 * value, TOP + STEP * names.index(name) + 9, f"{name}, {method}")
            for method, one in found.items()
            for name, value in one
        ]
    total = LEFT + len(PANELS) * (WIDTH + GAP)
    return SVG.format(width=total, height=bottom + 46, y=bottom + 38, body="\n".join(parts))


def _axis(start: float, panel: Panel) -> Callable[[float], float]:
    width = panel.most - panel.least
    return lambda points: start + (min(max(points, panel.least), panel.most) - panel.least) / width * WIDTH


def _counts(values: Sequence[float]) -> str:
    ahead, level, behind = tally(values).split(" / ")
    return f"ahead {ahead}, level {level}, behind {behind}"


def _mark(across: Callable[[float], float], points: float, y: float, about: str) -> str:
    """Return a mark: a disc where we are ahead, a ring where level, a diamond where behind."""
    x, title = across(points), f"<title>{html.escape(about)}: {points:+.1f} points</title>"
    if points < -100 * LEVEL:
        return f'<path class="loss" d="M{x:.1f} {y - 5}l5 5l-5 5l-5-5z">{title}</path>'
    return f'<circle class="{"win" if points > 100 * LEVEL else "level"}" cx="{x:.1f}" cy="{y}" r="4">{title}</circle>'


SVG = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"
  width="{width}" height="{height}" role="img" aria-labelledby="t d">
<title id="t">Scoreboard</title>
<desc id="d">Points by which PCS is ahead of each rival on each set of recorded answers; losses are diamonds.</desc>
<style>
:root {{ --page: #fff; --ink: #1f2933; --line: #d3dade; --band: #f4f6f8; --win: #0072b2; --loss: #d55e00; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --page: #1b1f27; --ink: #e6eaee; --line: #36424e; --band: #222832; --win: #56b4e9; --loss: #e69f00; }}
}}
text {{ font-family: system-ui, sans-serif; font-size: 12px; fill: var(--ink); }}
.head {{ font-weight: 600; }}
.mid {{ text-anchor: middle; }}
.band {{ fill: var(--band); }}
.tick {{ stroke: var(--line); }}
.zero {{ stroke: var(--ink); stroke-width: 1.5; }}
.win {{ fill: var(--win); fill-opacity: .75; }}
.level {{ fill: var(--page); stroke: var(--win); stroke-width: 1.5; }}
.loss {{ fill: var(--loss); }}
</style>
<rect width="100%" height="100%" fill="var(--page)"/>
{body}
<text x="8" y="{y}">One mark per rival: points that PCS is ahead (disc), level within 1 (ring), or behind (diamond).
 At an end: beyond it.</text>
</svg>
"""


def tally(values: Sequence[float]) -> str:
    """Return on how many sets we are ahead, level and behind."""
    ahead, behind = sum(one > LEVEL for one in values), sum(one < -LEVEL for one in values)
    return f"{ahead} / {len(values) - ahead - behind} / {behind}"
