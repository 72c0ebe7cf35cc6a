r"""How far labels agree: Cohen's κ for two people or methods, Krippendorff's α for any number, and what follows.

Labels are codes; a negative one means that this person gave this row no label. Where labels have an order, codes follow
it, and a small difference can count less than a large one. Both figures are 1 where all agree on every row, and 0 where
they agree as often as by chance. They are undefined if no row has two labels, or all labels are the same: then None for
one figure, nan among many.

May the model replace a human coder? That is the alternative annotator test (Calderon, Reichart and Dror, 2025): each
coder $j$ is left out in turn, and the model may replace $j$ if it agrees with the others at least as well more often
than $j$ does, less $\varepsilon$. All coders are tested together (Benjamini and Yekutieli, 2001); at least half of them
must be replaceable.

A flip is an answer of a model that a rewrite of the text changes.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple

import numpy as np

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.core.arrays import Codes, Floats, Integers, Mask
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.metrics.significance import p_text

Weighting = Literal["equal", "linear", "quadratic"]
"""How much a disagreement counts: always the same, or by how many labels or their square two labels are apart."""
Scale = Literal["nominal", "ordinal"]  # what labels are: names, or ranks
LEAST_ROWS = 30
LEAST_CODERS = 2
LEVEL, NEVER = 0.05, 1e-5
EPSILON = 0.2  # what the authors recommend against experts; .15 against skilled annotators, .1 against crowd workers


class Agreement(NamedTuple):
    """How far people agree, and on how many rows with two labels or more that is based."""

    value: float | None
    rows: int


def cohens_kappa(first: Codes, second: Codes, weighting: Weighting = "equal") -> Agreement:
    """Return Cohen's κ (1960; weighted, 1968) of two people, on the rows that both have labelled."""
    table = pair_tables(first, second, np.ones((len(first), 1)), _labels(first, second))[0]
    return Agreement(_defined(kappa_on(table, weighting)), int(table.sum()))


def krippendorffs_alpha(codes: Codes, scale: Scale = "nominal") -> Agreement:
    """Return Krippendorff's α (2011) of labels `[person, row]`, on the rows with two labels or more.

    On an ordinal scale, codes are in order.
    """
    rows = int(((codes >= 0).sum(axis=0) > 1).sum())
    pairs = coincidences(codes, np.ones((codes.shape[1], 1)), _labels(codes))[0]
    return Agreement(_defined(alpha_on(pairs, scale)), rows)


def _labels(*codes: Codes) -> int:
    return 1 + max(int(array.max(initial=-1)) for array in codes)


def _defined(figure: Floats) -> float | None:
    return None if np.isnan(figure) else float(figure)


def pair_tables(first: Codes, second: Codes, counts: Floats, labels: int) -> Floats:
    """Return how often each pair of labels occurs, `[resample, first, second]`, on the rows that have both.

    `counts` is how often each resample drew each row, `[row, resample]`.
    """
    both = np.flatnonzero((first >= 0) & (second >= 0))
    cell: Integers = first[both].astype(np.intp) * labels + second[both]
    tables = np.zeros((counts.shape[1], labels * labels))
    if len(both):
        order = np.argsort(cell, kind="stable")
        cells, starts = np.unique(cell[order], return_index=True)
        tables[:, cells] = np.add.reduceat(counts[both[order]], starts, axis=0).T
    return tables.reshape(counts.shape[1], labels, labels)


def kappa_on(tables: Floats, weighting: Weighting = "equal") -> Floats:
    """Return Cohen's κ of tables of pairs, `[…, first, second]`; nan where it is undefined."""
    rank = np.arange(tables.shape[-1])
    apart = np.abs(rank[:, np.newaxis] - rank)
    cost = {"equal": apart > 0, "linear": apart, "quadratic": apart**2}[weighting].astype(np.float64)
    observed = (tables * cost).sum(axis=(-2, -1)) * tables.sum(axis=(-2, -1))
    return _one_less(observed, ((tables.sum(axis=-1) @ cost) * tables.sum(axis=-2)).sum(axis=-1))


def coincidences(codes: Codes, counts: Floats, labels: int) -> Floats:
    """Return Krippendorff's coincidences of labels `[person, row]`, as `[resample, label, label]`.

    Each row counts as many pairs as it has labels. `counts` is how often each resample drew each row.
    """
    patterns, pattern = np.unique(codes, axis=1, return_inverse=True)  # many rows have the same labels
    given: Floats = (patterns[:, :, np.newaxis] == np.arange(labels)).sum(axis=0, dtype=np.float64)
    size = given.sum(axis=1)
    order = np.argsort(pattern.ravel(), kind="stable")
    starts = np.searchsorted(pattern.ravel()[order], np.arange(patterns.shape[1]))
    times = np.add.reduceat(counts[order], starts, axis=0) if len(order) else counts
    share = times[size > 1] / (size[size > 1, np.newaxis] - 1)
    given = given[size > 1]
    pairs = [(given.T * weights) @ given - np.diag(weights @ given) for weights in share.T]
    return np.array(pairs).reshape(counts.shape[1], labels, labels)


