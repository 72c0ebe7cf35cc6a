"""Passages and values: which mean the same, which are right, and how values are written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator.core.passages import (
    VALUE,
    Extraction,
    Passage,
    around,
    candidates_of,
    normal_value,
    overlap,
    written,
)

NAMES = Extraction(("person", "place"))
SPANS = st.tuples(st.integers(0, 40), st.integers(1, 20), st.sampled_from(NAMES.types)).map(
    lambda span: Passage(span[0], span[0] + span[1], span[2])
)


def test_passages_of_a_type_that_share_half_are_one_candidate_with_the_borders_most_votes_give() -> None:
    long, short, other = Passage(0, 10, "person"), Passage(0, 6, "person"), Passage(0, 10, "place")
    meant = candidates_of({long: 1, short: 3, other: 2}, NAMES)
    assert meant == {long: short, short: short, other: other}


def test_of_equally_many_votes_the_passage_that_stands_first_and_is_longer_gives_the_borders() -> None:
    first, longer, later = Passage(2, 10, "person"), Passage(2, 12, "person"), Passage(3, 12, "person")
    assert {*candidates_of({later: 1, first: 1, longer: 1}, NAMES).values()} == {longer}


@given(st.dictionaries(SPANS, st.integers(1, 9), min_size=1))
def test_every_passage_means_a_candidate_of_its_type_that_it_overlaps_and_that_means_itself(
    votes: dict[Passage, int],
) -> None:
    meant = candidates_of(votes, NAMES)
    assert meant.keys() == votes.keys()
    for passage, candidate in meant.items():
        assert passage.type == candidate.type
        assert overlap(passage, candidate) >= 0.5
        assert meant[candidate] == candidate
        assert votes[candidate] >= votes[passage]
    assert candidates_of(dict(reversed(votes.items())), NAMES) == meant


@given(SPANS, SPANS)
def test_overlap_is_the_same_both_ways_and_whole_for_the_same_place(first: Passage, other: Passage) -> None:
    assert overlap(first, other) == overlap(other, first) <= 1
    assert (overlap(first, other) == 1) == (first[:2] == other[:2])


def test_a_passage_is_right_if_half_is_shared_or_with_exact_borders_only_if_they_are_the_same() -> None:
    gold = [Passage(0, 10, "person")]
    assert NAMES.right(Passage(4, 10, "person"), gold)
    assert not NAMES.right(Passage(4, 10, "place"), gold)
    assert not NAMES.right(Passage(6, 10, "person"), gold)
    exact = NAMES._replace(exact=True)
    assert exact.right(Passage(0, 10, "person"), gold)
    assert not exact.right(Passage(0, 9, "person"), gold)


def test_values_are_the_same_wherever_they_stand() -> None:
    numbers = Extraction((VALUE,), "number")
    first, other = Passage(0, 3, VALUE, "1200"), Passage(40, 45, VALUE, "1200")
    assert candidates_of({first: 1, other: 2, Passage(0, 3, VALUE, "12"): 1}, numbers)[first] == other
    assert numbers.right(first, [other])
    assert not numbers.right(first, [])


@pytest.mark.parametrize(
    ("value", "form", "normal"),
    [
        ("€ 1,200.50", "number", "1200.5"),
        ("about 3 million", "number", "3000000"),
        ("10-20", "number", None),
        ("2024-3-7", "date", "2024-03-07"),
        ("7.3.2024", "date", "2024-03-07"),
        ("31/12/2024", "date", "2024-12-31"),
        ("12/31/2024", "date", "2024-12-31"),
        ("5/5/2024", "date", "2024-05-05"),
        ("5/6/2024", "date", None),  # June or May
        ("March 7th, 2024", "date", "2024-03-07"),
        ("the 30th of February", "date", None),
        ("30 February 2024", "date", None),
        (' "North  Sea". ', "text", "North Sea"),
        (" ", "text", None),
    ],
)
def test_values_are_written_in_one_form_and_what_can_be_read_in_two_ways_is_none(
    value: str, form: str, normal: str | None
) -> None:
    assert normal_value(value, form) == normal  # type: ignore[arg-type]


def test_what_is_learned_from_has_the_passage_and_sixty_characters_around_it() -> None:
    text = "a" * 100 + "NAME" + "b" * 100
    assert around(text, Passage(100, 104, "person")) == f"person [ NAME ] {'a' * 60} … {'b' * 60}"


def test_gold_is_written_in_order_and_nothing_twice() -> None:
    passages = [Passage(5, 9, "place"), Passage(0, 4, "person"), Passage(5, 9, "place")]
    assert written(passages, NAMES) == ('[{"start":0,"end":4,"type":"person"},{"start":5,"end":9,"type":"place"}]')
    assert written([], NAMES) == "[]"
    assert written([], Extraction((VALUE,))) == "none"
    assert written([Passage(0, 1, VALUE, "7")], Extraction((VALUE,))) == "7"
