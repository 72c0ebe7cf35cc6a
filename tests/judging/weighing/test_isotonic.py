from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from pcs_annotator.core.arrays import Floats, Mask
from pcs_annotator.judging.weighing.calibration import fit_curve, read_curve


@st.composite
def scored_hits(draw: st.DrawFn) -> tuple[Floats, Mask]:
    """Coarse scores, so that many are equal, and whether each was a hit."""
    rows = draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    return rng.integers(0, 8, rows) / 7, rng.random(rows) < draw(st.sampled_from([0.0, 0.3, 0.7, 1.0]))


def test_curve_by_hand() -> None:
    # .4 and .6 are out of order and share ½; with six rows, 0 and 1 are pulled in to 1/8 and 7/8
    scores, hits = np.array([0.2, 0.4, 0.6, 0.8, 0.8, 0.1]), np.array([False, True, False, True, True, False])
    knots = fit_curve(scores, hits)
    np.testing.assert_allclose(knots, [[0.1, 1 / 8], [0.2, 1 / 8], [0.4, 1 / 2], [0.6, 1 / 2], [0.8, 7 / 8]])
    np.testing.assert_allclose(read_curve(knots, np.array([0.0, 0.5, 0.7, 1.0])), [1 / 8, 1 / 2, 11 / 16, 7 / 8])


@settings(deadline=None, max_examples=60)
@given(scored_hits())
def test_curve_equals_scikit_learn_away_from_0_and_1(rows: tuple[Floats, Mask]) -> None:
    scores, hits = rows
    rarest = 1 / (len(scores) + 2)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(scores, hits).predict(scores)
    np.testing.assert_allclose(
        read_curve(fit_curve(scores, hits), scores), np.clip(theirs, rarest, 1 - rarest), atol=1e-9
    )


@settings(deadline=None, max_examples=60)
@given(scored_hits())
def test_curve_never_falls_and_never_reaches_0_or_1(rows: tuple[Floats, Mask]) -> None:
    said = read_curve(fit_curve(*rows), np.linspace(-0.5, 1.5, 101))
    assert (np.diff(said) >= -1e-12).all()
    assert said.min() > 0
    assert said.max() < 1


@pytest.mark.parametrize(("hits", "probability"), [(True, 51 / 52), (False, 1 / 52)])
def test_a_curve_of_one_height_needs_two_knots(hits: bool, probability: float) -> None:
    knots = fit_curve(np.linspace(0, 1, 50), np.full(50, hits))
    np.testing.assert_allclose(knots, [[0, probability], [1, probability]])
