"""How much each annotator and each relation is worth, learned from gold by an optimiser; the registry of optimisers."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from pcs_annotator.base.errors import GoldError, UnknownNameError, warn_user
from pcs_annotator.base.registry import Registry
from pcs_annotator.base.text import listed
from pcs_annotator.core.arrays import CODE, Codes, Floats
from pcs_annotator.core.gold_codes import UNLABELLED, gold_codes
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.votes import ABSTAINED, MAX_LISTED, NOT_ASKED, Votes, positions_of
from pcs_annotator.core.weights import Diagnostics, Evidence, Flag, Interval, Weights
from pcs_annotator.judging.score import read_grades

MIN_ROWS_TO_CALIBRATE = 10
CONSTANT_SHARE = 0.98
CONSTANT_MIN_VOTES = 20
CONSTANT_SPREAD = 0.1  # of log-odds
ALONE_SHARE = 0.95
MOST_REFITS = 40  # their spread tells the ends of a stability range as well as 100 refits do by being sorted
WEIGHTS = ("annotator_weights", "relation_weights")


class Optimiser(Protocol):
    """Learns weights from votes and gold."""

    @property
    def needs_gold(self) -> bool:
        """Whether it learns from labelled rows only; if so, it gets no others. A plain attribute is enough."""
        ...

    def fit(self, votes: Votes, gold: Codes, seed: int) -> Weights:
        """Return the weights; gold is for every item a position in `votes.labels`, or `UNLABELLED`."""
        ...


optimisers: Registry[Optimiser] = Registry(
    "optimiser",
    "pcs_annotator.optimisers",
    [f"{__package__}.optimisers.{name}" for name in ("auto", "ga", "regression", "simple")],
)
optimiser = optimisers.register  # decorator that registers an optimiser class under a name


def fit_optimiser(chosen: Optimiser, votes: Votes, gold: Codes, seed: int) -> Weights:
    """Return the weights that the optimiser learns, or equal weights and the reason if nothing can be learned."""
    if not chosen.needs_gold:
        return chosen.fit(votes, gold, seed)
    labelled = gold != UNLABELLED
    if not labelled.any():
        raise GoldError(
            "no gold labels: label some rows (30 are a start), or use an optimiser that needs none (uniform, majority)"
        )
    votes, gold = votes.take(labelled), gold[labelled]
    reason = ""
    if len(np.unique(gold)) < 2:
        count = "the only gold row says" if len(gold) == 1 else f"all {len(gold)} gold rows say"
        reason = f"{count} {votes.labels[gold[0]]!r}, so the weights stay equal: label rows of another class too"
    elif votes.silent.all():
        reason = "no model voted on a gold row, so the weights stay equal: check the answers, or label other rows"
    if reason:
        equal = optimisers.create("uniform").fit(votes, gold, seed)
        return replace(equal, diagnostics=Diagnostics(flags=(Flag("uniform fallback", reason),)))
    return chosen.fit(votes, gold, seed)


def any_graded(votes: Votes) -> bool:
    """Return whether any vote is graded."""
    return votes.grades is not None and not bool(np.isnan(votes.grades[..., 0]).all())


def all_graded(votes: Votes) -> bool:
    """Return whether there are votes and all of them are graded."""
    if votes.grades is None:
        return False
    voted, graded = votes.codes >= 0, ~np.isnan(votes.grades[..., 0])
    return bool(voted.any() and not (voted & ~graded).any())


def one_hot(gold: Codes, labels: int) -> Floats:
    """Return 1[gold = label], `[item, label]`."""
    return np.eye(labels)[gold]


def weights_from_evidence(votes: Votes, evidence: Evidence, worth: Floats, diagnostics: Diagnostics) -> Weights:
    """Return weights with this evidence; they summarise the worth of every cell, `[annotator, relation]`."""
    return replace(Weights.normalised(votes, worth.sum(axis=1), worth.sum(axis=0), diagnostics), evidence=evidence)


def fit_weights(
    votes: Votes,
    gold: Iterable[object] | Mapping[str, object],
    optimiser: str | Optimiser = "lr",
    *,
    seed: int = 0,
    resamples: int = 0,
) -> Weights:
    """Learn weights for annotators and relations.

    Args:
        votes: The votes to learn from.
        gold: Label names in the order of `votes.ids`, None where unknown; or item id → label name.
        optimiser: A registry name (`lr`, `auto`, `logit`, …) or your own optimiser.
        seed: Random seed. The order of items, annotators, relations and labels does not matter; if no relation is
            called `original`, the first one stands for it.
        resamples: Bootstrap resamples of the gold rows for the stability range of every weight; 0 for none.

    Returns:
        The weights; `weights.diagnostics` describes the fit.
    """
    return fit_coded(votes, gold_codes(votes, gold), optimiser, seed=seed, resamples=resamples)


def fit_coded(votes: Votes, gold: Codes, optimiser: str | Optimiser, *, seed: int = 0, resamples: int = 0) -> Weights:
    """Return what `fit_weights` returns, from gold labels given as positions in `votes.labels`, or `UNLABELLED`."""
    chosen = optimisers.create(optimiser) if isinstance(optimiser, str) else optimiser
    name = optimiser if isinstance(optimiser, str) else type(optimiser).__name__
    ordered, codes = in_canonical_order(votes, gold)
    weights = fit_optimiser(chosen, ordered, codes, seed)
    learns_labels = chosen.needs_gold and not getattr(chosen, "numeric", False)
    flags = (*weights.diagnostics.flags, *_flags(ordered, codes, weights, learns_labels))
    for flag in flags:
        warn_user(flag.detail)
    by_annotator, by_relation = _stability_ranges(_refitted(chosen, weights), weights, ordered, codes, seed, resamples)
    diagnostics = replace(
        weights.diagnostics,
        optimiser=weights.diagnostics.optimiser or name,
        gold_rows=int((codes != UNLABELLED).sum()),
        flags=flags,
        annotator_intervals=by_annotator,
        relation_intervals=by_relation,
    )
    return replace(weights, diagnostics=diagnostics).reordered(votes.annotators, votes.relations)


def in_canonical_order(votes: Votes, gold: Codes) -> tuple[Votes, Codes]:
    """Return votes and gold with every axis sorted by name, so that random results do not depend on the order.

    Only the relation that stands for a missing original stays the first one, so that it still stands for it.
    """
    rows = np.array(sorted(range(len(votes)), key=votes.ids.__getitem__), dtype=np.intp)
    labels = sorted(votes.labels)
    recode = np.array([*positions_of(votes.labels, labels, "label"), NOT_ASKED, ABSTAINED], dtype=CODE)
    first = votes.original if votes.original != ORIGINAL else None
    relations = sorted(votes.relations, key=lambda name: (name != first, name))
    ordered = votes.select(annotators=sorted(votes.annotators), relations=relations)
    ids = [votes.ids[row] for row in rows]
    columns = positions_of(labels, votes.labels, "label")
    grades = None if ordered.grades is None else ordered.grades[rows][..., columns]
    log_probs = None if ordered.text_log_probs is None else ordered.text_log_probs[rows][:, columns]
    parts: dict[str, Any] = {"text_log_probs": log_probs, "grades": grades, **votes.per_item(rows)}
    codes = recode[ordered.codes[rows]]
    return replace(ordered, codes=codes, ids=ids, labels=labels, stated=None, **parts), recode[gold[rows]]


def _refitted(chosen: Optimiser, weights: Weights) -> Optimiser:
    """Return the optimiser to fit on resamples: the given one, or the one it picked."""
    picked = weights.diagnostics.optimiser
    try:
        return optimisers.create(picked) if picked else chosen
    except UnknownNameError:  # a user's own optimiser may report any name
        return chosen


def _stability_ranges(
    chosen: Optimiser, weights: Weights, votes: Votes, gold: Codes, seed: int, resamples: int
) -> tuple[dict[str, Interval], dict[str, Interval]]:
    """Return where 95 % of fits on resampled rows put every weight, widened to contain the weight itself."""
    if not resamples:
        return {}, {}
    if chosen.needs_gold:
        votes, gold = votes.take(gold != UNLABELLED), gold[gold != UNLABELLED]
        if len(gold) < MIN_ROWS_TO_CALIBRATE or len(np.unique(gold)) < 2:  # resamples of so few rows know no more
            return {}, {}
    rng = np.random.default_rng(seed)
    fits = []
    for _ in range(min(resamples, MOST_REFITS)):
        rows = rng.integers(len(votes), size=len(votes))
        fits.append(fit_optimiser(chosen, votes.resampled(rows), gold[rows], seed))
    annotators, relations = (np.array([getattr(fit, name) for fit in fits]) for name in WEIGHTS)
    return _central(weights.by_annotator, annotators), _central(weights.by_relation, relations)


def _central(weights: Mapping[str, float], refitted: Floats) -> dict[str, Interval]:
    mean, half = refitted.mean(axis=0), 1.96 * refitted.std(axis=0)
    ends = np.clip([mean - half, mean + half], 0, 1).T
    return {
        name: Interval(min(float(low), weight), max(float(high), weight))
        for (name, weight), (low, high) in zip(weights.items(), ends, strict=True)
    }


def _flags(votes: Votes, gold: Codes, weights: Weights, learns_labels: bool) -> Iterator[Flag]:
    """Yield problems with the votes and the weights that a user should know about."""
    yield from _useless_annotators(votes)
    if learns_labels:
        seen = {*gold.tolist()}
        missing = [label for code, label in enumerate(votes.labels) if code not in seen]
        if missing:
            names = listed(map(repr, missing), len(missing), MAX_LISTED)
            yield Flag("label without gold", f"no gold row says {names}, so nothing is learned about it")
    for name, weight in weights.by_annotator.items():
        if weight >= ALONE_SHARE and len(votes.annotators) > 1:
            detail = f"{name} has {100 * weight:.0f} % of the weight and decides alone: the other models change nothing"
            yield Flag("one annotator decides alone", detail)


def _useless_annotators(votes: Votes) -> Iterator[Flag]:
    remedy = "drop it" if len(votes.annotators) > 1 else "use another model"
    for position, name in enumerate(votes.annotators):
        cells = votes.codes[:, position]
        counts = np.bincount(cells[cells >= 0], minlength=len(votes.labels))
        total, top = int(counts.sum()), int(counts.argmax())
        if not total:
            yield Flag("silent annotator", f"{name} never gave a usable label: look at its answers, or {remedy}")
        elif total < CONSTANT_MIN_VOTES or counts[top] < CONSTANT_SHARE * total:
            continue
        elif not _grades_differ(votes, position):
            share = 100 * counts[top] / total
            detail = (
                f"{name} says {votes.labels[top]!r} in {share:.1f} % of {total} votes: it carries nothing, {remedy}"
            )
            yield Flag("constant annotator", detail)


def _grades_differ(votes: Votes, position: int) -> bool:
    """Return whether an annotator's grades tell its votes apart, which they can do even if its label never changes."""
    if votes.grades is None:
        return False
    grades = votes.grades[:, position]
    grades = grades[~np.isnan(grades[..., 0])]
    return bool(len(grades)) and float(read_grades(grades, "log-odds").std(axis=0).max()) > CONSTANT_SPREAD
