from hypothesis import given

from pcs_annotator import Votes
from pcs_annotator.judging.metrics.coefficients import Flips, flip_matrices, flips_by
from tests.judging.strategies import any_votes

TABLE = {
    "id": ["1", "2", "3"],
    "a|original": ["yes", "no", "yes"],
    "a|voice": ["yes", "yes", None],
    "b|original": ["no", None, "no"],
    "b|voice": ["no", "no", "yes"],
}


def test_without_votes_on_the_original_there_are_no_flips() -> None:
    assert flips_by("relation", Votes.from_table({"id": ["1", "2"], "a|voice": ["yes", "no"]})) == {}


def test_a_matrix_counts_the_label_on_the_text_against_that_on_the_rewrite() -> None:
    votes = Votes.from_table(TABLE)
    no, yes = votes.labels.index("no"), votes.labels.index("yes")
    first, second = flip_matrices(votes)
    assert (first.annotator, first.relation) == ("a", "voice")
    assert (first.counts[yes, yes], first.counts[no, yes], first.counts.sum()) == (1, 1, 2)
    assert (second.counts[no, no], second.counts[no, yes], second.counts.sum()) == (1, 1, 2)
    assert first.flips == Flips(2, 1)


@given(any_votes())
def test_matrices_add_up_to_the_flips_of_their_relation(votes: Votes) -> None:
    by_relation = flips_by("relation", votes)
    found = list(flip_matrices(votes))
    assert len(found) == len(by_relation) * len(votes.annotators)
    for relation, flips in by_relation.items():
        parts = [one.flips for one in found if one.relation == relation]
        assert (sum(one.pairs for one in parts), sum(one.changed for one in parts)) == flips
