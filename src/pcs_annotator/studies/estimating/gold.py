"""`pcs gold`: how many gold rows a conclusion needs, and drawing them with known probabilities."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from pcs_annotator.base.errors import ConfigError, GoldError
from pcs_annotator.core.arrays import Array, Floats, Integers, Mask
from pcs_annotator.core.gold import UNLABELLED, gold_codes, text_hash
from pcs_annotator.judging.estimating.sampling import Design, Foretold, allocate, by_confidence, draw_with
from pcs_annotator.runs.drawing import write_to_label
from pcs_annotator.runs.files.runs import RunFolder, read_whole
from pcs_annotator.runs.run import Run
from pcs_annotator.studies.estimating.estimate import label_values
from pcs_annotator.studies.estimating.evidence import cells_of, gold_with_copies, with_probability
from pcs_annotator.tables.human_files import DrawnRow, read_drawn

Drawing = Literal["simple", "stratified", "confidence"]
DRAWINGS: tuple[Drawing, ...] = get_args(Drawing)
STEP = 50
MOST_STEPS = 10
NORMAL = 1.959964


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldGoal:
    """What gold rows are for."""

    of: str = ""  # the label, or labels joined by `+`, whose share is wanted; the first label if empty
    # half the width of its 95 % interval, such as .03 for ±3 percentage points; None for none
    width: float | None = None
    by: str = ""  # a column of groups
    # the smallest difference between the two largest groups of `by` that must be found; None for none
    difference: float | None = None
    power: float = 0.8  # how probable it should be that such a difference is found


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldPlan:
    """How many gold rows are needed."""

    of: str  # the share that it is about
    share: float  # what it probably is
    gold_rows: int  # how many gold rows there are
    # number of gold rows in all → way of drawing → half the width of the 95 % interval of the share
    outlook: Mapping[int, Mapping[Design, float]]
    # way of drawing → rows for the width that was asked for; None if all rows would not be enough
    for_width: dict[str, int | None]
    for_difference: dict[str, int | None]  # the same for a difference
    # rows with which the promise is made in four cases out of five; None if unknown or made already
    for_promise: int | None = None
    guessed: bool = False  # whether there is no calibrated confidence yet, so that machine labels are not counted on

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**asdict(self), "outlook": [{"rows": rows, **widths} for rows, widths in self.outlook.items()]}


def plan_gold(path: Path, goal: GoldGoal) -> GoldPlan:
    """Return how many gold rows are needed, foretold from the probabilities of labels."""
    recorded = Run.open(path)
    labels, known = recorded.votes.labels, gold_codes(recorded.votes, recorded.gold.labels) != UNLABELLED
    expected = _probabilities(recorded)
    guessed = expected is None
    if expected is None:  # nothing is known, so the worst is assumed: a share of one half
        expected = np.tile([0.5, 0.5, *[0.0] * (len(labels) - 2)], (len(known), 1))
    of = goal.of or labels[0]
    values = label_values(of, labels)
    foretold = Foretold(expected, values, len(known) / _all_rows(recorded))
    ways: Sequence[Design] = ("gold only",) if guessed else ("gold only", *DRAWINGS)
    for_width: dict[str, int | None] = {}
    for_difference: dict[str, int | None] = {}
    if goal.width is not None:
        for_width = {way: foretold.rows_for(goal.width / NORMAL, way) for way in ways}
    if goal.difference is not None:
        error, groups = goal.difference / (NORMAL + _quantile(goal.power)), _two_groups(recorded, goal.by)
        for_difference = {way: foretold.rows_for_difference(error, way, groups) for way in ways}
    steps = range(STEP, min(len(known), STEP * MOST_STEPS) + 1, STEP)
    outlook = {rows: {way: NORMAL * foretold.error(rows, way) for way in ways} for rows in steps}
    return GoldPlan(
        of=of,
        share=float((expected @ values).mean()),
        gold_rows=int(known.sum()),
        outlook=outlook,
        for_width=for_width,
        for_difference=for_difference,
        for_promise=_for_promise(recorded),
        guessed=guessed,
    )


def draw_gold(path: Path, rows: int, drawing: Drawing, by: str = "") -> tuple[int, Path]:
    """Draw rows, note their probabilities, and write those for a person to label whose text has no gold label.

    Returns how many were written, and the file to fill in.

    `simple`: all rows are equally probable. `stratified`: equally many of every machine label, or of every group of the
    column `by`. `confidence`: doubtful rows are more probable.
    """
    folder = RunFolder(path)
    recorded = Run.open(path)
    before, items = read_drawn(folder.drawn), recorded.dataset.items
    known = gold_with_copies(recorded) != UNLABELLED
    # a row that a person chose may be drawn, too: if it never were, other rows could not speak for it
    drawn_so = [*with_probability(recorded), *recorded.gold.verdicts.sequence]
    counted = recorded.gold.random_sample | np.isin(np.arange(len(items)), drawn_so)
    open_rows = np.flatnonzero(~(known & counted))
    if len(open_rows) < rows:
        raise GoldError(f"{len(open_rows):,} rows have not been drawn yet, and {rows:,} are wanted: ask for fewer")
    rng = np.random.default_rng(len(before) + int(known.sum()))
    chosen, chances, strata = _draw(recorded, open_rows, rows, (drawing, by), rng)
    # of a large table, only a random sample can be drawn from
    chances = chances * len(open_rows) / (len(open_rows) + _all_rows(recorded) - len(items))
    turn = 1 + max((one.round for one in before), default=0)
    drawn = [
        DrawnRow(items[row].id, "with probability", text_hash(items[row].text), float(chance), stratum, turn)
        for row, chance, stratum in zip(chosen, chances, strata, strict=True)
    ]
    written = write_to_label(folder, items, recorded.gold, drawn)
    return written, folder.to_label


def _draw(
    recorded: Run, open_rows: Integers, rows: int, how: tuple[Drawing, str], rng: np.random.Generator
) -> tuple[Integers, Floats, Sequence[str]]:
    """Return the rows drawn, their probabilities, and from which stratum each is."""
    drawing, by = how
    if drawing == "simple":
        chosen = np.sort(rng.choice(open_rows, rows, replace=False))
        return chosen, np.full(rows, rows / len(open_rows)), [""] * rows
    if drawing == "stratified":
        best = np.array(recorded.votes.labels, dtype=object)[recorded.model_in_force().judged(recorded.votes).best]
        return _draw_stratified(cells_of(recorded.dataset.table, by) if by else best, open_rows, rows, rng)
    expected = _probabilities(recorded)
    if expected is None:
        raise GoldError("there is no calibrated confidence to draw by: draw a simple sample first")
    chances = by_confidence(expected[open_rows].max(axis=1), rows)
    places = draw_with(chances, rng)
    return open_rows[places], chances[places], [""] * len(places)


def _draw_stratified(
    cells: Array, open_rows: Integers, rows: int, rng: np.random.Generator
) -> tuple[Integers, Floats, Sequence[str]]:
    members = {name: open_rows[cells[open_rows] == name] for name in sorted({*cells[open_rows].tolist()})}
    counts = allocate([len(one) for one in members.values()], rows)
    parts = [
        (name, np.sort(rng.choice(one, count, replace=False)), count / len(one))
        for (name, one), count in zip(members.items(), counts, strict=True)
        if count
    ]
    chosen = np.concatenate([rows for _, rows, _ in parts])
    chances = np.concatenate([np.full(len(rows), chance) for _, rows, chance in parts])
    return chosen, chances, [name for name, rows, _ in parts for _ in rows]


def _all_rows(recorded: Run) -> int:
    """Return how many rows there are; the folder of a large table keeps a sample of them."""
    whole = read_whole(recorded.folder) if recorded.sampled else None
    return len(recorded.dataset.items) if whole is None else whole.counts.rows


def _probabilities(recorded: Run) -> Floats | None:
    if not recorded.folder.model.exists():
        return None
    return recorded.model_in_force().judged(recorded.votes).probabilities


def _two_groups(recorded: Run, by: str) -> tuple[Mask, Mask]:
    if not by:
        raise ConfigError("a difference is one between groups: name their column with --by")
    cells = cells_of(recorded.dataset.table, by)
    names, counts = np.unique(cells[cells != ""].astype(str), return_counts=True)
    if len(names) < 2:
        raise ConfigError(f"column {by!r} has {len(names)} groups, and a difference needs two")
    first, second = names[np.argsort(-counts, kind="stable")[:2]].tolist()
    return cells == first, cells == second


def _for_promise(recorded: Run) -> int | None:
    if not recorded.folder.model.exists():
        return None
    certificate = recorded.model_in_force().certificate
    needed = None if certificate is None or certificate.holds else certificate.rows_needed
    return None if needed is None else needed.likely


def _quantile(power: float) -> float:
    from scipy.special import ndtri

    if not 0.5 <= power < 1:
        raise ConfigError(f"the power is {power:g}, must be at least .5 and below 1")
    return float(ndtri(power))
