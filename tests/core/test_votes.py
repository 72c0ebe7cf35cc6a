from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pcs_annotator import ABSTAINED, NOT_ASKED, Votes
from pcs_annotator.base.errors import LabelError, TableError, UnknownNameError
from pcs_annotator.core.arrays import CODE, Codes
from tests.builders import the, votes_of

FOUR_AXES = hnp.array_shapes(min_dims=4, max_dims=4, max_side=4)
SOME_CODES = hnp.arrays(np.int8, FOUR_AXES, elements=st.integers(NOT_ASKED, 1))


def with_stated() -> Votes:
    """Two items, two annotators, two relations, one draw; all stated probabilities differ."""
    votes = votes_of([[[0, 1], [1, 1]], [[0, 0], [ABSTAINED, NOT_ASKED]]])
    return replace(votes, stated=np.arange(16.0).reshape(2, 2, 2, 1, 2))


def test_names_become_tuples_and_a_missing_draw_axis_is_added() -> None:
    votes = Votes(codes=np.zeros((1, 2, 1), np.int8), ids=["i"], annotators=["a", "b"], relations=["r"], labels=["x"])

    assert (votes.ids, votes.annotators, votes.relations) == (("i",), ("a", "b"), ("r",))
    assert votes.codes.shape == (1, 2, 1, 1)
    assert votes.codes.dtype == CODE


def test_length_is_the_number_of_items_and_repr_shows_the_size() -> None:
    votes = votes_of(np.zeros((3, 2, 4)))

    assert len(votes) == 3
    assert repr(votes) == "<Votes: 3 items × 2 models × 4 relations × 1 draws, labels fake, real>"


def test_votes_are_frozen() -> None:
    votes = votes_of([[[0]]])

    with pytest.raises(FrozenInstanceError):
        votes.labels = ("other",)  # type: ignore[misc]  # that is what is tested
    with pytest.raises(ValueError, match="read-only"):
        votes.codes[0, 0, 0, 0] = 1


def test_stated_probabilities_are_frozen() -> None:
    stated = the(with_stated().stated)

    with pytest.raises(ValueError, match="read-only"):
        stated[0] = 0.0


def test_callers_arrays_stay_writable_and_their_changes_do_not_leak_in() -> None:
    codes: Codes = np.zeros((1, 1, 1, 1), dtype=np.int8)
    stated = np.zeros((1, 1, 1, 1, 2))
    votes = Votes(codes=codes, ids=["i"], annotators=["a"], relations=["r"], labels=["x", "y"], stated=stated)

    codes[:] = 1
    stated[:] = 1.0

    assert votes.codes.sum() == 0
    assert the(votes.stated).sum() == 0


@pytest.mark.parametrize("shape", [(2, 2), (1, 2, 2), (2, 1, 2), (2, 2, 1), (2, 2, 2, 1, 1)])
def test_codes_that_do_not_fit_the_names_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"codes.*\(2, 2, 2\)"):
        Votes(codes=np.zeros(shape, dtype=np.int8), ids="ij", annotators="ab", relations="rs", labels=["x"])


@pytest.mark.parametrize("code", [-3, 2, 65_536])
def test_code_outside_the_label_set_is_refused(code: int) -> None:
    # 65,536 would become 0 if it were narrowed before the check
    codes = np.full((1, 1, 1), code, dtype=np.int32)

    with pytest.raises(LabelError, match="between -2 and 1"):
        Votes(codes=codes, ids=["i"], annotators=["a"], relations=["r"], labels=["x", "y"])


@pytest.mark.parametrize("code", [0.5, 1.0, np.nan])
def test_codes_that_are_not_whole_numbers_are_refused(code: float) -> None:
    # nan would otherwise become 0 in int8: a vote that was never given
    with pytest.raises(ValueError, match="float64"):
        Votes(codes=np.full((1, 1, 1), code), ids=["i"], annotators=["a"], relations=["r"], labels=["x", "y"])


def test_stated_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\(1, 1, 1, 2\).*\(1, 1, 1, 1\)"):
        replace(votes_of([[[0]]]), stated=np.zeros((1, 1, 1, 2)))


