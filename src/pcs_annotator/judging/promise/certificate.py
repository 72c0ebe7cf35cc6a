"""The certificate: a promise about accepted labels, what it is based on, and an audit of it."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

from pcs_annotator.base.text import counted
from pcs_annotator.core.arrays import Codes, Floats, Integers, Mask
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Interval
from pcs_annotator.judging.fit_weights import in_canonical_order
from pcs_annotator.judging.heldout import Judged
from pcs_annotator.judging.metrics.special import betaln, xlog1py, xlogy
from pcs_annotator.judging.promise.per_text import passage_threshold
from pcs_annotator.judging.promise.promise import Promise
from pcs_annotator.judging.promise.thresholds import (
    EVERY_LABEL,
    RowsNeeded,
    accepted,
    find_thresholds,
    rows_in,
    rows_needed,
)

HALVINGS = 50
ERRORS, HALVINGS_OF_BOUND = 80, 20
Finding = Literal["confirmed", "revoked", "open"]


class Audit(NamedTuple):
    """The result of a person checking accepted rows drawn at random."""

    rows: int  # number of rows checked
    wrong: int  # number of wrong labels
    limit: float  # the highest error rate among accepted rows that keeps the promise
    error: Interval  # interval of the error rate
    finding: Finding  # `revoked` when the interval is above the limit, `confirmed` when it is below; else `open`
    level: float  # how often such an interval contains the error rate, however often it is looked at meanwhile


def audit(promise: Promise, rows: int, wrong: int) -> Audit:
    """Return what `wrong` errors among `rows` accepted rows mean for the promise."""
    limit = promise.max_error
    error = confidence_sequence(wrong, rows, promise.certainty)
    finding: Finding = "revoked" if error.low > limit else "confirmed" if error.high <= limit else "open"
    return Audit(rows, wrong, limit, error, finding, promise.certainty)


def audit_in_order(promise: Promise, wrong: Mask) -> Audit:
    r"""Return what errors mean for the promise, given row by row as they were checked; it may be asked after each.

    The likelihood of the rows at twice the promised error rate, over that at the promised one, ever reaches the bound
    with a probability of at most $\delta$ if the promise is kept. That finds an error rate of twice the promise earlier
    than the interval does, which looks for all rates.
    """
    outcome = audit(promise, len(wrong), int(wrong.sum()))
    limit = outcome.limit
    twice = min(2 * limit, (1 + limit) / 2)
    steps = np.where(wrong, np.log(twice / limit), np.log1p(-twice) - np.log1p(-limit))
    bound = ratio_bound(limit, twice, promise.delta)
    finding: Finding = "confirmed" if outcome.finding == "confirmed" else "open"
    return outcome._replace(finding="revoked" if steps.cumsum().max() >= bound else finding)


def confidence_sequence(wrong: int, rows: int, level: float) -> Interval:
    r"""Return the interval of an error rate that holds at every look at a growing sample together.

    The likelihood of the rows under a mixture of error rates, Beta(½, ½), over that under the true rate is a
    martingale: it ever reaches $1/\delta$ with a probability of at most $\delta$ (Ville).
    """
    least = betaln(wrong + 0.5, rows - wrong + 0.5) - betaln(0.5, 0.5) + np.log1p(-level)

    def inside(rate: float) -> bool:
        return bool(xlogy(wrong, rate) + xlog1py(rows - wrong, -rate) >= least)

    observed = wrong / rows
    return Interval(_edge(inside, observed, 0.0), _edge(inside, observed, 1.0))


def _edge(inside: Callable[[float], bool], within: float, beyond: float) -> float:
    """Return the end of an interval on the way from a point within it, by bisection; it is rounded outwards."""
    if inside(beyond):
        return beyond
    for _ in range(HALVINGS):
        middle = (within + beyond) / 2
        within, beyond = (middle, beyond) if inside(middle) else (within, middle)
    return beyond


@lru_cache
def ratio_bound(low: float, high: float, level: float) -> float:
    r"""Return what the log-likelihood ratio of two error rates ever reaches with this probability at the lower rate.

    $-\log$ of the level always holds (Ville), but is passed by up to the size of a step. Here the probability is exact,
    but for sequences that first reach the bound after eighty errors.
    """
    too_low, enough = 0.0, -np.log(level)
    for _ in range(HALVINGS_OF_BOUND):
        middle = (too_low + enough) / 2
        above = _ever_reaches(middle, low, high) > level
        too_low, enough = (middle, enough) if above else (too_low, middle)
    return float(enough)


def _ever_reaches(bound: float, low: float, high: float) -> float:
    up, down = np.log(high / low), np.log1p(-low) - np.log1p(-high)
    right = np.arange(ERRORS * up / down)  # how many labels are right before an error
    all_right = (1 - low) ** right
    ways = np.where(right == 0, 1.0, 0.0)  # in which the bound was not reached, times the probability of their errors
    reached = 0.0
    for errors in range(1, ERRORS + 1):
        ways = low * ways.cumsum()
        above = int(max((errors * up - bound) / down + 1, 0))
        reached += float(ways[:above] @ all_right[:above])
        ways[:above] = 0.0
    return reached


DIGITS = 16


class Fingerprint(NamedTuple):
    """Digests of the votes and gold that something was learned from; the order of rows and columns does not matter."""

    votes: str
    gold: str
    version: str

    def changed_since(self, earlier: "Fingerprint") -> list[str]:
        """Return the names of the parts that changed."""
        return [name for name, now, then in zip(self._fields, self, earlier, strict=True) if now != then]


def fingerprint(votes: Votes, gold: Codes, version: str) -> Fingerprint:
    """Return the fingerprint of votes and their gold codes."""
    ordered, codes = in_canonical_order(votes, gold)
    axes = [ordered.ids, ordered.annotators, ordered.relations, ordered.labels, ordered.codes.shape]
    named = json.dumps(axes, ensure_ascii=True).encode()
    smallest = np.min_scalar_type(-len(ordered.labels))  # fingerprints of few labels are as old as int8 codes
    content = ordered.codes.astype(smallest).tobytes()
    if ordered.grades is not None and not np.isnan(ordered.grades).all():
        content += np.nan_to_num(ordered.grades, nan=-1.0).tobytes()  # there are several bit patterns for nan
    return Fingerprint(_digest(named + content), _digest(named + codes.astype(smallest).tobytes()), version)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:DIGITS]


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """The promise about accepted labels, or why there is none."""

    promise: Promise  # what was asked for
    gold_rows: int  # gold rows behind it
    thresholds: Mapping[str, float]  # the minimum confidence to accept a label; empty when nothing is promised
    why_not: str = ""  # why nothing is promised; empty when something is
    rows_needed: RowsNeeded | None = None  # gold rows that it would probably need, in all; None if it holds, or unknown
    level: float = 0.0  # how much of δ the test of this fit may use; 0 when there was none
    # how much of that is used up. A sequence of thresholds that passed to its end uses nothing, because no threshold
    # was left that it could have accepted wrongly; one that failed anywhere has used its whole level
    used: float = 0.0
    spent: float = 0.0  # how much of δ earlier looks have used
    tried: float = 0.0  # how much error earlier fits allowed on average, and accepted nothing
    split: str = ""  # how gold was split, in a sentence
    accepted_share: float = 0.0  # share of the rows at hand that are accepted
    review_rows: int = 0  # number of the rows at hand that a person must review
    fingerprint: Fingerprint | None = None  # the votes, gold and code version it is based on
    audit: Audit | None = None  # the result of a person's check of accepted rows; None before that
    assumed_rows: int = 0  # gold rows that came with the data, so that they are only assumed to be a random sample
    undecided_rows: int = 0  # gold rows without a decision, because people differ: every label of them counts as wrong
    upper: tuple[Mapping[str, float], ...] = ()  # thresholds of the levels above the labels of a tree, lowest first
    groups: Mapping[str, int] = field(default_factory=dict)  # gold rows of each group that it is made for, if any
    withdrawn: tuple[str, ...] = ()  # groups in which people found more errors among accepted texts than promised

    @property
    def found(self) -> bool:
        """Whether there are thresholds, at some level."""
        return bool(self.thresholds) or any(self.upper)

    @property
    def revoked(self) -> bool:
        """Whether an audit found it broken."""
        return self.audit is not None and self.audit.finding == "revoked"

    @property
    def holds(self) -> bool:
        """Whether labels may be accepted because of it."""
        return self.found and not self.revoked

    def accepts(self, confidence: Floats, best: Codes | Integers, labels: Sequence[str], above: int = 0) -> Mask:
        """Return which rows are accepted, or would be so many levels above their label.

        If the promise is made for groups, `best` and `labels` are these: see `coded_groups`.
        """
        if not self.holds:
            return np.zeros(len(best), dtype=np.bool_)
        kept = {name: least for name, least in self.thresholds.items() if name not in self.withdrawn}
        return accepted(confidence, best, labels, (kept, *self.upper)[above])

    def why_review(self, group: str) -> str:
        """Return that nothing is promised for a group of texts; empty if something is, or if that is so for all."""
        if self.holds and group in self.withdrawn:
            return f"the promise for {group} is withdrawn, because people found too many errors among accepted texts"
        if not self.holds or not self.promise.by or group in self.thresholds:
            return ""
        return f"no promise for {group} ({counted(self.groups.get(group, 0), 'gold row')})"

    def with_coverage(self, accepted_rows: Mask) -> "Certificate":
        """Return the certificate with its effect on the rows at hand."""
        share = float(accepted_rows.mean()) if len(accepted_rows) else 0.0
        return replace(self, accepted_share=share, review_rows=int((~accepted_rows).sum()))

    def as_json(self) -> dict[str, Any]:
        """Return what commands print with `--json`."""
        promise, divided = self.promise, self.promise.divided
        names = ("accepted_share", "review_rows", "why_not", "level", "used", "spent", "split")
        return {
            "promise": promise.kind,
            "alpha": promise.max_error,
            "delta": promise.delta,
            "certainty": promise.certainty,
            "per_label": promise.per_label,
            "n_gold": self.gold_rows,
            "n_assumed": self.assumed_rows,
            "n_undecided": self.undecided_rows,
            "threshold": None if divided else self.thresholds.get(EVERY_LABEL),
            "thresholds": dict(self.thresholds) if divided else None,
            **{name: getattr(self, name) for name in names},
            "rows_needed": self.rows_needed and list(self.rows_needed),
            "fingerprint": self.fingerprint and self.fingerprint._asdict(),
            "audit": self.audit and self.audit._asdict(),
            **({"tried": self.tried} if self.tried else {}),
            **({"upper": [dict(level) for level in self.upper]} if self.upper else {}),
            **({"by": promise.by, "groups": dict(self.groups)} if promise.by else {}),
        }


Level = tuple[Judged, Sequence[str]]  # gold rows as judged at a level of a tree, and the paths there


def certify(  # noqa: PLR0913  # what is known about the rows, one argument each
    judged: Judged,
    labels: Sequence[str],
    promise: Promise,
    spent: float = 0.0,
    seed: int = 0,
    upper: Sequence[Level] = (),
    *,
    table: Judged | None = None,
) -> Certificate:
    """Return the certificate that gold rows judged by models that did not see them support, or why they support none.

    `spent` is how much of δ earlier looks have used. `upper` are the levels above the labels of a tree, the lowest
    first: each has an equal part of δ, and is tested on the rows that no level below accepts. For groups of texts,
    `labels` are their names, and `judged` has them in the place of labels. `table` is that of `find_thresholds`.
    """
    rows = len(judged.right) if judged.units is None else len(np.unique(judged.units))
    given = promise.level(rows, spent)
    groups = dict(zip(labels, rows_in(judged, labels), strict=True)) if promise.by else {}
    tested = promise.tested and promise.division(groups.values() or [rows], given)[1] > 0
    level = given if tested else 0.0
    thresholds, left, failed = list[Mapping[str, float]](), np.ones(len(judged.right), dtype=np.bool_), 0.0
    for judged_part, names in ((judged, labels), *upper):
        thresholds.append(_thresholds(judged_part.take(left), names, promise, given / (1 + len(upper)), table))
        accepts = accepted(judged_part.confidence, judged_part.best, names, thresholds[-1])
        failed += _failed(judged_part.take(left), ~accepts[left], names, promise, given) / (1 + len(upper))
        left = left & ~accepts
    bare = Certificate(promise=promise, gold_rows=rows, thresholds=thresholds[0], groups=groups)
    bare = replace(bare, level=level, used=level * failed, spent=spent)
    if any(thresholds):
        return replace(bare, upper=tuple(thresholds[1:]))
    if judged.units is not None:
        return replace(bare, why_not=_shortfall(rows, promise, spent).replace("gold row", "gold text"))
    needed = rows_needed(judged, labels, promise, spent + bare.used, seed)
    short = _shortfall_of_groups(groups, promise, given) if groups else _shortfall(rows, promise, spent)
    return replace(bare, why_not=f"{short}; {_remedy(needed)}", rows_needed=needed)


def _thresholds(
    judged: Judged, names: Sequence[str], promise: Promise, level: float, table: Judged | None
) -> Mapping[str, float]:
    """Return the loosest thresholds that keep the promise, of passages one that counts texts."""
    if judged.units is None or table is None or table.units is None:
        return find_thresholds(judged, names, promise, level, table)
    about = judged, judged.units, promise.max_error, level, table.confidence, table.units
    least = passage_threshold(*about)
    return {} if least is None else {EVERY_LABEL: least}


def _failed(judged: Judged, left: Mask, names: Sequence[str], promise: Promise, level: float) -> float:
    """Return the share of a level that went to tests that failed somewhere: those of parts with rows `left` over."""
    if not promise.divided:
        return float(left.any())
    rows, over = np.array(rows_in(judged, names)), np.array(rows_in(judged.take(left), names)) > 0
    if not promise.by:
        return float(over.mean())
    parts, _ = promise.division(rows.tolist(), level)
    return float((over & (rows >= promise.rows_at(level / parts))).sum()) / parts


def no_promise(promise: Promise, rows: int, why: str) -> Certificate:
    """Return a certificate that promises nothing and says why."""
    return Certificate(promise=promise, gold_rows=rows, thresholds={}, why_not=why)


def in_force(certificate: Certificate, now: Fingerprint) -> Certificate:
    """Return the certificate, or one that promises nothing when its votes, gold or code version have changed."""
    then = certificate.fingerprint
    changed = [] if then is None else now.changed_since(then)
    if not changed:
        return certificate
    why = f"{' and '.join(changed)} changed since this promise was made: pcs fit makes it again, at no cost"
    return replace(no_promise(certificate.promise, certificate.gold_rows, why), fingerprint=then)


def _shortfall(rows: int, promise: Promise, spent: float) -> str:
    least = promise.least_rows(spent)
    if rows >= least:
        return f"on {rows:,} gold rows not even the surest labels prove right often enough"
    are = counted(rows, "gold row is", "gold rows are")
    return f"{are} too few: even without an error it takes {least:,} of them"


def _shortfall_of_groups(groups: Mapping[str, int], promise: Promise, level: float) -> str:
    largest, by = max(groups, key=lambda name: groups[name]), promise.by
    if not promise.tested or promise.division(groups.values(), level)[1]:
        return f"in no group by {by} do even the surest labels prove right often enough"
    rows, least = groups[largest], promise.rows_at(level)
    return f"no group by {by} has enough gold rows: {largest} has most, {rows:,}, and it takes at least {least:,}"


def _remedy(needed: RowsNeeded | None) -> str:
    """Return how many gold rows it takes, from even odds to four to one, or nothing about that."""
    if needed is None:
        return "label more random rows, or use better models"
    return f"with {needed.even_odds:,} gold rows in all the chance is about 50 %, with {needed.likely:,} about 80 %"
