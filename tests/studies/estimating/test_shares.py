import numpy as np
import pyarrow as pa
import pytest

from pcs_annotator.estimating.sampling import Sample, allocate
from pcs_annotator.studies.estimating.answering import shares
from pcs_annotator.studies.estimating.answers import EstimateQuestion
from pcs_annotator.studies.estimating.evidence import LabelEvidence
from tests.builders import the

pytestmark = pytest.mark.system

ROWS, LABELS = 2000, ("a", "b", "c")
RNG = np.random.default_rng(5)
GROUP = RNG.integers(0, 2, ROWS)
TRUTH = np.where(RNG.random(ROWS) < 0.5 + 0.2 * GROUP, 1, RNG.integers(0, 2, ROWS) * 2).astype(np.int8)
SAID = np.where(RNG.random(ROWS) < 0.9, TRUTH, RNG.integers(0, 3, ROWS))
EXPECTED = 0.85 * np.eye(3)[SAID] + 0.05


def drawn_by_label(seed: int) -> LabelEvidence:
    """Draw gold rows, equally many of every machine label."""
    rng = np.random.default_rng(seed)
    sizes = np.bincount(SAID)
    counts = allocate(sizes.tolist(), 90)
    stratum = np.repeat(np.arange(3), counts)
    rows = np.concatenate([rng.choice(np.flatnonzero(k == SAID), n, replace=False) for k, n in enumerate(counts)])
    sample = Sample(
        rows=rows,
        truth=TRUTH[rows],
        probability=(np.array(counts) / sizes)[stratum],
        stratum=stratum,
        round=np.zeros(len(rows), dtype=np.intp),
    )
    table = pa.table({"group": np.array(["north", "south"])[GROUP]})
    return LabelEvidence(
        labels=LABELS, table=table, columns=["group"], expected=EXPECTED, held_out=EXPECTED[rows], sample=sample
    )


def test_differences_hold_if_rows_were_drawn_by_label() -> None:
    """How many rows of a group are drawn is up to chance, if groups are not what rows are drawn by."""
    second = TRUTH == 1
    true = second[GROUP == 1].mean() - second[GROUP == 0].mean()
    held = {"corrected": 0, "gold_only": 0}
    for seed in range(150):
        (found,) = shares(drawn_by_label(seed), EstimateQuestion(of=["b"], by="group")).differences
        for method in held:
            low, high = getattr(found, method).interval
            held[method] += low <= true <= high
        assert found.gold_rows == 90
    assert all(138 <= count <= 149 for count in held.values()), held


def test_a_difference_is_that_of_the_shares() -> None:
    found = shares(drawn_by_label(0), EstimateQuestion(by="group"))
    shown = {(line.name, line.group): line for line in found.lines}
    for one in found.differences:
        north, south = (shown[one.name, group] for group in ("north", "south"))
        for method in ("corrected", "gold_only", "naive"):
            difference, second, first = (getattr(line, method).value for line in (one, south, north))
            assert difference == pytest.approx(second - first)


def in_groups(truth: np.ndarray, said: np.ndarray, rows: np.ndarray, groups: int) -> LabelEvidence:
    """Return what gold rows say about rows that fall into groups of equal size, one after the other."""
    sizes = np.full((2, 2), 0.5)
    np.add.at(sizes, (said[rows], truth[rows]), 1.0)
    chance = sizes / sizes.sum(axis=1, keepdims=True)
    held_out = np.empty((len(rows), 2))
    for at, (one, label) in enumerate(zip(said[rows], truth[rows], strict=True)):
        without = sizes.copy()
        without[one, label] -= 1
        held_out[at] = without[one] / without[one].sum()
    names = np.repeat([f"g{group}" for group in range(groups)], len(truth) // groups)
    sample = Sample.simple(rows, truth[rows].astype(np.int8), len(truth))
    table = pa.table({"group": names})
    return LabelEvidence(
        labels=("no", "yes"), table=table, columns=["group"], expected=chance[said], held_out=held_out, sample=sample
    )


@pytest.mark.parametrize(("share", "accuracy"), [(0.02, 0.85), (0.05, 0.7), (0.1, 0.95), (0.2, 0.85), (0.5, 0.95)])
def test_intervals_of_small_groups_hold(share: float, accuracy: float) -> None:
    """Fewer than 92 % of intervals would hold in few of such tests: 240 intervals of four groups with 20 gold rows."""
    groups, size, studies = 4, 200, 60
    rng = np.random.default_rng(7)
    held = {"corrected": 0, "gold_only": 0}
    for _ in range(studies):
        truth = (rng.random(groups * size) < share).astype(np.intp)
        said = np.where(rng.random(len(truth)) < accuracy, truth, 1 - truth)
        rows = np.concatenate([group * size + rng.choice(size, 20, replace=False) for group in range(groups)])
        found = shares(in_groups(truth, said, rows, groups), EstimateQuestion(of=["yes"], by="group"))
        for line, true in zip(found.lines, truth.reshape(groups, size).mean(axis=1), strict=True):
            for method in held:
                low, high = getattr(line, method).interval
                held[method] += low <= true <= high
                assert high - low < 0.6
        for line in found.differences:
            low, high = the(line.corrected.interval)
            assert (the(line.p_value) < 0.05) == (not low <= 0 <= high)
    assert min(held.values()) / (groups * studies) >= 0.92, held


def test_none_of_14_gold_rows_is_not_taken_for_none_of_all() -> None:
    """Exactly, up to 16 % of 25 rows may have the label; and 3 of 15 against none of 14 are p = .22 (Fisher)."""
    truth, rows = np.zeros(50, dtype=np.intp), np.concatenate([np.arange(15), np.arange(25, 39)])
    truth[:3] = 1
    found = shares(in_groups(truth, 0 * truth, rows, 2), EstimateQuestion(of=["yes"], by="group"))
    for method in ("corrected", "gold_only"):
        low, high = getattr(found.lines[1], method).interval
        assert low == 0
        assert 0.11 < high < 0.18
    (difference,) = found.differences
    assert 0.12 < the(difference.p_value) < 0.3
