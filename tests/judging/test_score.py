from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator import Votes, Weights, score
from pcs_annotator.base.errors import MismatchError
from pcs_annotator.core.weights import Evidence
from pcs_annotator.judging import score as scoring
from pcs_annotator.judging.score import MIN_GRADE, choose, read_votes, softmax
from tests.builders import simulated_votes, votes_of
from tests.judging.strategies import any_votes, silenced, weights_for

FAKE, REAL, SILENT, UNASKED = 0, 1, -1, -2


def weights_of(votes: Votes, annotators: list[float], relations: list[float]) -> Weights:
    return Weights.normalised(votes, np.array(annotators), np.array(relations))


def test_worked_example_of_the_paper() -> None:
    votes = votes_of([[[FAKE, FAKE, REAL, FAKE]]])
    assert score(votes, Weights.uniform(votes)).tolist() == [[0.75, 0.25]]


def test_missing_votes_renormalise_both_equations() -> None:
    votes = votes_of(
        [
            [[FAKE, REAL, SILENT], [UNASKED, SILENT, REAL]],
            [[FAKE, REAL, SILENT], [SILENT, SILENT, SILENT]],
            [[FAKE, FAKE, REAL], [REAL, FAKE, FAKE]],
        ]
    )
    weights = weights_of(votes, [0.6, 0.4], [0.5, 0.3, 0.2])
    by_hand = [
        # a0 has votes of weight .5 and .3 of .8, a1 a single vote
        [0.6 * 0.5 / 0.8, 0.6 * 0.3 / 0.8 + 0.4],
        # a1 is silent, so a0 alone decides
        [0.5 / 0.8, 0.3 / 0.8],
        [0.6 * 0.8 + 0.4 * 0.5, 0.6 * 0.2 + 0.4 * 0.5],
    ]
    np.testing.assert_allclose(score(votes, weights), by_hand, atol=1e-12)


@given(st.data())
def test_a_vote_for_a_label_never_lowers_its_score(data: st.DataObject) -> None:
    votes = data.draw(any_votes(max_draws=1))
    weights = data.draw(weights_for(votes))
    filled = replace(votes, codes=np.where(votes.codes < 0, 0, votes.codes).astype(np.int8))
    assert (score(filled, weights)[:, 0] >= score(votes, weights)[:, 0] * (~votes.silent) - 1e-9).all()


def test_silent_item_is_uniform_even_when_evidence_has_a_prior() -> None:
    votes = votes_of([[[SILENT]], [[FAKE]]])
    evidence = Evidence(labels=votes.labels, log_prior=np.log([0.9, 0.1]), log_likelihood=np.zeros((1, 1, 2, 2)))
    scores = score(votes, replace(Weights.uniform(votes), evidence=evidence))
    np.testing.assert_allclose(scores, [[0.5, 0.5], [0.9, 0.1]], atol=1e-12)


@pytest.mark.parametrize(
    ("annotators", "relations"), [([0.0, 1.0], [0.5, 0.5]), ([0.5, 0.5], [0.0, 1.0]), ([0.0, 1.0], [0.0, 1.0])]
)
def test_votes_that_carry_no_weight_leave_an_item_uniform(annotators: list[float], relations: list[float]) -> None:
    votes = votes_of([[[FAKE, SILENT], [SILENT, SILENT]]])
    assert score(votes, weights_of(votes, annotators, relations)).tolist() == [[0.5, 0.5]]


def test_weights_are_found_by_name() -> None:
    votes = votes_of([[[FAKE, REAL], [REAL, REAL]]])
    weights = weights_of(votes, [0.8, 0.2], [0.9, 0.1])
    turned = weights.reordered(["a1", "a0"], ["r1", "original"])
    np.testing.assert_allclose(score(votes, turned), score(votes, weights), atol=1e-12)


