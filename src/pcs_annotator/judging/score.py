"""The Perceived Confidence Score: Eq. 1 and 2 of Salimian et al."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pcs_annotator.base.errors import MismatchError, UnknownNameError
from pcs_annotator.core.arrays import CODE, Codes, Floats, Grades
from pcs_annotator.core.votes import Votes, check_votes, positions_of
from pcs_annotator.core.weights import Evidence, VoteScale, Weights

CHUNK = 1 << 14
CELLS = 1 << 23  # with very many labels, fewer rows are scored at a time, so that memory stays bounded
# Rounding keeps ties exact: sums in different orders differ in their last bits.
DECIMALS = 12
# The least share of a graded vote that a label can have. Without a floor, a single vote of a model that is far too sure
# could outweigh all others. The models of the study never fall below 4e-4. If their log-odds were three times as large,
# 1e-5 would cost nothing; if they were five times as large, it would cost .1 points of AUROC, 1e-4 .3 and 1e-3 .9.
MIN_GRADE = 1e-5


def score(votes: Votes, weights: Weights) -> Floats:
    """Return the score of every label for every item, `[item, label]`; rows sum to 1.

    Eq. 1 averages over the relations of one annotator, Eq. 2 over annotators. Both use present votes only, so the
    scores of an item sum to 1 whatever is missing; an item without a vote that has weight is uniform. Weights of a
    class-aware optimiser include evidence, and then its posterior is the score.
    """
    check_votes(votes)
    aligned = _aligned(weights, votes)
    scores = np.empty((len(votes), len(votes.labels)))
    for rows in row_parts(votes):
        if aligned.evidence is None:
            scores[rows] = _linear(votes.shares(rows), aligned)
        else:
            shares = read_votes(votes, aligned.evidence.reads, rows)
            logits = np.tensordot(shares, aligned.evidence.log_likelihood, axes=3) + aligned.evidence.log_prior
            scores[rows] = softmax(logits)
    scores[votes.silent] = 1 / len(votes.labels)
    return np.round(scores, DECIMALS, out=scores)


def row_parts(votes: Votes) -> Iterator[slice]:
    """Yield the rows of votes, as many at a time as an array `[item, annotator, relation, label]` of them may have."""
    cells = len(votes.annotators) * len(votes.relations) * len(votes.labels)
    size = max(1, min(CHUNK, CELLS // cells))
    return (slice(start, start + size) for start in range(0, len(votes), size))


def choose(scores: Floats, labels: Sequence[str]) -> Codes:
    """Return the position of the best label of every row; ties go to the first name in alphabetical order."""
    order = np.argsort(np.array(labels, dtype=object))
    return order[np.argmax(scores[:, order], axis=1)].astype(CODE)


def read_votes(votes: Votes, reads: VoteScale, rows: slice = slice(None)) -> Floats:
    """Return what an optimiser learns from, `[item, annotator, relation, label]`; a cell without votes is all zeros.

    A cell is the mean of its draws; for mean log-odds, divided by the number of cells that the annotator answered.
    """
    codes = votes.codes[rows]
    shares = votes.shares(rows) if votes.grades is None else _read_graded(codes, votes.grades[rows], reads)
    if reads == "mean log-odds":
        answered = (codes >= 0).any(axis=3).sum(axis=2)
        shares /= np.maximum(answered, 1)[:, :, np.newaxis, np.newaxis]
    return shares


def _read_graded(codes: Codes, grades: Grades, reads: VoteScale) -> Floats:
    """Return what votes say, some of them graded. A hard vote reads the same either way: 1 for its label."""
    shares = (codes[..., np.newaxis] == np.arange(grades.shape[-1], dtype=CODE)).astype(np.float64)
    graded = ~np.isnan(grades[..., 0])
    shares[graded] = read_grades(grades[graded], reads)
    if codes.shape[3] == 1:
        return shares[:, :, :, 0]
    return np.asarray(shares.sum(axis=3) / np.maximum((codes >= 0).sum(axis=3, keepdims=True), 1))


def read_grades(grades: Grades, reads: VoteScale) -> Floats:
    """Return what graded votes say, `[…, label]`: shares, or their logarithms shifted so that they sum to 1 as well.

    Shares are of what went to any label: how much went to none does not matter. A model that would rather have said
    something else may still know which label fits best.
    """
    total = grades.sum(axis=-1, keepdims=True, dtype=np.float64)
    shares = np.asarray(grades / np.where(total > 0, total, 1.0))
    if reads == "shares":
        return shares
    logs = np.log(np.maximum(shares, MIN_GRADE))
    return np.asarray(logs - logs.mean(axis=-1, keepdims=True) + 1 / grades.shape[-1])


def softmax(logits: Floats) -> Floats:
    """Return exp(logits), divided by its sum along the last axis, computed without overflow."""
    raised = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)


def log_softmax(logits: Floats) -> Floats:
    """Return the logarithm of `softmax`; like scipy's, without its overhead, which slows fits of a few rows."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


class _Aligned(NamedTuple):
    """Weights in the order of the votes' axes; they need not sum to 1, because scores divide by what is present."""

    by_annotator: Floats
    by_relation: Floats
    evidence: Evidence | None


def _aligned(weights: Weights, votes: Votes) -> _Aligned:
    try:
        rows = positions_of(votes.annotators, weights.annotators, "model with a weight")
        columns = positions_of(votes.relations, weights.relations, "relation with a weight")
        if (evidence := weights.evidence) is not None:
            order = positions_of(votes.labels, evidence.labels, "label with evidence")
            cells = evidence.log_likelihood[np.ix_(rows, columns, order, order)]
            prior = evidence.log_prior[order]
            evidence = replace(evidence, labels=votes.labels, log_prior=prior, log_likelihood=cells)
    except UnknownNameError as error:
        raise MismatchError(f"{error}; fit again on these votes, or leave that part out") from error
    return _Aligned(weights.annotator_weights[rows], weights.relation_weights[columns], evidence)


def _linear(shares: Floats, weights: _Aligned) -> Floats:
    mass = np.einsum("iark,r->iak", shares, weights.by_relation)
    total = mass.sum(axis=2)
    present = total > 0
    voice = np.where(present, weights.by_annotator, 0.0)
    per_mass = voice / np.where(present, total, 1.0)
    scores = np.einsum("iak,ia->ik", mass, per_mass)
    norm = voice.sum(axis=1, keepdims=True)
    return np.where(norm > 0, scores / np.where(norm > 0, norm, 1.0), 1 / shares.shape[3])
