"""`pcs gold`: how many gold rows a conclusion needs, and drawing them with known probabilities."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np

from pcs_annotator.base.errors import ConfigError, GoldError
from pcs_annotator.base.fields import setting
from pcs_annotator.core.arrays import Array, Codes, Floats, Integers, Mask
from pcs_annotator.core.events import Picked
from pcs_annotator.core.gold_codes import UNLABELLED, gold_codes
from pcs_annotator.core.identity import same_texts, text_hash, with_copies
from pcs_annotator.estimating.sampling import Design, Foretold, allocate, by_confidence, draw_with
from pcs_annotator.judging.heldout import Judged
from pcs_annotator.judging.promise.promise import Promise, next_level
from pcs_annotator.judging.promise.thresholds import rows_needed, rows_to_finish
from pcs_annotator.runs.draw_registry import events_of
from pcs_annotator.runs.drawing import draw_at_random, write_to_label
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.passage_run import of_texts, refuse_passages
from pcs_annotator.runs.paths import read_whole
from pcs_annotator.runs.sharing import Goal, TableGold, expected_labels, judged_rows, share_table
from pcs_annotator.studies.estimating.answering import label_values
from pcs_annotator.studies.estimating.evidence import cells_of, with_probability

Drawing = Literal["simple", "stratified", "confidence"]
DRAWINGS: tuple[Drawing, ...] = get_args(Drawing)
Aim = Literal["promise", "share", "difference", "regression", "finish"]
GOALS: tuple[Aim, ...] = get_args(Aim)
NORMAL = 1.959964
LEAST_PILOT = 20
LEAST_ROWS = 30
MOST_ASSUMED, SPREAD = 200, 4.0
MARGIN = 1.3  # more rows than are needed on average, so that the goal is reached in four cases out of five


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldGoal:
    """What gold rows are for.

    Attributes:
        goal: What the rows are for; default: all goals, in a table.
        of: Label, or several joined by +; default: the first.
        width: Share: an interval of ± X, such as .03.
        by: Column of groups, to draw from or to compare.
        difference: Smallest difference to be found: between the two largest groups of --by, or in a regression for one
            standard deviation of what explains it.
        power: How probable it is to find that difference.
        max_error: Promise and finish: labels that may be wrong, of the accepted ones or in the finished table.
        certainty: How sure that must be.
        accuracy: Right labels, assumed without 20 gold rows.
    """

    goal: Aim | None = setting(None, "--goal")
    of: str = setting("", "--of LABEL")
    width: float = setting(0.05, "--width X", above=0, below=1)
    by: str = setting("", "--by COLUMN")
    difference: float = setting(0.1, "--difference X", above=0, below=1)
    power: float = setting(0.8, "--power X", above=0, below=1)
    max_error: float = setting(0.05, "--max-error X", above=0, below=1)
    certainty: float = setting(0.9, "--certainty X", above=0, below=1)
    accuracy: float = setting(0.8, "--accuracy X", above=0, below=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldPlan:
    """How many gold rows are needed."""

    of: str  # the share that it is about
    share: float  # what it probably is
    gold_rows: int  # how many gold rows there are
    left: int  # how many rows can still be drawn
    # goal → way of drawing → gold rows for it, in all; None if all rows, or thousands, would not be enough
    needed: Mapping[Aim, Mapping[str, int | None]]
    more: int | None  # rows that people must still label for a finished table; None if that is no goal
    now: int | None = None  # the same without more random gold rows, as pcs finish says at once; None if unknown
    assumed: float | None = None  # the share of right labels that was assumed; None if gold rows have shown it


class Pilot(NamedTuple):
    """What is known before the gold rows are labelled."""

    expected: Floats  # probability of every label, `[row, label]`
    confidence: Floats  # how probable the machine's label of each row is right
    judged: Judged  # a sample of rows whose labels are known to be right or wrong
    ways: Sequence[Design] = ("gold only", *DRAWINGS)  # the ways of drawing that differ


def plan_gold(path: Path, goal: GoldGoal) -> GoldPlan:
    """Return how many gold rows are needed, foretold from those that there are, or from an assumed accuracy."""
    recorded = Run.open(path)
    refuse_passages(recorded, "how many gold texts they need is not foretold: draw some with --n, such as --n 100")
    labels, gold = recorded.votes.labels, gold_codes(recorded.votes, recorded.gold.labels)
    expected = _pilot(recorded, gold)
    pilot = expected or assumed_pilot(len(gold), len(labels), goal.accuracy)
    groups = _two_groups(recorded, goal.by) if goal.by or goal.goal == "difference" else None
    of, share = goal.of or labels[0], len(gold) / _all_rows(recorded)
    values = label_values(of, labels)
    needed, in_all = rows_for_goals(pilot, Foretold(pilot.expected, values, share), goal, labels, groups)
    gold_rows = int((gold != UNLABELLED).sum())
    if "promise" in needed and _promised(recorded, goal):
        needed["promise"] = {"simple": gold_rows}
    now = _people_now(recorded, gold, expected, goal) if expected and in_all is not None else None
    more = None if in_all is None else max(in_all - gold_rows, 0)
    if now is not None and more is not None and now <= more:
        needed["finish"], more = {"simple": gold_rows}, now
    return GoldPlan(
        of=of,
        share=float((pilot.expected @ values).mean()),
        gold_rows=gold_rows,
        left=len(_open_rows(recorded)),
        needed=needed,
        more=more,
        now=now,
        assumed=None if expected else goal.accuracy,
    )


def rows_for_goals(
    pilot: Pilot, foretold: Foretold, goal: GoldGoal, labels: Sequence[str], groups: tuple[Mask, Mask] | None
) -> tuple[dict[Aim, dict[str, int | None]], int | None]:
    """Return goal → way of drawing → gold rows, and how many rows people label in all for a finished table."""
    from scipy.special import ndtri

    promise, rows = Promise(max_error=goal.max_error, certainty=goal.certainty), len(pilot.confidence)
    if not 0.5 <= goal.power < 1:
        raise ConfigError(f"the power is {goal.power:g}, must be at least .5 and below 1")
    error, in_all = goal.difference / (NORMAL + float(ndtri(goal.power))), None
    # a regression is about more than these rows, which are a sample themselves
    slope = np.sqrt(max(error**2 - foretold.error(1, "gold only") ** 2 / rows, 0.0))
    means: dict[Aim, Callable[[Design], int | None]] = {
        "share": lambda way: foretold.rows_for(goal.width / NORMAL, way),
        "regression": lambda way: foretold.rows_for(slope, way),
    }
    if groups is not None:
        means["difference"] = lambda way: foretold.rows_for_difference(error, way, groups)
    rows_by_aim: dict[Aim, dict[str, int | None]] = {}
    for name in [goal.goal] if goal.goal else GOALS:
        if name == "promise":
            needed = rows_needed(pilot.judged, labels, promise)
            rows_by_aim[name] = {"simple": needed.likely if needed and needed.likely < rows else None}
        elif name == "finish":
            first, in_all = rows_to_finish(pilot.confidence, pilot.judged, goal.max_error, 0.5 * promise.delta)
            rows_by_aim[name] = {"simple": first}
        elif name in means:
            exact = {way: means[name](way) for way in pilot.ways}
            rows_by_aim[name] = {way: n and max(LEAST_ROWS, min(int(MARGIN * n), rows)) for way, n in exact.items()}
    return rows_by_aim, in_all


def _pilot(recorded: Run, gold: Codes) -> Pilot | None:
    """Return what gold rows have shown; None if they are too few."""
    sample = np.flatnonzero(recorded.gold.random_sample & (gold != UNLABELLED))
    expected = expected_labels(recorded.votes, gold, recorded.settings, recorded.texts, recorded.shape)
    if expected is None or len(sample) < LEAST_PILOT:
        return None
    judged = judged_rows(recorded.shape, recorded.votes, expected.held_out, gold)
    return Pilot(expected.held_out, judged.confidence, judged.take(sample))


def _promised(recorded: Run, goal: GoldGoal) -> bool:
    """Return whether the promise in force is as good as the one that is wanted."""
    model = recorded.model_in_force() if recorded.folder.model.exists() else None
    certificate = None if model is None else model.certificate
    if certificate is None or not certificate.found:
        return False
    return certificate.promise.max_error <= goal.max_error and certificate.promise.certainty >= goal.certainty


def _people_now(recorded: Run, gold: Codes, pilot: Pilot, goal: GoldGoal) -> int:
    """Return how many more texts people label for a finished table, with no more random gold rows than there are."""
    gold_now = recorded.gold
    sample = TableGold(
        gold, gold_now.random_sample & (gold != UNLABELLED) | gold_now.undecided, same_texts(recorded.texts)
    )
    wanted = Goal(goal.max_error, next_level(1 - goal.certainty, 0.0))
    return share_table(recorded.shape, recorded.votes, pilot.expected, sample, wanted).texts_left


def _open_rows(recorded: Run) -> Integers:
    with_gold = gold_codes(recorded.votes, recorded.gold.labels) != UNLABELLED
    # a row that a person chose may be drawn, too: if it never were, other rows could not speak for it
    drawn_so = [*with_probability(recorded), *recorded.gold.verdicts.sequence]
    counted = recorded.gold.random_sample | np.isin(np.arange(len(with_gold)), drawn_so)
    return np.flatnonzero(~(with_gold & counted))


def assumed_pilot(rows: int, labels: int, accuracy: float) -> Pilot:
    """Return what to expect of machine labels that are right so often; about shares, nothing: they are one half."""
    from scipy.special import betaincinv

    sure = betaincinv(SPREAD * accuracy, SPREAD * (1 - accuracy), (np.arange(rows) + 0.5) / rows)
    some, rng = sure[:: max(1, rows // MOST_ASSUMED)], np.random.default_rng(0)
    judged = Judged(some, np.zeros(len(some), dtype=np.intp), rng.random(len(some)) < some)
    return Pilot(np.tile([0.5, 0.5, *[0.0] * (labels - 2)], (rows, 1)), sure, judged, ("gold only",))


def draw_gold(path: Path, rows: int, drawing: Drawing, by: str = "") -> tuple[int, Path]:
    """Draw rows, note how, and write those whose text has no gold label; return how many, and the file to fill in.

    `simple`: all rows are equally probable, and so many texts are written. `stratified`: equally many rows of every
    machine label, or of every group of the column `by`. `confidence`: doubtful rows are more probable.
    """
    recorded = Run.open(path)
    if drawing != "simple":
        refuse_passages(recorded, "their texts are drawn at random: leave --draw out")
    recorded = of_texts(recorded)
    folder = recorded.folder
    if drawing == "simple":
        if by:
            raise ConfigError(f"--by {by} draws equally many rows of each group: use it with --draw stratified")
        same = same_texts(recorded.texts)
        labelled = with_copies(same, np.array([label is not None for label in recorded.gold.labels]))
        if (left := len(np.unique(same[~labelled]))) < rows:
            raise GoldError(f"{left:,} texts have no gold label yet, and {rows:,} are wanted: ask for fewer")
        return draw_at_random(folder, recorded.dataset, recorded.gold, rows), folder.to_label
    before, items, open_rows = events_of(folder, Picked), recorded.dataset.items, _open_rows(recorded)
    if len(open_rows) < rows:
        raise GoldError(f"{len(open_rows):,} rows have not been drawn yet, and {rows:,} are wanted: ask for fewer")
    rng = np.random.default_rng(len(before) + sum(label is not None for label in recorded.gold.labels))
    chosen, chances, strata = _draw(recorded, open_rows, rows, (drawing, by), rng)
    # of a large table, only a random sample can be drawn from
    chances = chances * len(open_rows) / (len(open_rows) + _all_rows(recorded) - len(items))
    turn = 1 + max((event.round for event in before), default=0)
    drawn = [
        Picked(
            id=items[row].id,
            text_hash=text_hash(items[row].text),
            chosen="with probability",
            probability=float(chance),
            stratum=stratum,
            round=turn,
        )
        for row, chance, stratum in zip(chosen, chances, strata, strict=True)
    ]
    return write_to_label(folder, items, recorded.gold, drawn), folder.to_label


def _draw(
    recorded: Run, open_rows: Integers, rows: int, how: tuple[Drawing, str], rng: np.random.Generator
) -> tuple[Integers, Floats, Sequence[str]]:
    """Return the rows drawn, their probabilities, and from which stratum each is."""
    drawing, by = how
    if drawing == "stratified":
        best = np.array(recorded.votes.labels, dtype=object)[recorded.model_in_force().judged(recorded.votes).best]
        return _draw_stratified(cells_of(recorded.dataset.table, by) if by else best, open_rows, rows, rng)
    model = recorded.model_in_force() if recorded.folder.model.exists() else None
    expected = None if model is None else model.judged(recorded.votes).probabilities
    if expected is None:
        raise GoldError("there is no calibrated confidence to draw by: draw a simple sample first")
    chances = by_confidence(expected[open_rows].max(axis=1), rows)
    places = draw_with(chances, rng)
    return open_rows[places], chances[places], [""] * len(places)


def _draw_stratified(
    cells: Array, open_rows: Integers, rows: int, rng: np.random.Generator
) -> tuple[Integers, Floats, Sequence[str]]:
    members = {name: open_rows[cells[open_rows] == name] for name in sorted({*cells[open_rows].tolist()})}
    counts = allocate([len(members_of) for members_of in members.values()], rows)
    parts = [
        (name, np.sort(rng.choice(members_of, count, replace=False)), count / len(members_of))
        for (name, members_of), count in zip(members.items(), counts, strict=True)
        if count
    ]
    chosen = np.concatenate([rows for _, rows, _ in parts])
    chances = np.concatenate([np.full(len(rows), chance) for _, rows, chance in parts])
    return chosen, chances, [name for name, rows, _ in parts for _ in rows]


def _all_rows(recorded: Run) -> int:
    """Return how many rows there are; the folder of a large table keeps a sample of them."""
    whole = read_whole(recorded.folder) if recorded.sampled else None
    return len(recorded.dataset.items) if whole is None else whole.counts.rows


def _two_groups(recorded: Run, by: str) -> tuple[Mask, Mask]:
    if not by:
        raise ConfigError("a difference is one between groups: name their column with --by")
    cells = cells_of(recorded.dataset.table, by)
    names, counts = np.unique(cells[cells != ""].astype(str), return_counts=True)
    if len(names) < 2:
        raise ConfigError(f"column {by!r} has {len(names)} groups, and a difference needs two")
    first, second = names[np.argsort(-counts, kind="stable")[:2]].tolist()
    return cells == first, cells == second
