"""Is `pcs gold` right about the gold rows that a goal needs, if it has seen 50 of them?

For every set and repetition: 50 random rows are the pilot, `pcs gold` names the rows for each goal (drawn alike), so
many rows get gold, and the goal is reached or not: a promise of at most 10 % errors among accepted rows; the share of
the first label ± 5 points; a difference of 10 points between two groups; a slope of 10 points for one standard
deviation of a covariate; a finished table with at most 10 % errors, for which people label no more rows than named.
Groups and covariate are drawn so that the difference is exactly that.

Run it with `python -m benchmarks.design [REPETITIONS [SET]]`; the results are in `benchmarks/results/finish.md`.
"""

import sys
import warnings
from collections import defaultdict

import numpy as np
import pyarrow as pa
from scipy.stats import t as student

from benchmarks.development_data import babe, load
from pcs_annotator import Votes
from pcs_annotator.core.arrays import Codes, Floats, Integers
from pcs_annotator.core.gold_codes import UNLABELLED
from pcs_annotator.estimating.corrected import LabelRegression, Study
from pcs_annotator.estimating.sampling import Foretold, Sample
from pcs_annotator.judging.heldout import Judged
from pcs_annotator.judging.label_shape import ONE
from pcs_annotator.judging.promise.promise import Promise
from pcs_annotator.judging.promise.thresholds import find_thresholds
from pcs_annotator.judging.promise.whole_table import share_rows
from pcs_annotator.runs.settings import LearnSettings
from pcs_annotator.runs.sharing import Expected, expected_labels
from pcs_annotator.studies.estimating.answering import shares
from pcs_annotator.studies.estimating.answers import EstimateQuestion
from pcs_annotator.studies.estimating.evidence import LabelEvidence
from pcs_annotator.studies.estimating.gold_plan import GoldGoal, Pilot, rows_for_goals

PILOT = 50
GOAL = GoldGoal(max_error=0.1)
PROMISE = Promise(max_error=GOAL.max_error, certainty=GOAL.certainty)


def learned(votes: Votes, truth: Codes, rows: Integers) -> Expected:
    gold = np.full(len(truth), UNLABELLED, dtype=truth.dtype)
    gold[rows] = truth[rows]
    found = expected_labels(votes, gold, LearnSettings(optimiser="lr", text=False), [*map(str, votes.ids)], ONE)
    assert found is not None
    return found


def judged(found: Expected, truth: Codes, rows: Integers) -> Judged:
    best = found.held_out.argmax(axis=1)
    return Judged(found.held_out.max(axis=1), best, best == truth).take(rows)


def with_difference(rng: np.random.Generator, has: Floats) -> tuple[Integers, Floats]:
    """Return groups that differ by so much in their share, and a covariate with such a slope."""
    share, wanted = float(has.mean()), GOAL.difference
    chance = np.where(has > 0, (share + wanted / 2) / share, (1 - share - wanted / 2) / (1 - share)) / 2
    v = share * (1 - share)
    x = rng.normal(size=len(has)) + np.sqrt(wanted**2 / (v**2 - wanted**2 * v)) * (has - share)
    return (rng.random(len(has)) < chance).astype(np.intp), (x - x.mean()) / x.std()


def reached(goal: str, votes: Votes, truth: Codes, rows: Integers, in_all: int, world: tuple[Integers, Floats]) -> bool:
    found = learned(votes, truth, rows)
    known = judged(found, truth, rows)
    if goal == "promise":
        return bool(find_thresholds(known, votes.labels, PROMISE))
    if goal == "finish":
        everything = judged(found, truth, np.arange(len(truth)))
        sample = np.isin(np.arange(len(truth)), rows)
        people = share_rows(everything.confidence, sample, ~everything.right, GOAL.max_error, 0.05).by_people
        return len(np.union1d(people, rows)) <= in_all
    sample_of = Sample.simple(rows, truth[rows], len(truth))
    if goal == "regression":
        study = Study(found.fitted, found.held_out[rows], sample_of, whole=False)
        columns = np.stack([np.ones(len(truth)), world[1]], axis=1)[:, np.newaxis]
        first = np.eye(len(votes.labels))[np.newaxis, :, :1]
        slope = study.corrected(LabelRegression(explanatory=[columns], outcome=first))
        reach = student.ppf(0.975, slope.freedom) * np.sqrt(slope.covariance[1, 1])
        return bool(slope.value.ravel()[1] > reach)
    evidence = LabelEvidence(
        labels=tuple(votes.labels),
        table=pa.table({"group": pa.array(np.array(["a", "b"])[world[0]])}),
        columns=["group"],
        expected=found.fitted,
        held_out=found.held_out[rows],
        sample=sample_of,
    )
    if goal == "share":
        low, high = shares(evidence, EstimateQuestion(of=[votes.labels[0]])).lines[0].corrected.interval or (0.0, 1.0)
        return (high - low) / 2 <= GOAL.width
    (line,) = shares(evidence, EstimateQuestion(of=[votes.labels[0]], by="group")).differences
    low, high = line.corrected.interval or (-1.0, 1.0)
    return low > 0 or high < 0


def repetition(votes: Votes, truth: Codes, seed: int) -> dict[str, tuple[int | None, bool]]:
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(truth))
    has = (truth == 0).astype(np.float64)
    world = with_difference(rng, has)
    first = learned(votes, truth, order[:PILOT])
    pilot = Pilot(first.held_out, first.held_out.max(axis=1), judged(first, truth, order[:PILOT]))
    values = np.eye(len(votes.labels))[0]
    groups = (world[0] == 0, world[0] == 1)
    needed, in_all = rows_for_goals(pilot, Foretold(pilot.expected, values), GOAL, votes.labels, groups)
    found: dict[str, tuple[int | None, bool]] = {}
    for goal, ways in needed.items():
        rows = ways["simple"]
        named = in_all if goal == "finish" else rows
        got = rows is not None and reached(goal, votes, truth, order[: max(rows, PILOT)], in_all or 0, world)
        found[goal] = named, got
    return found


def sets() -> dict[str, tuple[Votes, Codes]]:
    found = {f"simulated {name}": load(f"simulated/{name}.csv.gz")[:2] for name in ("sentiment", "politifact")}
    return found | {"babe": babe(("flan_ul2", "gpt_3_5", "mistral_7b", "zephyr"))[:2]}


def main(repetitions: str = "50", only: str = "") -> None:
    warnings.simplefilter("ignore")
    print(f"{'set':22}{'goal':>12}{'rows':>8}{'10 %':>8}{'90 %':>8}{'named':>8}{'reached':>9}")
    for name, (votes, truth) in sets().items():
        if only not in name:
            continue
        found = defaultdict(list)
        for seed in range(int(repetitions)):
            for goal, one in repetition(votes, truth, seed).items():
                found[goal].append(one)
        for goal, ones in found.items():
            rows = [n for n, _ in ones if n is not None]
            low, middle, high = np.quantile(rows, (0.1, 0.5, 0.9)) if rows else (0, 0, 0)
            got = np.mean([ok for n, ok in ones if n is not None]) if rows else 0.0
            said = f"{middle:8.0f}{low:8.0f}{high:8.0f}{len(rows) / len(ones):8.0%}{got:9.0%}"
            print(f"{name:22}{goal:>12}{said}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
