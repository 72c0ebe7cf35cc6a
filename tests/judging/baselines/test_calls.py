"""What each baseline pays for per text."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pcs_annotator import Votes
from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.judging.baselines import (
    Baseline,
    MajorityVote,
    SelfConsistency,
    Spuq,
    baselines,
    linguistic,
    one_step,
    two_steps,
)
from pcs_annotator.judging.evaluate.methods import ready

KINDS = ("1s-top-2", "1s-top-3", "2s-top-2", "ling-1s")
RELATIONS = ("original", "paraphrase-1", "paraphrase-2", "dummy", "voice")


def recorded() -> Votes:
    """One model, 5 draws of the original and 1 of everything else; perturbed inputs also for 1S top-2."""
    annotators = ("gemma", *(f"gemma/{kind}" for kind in KINDS))
    codes = np.full((2, len(annotators), len(RELATIONS), 5), -2, dtype=np.int8)
    codes[:, :, 0] = 0
    codes[:, :2, :, 0] = 0
    stated = np.where(codes[..., np.newaxis] >= 0, 0.5, np.nan) * np.ones(2)
    stated[:, 0] = np.nan
    grades = np.where(codes[..., np.newaxis] >= 0, 0.5, np.nan) * np.ones(2)
    grades[:, 1:] = np.nan
    return Votes(
        codes=codes,
        ids="xy",
        annotators=annotators,
        relations=RELATIONS,
        labels=("a", "b"),
        stated=stated,
        grades=grades.astype(np.float32),
    )


CALLS = [
    (baselines.create("zero-shot"), 1),
    (baselines.create("logprob"), 1),
    (SelfConsistency(), 5),
    (SelfConsistency(draws=3), 3),
    (one_step(2), 1),
    (two_steps(), 2),
    (linguistic(), 1),
    # original, two paraphrases and their rewriting, dummy
    (Spuq(), 6),
    # intra-sample uses all answers on the original
    (Spuq(aggregation="intra"), 10),
]


@pytest.mark.parametrize(("chosen", "calls"), CALLS)
def test_calls_per_text(chosen: Baseline, calls: int) -> None:
    votes = recorded()

    assert ready(chosen, votes, frozenset(RELATIONS)).calls.total == calls


def test_only_paraphrases_have_to_be_written() -> None:
    assert Spuq().asks(recorded()).rewrites == {"paraphrase-1", "paraphrase-2"}
    assert Spuq().asks(recorded().select(relations=["original", "dummy"])).rewrites == frozenset()


def test_votes_without_perturbed_inputs_are_refused() -> None:
    with pytest.raises(UndefinedMetric, match=r"perturbed inputs \(paraphrase, .* hold only original"):
        Spuq().scores(recorded().select(relations=["original"]))


def test_confidence_that_was_stated_about_the_original_only_is_refused() -> None:
    votes = recorded().select(annotators=["gemma", "gemma/ling-1s"])

    for given in (votes, replace(votes, stated=None)):
        with pytest.raises(UndefinedMetric, match="elicitation '1s-top-1'"):
            Spuq(aggregation="intra").scores(given)


def test_numbers_of_guesses_are_not_mixed() -> None:
    with pytest.raises(UndefinedMetric, match="1s-top-2, 1s-top-3: set k"):
        one_step().scores(recorded())
    assert one_step(3).name == "1s-top-3"


def test_more_draws_than_were_recorded_are_refused() -> None:
    with pytest.raises(UndefinedMetric, match=r"6 draws.*gemma has 5: .*--draws 6"):
        SelfConsistency(draws=6).scores(recorded())
    with pytest.raises(ValueError, match="not 0"):
        SelfConsistency(draws=0)


def test_majority_of_one_is_refused() -> None:
    for method in (MajorityVote().scores, MajorityVote().asks):
        with pytest.raises(UndefinedMetric, match="two models"):
            method(recorded())


def test_a_single_label_has_all_the_confidence_whatever_was_stated() -> None:
    votes = recorded()
    only = replace(votes.hard(), labels=("a",), stated=np.zeros((*votes.codes.shape, 1)))

    assert Spuq(aggregation="intra").scores(only).tolist() == [[1.0], [1.0]]
