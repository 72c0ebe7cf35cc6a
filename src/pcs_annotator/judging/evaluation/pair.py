"""Two ways of labelling the same rows: which is right more often, and can these rows tell?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pcs_annotator.base.errors import MismatchError
from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.evaluation.evaluate import EvaluationOptions, labelled_rows, method_figures
from pcs_annotator.judging.evaluation.methods import MAJORITY, Entrant, Fits, OnCells, original_of, ready
from pcs_annotator.judging.metrics.metrics import Estimate
from pcs_annotator.judging.metrics.significance import BootstrapTest, PairedTest, mcnemar
from pcs_annotator.judging.weighing.scoring import choose


class Contender(NamedTuple):
    """Votes, and how labels are learned from them: the names of an optimiser and of a calibration."""

    votes: Votes
    optimiser: str
    calibration: str = "softmax"


class RightRows(NamedTuple):
    """How many gold rows both, only one, or neither of two contenders has right.

    Where splits differ, the label is that of their mean.
    """

    both: int
    only_first: int
    only_second: int
    neither: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PairFigures:
    """Two contenders side by side, on gold rows that their fits did not see; differences are second minus first.

    Attributes:
        n: Number of gold rows.
        how: Splits, seeds and resamples, the same for both.
        figures: The figures of both by name, see `methods.FIGURES`; those that are undefined are absent.
        accuracy: The difference in accuracy, by a paired bootstrap over all splits.
        auroc: The same for the class AUROC.
        delong: DeLong's test of the class AUROC on the first split; None where a class has a single row.
        right: Who is right how often.
        mcnemar: p-value of McNemar's exact test on these.
    """

    n: int
    how: EvaluationOptions
    figures: tuple[Mapping[str, Estimate], Mapping[str, Estimate]]
    accuracy: BootstrapTest
    auroc: BootstrapTest
    delong: PairedTest | None
    right: RightRows
    mcnemar: float


def compare_pair(contenders: Sequence[Contender], gold: Codes, how: EvaluationOptions | None = None) -> PairFigures:
    """Return the figures of two contenders on the same gold rows and the same splits, with paired tests.

    Args:
        contenders: Two of them; their votes have the same items and labels, in the same order.
        gold: Each item's label as a position in the labels, or `UNLABELLED`.
        how: Splits, seeds and resamples; its calibration is not used.

    Raises:
        UndefinedMetric: Too few gold rows, or a single class.
    """
    how = how or EvaluationOptions()
    if len({(tuple(one.votes.ids), tuple(one.votes.labels)) for one in contenders}) > 1:
        raise MismatchError("the votes have other items or labels: give both the same ones, in the same order")
    rows = [labelled_rows(one.votes, gold, how.folds) for one in contenders]
    truth = rows[0][1]
    entrants = [_entrant(one, votes) for one, (votes, _) in zip(contenders, rows, strict=True)]
    fits = [
        # both label a run, so their labels are the most probable ones even if their weights are not learned
        Fits([entrant.cross_fit(truth, how.folds, seed, one.calibration) for seed in how.seeds], learns=True)
        for one, entrant in zip(contenders, entrants, strict=True)
    ]
    second, first = method_figures(entrants[::-1], fits[::-1], truth, how)
    against = first.against
    assert against is not None, "the first of the list is tested against the other"
    right = _right(fits, truth, contenders[0].votes.labels)
    return PairFigures(
        n=len(truth),
        how=how,
        figures=(first.figures, second.figures),
        accuracy=against.accuracy,
        auroc=against.auroc,
        delong=against.delong,
        right=right,
        mcnemar=mcnemar(right.only_first, right.only_second),
    )


def _entrant(one: Contender, votes: Votes) -> Entrant:
    relations = [original_of(votes)] if one.optimiser == MAJORITY else None
    return ready(OnCells(name=one.optimiser, optimiser=one.optimiser, relations=relations), votes)


def _right(fits: Sequence[Fits], gold: Codes, labels: Sequence[str]) -> RightRows:
    means = (np.mean([split.probabilities for split in one.splits], axis=0) for one in fits)
    first, second = (choose(values, labels) == gold for values in means)
    parts = (first & second, first & ~second, ~first & second, ~first & ~second)
    return RightRows(*(int(part.sum()) for part in parts))
