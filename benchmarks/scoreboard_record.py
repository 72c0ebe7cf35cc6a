"""What the scoreboard found, as a page of Markdown: first what people can use, then the losses, then all figures."""

import re
from collections.abc import Sequence
from textwrap import fill
from typing import NamedTuple

import numpy as np

from benchmarks.local_sets import LocalSet
from benchmarks.scoreboard_picture import LEVEL, OURS, tally

USABLE = ("usable, ≤ 5 % wrong", "usable, ≤ 10 % wrong")
NAMES = ("accuracy", "confidence_auroc", "usable_5", "usable_10")
SETS = "## The sets"
IN_BRIEF = {
    "majority vote": "majority vote",
    "best single model": "the best single model",
    "Dawid–Skene with gold (crowd-kit)": "Dawid–Skene",
    "CROWDLAB (cleanlab)": "CROWDLAB",
    "Snorkel": "Snorkel",
    "stack with texts": "a regression that reads the texts, too",
}
"""Rival → its name in the README."""
LOST = "In brackets: on how many of {} sets PCS is behind by more than a point.\n"


class Figures(NamedTuple):
    """Figures of a method on the rows without gold; of promises, the share accepted and the share wrong among them."""

    accuracy: float
    confidence_auroc: float
    usable_5: float
    usable_10: float
    calls: float
    accepted_5: float = np.nan
    wrong_5: float = np.nan
    accepted_10: float = np.nan
    wrong_10: float = np.nan


class Row(NamedTuple):
    """A method on a set, over all splits."""

    set: str
    method: str
    splits: Sequence[Figures]

    def mean(self, name: str) -> float:
        """Return the mean of a figure; nan where it has none."""
        values = np.array([getattr(one, name) for one in self.splits])
        return float(np.nanmean(values)) if np.isfinite(values).any() else np.nan

    def promises(self, percent: int) -> tuple[int, int]:
        """Return how many promises were made, and how many of them were kept on the other rows."""
        wrong = np.array([getattr(one, f"wrong_{percent}") for one in self.splits])
        made = wrong[np.isfinite(wrong)]
        return len(made), int((made <= percent / 100).sum())


