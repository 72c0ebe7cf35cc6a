"""Write docs/how-good.md and its picture from the record that how_good.py keeps; with --check, fail if out of date."""

from __future__ import annotations

import html
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "benchmarks" / "results" / "how-good.md"
PAGE = ROOT / "docs" / "how-good.md"
PICTURE = ROOT / "docs" / "images" / "how-good.svg"
SHOWN = ("Method", "Calls per item", "Accuracy", "Class AUROC", "Confidence AUROC")
LEFT_OUT = ("lr", "logit", "scaling", "naive-bayes")
"""Other learners, of which all but `lr` are gone since the record was written."""
RIVALS = {
    "zero-shot": "one question to the best model",
    "majority": "a majority vote",
    "scaled logprob": "one graded question, scaled on gold",
}
LEFT, RIGHT, TOP, STEP = 370, 800, 48, 22
LEAST, MOST = -10, 30
"""The axis, in points of accuracy."""

HEAD = """# How good is it?

<!-- written by scripts/how_good_docs.py from benchmarks/results/how-good.md; do not edit -->

**{first} {second}**

![Points of accuracy by which PCS is ahead of three rivals, with 95 % intervals, on six sets](images/how-good.svg)

Right of 0, PCS (`auto`) gives more right labels than the rival; a line is a 95 % interval. Every method sees the same
rows and folds, and is judged on rows that it did not learn from. Answers are those of real models, recorded: small ones
(0.1 to 1.5 billion weights), and for BABE models of 2023. Nothing here says how well the largest models do.
`pcs evaluate` makes the same tables from your own votes, and those are the ones that matter.

## What the questions are worth

- **Learning from gold** gives 1 to 18 points more right labels than equal weights for the same answers.
- **A graded answer** (log-probabilities) is worth more than many labels: on the three sets of two small models, one
  such question to each has a class AUROC of .86, .84 and .68, and four that keep labels only have .82, .79 and .61.
  Where models give only labels, **putting the question differently** is best, or level with the best, of the ways that
  need no rewriter.
- **The paper's three rewrites by rule** applied to so few of these texts that what they add cannot be told from 0.
  **By a model** they add 4 to 6 points of class AUROC, although half of these unchecked rewrites were wrong; repeating
  the question at the same price adds as much, as far as these rows can tell.
- **Knowing which labels are wrong**: the confidence AUROC of one question is near .5, which is chance; that of PCS is
  .57 to .95.

## The tables

*Class AUROC* is the paper's: how well scores separate the labels. *Confidence AUROC* says how often a right label is
more confident than a wrong one. `benchmarks/results/how-good.md` in the repository has all methods with intervals and
tests, and what rewrites, other questions and repetitions add at equal calls.
"""


class Table(NamedTuple):
    """A table of the record: its columns and the cells of each row."""

    columns: list[str]
    rows: list[list[str]]


class Section(NamedTuple):
    """A section of the record: its heading, its first sentences and its tables."""

    title: str
    text: str
    tables: list[Table]


class Difference(NamedTuple):
    """How far PCS is ahead of a rival, in points of accuracy."""

    rival: str
    value: float
    low: float
    high: float


def sections(record: str) -> Iterator[Section]:
    """Yield the sections of the record that have tables."""
    for part in re.split(r"^##+ ", record, flags=re.MULTILINE)[1:]:
        title, _, body = part.partition("\n")
        found = [table(block) for block in re.findall(r"(?:^\|.*\n)+", body, re.MULTILINE)]
        if found:
            yield Section(title, body.strip().partition("\n\n")[0], found)


def table(block: str) -> Table:
    """Return the table that some lines of Markdown hold."""
    heading, _, *rows = ([cell.strip() for cell in line.strip("|\n").split(" | ")] for line in block.splitlines())
    return Table([name.strip("| ") for name in heading], [[cell.strip("| ") for cell in row] for row in rows])


def differences(section: Section) -> list[Difference]:
    """Return how far PCS is ahead of the rivals that a section has."""
    tests = section.tables[1]
    at = tests.columns.index("Accuracy difference") if "Accuracy difference" in tests.columns else None
    if at is None:
        return []
    numbers = {row[0]: [100 * float(found) for found in re.findall(r"-?\d\.\d+", row[at])] for row in tests.rows}
    return [Difference(said, *numbers[rival]) for rival, said in RIVALS.items() if rival in numbers]


def page(found: Sequence[Section]) -> str:
    """Return the page."""
    ahead = [item for section in found for item in differences(section)]
    single = [item for item in ahead if item.rival == RIVALS["zero-shot"]]
    graded = [item for item in ahead if item.rival == RIVALS["scaled logprob"]]
    gains = [item.value for item in single if item.low > 0]
    if any(item.high < 0 for item in single) or any(item.low > 0 or item.high < 0 for item in graded):
        sys.exit("the verdict no longer fits the figures: write it anew in scripts/how_good_docs.py")
    first = (
        f"In {len(gains)} of {len(single)} comparisons PCS gave {min(gains):.0f} to {max(gains):.0f} points more right "
        "labels than one question to the best model; in the others no difference could be told."
    )
    second = (
        "Where models give log-probabilities, one graded question to each, scaled on gold, was as good with half the "
        "calls."
    )
    return HEAD.format(first=first, second=second) + "".join(folded(section) for section in found)