def alpha_on(pairs: Floats, scale: Scale = "nominal") -> Floats:
    """Return Krippendorff's α of coincidences, `[…, label, label]`; nan where it is undefined."""
    total = pairs.sum(axis=-1)
    apart: Floats = 1 - np.eye(pairs.shape[-1])
    if scale == "ordinal":
        # the ordinal difference of two labels is that of the middle ranks which they have among all labels given
        middle = np.cumsum(total, axis=-1) - total / 2
        apart = np.asarray((middle[..., :, np.newaxis] - middle[..., np.newaxis, :]) ** 2)
    observed = (pairs * apart).sum(axis=(-2, -1)) * (total.sum(axis=-1) - 1)
    return _one_less(observed, np.einsum("...i,...ij,...j->...", total, apart, total))


def _one_less(observed: Floats, expected: Floats) -> Floats:
    defined = expected > 0
    return np.where(defined, 1 - observed / np.where(defined, expected, 1), np.nan)


class LeftOut(NamedTuple):
    """A coder against whom the model was tested."""

    rows: int  # rows on which this coder and at least one other gave a label
    model: float  # how often the model agrees with the others at least as well as this coder does
    coder: float  # how often this coder agrees with the others at least as well as the model does
    p_value: float  # of the hypothesis that the model is worse than this coder by more than ε
    may_replace: bool  # whether that is rejected, all coders together


