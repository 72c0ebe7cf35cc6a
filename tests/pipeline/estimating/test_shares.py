import numpy as np
import pyarrow as pa
import pytest

from pcs_annotator.judging.estimating.sampling import Sample, allocate
from pcs_annotator.pipeline.estimating.answers import Question
from pcs_annotator.pipeline.estimating.evidence import Evidence
from pcs_annotator.pipeline.estimating.shares import shares

ROWS, LABELS = 2000, ("a", "b", "c")
RNG = np.random.default_rng(5)
GROUP = RNG.integers(0, 2, ROWS)
TRUTH = np.where(RNG.random(ROWS) < 0.5 + 0.2 * GROUP, 1, RNG.integers(0, 2, ROWS) * 2).astype(np.int8)
SAID = np.where(RNG.random(ROWS) < 0.9, TRUTH, RNG.integers(0, 3, ROWS))
EXPECTED = 0.85 * np.eye(3)[SAID] + 0.05


def drawn_by_label(seed: int) -> Evidence:
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
    return Evidence(
        labels=LABELS, table=table, columns=["group"], expected=EXPECTED, held_out=EXPECTED[rows], sample=sample
    )


def test_differences_hold_if_rows_were_drawn_by_label() -> None:
    """How many rows of a group are drawn is up to chance, if groups are not what rows are drawn by."""
    second = TRUTH == 1
    true = second[GROUP == 1].mean() - second[GROUP == 0].mean()
    held = {"corrected": 0, "gold_only": 0}
    for seed in range(150):
        (found,) = shares(drawn_by_label(seed), Question(of=["b"], by="group")).differences
        for method in held:
            low, high = getattr(found, method).interval
            held[method] += low <= true <= high
        assert found.gold_rows == 90
    assert all(138 <= count <= 149 for count in held.values()), held


def test_a_difference_is_that_of_the_shares() -> None:
    found = shares(drawn_by_label(0), Question(by="group"))
    shown = {(line.name, line.group): line for line in found.lines}
    for one in found.differences:
        north, south = (shown[one.name, group] for group in ("north", "south"))
        for method in ("corrected", "gold_only", "naive"):
            difference, second, first = (getattr(line, method).value for line in (one, south, north))
            assert difference == pytest.approx(second - first)