def gold_rows(rows: int) -> int:
    """Return how many rows have gold: two fifths in steps of 50, at most 200."""
    return min(200, max(50, rows * 2 // 5 // 50 * 50))


def record(sets: Sequence[LocalSet], rows: Sequence[Row], splits: int, spent: str) -> str:
    """Return the page."""
    return "\n".join(
        [
            HEAD,
            _in_use(rows),
            _ahead(rows),
            _promises(rows, splits),
            _losses(rows),
            MEASURED.format(splits=splits, spent=spent, sets=len(sets)),
            f"{SETS}\n",
            _sets(sets),
            "## All figures\n",
            _table(
                ["set", "method", "accuracy", "confidence AUROC", *USABLE,
                 "accepted under ≤ 5 %; kept", "accepted under ≤ 10 %; kept", "calls per text"],
                [cells(row) for row in rows],
            ),
        ]
    )  # fmt: skip


def front(page: str) -> str:
    """Return the part of the record that docs/how-good.md shows, with losses in what labels are worth."""
    shown = page.partition(" -->\n\n")[2].partition(SETS)[0].strip() + "\n"
    return re.sub(rf"^- (confidence AUROC|{USABLE[0]}): .*\n", "", shown, flags=re.MULTILINE)


def brief(page: str) -> str:
    """Return the part of the record that the README shows: how many labels can be used, and how far rivals are."""
    said = re.search(r"^\*\*With .*$", page, re.MULTILINE)
    table = page.partition("| PCS less the rival")[2].partition("\n\n")[0].splitlines()[2:]
    lines = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table]
    found = {line[0]: line for line in lines}
    shown = [[title, *map(_in_short, found[method][2:6:3])] for method, title in IN_BRIEF.items() if method in found]
    assert said is not None
    sets = max(int(found[method][1]) for method in IN_BRIEF if method in found)
    heading = ["PCS, points ahead of", "right labels", USABLE[1]]
    return f"{fill(said.group(), 100)}\n\n{_table(heading, shown)}\n{LOST.format(sets)}"


def _in_short(cell: str) -> str:
    """Return a difference and on how many sets PCS is behind."""
    value, _, counts = cell.partition(" ")
    return f"{value} ({counts.strip('()').split(' / ')[-1]})"


def _in_use(rows: Sequence[Row]) -> str:
    """Return how many labels can be used, and for how many calls, on the sets where nearly every method can be used."""
    by_method: dict[str, dict[str, Row]] = {}
    for row in rows:
        by_method.setdefault(row.method, {})[row.set] = row
    most = max(map(len, by_method.values()))
    shown = {method: found for method, found in by_method.items() if len(found) >= 0.8 * most}
    common = set.intersection(*(set(found) for found in shown.values()))
    lines, usable = [], {}
    for method, found in shown.items():
        means = {name: float(np.mean([found[name_of].mean(name) for name_of in common])) for name in (*NAMES, "calls")}
        usable[method] = means["usable_10"]
        price = means["calls"] / means["usable_10"] if means["usable_10"] else np.nan
        figures = [share(means[name]) for name in ("accuracy", "usable_5", "usable_10")]
        lines.append([method, *figures, f"{means['calls']:.1f}", f"{price:.1f}"])
    peers = {method: value for method, value in usable.items() if not method.startswith(OURS)}
    best = max(peers, key=peers.__getitem__)
    of = {method: f"{share(value)} %" for method, value in usable.items()}
    said = (
        f"**With 50 to 200 gold rows, {of[OURS]} of the labels of PCS can be used with at most 10 % of them wrong**, "
        f"{of['majority vote']} of a majority vote's, {of['best single model']} of the best single model's, and "
        f"{of[best]} of the best rival's ({best}). The rest are for people.\n"
    )
    columns = [f"means of {len(common)} sets, %", "accuracy", *USABLE, "calls per text", "calls per usable label"]
    return said + "\n" + _table(columns, lines)


def _ahead(rows: Sequence[Row]) -> str:
    gaps = {name: against(rows, name) for name in NAMES}
    lines = []
    for method, found in gaps["accuracy"].items():
        line = [method, str(len(found))]
        for name in NAMES:
            values = [value for _, value in gaps[name][method]]
            line.append(f"{100 * float(np.mean(values)):+.1f} ({tally(values)})")
        lines.append(line)
    columns = ["PCS less the rival, in points", "sets", "accuracy", "confidence AUROC", *USABLE]
    return _table(columns, lines) + "\nIn brackets: sets on which PCS is ahead / within one point / behind.\n"


def _promises(rows: Sequence[Row], splits: int) -> str:
    ours, kept = [row for row in rows if row.method == OURS], []
    for percent in (5, 10):
        counts = np.array([row.promises(percent) for row in ours]).sum(axis=0)
        accepted = share(float(np.mean([row.mean(f"accepted_{percent}") for row in ours])))
        kept.append(
            f"at most {percent} % wrong: shown in {counts[0]} of {splits * len(ours)} fits and kept on the other rows "
            f"in {counts[1]} of them, {accepted} % of the rows accepted on average"
        )
    return "**Promises** of PCS, where the threshold is not known: " + "; ".join(kept) + ". One in ten may fail.\n"


def _losses(rows: Sequence[Row]) -> str:
    """Return every set on which a rival is more than a point ahead."""
    parts = []
    for name, title in zip(NAMES, ("accuracy", "confidence AUROC", *USABLE), strict=True):
        behind: dict[str, list[str]] = {}
        for method, found in against(rows, name).items():
            for name_of, value in found:
                if value < -LEVEL and method != f"{OURS}, votes alone":
                    behind.setdefault(method, []).append(f"{name_of} {100 * value:.1f}".replace("-", "−"))
        losses = "; ".join(f"*{method}*: {', '.join(sets)}" for method, sets in behind.items())
        parts.append(f"- {title}: {losses or 'none'}\n")
    return "**All losses** of more than a point:\n\n" + "".join(parts)


def _sets(sets: Sequence[LocalSet]) -> str:
    lines = [
        [one.name, f"{len(one.truth):,}", str(gold_rows(len(one.truth))), str(len(one.votes.annotators)),
         str(len(one.votes.relations)), str(len(one.votes.labels)), "yes" if one.votes.texts else "no"]
        for one in sets
    ]  # fmt: skip
    return _table(["set", "rows", "gold rows", "models", "questions", "labels", "texts known"], lines)


def share(value: float) -> str:
    """Return a share in per cent."""
    return "–" if np.isnan(value) else f"{100 * value:.1f}"


def cells(row: Row) -> list[str]:
    """Return a line of the table."""
    figures = [share(row.mean(name)) for name in ("accuracy", "usable_5", "usable_10")]
    figures.insert(1, "–" if np.isnan(row.mean("confidence_auroc")) else f"{row.mean('confidence_auroc'):.3f}")
    promises = []
    for percent in (5, 10):
        made, kept = row.promises(percent)
        promises.append(f"{share(row.mean(f'accepted_{percent}'))}; {kept} of {made}" if row.method == OURS else "–")
    return [row.set, row.method, *figures, *promises, f"{row.mean('calls'):.1f}"]


def against(rows: Sequence[Row], name: str) -> dict[str, list[tuple[str, float]]]:
    """Return rival → the sets it is on, and how far we are ahead there in one figure."""
    mine = {row.set: row.mean(name) for row in rows if row.method == OURS}
    found: dict[str, list[tuple[str, float]]] = {}
    for row in rows:
        if row.method != OURS and np.isfinite(row.mean(name)):
            found.setdefault(row.method, []).append((row.set, mine[row.set] - row.mean(name)))
    return found


def _table(heading: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table as Markdown."""
    marks = ["---" if place < 1 else "---:" for place in range(len(heading))]
    return "\n".join("| " + " | ".join(line) + " |" for line in [heading, marks, *lines]) + "\n"


HEAD = """# Scoreboard

<!-- written by benchmarks/scoreboard.py; do not edit -->
"""
MEASURED = """**How**: {sets} sets of recorded answers of real models, {splits} draws of the gold rows each. All methods
see the same answers and gold rows, and are measured on the other rows. *Usable*: the largest share of the rows, surest
first, with at most so many wrong, if the threshold were known. PCS has the defaults of `pcs fit`; it, the *stack* (a
conditional logit) and CROWDLAB read the texts with the same model of them. {spent}
"""
