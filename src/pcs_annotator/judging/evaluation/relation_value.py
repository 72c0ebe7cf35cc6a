"""What each relation adds: class AUROC with one more question per text beside the original, and without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.core.arrays import Codes, Floats, Mask
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.evaluation.evaluate import EvaluationOptions, labelled_rows
from pcs_annotator.judging.evaluation.methods import OnCells, calls_of, original_of, plain_votes, ready
from pcs_annotator.judging.metrics.bootstrap import WIDENING, resample_counts
from pcs_annotator.judging.metrics.metrics import auroc_on
from pcs_annotator.judging.metrics.significance import BootstrapTest, bootstrap_test, holm
from pcs_annotator.judging.weighing.crossfit import Splits
from pcs_annotator.judging.weighing.optimiser import any_graded

FOR_HARD_VOTES, FOR_GRADED_VOTES = "naive-bayes", "scaling"
WORTH = 0.01
"""A gain in class AUROC that is surely smaller than this is not worth another question."""
SIGNIFICANT = 0.05
LEAST_COVERED = 10

Advice = Literal["keep", "drop", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationValue:
    """What one relation adds beside the original; gains are differences in class AUROC.

    Attributes:
        relation: Its name.
        covered: Gold rows with an answer under it.
        calls: Calls per gold row that it takes: questions to all models, and the rewrite if a model wrote it.
        gain: What it adds over all gold rows, also those that it does not apply to.
        per_question: What it adds on covered rows, where the question is asked; None if there are too few of them, or
            they have a single class.
        p_holm: p-value of `per_question`, adjusted for the number of relations; None without it.
    """

    relation: str
    covered: int
    calls: float
    gain: BootstrapTest
    per_question: BootstrapTest | None
    p_holm: float | None

    @property
    def advice(self) -> Advice:
        """Drop what surely adds less than a point where it applies; keep what surely adds anything else."""
        if self.per_question is None or self.p_holm is None:
            return "unknown"
        if self.per_question.interval.high < WORTH:
            return "drop"
        return "keep" if self.p_holm < SIGNIFICANT else "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationValues:
    """What all relations add.

    Attributes:
        n: Number of gold rows.
        original: The relation that stands for the unchanged text.
        optimiser: How weights were learned.
        graded: Whether votes have log-probabilities.
        auroc: Class AUROC of the original alone.
        together: What all relations together add to it.
        relations: The largest gain first.
        absent: Relations without an answer on any gold row.
        how: Splits, seeds and resamples.
    """

    n: int
    original: str
    optimiser: str
    graded: bool
    auroc: float
    together: BootstrapTest
    relations: Sequence[RelationValue]
    absent: Sequence[str]
    how: EvaluationOptions


def relation_values(
    votes: Votes, gold: Codes, how: EvaluationOptions | None = None, optimiser: str = ""
) -> RelationValues:
    """Return what each relation adds on gold rows that the fits did not see, all on the same splits and resamples.

    Args:
        votes: Votes on all rows.
        gold: Each item's label as a position in `votes.labels`, or `UNLABELLED`; rows without gold are left out.
        how: Splits, seeds and resamples.
        optimiser: How to learn; by default `naive-bayes` or, if any vote is graded, `scaling`. `auto` would choose anew
            with every relation, and another optimiser would then look like a gain.

    Raises:
        UndefinedMetric: Too few gold rows, a single class, or no relation beside the original.
    """
    how = how or EvaluationOptions()
    votes, gold = labelled_rows(plain_votes(votes), gold, how.folds)
    original = original_of(votes)
    covered = {name: _answered(votes, name) for name in votes.relations if name != original}
    others = [name for name, rows in covered.items() if rows.any()]
    if not others:
        raise UndefinedMetric(
            f"no gold row has an answer beside that to {original!r}: ask with more relations, for example "
            "--relations original,order,wording"
        )
    optimiser = optimiser or (FOR_GRADED_VOTES if any_graded(votes) else FOR_HARD_VOTES)
    alone, together, *added = (
        _ranks(votes.select(relations=[original, *names]), gold, optimiser, how)
        for names in ([], others, *([name] for name in others))
    )
    all_together, *gains = _gains([together, *added], alone, gold, how)
    asked = [
        gain if covered[name].all() else _gain_on(covered[name], ranks, alone, gold, how)
        for name, ranks, gain in zip(others, added, gains, strict=True)
    ]
    p_values = iter(holm([test.p_value for test in asked if test]))
    found = [
        RelationValue(
            relation=name,
            covered=int(covered[name].sum()),
            calls=calls_of(votes.select(relations=[name]), how.rewritten).total,
            gain=gain,
            per_question=test,
            p_holm=next(p_values) if test else None,
        )
        for name, gain, test in zip(others, gains, asked, strict=True)
    ]
    return RelationValues(
        n=len(gold),
        original=original,
        optimiser=optimiser,
        graded=any_graded(votes),
        auroc=float(_aurocs(alone, gold, np.ones((len(gold), 1)))[0]),
        together=all_together,
        relations=sorted(found, key=lambda one: -one.gain.difference),
        absent=[name for name in covered if name not in others],
        how=how,
    )


def _answered(votes: Votes, relation: str) -> Mask:
    return np.asarray((votes.select(relations=[relation]).codes >= 0).any(axis=(1, 2, 3)))


def _ranks(votes: Votes, gold: Codes, optimiser: str, how: EvaluationOptions) -> list[Floats]:
    """Return the ranks of held-out rows, `[row, label]`, one array per split."""
    splits = Splits(folds=how.folds, seed=how.seed, repeats=len(how.seeds))
    entrant = ready(OnCells(name=optimiser, optimiser=optimiser), votes)
    return [split.ranks for split in entrant.cross_fits(gold, splits).splits]


def _gains(
    panels: Sequence[Sequence[Floats]], alone: Sequence[Floats], gold: Codes, how: EvaluationOptions
) -> list[BootstrapTest]:
    """Return by how much each panel, given by its ranks, is better than the original alone."""
    once = np.ones((len(gold), 1))
    found = [
        np.array([_aurocs(ranks, gold, counts) for ranks in (alone, *panels)])
        for counts in chain([once], resample_counts(gold, how.resamples, how.seed))
    ]
    before, *after = np.concatenate(found, axis=1)
    return [bootstrap_test(float((one - before)[0]), (one - before)[1:], len(gold), WIDENING) for one in after]


def _gain_on(
    rows: Mask, ranks: Sequence[Floats], alone: Sequence[Floats], gold: Codes, how: EvaluationOptions
) -> BootstrapTest | None:
    """Return what a relation adds on the rows that it applies to; None if they cannot show it."""
    if rows.sum() < LEAST_COVERED or len(np.unique(gold[rows])) < 2:
        return None
    return _gains([[one[rows] for one in ranks]], [one[rows] for one in alone], gold[rows], how)[0]


def _aurocs(ranks: Sequence[Floats], gold: Codes, counts: Floats) -> Floats:
    """Return the class AUROC on every resample, the mean over splits."""
    return np.asarray(np.mean([auroc_on(one, gold, counts) for one in ranks], axis=0))