@pytest.mark.parametrize("axis", ["ids", "annotators", "relations"])
def test_repeated_name_on_an_axis_is_refused(axis: str) -> None:
    names: dict[str, Any] = {"ids": "ijk", "annotators": "abc", "relations": "rst", axis: "xyx"}

    with pytest.raises(TableError, match=f"{axis}: 'x'.*row 1.*row 3"):
        Votes(codes=np.zeros((3, 3, 3), dtype=np.int8), labels=["x"], **names)


def test_item_without_votes_is_silent() -> None:
    votes = votes_of([[[ABSTAINED, NOT_ASKED]], [[ABSTAINED, 0]], [[NOT_ASKED, NOT_ASKED]]])

    assert votes.silent.tolist() == [True, False, True]


def test_share_of_a_single_draw_is_all_or_nothing() -> None:
    votes = votes_of([[[0, 1, ABSTAINED, NOT_ASKED]]])

    assert votes.shares().tolist() == [[[[1, 0], [0, 1], [0, 0], [0, 0]]]]


def test_share_of_several_draws_counts_only_those_that_gave_a_label() -> None:
    draws = [[[[0, 0, 1, ABSTAINED], [NOT_ASKED, 1, NOT_ASKED, NOT_ASKED], [ABSTAINED] * 4]]]

    np.testing.assert_allclose(votes_of(draws).shares()[0, 0], np.array([[2 / 3, 1 / 3], [0, 1], [0, 0]]))


@given(SOME_CODES)
def test_shares_sum_to_one_where_there_are_votes_and_to_zero_elsewhere(codes: Codes) -> None:
    votes = votes_of(codes)

    np.testing.assert_allclose(votes.shares().sum(axis=3), (codes >= 0).any(axis=3))
    np.testing.assert_array_equal(votes.silent, votes.shares().sum(axis=(1, 2, 3)) == 0)


@given(SOME_CODES, st.integers(0, 4), st.integers(0, 4))
def test_shares_of_some_rows_are_rows_of_all_shares(codes: Codes, start: int, stop: int) -> None:
    votes = votes_of(codes)

    np.testing.assert_array_equal(votes.shares(slice(start, stop)), votes.shares()[start:stop])


@given(SOME_CODES)
def test_order_of_draws_does_not_matter_to_shares(codes: Codes) -> None:
    np.testing.assert_array_equal(votes_of(codes).shares(), votes_of(codes[..., ::-1]).shares())


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(np.array([2, 0]), id="positions"),
        pytest.param(np.array([True, False, True]), id="mask"),
        pytest.param(slice(0, 2), id="slice"),
    ],
)
def test_taking_rows_keeps_ids_beside_their_votes(rows: slice) -> None:
    votes = votes_of([[[0]], [[1]], [[ABSTAINED]]])
    taken = votes.take(rows)

    expected = np.arange(3)[rows].tolist()
    assert taken.ids == tuple(f"i{row}" for row in expected)
    np.testing.assert_array_equal(taken.codes, votes.codes[expected])
    assert taken.stated is None


def test_taking_every_row_makes_no_copy() -> None:
    votes = votes_of([[[0]], [[1]]])

    assert votes.take(np.array([True, True])) is votes


def test_taking_rows_in_another_order_is_not_mistaken_for_taking_all() -> None:
    assert votes_of([[[0]], [[1]]]).take(np.array([1, 0])).ids == ("i1", "i0")


def test_stated_probabilities_follow_their_rows() -> None:
    votes = with_stated()

    np.testing.assert_array_equal(votes.take(slice(1, 2)).stated, the(votes.stated)[1:])
    np.testing.assert_array_equal(votes.resampled(np.array([1, 1, 0])).stated, the(votes.stated)[[1, 1, 0]])


def test_rows_drawn_with_replacement_are_named_by_position() -> None:
    drawn = votes_of([[[0]], [[1]]]).resampled(np.array([1, 1, 0]))

    assert drawn.ids == ("0", "1", "2")
    assert drawn.codes.ravel().tolist() == [1, 1, 0]
    assert drawn.stated is None


def test_selecting_by_name_gives_that_order() -> None:
    votes = votes_of(np.arange(12).reshape(1, 3, 4), tuple("abcdefghijkl"))
    chosen = votes.select(annotators=["a2", "a0"], relations=["r3", "original", "r1"])

    assert (chosen.annotators, chosen.relations) == (("a2", "a0"), ("r3", "original", "r1"))
    assert chosen.codes[0, :, :, 0].tolist() == [[11, 8, 9], [3, 0, 1]]


