"""The alternative annotator test, on an example worked by hand and in simulation."""

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.base.plain import from_plain
from pcs_annotator.core.arrays import Codes
from pcs_annotator.judging.metrics.coefficients import (
    alternative_annotator,
    alternative_in_parts,
    benjamini_yekutieli,
    cohens_kappa,
    rows_for_interval,
)
from tests.builders import the


def test_a_hand_worked_example() -> None:
    """Three coders and 30 rows, in three blocks of ten.

    Rows 0 to 9: all say 0. The model and every coder win.
    Rows 10 to 19: the model and coders 2 and 3 say 1, coder 1 says 0. Against coder 1 the model wins alone: it agrees
    with two others, coder 1 with none. Against coder 2 (and 3), both agree with one of the others: both win.
    Rows 20 to 29: all coders say 0, the model says 1. Every coder wins alone.
    """
    zero, one = np.zeros(10, dtype=np.int8), np.ones(10, dtype=np.int8)
    machine = np.concatenate([zero, one, one])
    coders = np.array([np.concatenate([zero, zero, zero]), *[np.concatenate([zero, one, zero])] * 2], dtype=np.int8)
    found = alternative_annotator(machine, coders, epsilon=0.2)
    assert [one.model for one in found.coders] == pytest.approx([2 / 3, 2 / 3, 2 / 3])
    assert [one.coder for one in found.coders] == pytest.approx([2 / 3, 1, 1])
    assert found.advantage == pytest.approx(2 / 3)
    differences = np.concatenate([zero, -one, one]).astype(float)
    reference = ttest_1samp(differences, 0.2, alternative="less").pvalue
    assert found.coders[0].p_value == pytest.approx(reference, abs=1e-12)
    others = np.concatenate([zero, zero, one]).astype(float)
    assert found.coders[1].p_value == pytest.approx(ttest_1samp(others, 0.2, alternative="less").pvalue, abs=1e-12)
    assert found.winning_rate == 0.0
    assert not found.may_replace


def test_a_model_that_agrees_with_all_may_replace_them() -> None:
    codes = np.arange(40) % 3
    noisy = np.where(np.arange(40) % 4 == 0, (codes + 1) % 3, codes)
    other = np.where(np.arange(40) % 4 == 1, (codes + 1) % 3, codes)
    found = alternative_annotator(codes.astype(np.int8), np.array([noisy, other, codes], dtype=np.int8))
    assert found.may_replace
    assert found.winning_rate == 1.0
    assert [one.may_replace for one in found.coders] == [True] * 3


def test_identical_differences_need_no_test() -> None:
    same = np.zeros((2, 30), dtype=np.int8)
    assert alternative_annotator(same[0], same).coders[0].p_value == 0.0
    assert alternative_annotator(same[0] + 1, same).coders[0].p_value == 1.0


def test_rows_that_only_one_coder_labelled_are_passed_over() -> None:
    coders = np.zeros((2, 40), dtype=np.int8)
    coders[1, 35:] = -1
    assert alternative_annotator(coders[0], coders).coders[0].rows == 35


def test_too_few_coders_or_rows_are_refused() -> None:
    with pytest.raises(UndefinedMetric, match="needs 2 human coders or more, and there is 1: name the column of each"):
        alternative_annotator(np.zeros(50, dtype=np.int8), np.zeros((1, 50), dtype=np.int8))
    with pytest.raises(
        UndefinedMetric, match="needs 30 rows that coder 1 and another one have labelled, and there are"
    ):
        alternative_annotator(np.zeros(29, dtype=np.int8), np.zeros((3, 29), dtype=np.int8))


def test_false_discoveries_are_limited_as_published() -> None:
    """With three hypotheses, the constant is 1 + 1/2 + 1/3: the limits are .00909, .01818 and .02727."""
    assert benjamini_yekutieli(np.array([0.009, 0.5, 0.6]), 0.05).tolist() == [1, 0, 0]
    assert benjamini_yekutieli(np.array([0.0092, 0.5, 0.6]), 0.05).tolist() == [0, 0, 0]
    assert benjamini_yekutieli(np.array([0.027, 0.02, 0.026]), 0.05).tolist() == [1, 1, 1]


