from __future__ import annotations

from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.evaluation.flips import flips_by_relation

TABLE = {
    "id": ["1", "2", "3"],
    "a|original": ["yes", "no", "yes"],
    "a|voice": ["yes", "yes", None],
    "b|original": ["no", None, "no"],
    "b|voice": ["no", "no", "yes"],
}


def test_answers_are_compared_where_both_are_there() -> None:
    flips = flips_by_relation(Votes.from_table(TABLE))["voice"]
    assert (flips.pairs, flips.changed) == (4, 2)
    assert flips.rate == 0.5


def test_nothing_to_compare_has_no_rate() -> None:
    votes = Votes.from_table({"id": ["1", "2"], "a|original": ["yes", "no"], "a|voice": [None, None]})
    assert flips_by_relation(votes)["voice"].rate is None


def test_without_votes_on_the_original_there_are_no_flips() -> None:
    assert flips_by_relation(Votes.from_table({"id": ["1", "2"], "a|voice": ["yes", "no"]})) == {}
