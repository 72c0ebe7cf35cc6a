"""Labels against gold and people against each other: confusion matrix, κ, α, precision, recall and F1, with intervals.

Figures are of labels that the row's own gold had no part in. Their 95 % intervals come from resampled rows; those of
precision and recall of a label, which are plain shares, are exact (Clopper–Pearson), and accuracy is never narrower.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from pcs_annotator.base.display import brief
from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.base.plain import from_plain, to_plain
from pcs_annotator.core.arrays import CODE, Codes, Floats, Integers, Mask
from pcs_annotator.core.gold_codes import UNLABELLED, Coders
from pcs_annotator.core.votes import positions_of
from pcs_annotator.judging.evaluate.scored import Measured, measure
from pcs_annotator.judging.metrics import coefficients as agreement
from pcs_annotator.judging.metrics.coefficients import Scale as AlphaScale
from pcs_annotator.judging.metrics.coefficients import Weighting, alpha_on, coincidences, kappa_on, pair_tables
from pcs_annotator.judging.metrics.figures import Estimate, accuracy_of, estimate_of, exact_interval
from pcs_annotator.judging.metrics.significance import WIDENING, least_share

MODEL, MAJORITY = "model", "majority of the coders"
KAPPAS: Mapping[str, Weighting] = {"kappa": "equal", "kappa_linear": "linear", "kappa_quadratic": "quadratic"}
ALPHAS: Mapping[str, AlphaScale] = {"alpha": "nominal", "alpha_ordinal": "ordinal"}


class Resampling(NamedTuple):
    """How intervals are made: resamples, their seed, and how much wider they get, because fits vary as well."""

    resamples: int = 1000
    seed: int = 0
    widening: float = WIDENING


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AgainstGold:
    """Labels against gold."""

    labels: tuple[str, ...]  # the label set; in its order, if it has one
    table: Integers  # rows by label and gold, `[label, gold]`; the last line counts rows that got no label
    # accuracy, on a scale the mean absolute error in steps, kinds of κ and α,
    # precision, recall and F1 as plain means over labels and, with the ending
    # `_weighted`, as means weighted by gold; those that are undefined are absent. A row without a label counts as
    # wrong, except for κ and α, which leave it out
    figures: Mapping[str, Estimate]
    # label → its precision, recall and F1; those that are undefined are absent
    by_label: Mapping[str, Mapping[str, Estimate]]

    __repr__ = brief

    @property
    def n(self) -> int:
        """The number of gold rows."""
        return int(self.table.sum())

    def in_order(self, order: Sequence[str], how: Resampling | None = None) -> AgainstGold:
        """Return the same rows for labels that have an order, from the lowest to the highest, with more figures."""
        codes = np.array([*positions_of(self.labels, order, "label"), UNLABELLED], dtype=CODE)
        assigned, gold = np.repeat(np.argwhere(self.table >= 0), self.table.ravel(), axis=0).T
        return against_gold(codes[assigned], codes[gold], order, how, ordered=True)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "n": self.n,
            "labels": list(self.labels),
            "confusion": self.table[:-1].tolist(),
            "without_label": self.table[-1].tolist(),
            "figures": to_plain(self.figures),
            "by_label": to_plain(self.by_label),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> AgainstGold:
        """Return what `to_dict` wrote."""
        return cls(
            labels=tuple(values["labels"]),
            table=np.array([*values["confusion"], values["without_label"]], dtype=np.intp),
            figures=from_plain(dict[str, Estimate], values["figures"]),
            by_label=from_plain(dict[str, dict[str, Estimate]], values["by_label"]),
        )


class CoderPair(NamedTuple):
    """Two who labelled the same rows: the share of equal labels, and kinds of κ."""

    first: str
    second: str
    figures: Mapping[str, Estimate]


@dataclass(frozen=True, slots=True, kw_only=True)
class AmongCoders:
    """How far several people agree with each other, and the model with each of them."""

    names: tuple[str, ...]  # the people
    rows: int  # how many rows have labels of two people or more
    tied: int  # how many of these have no label that more people gave than any other
    alpha: Mapping[str, Estimate]  # kinds of α among all of them
    # every two people; then, if labels of the model that no gold had a part in are known, the model and each of them,
    # and the model and their majority
    pairs: Sequence[CoderPair]
    # whether the model may replace them; None if that could not be tested
    replacing: agreement.AlternativeAnnotator | None = None
    not_tested: str = ""  # why not


def against_gold(
    assigned: Codes, gold: Codes, labels: Sequence[str], how: Resampling | None = None, *, ordered: bool = False
) -> AgainstGold:
    """Return labels against gold, both as positions in `labels`; negative where a row was given none.

    Of labels that have an order, which is theirs, there are more figures.
    """
    how, size = how or Resampling(), len(labels)
    lines = np.where(assigned < 0, size, assigned)

    def tables(counts: Floats) -> Floats:
        return pair_tables(lines, gold, counts, size + 1)[:, :, :size]

    measured = measure(
        lambda counts: _figures_on(tables(counts), ordered), gold, how.resamples, how.seed, cells=(size + 1) ** 2
    )
    table = tables(np.ones((len(gold), 1)))[0].round().astype(np.intp)
    overall = {
        name: _estimate(name, measured[name], table[:size], len(gold), how) for name in measured if ":" not in name
    }
    overall["accuracy"] = accuracy_of(measured["accuracy"].value, len(gold))
    by_label = {}
    for code, label in enumerate(labels):
        hits, said, true = int(table[code, code]), int(table[code].sum()), int(table[:, code].sum())
        by_label[label] = {
            "precision": Estimate(hits / said, exact_interval(hits, said), said) if said else None,
            "recall": Estimate(hits / true, exact_interval(hits, true), true) if true else None,
            "f1": _estimate("f1", measured[f"f1:{code}"], table, said + true - hits, how),
        }
    return AgainstGold(
        labels=tuple(labels),
        table=table,
        figures=_known(overall),
        by_label={label: _known(figures) for label, figures in by_label.items()},
    )


def among_coders(
    coders: Coders, model: Codes | None, labels: int, how: Resampling | None = None, *, ordered: bool = False
) -> AmongCoders:
    """Return how far people agree, and the model with each of them and with their majority.

    Intervals among people are not widened, because nothing is learned there.
    """
    how = how or Resampling()
    plain = how._replace(widening=1.0)
    several: Mask = (coders.codes >= 0).sum(axis=0) > 1
    codes = coders.codes[:, several]
    table, majority = coincidences(codes, np.ones((codes.shape[1], 1)), labels)[0], coders.majority
    voices = dict(zip(coders.names, coders.codes, strict=True))
    names = coders.names
    pairs = [
        CoderPair(first, other, _pair(voices[first], voices[other], labels, plain, ordered))
        for first, other in combinations(names, 2)
    ]
    if model is not None:
        others = {**voices, **({MAJORITY: majority} if len(names) > 1 else {})}
        pairs += [CoderPair(MODEL, name, _pair(model, theirs, labels, how, ordered)) for name, theirs in others.items()]
    return AmongCoders(
        names=names,
        rows=int(several.sum()),
        tied=int((majority[several] == UNLABELLED).sum()),
        alpha=_of_people(lambda counts: _alphas(coincidences(codes, counts, labels), ordered), codes, table, plain),
        pairs=pairs,
        **_replacing(coders, model),
    )


def _replacing(coders: Coders, model: Codes | None) -> dict[str, Any]:
    """Return whether the model may replace people, or why that cannot be tested."""
    if model is None:
        return {"not_tested": "there is too little gold to learn from"}
    try:
        return {"replacing": agreement.alternative_annotator(model, coders.codes)}
    except UndefinedMetric as error:
        return {"not_tested": str(error)}


def _pair(first: Codes, second: Codes, labels: int, how: Resampling, ordered: bool) -> dict[str, Estimate]:
    both = (first >= 0) & (second >= 0)
    first, second = first[both], second[both]

    def figures(counts: Floats) -> dict[str, Floats]:
        tables = pair_tables(first, second, counts, labels)
        return {"agreement": _diagonal(tables).sum(axis=1) / len(first), **_kappas(tables, ordered)}

    table = pair_tables(first, second, np.ones((len(first), 1)), labels)[0]
    return _of_people(figures, np.stack([first, second]), table, how)


def _of_people(
    figures: Callable[[Floats], dict[str, Floats]], codes: Codes, table: Floats, how: Resampling
) -> dict[str, Estimate]:
    """Return figures with their intervals; none without rows, or if all are alike."""
    patterns = np.unique(codes, axis=1, return_inverse=True)[1].ravel() if codes.size else np.zeros(0)
    if (patterns == patterns[:1]).all():
        return {}
    measured = measure(figures, patterns, how.resamples, how.seed, cells=len(table) ** 2)
    return _known(
        {name: _estimate(name, measure_of, table, codes.shape[1], how) for name, measure_of in measured.items()}
    )


def _figures_on(tables: Floats, ordered: bool) -> dict[str, Floats]:
    """Return figures of tables `[resample, label, gold]`, whose last line is without label; `f1:2` is of label 2."""
    named = tables[:, :-1]
    hits, assigned, true = _diagonal(named), named.sum(axis=2), tables.sum(axis=1)
    seen, rows = assigned + true > 0, true.sum(axis=1)
    rank, named_rows = np.arange(named.shape[-1]), named.sum(axis=(1, 2))
    off = (named * np.abs(rank[:, np.newaxis] - rank)).sum(axis=(1, 2))  # steps, over the rows that have a label
    parts = {"precision": _share(hits, assigned), "recall": _share(hits, true), "f1": _share(2 * hits, assigned + true)}
    f1 = np.where(seen, parts["f1"], np.nan)
    return {
        "accuracy": hits.sum(axis=1) / rows,
        **({"mae": np.where(named_rows > 0, _share(off, named_rows), np.nan)} if ordered else {}),
        **_kappas(named, ordered),
        **_alphas(named + named.transpose(0, 2, 1), ordered),
        **{name: values.sum(axis=1) / seen.sum(axis=1) for name, values in parts.items()},
        **{f"{name}_weighted": (values * true).sum(axis=1) / rows for name, values in parts.items()},
        **{f"f1:{code}": f1[:, code] for code in range(f1.shape[1])},
    }


def _kappas(tables: Floats, ordered: bool) -> dict[str, Floats]:
    return {name: kappa_on(tables, weighting) for name, weighting in KAPPAS.items() if ordered or name == "kappa"}


def _alphas(pairs: Floats, ordered: bool) -> dict[str, Floats]:
    return {name: alpha_on(pairs, scale) for name, scale in ALPHAS.items() if ordered or name == "alpha"}


def _diagonal(tables: Floats) -> Floats:
    return np.diagonal(tables, axis1=1, axis2=2)


def _share(part: Floats, whole: Floats) -> Floats:
    return np.asarray(part / np.where(whole > 0, whole, 1))


def _estimate(name: str, measured: Measured, table: Any, rows: int, how: Resampling) -> Estimate | None:
    """Return a figure with its interval; κ and α may be negative, and are as unsure as the share of equal labels."""
    if not name.startswith(("kappa", "alpha")):
        return estimate_of(*measured, rows, least_share(max(rows, 1)), widening=how.widening)
    total = max(table.sum(), 1)  # rows without a label are left out
    chance = min(float(table.sum(axis=0) @ table.sum(axis=1)) / total**2, 1 - 1e-9)
    rows = min(rows, int(total))
    least = 1 - (1 - least_share(rows)) / (1 - chance)
    return estimate_of(*measured, rows, least, widening=how.widening, lowest=-1.0)


def _known(figures: Mapping[str, Estimate | None]) -> dict[str, Estimate]:
    return {name: estimate for name, estimate in figures.items() if estimate is not None}