@pytest.mark.system
def test_a_model_that_is_too_bad_rarely_may_replace() -> None:
    """The model is as much worse than the coders as ε allows, or a little more."""
    studies, replaced = 200, 0
    for seed in range(studies):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, 2, 100)
        coders = np.where(rng.random((3, 100)) < 0.95, truth, 1 - truth).astype(np.int8)
        machine = np.where(rng.random(100) < 0.72, truth, 1 - truth).astype(np.int8)
        replaced += alternative_annotator(machine, coders).may_replace
    assert replaced / studies <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / studies)


def test_the_result_is_told_and_stored() -> None:
    same = np.zeros((2, 30), dtype=np.int8)
    found = alternative_annotator(same[0], same)
    assert found.sentence(["ann", "bob"]).startswith(
        "Alternative annotator test (ε = 0.2): the model may replace a coder. It wins against ann (p < 0.001, 30 rows)"
    )
    assert "may not replace a coder. It wins against none of 2" in alternative_annotator(same[0] + 1, same).sentence(
        "ab"
    )
    assert from_plain(type(found), found.to_dict()) == found


def people(rng: np.random.Generator, rows: int, right: float = 0.85, coders: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Return what is true, and what coders say who are right so often."""
    truth = rng.integers(0, 2, rows).astype(np.int8)
    return truth, np.where(rng.random((coders, rows)) < right, truth, 1 - truth).astype(np.int8)


def test_parts_are_tested_together_and_those_with_too_few_rows_are_not() -> None:
    truth, coders = people(np.random.default_rng(1), 400)
    good, row = np.arange(400) < 200, np.arange(400)
    machine = np.where(good, truth, 1 - truth).astype(np.int8)  # right in the first half, wrong in the second
    found = alternative_in_parts(machine, coders, {"good": good, "bad": ~good, "few": row < 29, "none": row < 0})
    assert found["good"] is not None
    assert (found["good"].may_replace, the(found["bad"]).may_replace) == (True, False)
    assert found["good"].coders[0].rows == 200
    assert (found["few"], found["none"]) == (None, None)
    assert alternative_in_parts(machine, coders, {"few": row < 29}) == {"few": None}
    alone = alternative_annotator(machine[good], coders[:, good])
    assert [one.p_value for one in found["good"].coders] == [one.p_value for one in alone.coders]


@pytest.mark.parametrize(("right", "width"), [(0.9, 0.1), (0.8, 0.1), (0.97, 0.05)])
def test_so_many_rows_make_an_interval_so_narrow(right: float, width: float) -> None:
    rng = np.random.default_rng(0)
    rows = rows_for_interval(people(rng, 2000, right, 2)[1], width)
    spread = np.std([cohens_kappa(*people(rng, rows, right, 2)[1]).value or 0 for _ in range(400)])
    assert 0.85 * width < 1.96 * spread < 1.05 * width


def panel(rng: np.random.Generator, rows: int, right: tuple[float, float]) -> tuple[Codes, Codes]:
    """Return labels of a model, and of three coders, which are right so often."""
    truth = rng.integers(0, 3, rows)
    said = [
        np.where(rng.random(rows) < share, truth, (truth + rng.integers(1, 3, rows)) % 3)
        for share in (right[1], *[right[0]] * 3)
    ]
    return said[0].astype(np.int8), np.array(said[1:], dtype=np.int8)


def test_with_the_rows_that_are_said_to_be_enough_the_model_passes_in_four_of_five_cases() -> None:
    rng = np.random.default_rng(0)
    enough = the(alternative_annotator(*panel(rng, 50_000, (0.85, 0.75))).rows_to_pass)
    assert 150 < enough < 200
    passed = sum(alternative_annotator(*panel(rng, enough, (0.85, 0.75))).may_replace for _ in range(60))
    assert 40 <= passed <= 58  # 48 are expected


def test_no_number_of_rows_is_enough_for_a_bad_model_and_few_for_a_perfect_one() -> None:
    rng = np.random.default_rng(0)
    assert alternative_annotator(*panel(rng, 2000, (0.9, 0.5))).rows_to_pass is None
    assert alternative_annotator(*panel(rng, 2000, (0.6, 1.0))).rows_to_pass == 30
