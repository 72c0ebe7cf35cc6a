"""The significance figures that Salimian et al. print, from the AUROCs that they print."""

from __future__ import annotations

import pytest

from pcs_annotator.judging.metrics.significance import average_relative_improvement, paired_t_test

# tab:singleLLMs, rows L, M, G on sentiment, Gossipcop and Politifact
ZERO_SHOT = [0.68, 0.70, 0.85, 0.54, 0.62, 0.72, 0.88, 0.73, 0.85]
PCS_SINGLE = [0.82, 0.70, 0.87, 0.62, 0.72, 0.80, 0.88, 0.86, 0.86]

# tab:MajorityVoting, rows M+G, L+M, L+G, L+M+G on the same
MAJORITY = [0.87, 0.76, 0.85, 0.86, 0.75, 0.59, 0.67, 0.69, 0.86, 0.88, 0.85, 0.88]
PCS_MULTIPLE = [0.87, 0.80, 0.88, 0.87, 0.81, 0.70, 0.72, 0.75, 0.91, 0.91, 0.89, 0.91]

# tab:MajorityVotingEachMR, rows L, M, G, L+M+G on the same
BY_RELATION = {
    "No MR": [0.68, 0.70, 0.85, 0.86, 0.54, 0.62, 0.72, 0.69, 0.88, 0.73, 0.85, 0.88],
    "MR1": [0.71, 0.62, 0.77, 0.80, 0.58, 0.63, 0.72, 0.70, 0.85, 0.77, 0.81, 0.89],
    "MR2": [0.53, 0.52, 0.62, 0.58, 0.56, 0.58, 0.64, 0.65, 0.77, 0.77, 0.77, 0.82],
    "MR3": [0.75, 0.61, 0.74, 0.79, 0.63, 0.68, 0.71, 0.74, 0.77, 0.69, 0.81, 0.85],
    "PCS": [0.82, 0.70, 0.87, 0.87, 0.62, 0.72, 0.80, 0.75, 0.88, 0.86, 0.86, 0.91],
}


def test_single_models_against_zero_shot() -> None:
    assert 100 * average_relative_improvement(PCS_SINGLE, ZERO_SHOT) == pytest.approx(9.33, abs=0.005)
    assert paired_t_test(PCS_SINGLE, ZERO_SHOT).p_value == pytest.approx(0.0102, abs=5e-5)


def test_several_models_against_majority_vote() -> None:
    assert 100 * average_relative_improvement(PCS_MULTIPLE, MAJORITY) == pytest.approx(5.84, abs=0.005)
    assert paired_t_test(PCS_MULTIPLE, MAJORITY).p_value == pytest.approx(0.00027, abs=5e-6)


@pytest.mark.parametrize(
    ("ours", "theirs", "p_value"), [("No MR", "MR1", 0.35), ("No MR", "MR3", 0.37), ("MR1", "MR3", 0.63)]
)
def test_relations_that_do_not_differ(ours: str, theirs: str, p_value: float) -> None:
    assert paired_t_test(BY_RELATION[ours], BY_RELATION[theirs]).p_value == pytest.approx(p_value, abs=0.005)


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("PCS", "No MR"),
        ("PCS", "MR1"),
        ("PCS", "MR2"),
        ("PCS", "MR3"),
        ("No MR", "MR2"),
        ("MR1", "MR2"),
        ("MR3", "MR2"),
    ],
)
def test_relations_that_differ_at_one_percent(better: str, worse: str) -> None:
    found = paired_t_test(BY_RELATION[better], BY_RELATION[worse])
    assert found.p_value < 0.01
    assert found.difference > 0


# tab:pvalues prints these improvements in percent; the last column is ours from the AUROCs above
WITHIN_ROUNDING = [
    ("PCS", "No MR", 8.67, 8.10),
    ("PCS", "MR1", 10.30, 9.43),
    ("PCS", "MR3", 9.95, 10.19),
    ("MR1", "MR3", 0.40, 0.75),
]
BEYOND_ROUNDING = [
    ("PCS", "MR2", 31.03, 25.29),
    ("No MR", "MR1", 0.03, 1.57),
    ("No MR", "MR2", 19.49, 16.42),
    ("No MR", "MR3", 0.10, 2.44),
    ("MR1", "MR2", 19.54, 14.32),
    ("MR3", "MR2", 18.82, 13.95),
]


def possible(ours: str, theirs: str, printed: float) -> bool:
    """Whether AUROCs that round to the printed ones could give the printed improvement."""

    def percent(shift: float) -> float:
        moved = [value + shift for value in BY_RELATION[ours]], [value - shift for value in BY_RELATION[theirs]]
        return 100 * average_relative_improvement(*moved)

    return percent(-0.005) <= printed <= percent(0.005)


@pytest.mark.parametrize(("ours", "theirs", "printed", "computed"), WITHIN_ROUNDING + BEYOND_ROUNDING)
def test_improvements_between_relations(ours: str, theirs: str, printed: float, computed: float) -> None:
    found = 100 * average_relative_improvement(BY_RELATION[ours], BY_RELATION[theirs])
    assert found == pytest.approx(computed, abs=0.006)
    assert possible(ours, theirs, printed) is ((ours, theirs, printed, computed) in WITHIN_ROUNDING)