def folded(section: Section) -> str:
    """Return a section with its first table, folded."""
    figures = section.tables[0]
    places = [figures.columns.index(name) for name in SHOWN if name in figures.columns]
    lines = [[figures.columns[place] for place in places], ["---"] + ["---:"] * (len(places) - 1)]
    for row in figures.rows:
        if row[0] not in LEFT_OUT:
            lines.append([cell_of(row[place], figures.columns[place]) for place in places])
    shown = [*section.text.splitlines(), "", *("| " + " | ".join(line) + " |" for line in lines)]
    return "\n".join(["", f'??? note "{section.title}"', "", *(f"    {line}".rstrip() for line in shown), ""])


def cell_of(cell: str, column: str) -> str:
    """Return a cell without bold type, and without its interval unless it is an accuracy."""
    plain = cell.strip("*")
    return plain if column == "Accuracy" else plain.partition(" \\[")[0]


def across(points: float) -> float:
    """Return where a number of points is on the picture."""
    return LEFT + (min(max(points, LEAST), MOST) - LEAST) / (MOST - LEAST) * (RIGHT - LEFT)


def signed(points: float, digits: int = 0) -> str:
    """Return a number of points with its sign."""
    return f"{points:+.{digits}f}".replace("-", "−") if points else "0"


def picture(found: Sequence[Section]) -> str:
    """Return the forest plot as SVG."""
    lines: list[str] = []
    y = TOP
    for section in found:
        y += STEP
        lines.append(f'<text class="set" x="16" y="{y + 4}">{html.escape(section.title)}</text>')
        for rival, value, low, high in differences(section):
            y += STEP
            about = f"{signed(value, 1)} points, {signed(low, 1)} to {signed(high, 1)}"
            lines += [
                f'<text x="30" y="{y + 4}">against {rival}</text>',
                f"<g><title>{about}</title>",
                f'<line class="range" x1="{across(low):.1f}" x2="{across(high):.1f}" y1="{y}" y2="{y}"/>',
                f'<circle class="{"clear" if low > 0 else "open"}" cx="{across(value):.1f}" cy="{y}" r="5"/></g>',
            ]
        y += STEP // 3
    bottom = y + STEP
    ticks = []
    for points in range(LEAST, MOST + 1, 10):
        x = across(points)
        ticks += [
            f'<line class="{"zero" if points == 0 else "tick"}" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}"/>',
            f'<text class="axis" x="{x:.1f}" y="{bottom + 18}">{signed(points)}</text>',
        ]
    return SVG.format(height=bottom + 34, width=RIGHT + 30, middle=(LEFT + RIGHT) / 2, body="\n".join([*ticks, *lines]))


SVG = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"
  width="{width}" height="{height}" role="img" aria-labelledby="t d">
<title id="t">How far PCS is ahead</title>
<desc id="d">Points of accuracy by which PCS is ahead of one question, a majority vote
  and one graded question scaled on gold, with 95 % intervals.</desc>
<style>
:root {{ --page: #fff; --ink: #1f2933; --soft: #5b6875; --line: #cfd8dc; --dot: #1f8a7d; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --page: #1b1f27; --ink: #e6eaee; --soft: #a5b0bb; --line: #36424e; --dot: #49b8aa; }}
}}
text {{ font-family: system-ui, sans-serif; font-size: 13px; fill: var(--soft); }}
.set {{ font-weight: 600; fill: var(--ink); }}
.axis {{ text-anchor: middle; }}
.tick {{ stroke: var(--line); }}
.zero {{ stroke: var(--soft); stroke-width: 1.5; }}
.range {{ stroke: var(--dot); stroke-width: 2; }}
.clear {{ fill: var(--dot); stroke: var(--dot); stroke-width: 2; }}
.open {{ fill: var(--page); stroke: var(--dot); stroke-width: 2; }}
</style>
<rect width="100%" height="100%" fill="var(--page)"/>
<text class="axis" x="{middle}" y="20">points of accuracy, PCS less the rival (filled: interval above 0)</text>
{body}
</svg>
"""


def main() -> None:
    """Write page and picture, or compare them with what is there."""
    recorded = sections(RECORD.read_text(encoding="utf-8"))
    found = [section for section in recorded if differences(section)]
    for path, text in ((PAGE, page(found)), (PICTURE, picture(found))):
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            sys.exit(f"{path} is out of date: run python scripts/how_good_docs.py")


if __name__ == "__main__":
    main()
