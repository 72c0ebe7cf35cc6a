"""Hypothesis strategies for votes, and helpers that several judging tests share."""

import warnings
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pcs_annotator import Optimiser, PcsWarning, Votes, Weights, fit_weights
from pcs_annotator.core.arrays import Codes, Floats, Integers
from pcs_annotator.core.gold_codes import gold_codes
from pcs_annotator.core.votes import NOT_ASKED
from pcs_annotator.core.weights import to_simplex
from pcs_annotator.judging.fit_weights import optimisers
from pcs_annotator.judging.optimisers.ga import GeneticAlgorithm
from tests.builders import the
from tests.judging.evaluate.graded import graded_votes

LABELS = ("alpha", "beta", "gamma", "delta")
LEARNERS = ("auto", "ga", "lr")
BUILT_IN = (*LEARNERS, "majority", "uniform")


class Labelled(NamedTuple):
    votes: Votes
    gold: list[str | None]


@st.composite
def any_votes(draw: st.DrawFn, *, max_items: int = 8, max_draws: int = 3) -> Votes:
    """Votes of any shape with any pattern of silence."""
    items, annotators, relations = (draw(st.integers(1, top)) for top in (max_items, 4, 4))
    labels = draw(st.integers(2, 4))
    shape = (items, annotators, relations, draw(st.integers(1, max_draws)))
    return Votes(
        codes=draw(arrays(np.int8, shape, elements=st.integers(-2, labels - 1))),
        ids=[f"i{row}" for row in range(items)],
        annotators=[f"a{row}" for row in range(annotators)],
        relations=["original", *(f"r{row}" for row in range(1, relations))],
        labels=LABELS[:labels],
    )


@st.composite
def labelled_votes(draw: st.DrawFn, *, max_items: int = 12) -> Labelled:
    """Votes of any shape, some of whose items have gold; at least one."""
    votes = draw(any_votes(max_items=max_items, max_draws=2))
    known: st.SearchStrategy[str | None] = st.sampled_from([*votes.labels, None])
    gold = draw(st.lists(known, min_size=len(votes), max_size=len(votes)))
    return Labelled(votes, [draw(st.sampled_from(votes.labels)), *gold[1:]])


def asked_in(votes: Votes) -> Integers:
    """How many questions were asked about every item."""
    return np.asarray((votes.codes != NOT_ASKED).sum(axis=(1, 2, 3)))


def any_simplex(size: int) -> st.SearchStrategy[Floats]:
    """Weights that sum to 1, some of them zero."""
    parts = st.one_of(st.just(0.0), st.floats(1e-6, 1.0))
    return arrays(np.float64, size, elements=parts).map(to_simplex)


@st.composite
def weights_for(draw: st.DrawFn, votes: Votes) -> Weights:
    """Any weights for the axes of some votes."""
    return Weights.normalised(votes, draw(any_simplex(len(votes.annotators))), draw(any_simplex(len(votes.relations))))


def silenced(votes: Votes, share: float, seed: int = 0) -> Votes:
    """Votes with a random share replaced by silence."""
    gone = np.random.default_rng(seed).random(votes.codes.shape) < share
    return replace(votes, codes=np.where(gone, -1, votes.codes).astype(np.int8))


def opposite_favourites(items: int = 150) -> tuple[Votes, Codes]:
    """Graded votes of two models, one with a bias for the first label and one for the others; and the gold codes."""
    first, gold = graded_votes([2.0], items=items, bias=3.0, relations=1)
    second, _ = graded_votes([2.0], items=items, bias=-3.0, relations=1)
    return replace(
        first,
        annotators=["first", "second"],
        codes=np.concatenate([first.codes, second.codes], axis=1),
        grades=np.concatenate([the(first.grades), the(second.grades)], axis=1),
    ), gold


def only_first(votes: Votes) -> Votes:
    """Votes without those of all annotators but the first."""
    return votes.only((np.arange(len(votes.annotators)) == 0)[:, np.newaxis, np.newaxis])


def coded(votes: Votes, gold: list[str]) -> Codes:
    """Gold as codes."""
    return gold_codes(votes, gold)


def quick(name: str) -> Optimiser:
    """The optimiser of that name; genetic algorithms with a smaller search."""
    chosen = optimisers.create(name)
    return replace(chosen, population=12, generations=5) if isinstance(chosen, GeneticAlgorithm) else chosen


def quiet_fit(votes: Votes, gold: list[str | None], chosen: str | Optimiser, seed: int = 0) -> Weights:
    """Fit without warnings about flags."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PcsWarning)
        return fit_weights(votes, gold, chosen, seed=seed)