@pytest.mark.parametrize(
    ("annotators", "relations", "message"),
    [
        (["stranger", "a1"], ["original", "r1"], "model.*'stranger'"),
        (["a0", "a1"], ["original", "poem"], "relation.*'poem'"),
    ],
)
def test_weights_for_other_names_are_refused(annotators: list[str], relations: list[str], message: str) -> None:
    votes = votes_of([[[FAKE, REAL], [REAL, REAL]]])
    with pytest.raises(MismatchError, match=message):
        score(replace(votes, annotators=annotators, relations=relations), Weights.uniform(votes))


def test_evidence_about_other_labels_is_refused() -> None:
    votes = votes_of([[[FAKE]]])
    evidence = Evidence(labels=["a", "b"], log_prior=np.zeros(2), log_likelihood=np.zeros((1, 1, 2, 2)))
    with pytest.raises(MismatchError, match="'fake'"):
        score(votes, replace(Weights.uniform(votes), evidence=evidence))


def test_evidence_is_added_over_votes_whatever_the_order_of_labels() -> None:
    rng = np.random.default_rng(3)
    votes = silenced(simulated_votes([0.7, 0.6], items=20, relations=2)[0], 0.3)
    likelihood, prior = rng.normal(size=(2, 2, 3, 3)), rng.normal(size=3)
    evidence = Evidence(labels=votes.labels, log_prior=prior, log_likelihood=likelihood)
    weights = replace(Weights.uniform(votes), evidence=evidence)
    expected = np.full((20, 3), 1 / 3)
    for item in np.flatnonzero(~votes.silent):
        logits = prior.copy()
        for a, r in np.argwhere(votes.codes[item, :, :, 0] >= 0):
            logits += likelihood[a, r, votes.codes[item, a, r, 0]]
        expected[item] = np.exp(logits) / np.exp(logits).sum()
    np.testing.assert_allclose(score(votes, weights), expected, atol=1e-11)
    turned = replace(votes, labels=votes.labels[::-1], codes=np.where(votes.codes < 0, votes.codes, 2 - votes.codes))
    np.testing.assert_allclose(score(turned, weights)[:, ::-1], expected, atol=1e-11)


def test_scores_do_not_depend_on_the_size_of_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    votes = silenced(simulated_votes([0.7, 0.6], items=20)[0], 0.5)
    whole = score(votes, Weights.uniform(votes))
    monkeypatch.setattr(scoring, "CHUNK", 3)
    np.testing.assert_array_equal(score(votes, Weights.uniform(votes)), whole)


def test_sums_in_another_order_tie_exactly() -> None:
    # .1 + .2 + .3 and .6 differ in the last bit before rounding
    votes = votes_of([[[FAKE, FAKE, FAKE, REAL]]])
    scores = score(votes, weights_of(votes, [1.0], [0.1, 0.2, 0.3, 0.6]))
    assert scores[0, 0] == scores[0, 1] == 0.5


def test_ties_go_to_the_first_name_in_the_alphabet() -> None:
    scores = np.array([[0.4, 0.2, 0.4], [0.2, 0.4, 0.4], [0.5, 0.3, 0.2]])
    assert choose(scores, ["c", "b", "a"]).tolist() == [2, 2, 0]
    assert choose(scores, ["a", "b", "c"]).tolist() == [0, 1, 0]


def test_softmax_survives_huge_logits() -> None:
    np.testing.assert_allclose(softmax(np.array([[1e4, 0.0], [-1e4, -1e4]])), [[1.0, 0.0], [0.5, 0.5]], atol=1e-12)


def with_grades(codes: object, grades: object, labels: tuple[str, ...] = ("fake", "real")) -> Votes:
    """Votes from nested lists, with the probability of every label in every cell; None for a hard vote."""
    votes = votes_of(codes, labels)
    given = np.full((*votes.codes.shape, len(labels)), np.nan, dtype=np.float32)
    for place, value in zip(np.ndindex(*votes.codes.shape), np.array(grades, dtype=object).ravel(), strict=True):
        given[place] = np.nan if value is None else value.probabilities
    return replace(votes, grades=given)


