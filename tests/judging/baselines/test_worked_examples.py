"""Every baseline on an example worked by hand, with the computation beside it."""

from dataclasses import replace

import numpy as np
import pytest

from pcs_annotator import Votes
from pcs_annotator.core.arrays import Floats
from pcs_annotator.core.elicitations import PHRASES
from pcs_annotator.judging.baselines import (
    LogProb,
    MajorityVote,
    SelfConsistency,
    Spuq,
    ZeroShot,
    linguistic,
    one_step,
    two_steps,
)
from tests.builders import the

LABELS = ("negative", "neutral", "positive")
NAN = float("nan")


def votes_on_one_text(
    codes: list[list[list[int]]],
    *,
    annotators: tuple[str, ...] = ("gemma",),
    relations: tuple[str, ...] = ("original",),
    stated: object = None,
    grades: object = None,
) -> Votes:
    """Votes on one text, annotator × relation × draw."""
    return Votes(
        codes=np.array([codes], dtype=np.int8),
        ids=["text"],
        annotators=annotators,
        relations=relations,
        labels=LABELS,
        stated=None if stated is None else np.array([stated], dtype=np.float64),
        grades=None if grades is None else np.array([grades], dtype=np.float32),
    )


def row(scores: Floats) -> list[float]:
    assert scores.shape == (1, 3)
    return [float(value) for value in scores[0]]


def test_zero_shot() -> None:
    # The first draw says neutral: 0, 1, 0. Later draws are not used.
    votes = votes_on_one_text([[[1, 2, 2]]])

    assert row(ZeroShot().scores(votes)) == [0, 1, 0]


def test_log_probabilities() -> None:
    # gemma gives 0.2, 0.2, 0.4 and the rest to no label: 1/4, 1/4, 1/2. llama's log-probabilities are missing here, so
    # its label counts: 1, 0, 0. The mean is 5/8, 1/8, 1/4. Later draws are not used.
    nothing = [NAN] * 3
    given = [[[[0.2, 0.2, 0.4], [1, 0, 0]]], [[nothing, nothing]]]
    one = votes_on_one_text([[[2, 0]], [[0, 0]]], annotators=("gemma", "llama"), grades=given)
    assert row(LogProb().scores(one)) == pytest.approx([1 / 4, 1 / 4, 1 / 2])

    # llama gives log-probabilities for another text, so it is a model that can be asked for them.
    more = np.full((1, 2, 1, 2, 3), 1 / 3, dtype=np.float32)
    codes = np.zeros((1, 2, 1, 2), dtype=np.int8)
    two = replace(
        one,
        codes=np.concatenate([one.codes, codes]),
        grades=np.concatenate([the(one.grades), more]),
        ids=["text", "other"],
    )
    assert LogProb().scores(two)[0] == pytest.approx([5 / 8, 1 / 8, 1 / 4])


def test_majority_vote() -> None:
    # Two of three models say positive, one negative: 1/3, 0, 2/3.
    votes = votes_on_one_text([[[2]], [[0]], [[2]]], annotators=("gemma", "llama", "mistral"))

    assert row(MajorityVote().scores(votes)) == pytest.approx([1 / 3, 0, 2 / 3])


def test_self_consistency() -> None:
    # positive, positive, negative, silence, positive: 3 of the 4 that answered say positive, 1 negative.
    votes = votes_on_one_text([[[2, 2, 0, -1, 2]]])

    assert row(SelfConsistency().scores(votes)) == [0.25, 0, 0.75]


@pytest.mark.parametrize(("steps", "kind"), [(1, "1s-top-2"), (2, "2s-top-2")])
def test_top_k(steps: int, kind: str) -> None:
    # G1: positive, P1: 0.7; G2: neutral, P2: 0.2. The remaining 0.1 goes to negative, the only label not guessed.
    votes = votes_on_one_text([[[2]]], annotators=(f"gemma/{kind}",), stated=[[[[NAN, 0.2, 0.7]]]])

    assert row((one_step() if steps == 1 else two_steps()).scores(votes)) == pytest.approx([0.1, 0.2, 0.7])


def test_top_k_divides_what_adds_up_to_more_than_1() -> None:
    # 0.9 + 0.6 = 1.5, so 0.9 / 1.5 = 0.6 and 0.6 / 1.5 = 0.4; nothing is left for negative.
    votes = votes_on_one_text([[[2]]], annotators=("gemma/1s-top-2",), stated=[[[[NAN, 0.6, 0.9]]]])

    assert row(one_step().scores(votes)) == pytest.approx([0, 0.4, 0.6])


def test_linguistic() -> None:
    # Guess: positive, Confidence: Likely, which the survey puts at 0.71. The other two labels share 0.29: 0.145 each.
    votes = votes_on_one_text([[[2]]], annotators=("gemma/ling-1s",), stated=[[[[NAN, NAN, PHRASES["Likely"]]]]])

    assert row(linguistic().scores(votes)) == pytest.approx([0.145, 0.145, 0.71])


PERTURBED = ("original", "paraphrase-1", "paraphrase-2", "dummy", "system")


def test_spuq_between_samples() -> None:
    # The original says positive; the four perturbed inputs: positive, negative, positive, positive. c = 3/4 at
    # positive, and 1/8 for each of the other two.
    votes = votes_on_one_text([[[2], [2], [0], [2], [2]]], relations=PERTURBED)

    assert row(Spuq().scores(votes)) == [0.125, 0.125, 0.75]


def test_spuq_within_samples() -> None:
    # The model's stated confidence in its own answer: original 0.9 in positive, paraphrase 0.7 in positive, dummy 0.5
    # in negative. c = (0.9 + 0.7 + 0.5) / 3 = 0.7 at positive, 0.15 for each of the others.
    # Without the dummy: (0.9 + 0.7) / 2 = 0.8.
    stated = [[[[NAN, NAN, 0.9]], [[0.1, NAN, 0.7]], [[0.5, NAN, NAN]]]]
    votes = votes_on_one_text(
        [[[2], [2], [0]]], annotators=("gemma/1s-top-1",), relations=("original", "paraphrase", "dummy"), stated=stated
    )

    assert row(Spuq(aggregation="intra").scores(votes)) == pytest.approx([0.15, 0.15, 0.7])
    without_dummy = votes.select(relations=["original", "paraphrase"])
    assert row(Spuq(aggregation="intra").scores(without_dummy)) == pytest.approx([0.1, 0.1, 0.8])
