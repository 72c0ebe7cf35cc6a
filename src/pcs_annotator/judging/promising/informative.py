"""Where a person's time is worth most: which rows to label first, and in which order to review labels."""

from collections.abc import Sequence

import numpy as np

from pcs_annotator.base.errors import GoldError
from pcs_annotator.core.arrays import CODE, Codes, Floats, Integers
from pcs_annotator.core.gold import UNLABELLED
from pcs_annotator.core.ngrams import count_ngrams, rarity_of, weigh
from pcs_annotator.core.task import MANY_LABELS
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Weights
from pcs_annotator.judging.weighing.optimisers.confusion import DawidSkene
from pcs_annotator.judging.weighing.scoring import choose, score

# More rows than this only cost time: they change neither the confusion tables nor the choice.
CANDIDATES = 10_000
COMPARED = 1_000
CHARACTERS_READ = 1_000
PRIOR_INFORMATION = 0.1


def rows_to_label(votes: Votes, k: int, *, gold: Codes | None = None, seed: int = 0) -> Integers:
    """Return the positions of the k rows that a person should label first, best first; fewer when fewer have no gold.

    The rows are an experimental design for the weights. Labels (predicted by Dawid–Skene, without gold) take turns, so
    that every class is covered; within a label the next row is the one whose pattern of agreement adds most information
    about annotators and relations to the rows before it, gold rows first (D-optimal design). A row's uncertainty does
    not count: on real answers, preferring uncertain rows led to worse weights. Nor do grades: a model that gives little
    of its probability to labels would hardly count, and weights were worse than from random rows. Rows without a vote
    come last.

    These rows teach weights better than random ones, but they are not a random sample: no error rate may be promised
    from them. The seed breaks ties between equally good rows.
    """
    if k < 0:
        raise GoldError(f"cannot choose {k} rows to label: ask for at least one")
    known = np.zeros(len(votes), dtype=np.bool_) if gold is None else gold != UNLABELLED
    unknown = np.random.default_rng(seed).permutation(np.flatnonzero(~known))
    unknown = unknown[np.argsort(votes.silent[unknown], kind="stable")][: max(CANDIDATES, k)]
    speaking, silent = unknown[~votes.silent[unknown]], unknown[votes.silent[unknown]]
    if not len(speaking) or len(votes.labels) > MANY_LABELS:  # very many labels cannot take turns
        return np.concatenate([speaking, silent])[:k]
    labelled = np.flatnonzero(known)
    rows = np.concatenate([labelled, speaking])
    some = votes.take(rows).hard()
    classes = choose(score(some, _dawid_skene(some)), votes.labels)
    if gold is not None:
        classes[: len(labelled)] = gold[labelled]
    shares = some.shares()
    centred = shares - shares.sum(axis=3, keepdims=True) / len(votes.labels)  # 0 is chance level
    # of the annotator and relation weights, `[item, label, weight]`
    design = np.concatenate([centred.mean(axis=2), centred.mean(axis=1)], axis=1).transpose(0, 2, 1)
    order = _greedy(design, classes, start=len(labelled), k=k)
    return np.concatenate([rows[order], silent])[:k]


def review_order(votes: Votes, confidence: Floats | None = None) -> Integers:
    """Return the order in which a person should review the rows: those without a vote, then the least certain first.

    Without a calibrated confidence, rows are ordered by the Dawid–Skene posterior of the label, and ties by the label's
    PCS with equal weights.
    """
    if confidence is None:
        votes = votes.hard()
        many = len(votes.labels) > MANY_LABELS  # a table of errors would have each label twice
        posterior = score(votes, Weights.uniform(votes) if many else _dawid_skene(votes))
        best = choose(posterior, votes.labels)
        agreement = score(votes, Weights.uniform(votes))[np.arange(len(votes)), best]
        return np.lexsort((agreement, posterior.max(axis=1), ~votes.silent))
    return np.lexsort((confidence, ~votes.silent))


def unlike_gold_first(order: Integers, certainty: Floats, texts: Sequence[str], gold: Sequence[str]) -> Integers:
    """Return rows, least certain first, in an order in which the first are also unlike all texts with gold.

    `texts` are those of the first rows. From 100 gold rows to 200, this gained 1.2 points over the least certain first
    with 21 labels, and nothing with two.
    """
    if not gold:
        return order
    counts = count_ngrams([text[:CHARACTERS_READ] for text in (*gold[-COMPARED:], *texts)])
    vectors = weigh(counts, rarity_of(counts))
    known = min(len(gold), COMPARED)
    alike = (vectors[known:] @ vectors[:known].T).max(axis=1).toarray().ravel()
    first, rest = order[: len(texts)], order[len(texts) :]
    worth = (1 - np.maximum(certainty[first], 0.0)) * (1 - alike)
    return np.concatenate([first[np.argsort(-worth, kind="stable")], rest])


def _dawid_skene(votes: Votes) -> Weights:
    some = votes.take(slice(None, None, max(1, len(votes) // CANDIDATES)))
    return DawidSkene().fit(some, np.full(len(some), UNLABELLED, dtype=CODE), seed=0)


def _greedy(design: Floats, classes: Codes, start: int, k: int) -> Integers:
    """Return up to k rows at `start` or later, each the one that adds most information to those before."""
    labels, size = design.shape[1:]
    information = PRIOR_INFORMATION * np.eye(size) + np.einsum("ikf,ikg->fg", design[:start], design[:start])
    left = [start + np.flatnonzero(classes[start:] == label) for label in range(labels)]
    count = np.bincount(classes[:start], minlength=labels).astype(np.float64)
    chosen: list[int] = []
    while len(chosen) < k and any(len(rows) for rows in left):
        label = min((one for one in range(labels) if len(left[one])), key=count.__getitem__)
        there = design[left[label]]
        gain = np.einsum("ikf,ikf->i", there @ np.linalg.inv(information), there)
        place = int(gain.argmax())
        row = int(left[label][place])
        left[label] = np.delete(left[label], place)
        information += design[row].T @ design[row]
        count[label] += 1
        chosen.append(row)
    return np.array(chosen, dtype=np.intp)