class P:
    """Probabilities of one graded vote."""

    def __init__(self, *probabilities: float) -> None:
        self.probabilities = probabilities


def test_graded_votes_count_with_their_probabilities_in_both_equations() -> None:
    votes = with_grades([[[FAKE, REAL], [FAKE, FAKE]]], [[[P(0.7, 0.3), P(0.2, 0.8)], [None, P(0.6, 0.2)]]])
    weights = weights_of(votes, [0.6, 0.4], [0.5, 0.5])
    by_hand = [0.6 * 0.45 + 0.4 * (1.6 / 1.8), 0.6 * 0.55 + 0.4 * (0.2 / 1.8)]
    np.testing.assert_allclose(score(votes, weights), [by_hand], atol=1e-7)


def test_log_odds_of_an_answered_cell_sum_to_one_and_those_of_a_hard_vote_are_its_share() -> None:
    votes = with_grades([[[FAKE, SILENT], [REAL, UNASKED]]], [[[P(0.8, 0.1), None], [None, None]]])
    found = read_votes(votes, "log-odds")[0]
    half = np.log(8) / 2
    np.testing.assert_allclose(found[0, 0], [0.5 + half, 0.5 - half], atol=1e-6)
    assert found[1, 0].tolist() == [0, 1]
    assert found[:, 1].tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("mass", [1.0, 0.5, 1e-4])
def test_what_went_to_no_label_is_not_read(mass: float) -> None:
    votes = with_grades([[[FAKE]]], [[[P(0.9 * mass, 0.1 * mass)]]])
    np.testing.assert_allclose(np.diff(read_votes(votes, "log-odds")[0, 0, 0]), -np.log(9), atol=1e-5)
    np.testing.assert_allclose(read_votes(votes, "shares")[0, 0, 0], [0.9, 0.1], atol=1e-6)


@pytest.mark.parametrize("least", [0.0, 1e-30, MIN_GRADE])
def test_a_vote_is_never_surer_than_the_floor(least: float) -> None:
    votes = with_grades([[[FAKE]]], [[[P(1 - least, least)]]])
    np.testing.assert_allclose(np.diff(read_votes(votes, "log-odds")[0, 0, 0]), np.log(MIN_GRADE), atol=1e-4)


def test_a_graded_vote_without_any_mass_says_nothing() -> None:
    votes = with_grades([[[FAKE]]], [[[P(0.0, 0.0)]]])
    assert read_votes(votes, "log-odds")[0, 0, 0].tolist() == [0.5, 0.5]
    assert read_votes(votes, "shares")[0, 0, 0].tolist() == [0, 0]
    assert score(votes, Weights.uniform(votes)).tolist() == [[0.5, 0.5]]


def test_log_odds_are_averaged_over_draws_and_over_questions() -> None:
    codes = np.array([[[[FAKE, REAL, SILENT], [FAKE, UNASKED, UNASKED], [SILENT, SILENT, SILENT]]]])
    votes = with_grades(codes, [P(0.8, 0.2), None, None, P(0.5, 0.5), None, None, None, None, None])
    graded, hard = np.log(4), -1.0  # log-odds of fake
    first, second = (graded + hard) / 2, 0.0
    gaps = -np.diff(read_votes(votes, "log-odds")[0, 0], axis=1)[:, 0]
    np.testing.assert_allclose(gaps, [first, second, 0.0], atol=1e-6)
    np.testing.assert_allclose(-np.diff(read_votes(votes, "mean log-odds")[0, 0], axis=1)[:, 0], gaps / 2, atol=1e-6)
    shares = np.array([[(0.8 + 0) / 2, (0.2 + 1) / 2], [0.5, 0.5], [0, 0]])
    np.testing.assert_allclose(read_votes(votes, "shares")[0, 0], shares, atol=1e-6)