class AlternativeAnnotator(NamedTuple):
    """The result of the test."""

    coders: tuple[LeftOut, ...]  # for every coder what was found
    winning_rate: float  # the share of coders that the model may replace
    advantage: float  # how often the model agrees with the others at least as well as the coder left out, on average
    epsilon: float  # the benefit of not having to pay a coder

    @property
    def may_replace(self) -> bool:
        """Whether the model may replace coders."""
        return self.winning_rate >= 0.5

    @property
    def rows_to_pass(self) -> int | None:
        """How many rows each coder must share with another one to pass in four of five cases; None for too many.

        The model is as good as it seems, but for a row more on which it loses. It must win against half of the coders.
        """
        from scipy.special import ndtri

        rows, ours, theirs = np.array([(coder.rows, coder.model, coder.coder) for coder in self.coders]).T
        every, half = len(rows), -(-len(rows) // 2)
        level = LEVEL * half / every / sum(1 / number for number in range(1, every + 1))  # of the last that is needed
        ahead, apart = (rows * (ours - theirs) - 1) / (rows + 1), (rows * (2 - ours - theirs) + 1) / (rows + 1)
        reach = (ndtri(1 - level) + ndtri(0.8)) / np.maximum(ahead + self.epsilon, NEVER)
        needed = np.sort(reach**2 * (apart - ahead**2))[half - 1]
        return max(LEAST_ROWS, int(np.ceil(needed))) if needed < 1 / NEVER else None

    def sentence(self, names: Sequence[str]) -> str:
        """Return the result in words."""
        won = ", ".join(
            f"{name} ({p_text(coder.p_value)}, {coder.rows:,} rows)"
            for name, coder in zip(names, self.coders, strict=True)
            if coder.may_replace
        )
        return (
            f"Alternative annotator test (ε = {self.epsilon:g}): the model may {'' if self.may_replace else 'not '}"
            f"replace a coder. It wins against {won or 'none'} of {len(names)}, winning rate {self.winning_rate:.2f}; "
            f"it agrees with the others at least as well as the coder left out on {100 * self.advantage:.0f} % of rows."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**self._asdict(), "coders": [coder._asdict() for coder in self.coders], "may_replace": self.may_replace}


def alternative_annotator(machine: Codes, coders: Codes, epsilon: float = EPSILON) -> AlternativeAnnotator:
    """Test whether a model may replace human coders, from its labels of rows it did not learn from, and theirs.

    Labels are `[coder, row]`, negative where there is none. ε is the benefit of not having to pay a coder.
    """
    if len(coders) < LEAST_CODERS:
        raise UndefinedMetric(
            f"the alternative annotator test needs {LEAST_CODERS} human coders or more, and there is {len(coders)}: "
            "name the column of each with pcs run --coders"
        )
    return _decided([_compared(machine, coders)], epsilon)[0]


def alternative_in_parts(
    machine: Codes, coders: Codes, parts: Mapping[str, Mask], epsilon: float = EPSILON
) -> dict[str, AlternativeAnnotator | None]:
    """Test the same in parts of the rows, such as groups; None where there are too few rows.

    All coders of all parts are tested together, so that the model does not win somewhere by luck.
    """
    results: dict[str, list[Floats]] = {}
    for name, inside in parts.items():
        with suppress(UndefinedMetric):
            results[name] = _compared(machine[inside], coders[:, inside])
    decided = dict(zip(results, _decided([*results.values()], epsilon), strict=True))
    return {name: decided.get(name) for name in parts}


def _compared(machine: Codes, coders: Codes) -> list[Floats]:
    """Return for every coder on which rows the model and the coder win, `[2, row]`."""
    results = []
    for at, coder in enumerate(coders):
        others = np.delete(coders, at, axis=0)
        judged = (coder >= 0) & (others >= 0).any(axis=0) & (machine >= 0)
        if judged.sum() < LEAST_ROWS:
            raise UndefinedMetric(
                f"the alternative annotator test needs {LEAST_ROWS} rows that coder {at + 1} and another one have "
                f"labelled, and there are {judged.sum()}: let them label more rows"
            )
        ours, theirs = ((others == answers).sum(axis=0)[judged] for answers in (machine, coder))
        results.append(np.array([ours >= theirs, theirs >= ours], dtype=np.float64))
    return results


def _decided(parts: Sequence[Sequence[Floats]], epsilon: float) -> list[AlternativeAnnotator]:
    """Return the tests of several parts, in which all coders are tested together."""
    p_values = np.array([[_p_value(theirs - ours - epsilon) for ours, theirs in part] for part in parts])
    rejected = benjamini_yekutieli(p_values.ravel(), LEVEL).reshape(p_values.shape) if p_values.size else p_values
    decided = []
    for part, values, may in zip(parts, p_values, rejected, strict=True):
        coders = tuple(
            LeftOut(len(ours), float(ours.mean()), float(theirs.mean()), float(p), bool(coder))
            for (ours, theirs), p, coder in zip(part, values, may, strict=True)
        )
        advantage = float(np.mean([coder.model for coder in coders]))
        decided.append(AlternativeAnnotator(coders, float(may.mean()), advantage, epsilon))
    return decided


def rows_for_interval(codes: Codes, width: float) -> int:
    """Return how many rows two people must both label for a 95 % interval of κ or α of ± `width` (Cohen, 1960).

    `codes` are labels `[person, row]` of a pilot. A tenth is added, because others may agree less.
    """
    pairs = coincidences(codes, np.ones((codes.shape[1], 1)), _labels(codes))[0]
    total = pairs.sum() + 2
    same = float(np.trace(pairs) + 1) / total  # a pilot may agree on all rows by luck
    chance = float((pairs.sum(axis=0) ** 2).sum()) / total**2
    return int(np.ceil(1.1 * (1.959964 / width) ** 2 * same * (1 - same) / (1 - chance) ** 2))


def _p_value(values: Floats) -> float:
    """Return how probable a mean this low is if the true mean is 0 or higher (one-sided t-test)."""
    from scipy.stats import ttest_1samp

    if (values == values[0]).all():
        return float(values[0] >= 0)
    return float(ttest_1samp(values, 0.0, alternative="less").pvalue)


def benjamini_yekutieli(p_values: Floats, level: float) -> Mask:
    """Return which hypotheses are rejected, so that few of the rejected ones are true, however they depend."""
    from scipy.stats import false_discovery_control

    return np.asarray(false_discovery_control(p_values, method="by") <= level)


class Flips(NamedTuple):
    """Votes on a rewrite compared with votes on the text itself."""

    pairs: int  # pairs of answers: the same annotator, item and draw gave a label to both texts
    changed: int  # number of pairs that differ


class FlipMatrix(NamedTuple):
    """One annotator's answers under one relation."""

    annotator: str  # name of the annotator
    relation: str  # name of the relation
    counts: Integers  # `[label on the text itself, label on the rewrite]`

    @property
    def flips(self) -> Flips:
        """The number of pairs, and of those that differ."""
        pairs = int(self.counts.sum())
        return Flips(pairs, pairs - int(np.trace(self.counts)))


def flips_by(kind: Literal["annotator", "relation"], votes: Votes) -> dict[str, Flips]:
    """Return how often answers of each annotator, or under each relation, changed; empty without the original."""
    results: dict[str, Flips] = {}
    for flips in flip_matrices(votes):
        name = getattr(flips, kind)
        pairs, changed = results.get(name, Flips(0, 0))
        results[name] = Flips(pairs + flips.flips.pairs, changed + flips.flips.changed)
    return results


def flip_matrices(votes: Votes) -> Iterator[FlipMatrix]:
    """Yield which label became which, for every relation but the original and every annotator."""
    if ORIGINAL not in votes.relations:
        return
    original = votes.codes[:, :, votes.relations.index(ORIGINAL), :].astype(np.intp)
    labels = len(votes.labels)
    for place, relation in enumerate(votes.relations):
        if relation == ORIGINAL:
            continue
        rewritten = votes.codes[:, :, place, :]
        both = (original >= 0) & (rewritten >= 0)
        for position, annotator in enumerate(votes.annotators):
            here = both[:, position]
            pairs = original[:, position][here] * labels + rewritten[:, position][here]
            counts = np.bincount(pairs, minlength=labels * labels).reshape(labels, labels)
            yield FlipMatrix(annotator, relation, counts)
