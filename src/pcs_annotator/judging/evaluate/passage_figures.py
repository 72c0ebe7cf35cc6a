"""How many passages of gold texts are found, and how many of those found are right, by fits that did not see them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.core.arrays import CODE, Integers, Mask
from pcs_annotator.core.passages import EVEN
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.heldout import Judged
from pcs_annotator.judging.metrics.figures import auroc, ends_of_runs
from pcs_annotator.judging.promise.certificate import Certificate
from pcs_annotator.judging.promise.per_text import recall_at_least


class GoldPassages(NamedTuple):
    """The gold passages of texts, and which of them candidates mean."""

    counts: Integers  # how many each text has; negative where that is not known
    drawn: Sequence[bool]  # which texts were drawn at random
    meant: Sequence[Sequence[int]]  # candidate → positions among the gold passages of its text


class FoundPassages(NamedTuple):
    """What one way of choosing candidates finds."""

    name: str
    passages: int  # how many it chooses
    right: int
    hits: int  # gold passages that one of them means
    gold: int  # how many there are

    @property
    def precision(self) -> float:
        """The share of those chosen that are right."""
        return self.right / self.passages if self.passages else 0.0

    @property
    def recall(self) -> float:
        """The share of gold passages that are found."""
        return self.hits / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


class PassageFigures(NamedTuple):
    """Figures about the passages of gold texts."""

    texts: int  # texts with gold
    quoted: FoundPassages  # all candidates
    weighed: FoundPassages  # candidates at the cut
    questions: tuple[FoundPassages, ...]  # each single question, best first
    accepted: FoundPassages | None = None  # those accepted; None without a promise
    auroc: float | None = None  # how well confidence tells right candidates from wrong ones
    cut: float = EVEN  # the confidence from which on candidates have the highest F1
    at_least: float | None = None  # so large a share of all passages is accepted, with the promise's certainty


def passage_figures(  # what is known about candidates, one argument each
    votes: Votes,
    judged: Judged,
    eligible: Mask,
    gold: GoldPassages,
    certificate: Certificate | None,
    cut: float | None = None,
) -> PassageFigures:
    """Return figures about candidates in gold texts; `judged` has the position of each one's text as unit.

    Without a `cut`, it is the one that is best for these.
    """
    assert judged.units is not None
    labelled = gold.counts >= 0
    cut = best_cut(judged, eligible, gold) if cut is None else cut

    def figures_of(name: str, chosen: Mask) -> FoundPassages:
        rows, total = np.flatnonzero(chosen), int(gold.counts[labelled].sum())
        per_text = _found_in(judged.units, rows, gold)
        return FoundPassages(name, len(rows), int(judged.right[rows].sum()), int(per_text.sum()), total)

    questions = [
        figures_of(f"{annotator}, {relation}", (votes.codes[:, column, view, 0] == 0))
        for column, annotator in enumerate(votes.annotators)
        for view, relation in enumerate(votes.relations)
    ]
    figures = PassageFigures(
        texts=int(labelled.sum()),
        quoted=figures_of("every candidate", np.ones(len(votes), dtype=np.bool_)),
        weighed=figures_of(f"confidence ≥ {cut:.2f}", (judged.confidence >= cut) & eligible),
        cut=cut,
        questions=tuple(sorted(questions, key=lambda question: -question.f1)),
        auroc=_auroc(judged),
    )
    if certificate is None or not certificate.holds:
        return figures
    accepted = certificate.accepts(judged.confidence, judged.best, votes.labels) & eligible
    sample = np.flatnonzero(labelled & np.array(gold.drawn) & (gold.counts > 0))
    hits = _found_in(judged.units, np.flatnonzero(accepted), gold)[sample]
    at_least = recall_at_least(hits, gold.counts[sample], certificate.promise.delta) if len(sample) else None
    return figures._replace(accepted=figures_of("accepted", accepted), at_least=at_least)


def best_cut(judged: Judged, eligible: Mask, gold: GoldPassages) -> float:
    """Return the confidence from which on candidates have the highest F1.

    Where models find little, candidates of less than even odds are worth having: half of the highest F1 is the best cut
    for confidences that are true.
    """
    order = np.flatnonzero(eligible)[np.argsort(-judged.confidence[eligible], kind="stable")]
    if not len(order) or judged.units is None:
        return EVEN
    seen, hits = set[tuple[int, int]](), []
    for row in order.tolist():
        seen |= {(int(judged.units[row]), position) for position in gold.meant[row]}
        hits.append(len(seen))
    recall = np.array(hits) / max(int(gold.counts[gold.counts >= 0].sum()), 1)
    precision = np.cumsum(judged.right[order]) / np.arange(1, len(order) + 1)
    f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-12)
    ends = ends_of_runs(judged.confidence[order])
    best = int(f1[ends].argmax())
    around = np.append(judged.confidence[order][ends], 0.0)[best : best + 2]
    return float(around.mean())  # halfway to the next one, which is too low


def _found_in(units: Integers | None, rows: Integers, gold: GoldPassages) -> Integers:
    """Return how many gold passages of every text some candidates mean."""
    assert units is not None
    hits = {(int(units[row]), position) for row in rows.tolist() for position in gold.meant[row]}
    return np.bincount([text for text, _ in hits], minlength=len(gold.counts))


def _auroc(judged: Judged) -> float | None:
    try:
        scores = np.stack([judged.confidence, 1 - judged.confidence], axis=1)
        return auroc(scores, np.where(judged.right, 0, 1).astype(CODE))
    except UndefinedMetric:
        return None