def test_selecting_draws_keeps_the_first() -> None:
    votes = votes_of([[[[0, 1, ABSTAINED]]]])

    assert votes.select(draws=2).codes.tolist() == [[[[0, 1]]]]


def test_selecting_without_arguments_changes_nothing() -> None:
    votes = with_stated()
    same = votes.select()

    assert (same.ids, same.annotators, same.relations) == (votes.ids, votes.annotators, votes.relations)
    np.testing.assert_array_equal(same.codes, votes.codes)
    np.testing.assert_array_equal(the(same.stated), with_stated().stated)


def test_cells_that_are_not_chosen_become_not_asked() -> None:
    votes = with_stated()
    kept = votes.only(np.array([[[True], [False]], [[False], [True]]]))

    assert kept.codes[0, ..., 0].tolist() == [[0, NOT_ASKED], [NOT_ASKED, 1]]
    np.testing.assert_array_equal(kept.stated, np.where([[[[[1]], [[0]]], [[[0]], [[1]]]]], the(votes.stated), np.nan))
    assert votes_of([[[0]]]).only(np.array([[[True]]])).stated is None


def test_stated_probabilities_follow_the_selection() -> None:
    votes = with_stated()
    chosen = votes.select(annotators=["a1"], relations=["r1", "original"], draws=1)

    assert the(chosen.stated)[1, 0, :, 0].tolist() == [[14, 15], [12, 13]]


def test_plain_votes_are_those_of_annotators_that_only_gave_a_label() -> None:
    votes = replace(with_stated(), annotators=["org/m", "org/m/1s-top-2"])

    assert votes.plain().annotators == ("org/m",)
    assert votes.plain().codes.ravel().tolist() == [0, 1, 0, 0]
    assert votes.plain().stated is None


def test_votes_without_elicited_annotators_are_plain_as_they_are() -> None:
    votes = votes_of([[[0]], [[1]]])

    assert votes.plain() is votes


def test_votes_of_elicited_annotators_alone_have_nothing_plain() -> None:
    votes = replace(votes_of([[[0]]]), annotators=["m/ling-1s"])

    with pytest.raises(UnknownNameError, match="m/ling-1s"):
        votes.plain()


def test_leaving_out_an_annotator_or_a_relation_keeps_the_rest() -> None:
    votes = votes_of(np.arange(4).reshape(1, 2, 2), tuple("abcd"))

    assert votes.without(annotator="a0").annotators == ("a1",)
    assert votes.without(annotator="a0").relations == votes.relations
    assert votes.without(relation="original").codes.ravel().tolist() == [1, 3]
    assert votes.without(annotator="a1", relation="r1").codes.ravel().tolist() == [0]


@pytest.mark.parametrize(
    ("axis", "called", "known"), [("annotator", "model", "a0, a1"), ("relation", "relation", "original, r1")]
)
def test_unknown_name_is_refused_with_the_known_ones(axis: str, called: str, known: str) -> None:
    votes = votes_of(np.zeros((1, 2, 2)))

    with pytest.raises(UnknownNameError, match=f"{called}.*'nobody'.*{known}"):
        votes.without(**{axis: "nobody"})
    with pytest.raises(UnknownNameError, match=f"{called}.*'nobody'.*{known}"):
        votes.select(**{f"{axis}s": ["nobody"]})  # type: ignore[arg-type]  # the keyword varies


def test_selecting_a_name_twice_is_refused() -> None:
    with pytest.raises(TableError, match=r"annotators: 'a0'.*row 1.*row 2"):
        votes_of([[[0]]]).select(annotators=["a0", "a0"])


def test_joined_parts_are_the_whole_again_also_if_only_some_are_graded() -> None:
    codes = np.array([[[[0]]], [[[1]]], [[[-1]]]])
    grades = np.full((3, 1, 1, 1, 2), np.nan, dtype=np.float32)
    grades[1] = [0.25, 0.75]
    whole = replace(votes_of(codes), grades=grades)
    parts = [whole.take(slice(0, 1)).hard(), whole.take(slice(1, 3))]
    joined = Votes.joined(parts)
    assert joined.ids == whole.ids
    assert np.array_equal(joined.codes, whole.codes)
    assert np.array_equal(the(joined.grades), grades, equal_nan=True)
    assert Votes.joined([part.hard() for part in parts]).grades is None
