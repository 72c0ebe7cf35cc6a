from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator import Votes
from pcs_annotator.core.arrays import Floats, Mask
from pcs_annotator.core.gold_codes import UNLABELLED, Once, once_per_text, same_grades
from pcs_annotator.core.identity import same_texts, with_copies
from tests.builders import votes_of

GRADES = np.array([[[0.7, 0.2], [0.6, 0.3]], [[0.7, 0.2], [0.6, 0.3]], [[0.7, 0.2], [0.6, 0.31]]])


def once(same: str, gold: Sequence[int], random_sample: Mask | None = None) -> Once:
    """Return one row for every letter; ids are in the order of rows."""
    ids = [f"{row:03d}" for row in range(len(same))]
    numbers = np.array([ord(letter) for letter in same], dtype=np.intp)
    return once_per_text(numbers, ids, np.array(gold, dtype=np.int8), random_sample)


def graded(grades: Floats, codes: Sequence[int] = (0, 0)) -> Votes:
    hard = votes_of([[list(codes)] for _ in grades])
    return replace(hard, grades=grades[:, np.newaxis, :, np.newaxis].astype(np.float32))


def test_texts_that_differ_in_blanks_or_case_are_the_same_and_empty_ones_are_unknown() -> None:
    assert same_texts(["Good  day", " good day\n", "Good day!", "", " "]).tolist() == [0, 0, 1, 2, 3]


def test_rows_with_the_very_same_grades_in_several_cells_are_the_same() -> None:
    assert same_grades(graded(GRADES)).tolist() == [0, 0, 2]


def test_too_few_or_hard_votes_cannot_tell_copies() -> None:
    one_cell = GRADES.copy()
    one_cell[:, 1] = np.nan
    assert same_grades(graded(one_cell, (0, -1))).tolist() == [0, 1, 2]
    assert same_grades(graded(one_cell)).tolist() == [0, 1, 2]
    assert same_grades(votes_of([[[0, 0]], [[0, 0]]])).tolist() == [0, 1]
    assert same_grades(graded(GRADES).take(slice(0))).tolist() == []


def test_each_text_counts_with_its_first_row() -> None:
    found = once("abacb", [0, 1, 0, 1, UNLABELLED])
    assert found.distinct.tolist() == [True, True, False, True, False]
    assert found.repeated == 1
    assert not len(found.contradictory)


def test_rows_with_gold_come_first_and_among_them_those_drawn_at_random() -> None:
    drawn = np.array([False, False, True, False])
    assert once("aaab", [UNLABELLED, 0, 0, 1], drawn).distinct.tolist() == [False, False, True, True]
    assert once("aaab", [UNLABELLED, 0, UNLABELLED, 1], drawn).distinct.tolist() == [False, True, False, True]


def test_copies_count_with_the_label_that_most_of_them_have() -> None:
    found = once("aaa", [1, 0, 0])
    assert found.distinct.tolist() == [False, True, False]
    assert found.repeated == 2
    assert not len(found.contradictory)


@pytest.mark.parametrize(("same", "gold", "counted"), [("aab", [0, 1, 1], [2]), ("aaa", [0, 1, UNLABELLED], [2])])
def test_copies_without_a_majority_have_no_gold(same: str, gold: Sequence[int], counted: list[int]) -> None:
    found = once(same, gold)
    assert np.flatnonzero(found.distinct).tolist() == counted
    assert found.contradictory.tolist() == [0, 1]
    assert not found.repeated


def test_copies_and_rows_that_were_drawn_are_counted_for_every_text() -> None:
    gold = np.array([0, 0, UNLABELLED, 1, UNLABELLED], dtype=np.int8)
    at_random = np.array([True, True, True, False, True])
    undecided = np.array([False, False, False, False, True])
    same, ids = np.array([0, 0, 0, 1, 2]), list("abcde")
    assert once_per_text(same, ids, gold, at_random).copies.tolist() == [3, 3, 3, 1, 1]
    assert once_per_text(same, ids, gold, at_random).drawn.tolist() == [2, 2, 2, 0, 0]
    assert once_per_text(same, ids, gold, at_random, undecided).drawn.tolist() == [2, 2, 2, 0, 1]


def test_a_row_has_the_label_of_its_text_in_whatever_row_that_is() -> None:
    assert with_copies(np.array([0, 1, 0, 2]), np.array([True, False, False, False])).tolist() == [
        True,
        False,
        True,
        False,
    ]
    assert with_copies(np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.bool_)).tolist() == []


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-1, 2), st.booleans()), min_size=1), st.randoms())
def test_the_order_of_rows_does_not_matter(rows: list[tuple[int, int, bool]], random: Random) -> None:
    ids = [f"{row:03d}" for row in range(len(rows))]
    order = list(range(len(rows)))
    random.shuffle(order)

    def kept(places: list[int]) -> set[str]:
        same, gold, drawn = (np.array([rows[place][part] for place in places]) for part in range(3))
        names = [ids[place] for place in places]
        found = once_per_text(same, names, gold.astype(np.int8), drawn)
        return {name for name, counts in zip(names, found.distinct.tolist(), strict=True) if counts}

    assert kept(order) == kept(list(range(len(rows))))
