"""What holds for all baselines, on votes of any shape."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pcs_annotator import Votes
from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.core.elicitations import base_annotator, kind_of
from pcs_annotator.judging.baselines import Baseline, SelfConsistency, Spuq, StatedBaseline, baselines
from pcs_annotator.judging.evaluate.methods import ready
from tests.builders import the
from tests.judging.strategies import LABELS

Without = Callable[[Votes], Votes]
NAMES = (
    "1s-top-k",
    "2s-top-k",
    "ling-1s",
    "logprob",
    "majority-vote",
    "self-consistency",
    "spuq",
    "spuq-intra",
    "zero-shot",
)
KINDS = ("1s-top-2", "2s-top-2", "ling-1s")
ANNOTATORS = ("a", "b", *(f"{base}/{kind}" for base in "ab" for kind in KINDS))
RELATIONS = ("original", "paraphrase-1", "dummy-1")


@st.composite
def recorded(draw: st.DrawFn) -> Votes:
    """Votes that hold something for every baseline, with any pattern of silence."""
    items, labels, draws = draw(st.integers(1, 5)), draw(st.integers(1, 4)), draw(st.integers(2, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = (items, len(ANNOTATORS), len(RELATIONS), draws)
    codes = rng.integers(-2, labels, shape, dtype=np.int8)
    stated = np.round(rng.random((*shape, labels)), 1)
    stated[rng.random(stated.shape) < draw(st.sampled_from([0.1, 0.5, 0.9]))] = np.nan
    stated[:, [not kind_of(name) for name in ANNOTATORS]] = np.nan
    return Votes(
        codes=codes,
        ids=[f"i{row}" for row in range(items)],
        annotators=ANNOTATORS,
        relations=RELATIONS,
        labels=LABELS[:labels],
        stated=stated,
        grades=random_grades(codes, labels, rng),
    )


def random_grades(codes: np.ndarray, labels: int, rng: np.random.Generator) -> np.ndarray:
    """Grades of some of the answers that plain annotators gave; the labels need not be the most probable ones."""
    grades = rng.dirichlet(np.ones(labels + 1), codes.shape)[..., :labels]
    grades[(codes < 0) | (rng.random(codes.shape) < 0.2)] = np.nan
    grades[:, [bool(kind_of(name)) for name in ANNOTATORS]] = np.nan
    return grades


def test_all_are_registered() -> None:
    assert baselines.names() == list(NAMES)
    assert [baselines.create(name).name for name in NAMES] == list(NAMES)


@pytest.mark.parametrize("name", NAMES)
@given(votes=recorded())
def test_rows_sum_to_1(name: str, votes: Votes) -> None:
    try:
        scores = baselines.create(name).scores(votes)
    except UndefinedMetric:
        assume(False)

    assert scores.shape == (len(votes), len(votes.labels))
    assert (scores >= 0).all()
    np.testing.assert_allclose(scores.sum(axis=1), 1)


@pytest.mark.parametrize("name", NAMES)
@given(votes=recorded(), seed=st.integers(0, 9))
def test_only_votes_that_a_baseline_asks_for_matter(name: str, votes: Votes, seed: int) -> None:
    chosen = baselines.create(name)
    try:
        scores, asks = chosen.scores(votes), chosen.asks(votes)
    except UndefinedMetric:
        assume(False)
    rng = np.random.default_rng(seed)
    other = rng.integers(-2, len(votes.labels), votes.codes.shape, dtype=np.int8)
    assert votes.stated is not None
    noise = rng.random(votes.stated.shape)
    # what was never asked stays unasked, and what was never graded hard: another panel would ask for other answers
    kept = asks.cells | (votes.codes == -2)
    codes = np.where(kept, votes.codes, np.maximum(other, -1))
    other_grades = random_grades(codes, len(votes.labels), rng)
    changed = replace(
        votes,
        codes=codes,
        stated=np.where(kept[..., np.newaxis] | np.isnan(votes.stated), votes.stated, noise),
        grades=np.where(kept[..., np.newaxis] | np.isnan(the(votes.grades)), the(votes.grades), other_grades),
    )

    np.testing.assert_array_equal(chosen.scores(changed), scores)


@pytest.mark.parametrize("name", NAMES)
@given(votes=recorded(), data=st.data())
def test_order_of_annotators_and_relations_does_not_matter(name: str, votes: Votes, data: st.DataObject) -> None:
    chosen = baselines.create(name)
    annotators = data.draw(st.permutations(votes.annotators))
    relations = data.draw(st.permutations(votes.relations))
    try:
        scores = chosen.scores(votes)
    except UndefinedMetric:
        assume(False)
    moved = votes.select(annotators=annotators, relations=relations)

    np.testing.assert_allclose(chosen.scores(moved), scores)
    assert ready(chosen, moved).calls == pytest.approx(ready(chosen, votes).calls)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("majority-vote", "spuq-intra")])
@given(votes=recorded())
def test_several_annotators_are_scored_one_by_one_and_averaged(name: str, votes: Votes) -> None:
    chosen = baselines.create(name)

    def alone(base: str) -> Votes:
        return votes.select(annotators=[other for other in votes.annotators if base_annotator(other) == base])

    try:
        both = chosen.scores(votes)
        one, two = chosen.scores(alone("a")), chosen.scores(alone("b"))
    except UndefinedMetric:
        assume(False)
    # a uniform row may mean no answer, which does not count in the mean
    sure = np.all([np.ptp(scores, axis=1) > 1e-9 for scores in (one, two)], axis=0)

    np.testing.assert_allclose(both[sure], ((one + two) / 2)[sure])


def silent_on_the_second() -> Votes:
    shape = (2, len(ANNOTATORS), len(RELATIONS), 2)
    codes = np.zeros(shape, dtype=np.int8)
    codes[1] = -1
    stated = np.full((*shape, 2), np.nan)
    stated[0, 2:, :, :, 0] = 0.9
    grades = np.full((*shape, 2), np.nan)
    grades[0, :2] = 0.8, 0.1
    return Votes(
        codes=codes,
        ids="xy",
        annotators=ANNOTATORS,
        relations=RELATIONS,
        labels=LABELS[:2],
        stated=stated,
        grades=grades,
    )


def grade_rewrites_only(votes: Votes) -> Votes:
    grades = the(votes.grades).copy()
    grades[:, :, 0] = np.nan
    return replace(votes, grades=grades)


drop_original: Without = partial(Votes.without, relation="original")
drop_elicited: Without = partial(Votes.select, annotators=["a", "b"])
keep_one_draw: Without = partial(Votes.select, draws=1)
keep_original: Without = partial(Votes.select, relations=["original"])
drop_plain: Without = partial(Votes.select, annotators=[name for name in ANNOTATORS if kind_of(name)])
state_nothing: Without = partial(replace, stated=None)
PLAIN = ("zero-shot", "majority-vote", "self-consistency", "spuq", "logprob")
ELICITED = ("1s-top-k", "2s-top-k", "ling-1s", "spuq-intra")
LACKING = [
    *((name, drop_original, "unchanged text.*paraphrase-1, dummy-1.*'original'") for name in NAMES),
    *((name, drop_plain, "plain labels") for name in PLAIN),
    *((name, drop_elicited, "with the elicitation '") for name in ELICITED),
    *((name, state_nothing, "with the elicitation '") for name in ELICITED),
    ("logprob", Votes.hard, "log-probabilities.*--answers graded"),
    ("logprob", grade_rewrites_only, "on the unchanged text.*--answers graded"),
    ("self-consistency", keep_one_draw, "several draws of the original.*--draws 5"),
    ("spuq", keep_original, "perturbed inputs.*only original"),
    ("spuq-intra", keep_original, "perturbed inputs.*only original"),
]


@pytest.mark.parametrize(("name", "without", "remedy"), LACKING)
def test_votes_that_lack_what_it_needs_are_refused_with_the_remedy(name: str, without: Without, remedy: str) -> None:
    votes = without(silent_on_the_second())

    with pytest.raises(UndefinedMetric, match=remedy):
        baselines.create(name).scores(votes)
    with pytest.raises(UndefinedMetric, match=remedy):
        baselines.create(name).asks(votes)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "logprob"])
@given(votes=recorded())
def test_baselines_that_are_defined_on_labels_do_not_use_log_probabilities(name: str, votes: Votes) -> None:
    chosen = baselines.create(name)
    try:
        scores, asks = chosen.scores(votes), chosen.asks(votes)
    except UndefinedMetric:
        assume(False)

    np.testing.assert_array_equal(chosen.scores(votes.hard()), scores)
    assert not asks.graded


STATED = ("1s-top-2", "1s-top-3", "2s-top-2", "ling-1s")
PERTURBED = ("original", "paraphrase-1", "paraphrase-2", "dummy", "voice")


def five_draws() -> Votes:
    """One model, 5 draws of the original and 1 of everything else; perturbed inputs also for 1S top-2."""
    annotators = ("gemma", *(f"gemma/{kind}" for kind in STATED))
    codes = np.full((2, len(annotators), len(PERTURBED), 5), -2, dtype=np.int8)
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
        relations=PERTURBED,
        labels=("a", "b"),
        stated=stated,
        grades=grades.astype(np.float32),
    )


CALLS = [
    (baselines.create("zero-shot"), 1),
    (baselines.create("logprob"), 1),
    (SelfConsistency(), 5),
    (StatedBaseline(name="1s-top-2"), 1),
    (baselines.create("2s-top-k"), 2),
    (baselines.create("ling-1s"), 1),
    # original, two paraphrases and their rewriting, dummy
    (Spuq(), 6),
    # intra-sample uses all answers on the original
    (Spuq(aggregation="intra"), 10),
]


@pytest.mark.parametrize(("chosen", "calls"), CALLS)
def test_calls_per_text(chosen: Baseline, calls: int) -> None:
    votes = five_draws()

    assert ready(chosen, votes, frozenset(PERTURBED)).calls.total == calls


def test_only_paraphrases_have_to_be_written() -> None:
    assert Spuq().asks(five_draws()).rewrites == {"paraphrase-1", "paraphrase-2"}
    assert Spuq().asks(five_draws().select(relations=["original", "dummy"])).rewrites == frozenset()


def test_confidence_that_was_stated_about_the_original_only_is_refused() -> None:
    votes = five_draws().select(annotators=["gemma", "gemma/ling-1s"])

    for asked in (votes, replace(votes, stated=None)):
        with pytest.raises(UndefinedMetric, match="elicitation '1s-top-1'"):
            Spuq(aggregation="intra").scores(asked)


def test_numbers_of_guesses_are_not_mixed() -> None:
    with pytest.raises(UndefinedMetric, match="1s-top-2, 1s-top-3: select one"):
        baselines.create("1s-top-k").scores(five_draws())


def test_a_single_label_has_all_the_confidence_whatever_was_stated() -> None:
    votes = five_draws()
    only = replace(votes.hard(), labels=("a",), stated=np.zeros((*votes.codes.shape, 1)))

    assert Spuq(aggregation="intra").scores(only).tolist() == [[1.0], [1.0]]
