"""Votes with grades: what is refused, what counts as a share, and what keeps the grades."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pcs_annotator import ABSTAINED, NOT_ASKED, Votes
from pcs_annotator.core.arrays import Codes, Grades, Mask
from tests.builders import the, votes_of

NAN = np.nan
FOUR_AXES = hnp.array_shapes(min_dims=4, max_dims=4, max_side=3)


def with_grades(votes: Votes, grades: object) -> Votes:
    return replace(votes, grades=np.array(grades, dtype=np.float32).reshape(*votes.codes.shape, len(votes.labels)))


def distinct() -> Votes:
    """Two items, two annotators, two relations, two draws; all grades differ, and some votes are hard or missing."""
    votes = votes_of([[[[0, 1], [1, 1]], [[0, 0], [0, 1]]], [[[0, 1], [1, 0]], [[ABSTAINED, 0], [NOT_ASKED, 1]]]])
    grades: Grades = np.linspace(0, 0.3, 32, dtype=np.float32).reshape(2, 2, 2, 2, 2)
    grades[votes.codes < 0] = NAN
    grades[0, 0, 0, 0] = NAN
    return replace(votes, grades=grades)


def grades_of(votes: Votes) -> Grades:
    return the(votes.grades)


def test_grades_are_stored_as_float32_and_frozen() -> None:
    given: Any = np.array([0.7, 0.2]).reshape(1, 1, 1, 1, 2)  # float64
    votes = replace(votes_of([[[0]]]), grades=given)

    given[:] = 0
    assert grades_of(votes).dtype == np.float32
    np.testing.assert_allclose(grades_of(votes).ravel(), [0.7, 0.2])
    with pytest.raises(ValueError, match="read-only"):
        grades_of(votes)[0] = 0.0


def test_a_graded_vote_of_three_labels_takes_at_most_16_bytes() -> None:
    codes = np.zeros((100, 3, 4, 2), dtype=np.int8)
    votes = with_grades(votes_of(codes, ("a", "b", "c")), np.full((*codes.shape, 3), 0.25))

    assert votes.codes.nbytes + grades_of(votes).nbytes <= 16 * codes.size
    for part in (votes.take(slice(0, 50)), votes.select(annotators=["a1"]), votes.only(np.ones((3, 4, 2), dtype=bool))):
        assert part.codes.nbytes + grades_of(part).nbytes <= 16 * part.codes.size


def test_grades_may_be_lists_of_the_right_shape() -> None:
    nested = [[[[[0.7, 0.2]]]]]

    assert grades_of(replace(votes_of([[[0]]]), grades=nested)).shape == (1, 1, 1, 1, 2)  # type: ignore[arg-type]  # lists on purpose


@pytest.mark.parametrize("shape", [(1, 1, 1, 2), (1, 1, 1, 1, 3), (2, 1, 1, 1, 2), (1, 1, 1, 1)])
def test_grades_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"grades has shape.*codes \(1, 1, 1, 1\).*axis for labels"):
        replace(votes_of([[[0]]]), grades=np.zeros(shape, dtype=np.float32))


@pytest.mark.parametrize(
    "cell",
    [
        pytest.param([0.9, 0.8], id="sum of 1.7"),
        pytest.param([1.2, 0.0], id="above 1"),
        pytest.param([-0.1, 0.5], id="negative"),
        pytest.param([0.5, NAN], id="one missing"),
        pytest.param([np.inf, 0.0], id="infinite"),
        pytest.param([-np.inf, 0.0], id="a log-probability"),
    ],
)
def test_wrong_grades_are_refused_with_their_cell(cell: list[float]) -> None:
    votes = votes_of([[[0, 1]], [[1, 1]]])

    with pytest.raises(ValueError, match=r"item 'i1' \(a0, r1, draw 0\).*at most 1.*hard vote"):
        with_grades(votes, [[0.5, 0.5], [NAN, NAN], [0.0, 1.0], cell])


@pytest.mark.parametrize("code", [ABSTAINED, NOT_ASKED])
def test_grades_without_a_vote_are_refused(code: int) -> None:
    with pytest.raises(ValueError, match="without a label has grades"):
        with_grades(votes_of([[[code]]]), [0.5, 0.5])


@pytest.mark.parametrize("cell", [[1.0, 0.0], [0.0, 0.0], [0.3, 0.2], [0.6, 0.4005], [NAN, NAN]])
def test_grades_may_sum_to_any_probability_and_a_little_more_by_rounding(cell: list[float]) -> None:
    np.testing.assert_allclose(grades_of(with_grades(votes_of([[[0]]]), cell)).ravel(), cell)


def test_no_items_have_no_grades_to_check() -> None:
    votes = with_grades(votes_of(np.zeros((0, 1, 1, 1))), [])

    assert votes.shares().shape == (0, 1, 1, 2)


def test_share_of_a_graded_vote_is_its_probability_and_of_a_hard_one_all_or_nothing() -> None:
    votes = with_grades(votes_of([[[0, 1, ABSTAINED, NOT_ASKED]]]), [[0.25, 0.5], *[[NAN, NAN]] * 3])

    assert votes.shares().tolist() == [[[[0.25, 0.5], [0, 1], [0, 0], [0, 0]]]]
    assert votes.shares().dtype == np.float64


def test_share_of_several_draws_is_the_mean_of_those_that_gave_a_label() -> None:
    votes = votes_of([[[[0, 1, 1, ABSTAINED], [1, NOT_ASKED, NOT_ASKED, NOT_ASKED]]]])
    graded = with_grades(votes, [[[0.5, 0.25], [0.25, 0.75], [NAN] * 2, [NAN] * 2], [[0, 0.5], *[[NAN] * 2] * 3]])

    np.testing.assert_allclose(graded.shares()[0, 0], [[0.75 / 3, 2 / 3], [0, 0.5]])


@given(hnp.arrays(np.int8, FOUR_AXES, elements=st.integers(NOT_ASKED, 1)), st.data())
def test_a_hard_vote_is_the_special_case_of_a_graded_one(codes: Codes, data: st.DataObject) -> None:
    votes = votes_of(codes)
    certain = (codes[..., np.newaxis] == np.arange(2)).astype(np.float32)
    certain[(codes < 0) | data.draw(hnp.arrays(bool, codes.shape))] = NAN
    graded = replace(votes, grades=certain)

    np.testing.assert_allclose(graded.shares(), votes.shares(), rtol=0, atol=1e-15)
    rows = slice(0, 1)
    np.testing.assert_array_equal(graded.shares(rows), graded.shares()[rows])
    np.testing.assert_array_equal(graded.silent, votes.silent)


@pytest.mark.parametrize("rows", [np.array([1, 0]), np.array([False, True]), slice(1, 2)])
def test_grades_follow_their_rows(rows: slice) -> None:
    votes = distinct()

    np.testing.assert_array_equal(grades_of(votes.take(rows)), grades_of(votes)[rows])
    drawn = np.array([1, 1, 0])
    np.testing.assert_array_equal(grades_of(votes.resampled(drawn)), grades_of(votes)[drawn])


def test_grades_follow_the_selection() -> None:
    votes = distinct()
    chosen = votes.select(annotators=["a1"], relations=["r1", "original"], draws=1)

    np.testing.assert_array_equal(grades_of(chosen)[:, 0, :, 0], grades_of(votes)[:, 1, ::-1, 0])
    np.testing.assert_array_equal(grades_of(votes.select()), grades_of(votes))


def test_leaving_out_an_annotator_or_a_relation_keeps_the_grades_of_the_rest() -> None:
    votes = distinct()

    np.testing.assert_array_equal(grades_of(votes.without(annotator="a0")), grades_of(votes)[:, 1:])
    np.testing.assert_array_equal(grades_of(votes.without(relation="r1")), grades_of(votes)[:, :, :1])


def test_cells_that_are_not_chosen_lose_their_grades() -> None:
    votes = distinct()
    asked: Mask = np.array([[[True], [False]], [[False], [True]]])
    kept = votes.only(asked)

    assert grades_of(kept).dtype == np.float32
    np.testing.assert_array_equal(grades_of(kept), np.where(asked[..., np.newaxis], grades_of(votes), NAN))
    assert (kept.codes[:, 0, 1] == NOT_ASKED).all()


def test_hard_votes_have_the_same_labels_and_no_grades() -> None:
    votes = distinct()

    assert votes.hard().grades is None
    np.testing.assert_array_equal(votes.hard().codes, votes.codes)


def test_votes_that_are_hard_already_are_not_copied() -> None:
    votes = votes_of([[[0]]])

    assert votes.hard() is votes


def test_plain_votes_keep_their_grades() -> None:
    votes = replace(distinct(), annotators=["m", "m/1s-top-2"])

    np.testing.assert_array_equal(grades_of(votes.plain()), grades_of(votes)[:, :1])


def test_grades_and_stated_probabilities_are_kept_apart() -> None:
    stated = np.arange(32.0).reshape(2, 2, 2, 2, 2)
    votes = replace(distinct(), stated=stated)
    part = votes.select(annotators=["a1"]).take(slice(1, 2))

    np.testing.assert_array_equal(the(part.stated), stated[1:, 1:])
    np.testing.assert_array_equal(grades_of(part), grades_of(votes)[1:, 1:])
    assert votes.hard().stated is not None
