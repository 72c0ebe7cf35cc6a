"""The certificate: a promise about accepted labels, what it is based on, and an audit of it."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from pcs_annotator.base.display import html_table
from pcs_annotator.base.text import counted
from pcs_annotator.core.arrays import Codes, Floats, Integers, Mask
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Interval
from pcs_annotator.judging.fit_weights import in_canonical_order
from pcs_annotator.judging.heldout import Judged
from pcs_annotator.judging.promise.audit import Audit
from pcs_annotator.judging.promise.forecast import RowsNeeded, rows_needed
from pcs_annotator.judging.promise.promise import Promise
from pcs_annotator.judging.promise.thresholds import EVERY_LABEL, accepted, rows_in, thresholds_at

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
    said = ordered.codes.astype(smallest).tobytes()
    if ordered.grades is not None and not np.isnan(ordered.grades).all():
        said += np.nan_to_num(ordered.grades, nan=-1.0).tobytes()  # there are several bit patterns for nan
    return Fingerprint(_digest(named + said), _digest(named + codes.astype(smallest).tobytes()), version)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:DIGITS]


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """The promise about accepted labels, or why there is none.

    Attributes:
        promise: What was asked for.
        gold_rows: Gold rows behind it.
        assumed_rows: Those of them that came with the data, so that they are only assumed to be a random sample.
        undecided_rows: Those of them without a decision, because people differ: every label of them counts as wrong.
        thresholds: The minimum confidence at which a label is accepted; empty when nothing is promised.
        groups: If it is made for groups of texts, the gold rows of each; they are the keys of `thresholds`.
        upper: The same for the levels above the labels of a tree, the lowest of them first; empty for other labels.
        why_not: Why nothing is promised; empty when something is.
        rows_needed: Gold rows that the promise would probably need, in all; None when it holds, or that is unknown.
        level: How much of δ the test of this fit may use; 0 when there was none.
        used: How much of that is used up. A sequence of thresholds that passed to its end uses nothing, because no
            threshold was left that it could have accepted wrongly; one that failed anywhere has used its whole level.
        spent: How much of δ earlier looks have used.
        tried: How much error earlier fits allowed on average, and accepted nothing.
        split: How gold was split, in a sentence.
        accepted_share: Share of the rows at hand that are accepted.
        review_rows: Number of the rows at hand that a person must review.
        fingerprint: The votes, gold and code version it is based on.
        audit: The result of a person's check of accepted rows; None before that.
        withdrawn: Groups for which people found more errors among accepted texts than was promised; not stored.
    """

    promise: Promise
    gold_rows: int
    thresholds: Mapping[str, float]
    why_not: str = ""
    rows_needed: RowsNeeded | None = None
    level: float = 0.0
    used: float = 0.0
    spent: float = 0.0
    tried: float = 0.0
    split: str = ""
    accepted_share: float = 0.0
    review_rows: int = 0
    fingerprint: Fingerprint | None = None
    audit: Audit | None = None
    assumed_rows: int = 0
    undecided_rows: int = 0
    upper: tuple[Mapping[str, float], ...] = ()
    groups: Mapping[str, int] = field(default_factory=dict)
    withdrawn: tuple[str, ...] = ()

    @property
    def found(self) -> bool:
        """Whether there are thresholds, at some level."""
        return bool(self.thresholds) or any(self.upper)

    def _repr_html_(self) -> str:
        promise = self.promise
        least = {"" if label == EVERY_LABEL else f" ({label})": value for label, value in self.thresholds.items()}
        rows: list[tuple[str, object]] = [
            ("promise", f"{promise.kind} ≤ {promise.max_error:.3g}{', per label' if promise.per_label else ''}"),
            ("certainty", promise.certainty),
            *((f"accepted at confidence ≥{label}", value) for label, value in least.items()),
            ("rows accepted", f"{100 * self.accepted_share:.3g} %"),
            ("rows to review", self.review_rows),
            ("gold rows", self.gold_rows),
        ]
        if self.audit is not None:
            rows.append(("audit", f"{self.audit.finding}: {self.audit.wrong} of {self.audit.rows} were wrong"))
        title = "The promise holds" if self.holds else "Nothing is promised"
        return html_table(title, ("", ""), rows, "" if self.holds else self.why_not)

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

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        promise = self.promise
        common = self.thresholds.get(EVERY_LABEL)
        return {
            "promise": promise.kind,
            "alpha": promise.max_error,
            "delta": promise.delta,
            "certainty": promise.certainty,
            "per_label": promise.per_label,
            "n_gold": self.gold_rows,
            "n_assumed": self.assumed_rows,
            "n_undecided": self.undecided_rows,
            "threshold": common if not promise.divided else None,
            "thresholds": dict(self.thresholds) if promise.divided else None,
            "accepted_share": self.accepted_share,
            "review_rows": self.review_rows,
            "why_not": self.why_not,
            "rows_needed": self.rows_needed and list(self.rows_needed),
            "level": self.level,
            "used": self.used,
            "spent": self.spent,
            "split": self.split,
            "fingerprint": self.fingerprint and self.fingerprint._asdict(),
            "audit": self.audit and self.audit._asdict(),
            **({"tried": self.tried} if self.tried else {}),
            **({"upper": [dict(one) for one in self.upper]} if self.upper else {}),
            **({"by": promise.by, "groups": dict(self.groups)} if promise.by else {}),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Certificate":
        """Return the certificate that `to_dict` wrote."""
        common, by_label = values["threshold"], values["thresholds"]
        audit = values["audit"]
        return cls(
            promise=Promise(
                max_error=values["alpha"],
                certainty=values["certainty"],
                kind=values["promise"],
                per_label=values["per_label"],
                by=values.get("by", ""),
            ),
            gold_rows=values["n_gold"],
            assumed_rows=values.get("n_assumed", 0),
            undecided_rows=values.get("n_undecided", 0),
            thresholds=by_label or ({} if common is None else {EVERY_LABEL: common}),
            fingerprint=values["fingerprint"] and Fingerprint(**values["fingerprint"]),
            audit=audit and Audit(**{**audit, "error": Interval(*audit["error"])}),
            rows_needed=values["rows_needed"] and RowsNeeded(*values["rows_needed"]),
            level=values["level"],
            used=values["used"],
            spent=values["spent"],
            tried=values.get("tried", 0.0),
            upper=tuple(values.get("upper", ())),
            groups=values.get("groups", {}),
            **{name: values[name] for name in ("why_not", "split", "accepted_share", "review_rows")},
        )


class Level(NamedTuple):
    """Gold rows as judged at a level of a tree, and the paths there."""

    judged: Judged
    labels: Sequence[str]


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

    `spent` is how much of δ earlier looks at the gold labels have used; `seed`, of the simulation of rows needed.
    `upper` are the levels above the labels of a tree, the lowest first. Each has an equal part of the look's δ, and is
    tested on the rows that no level below accepts: those that its promise is about. For a promise about groups of
    texts, `labels` are their names, and `judged` has them in the place of labels. `table` are the rows that false
    discoveries are counted among.
    """
    rows = len(judged.right)
    given = promise.level(rows, spent)
    groups = dict(zip(labels, rows_in(judged, labels), strict=True)) if promise.by else {}
    tested = promise.tested and promise.division(groups.values() or [rows], given)[1] > 0
    level = given if tested else 0.0
    found, left, failed = list[Mapping[str, float]](), np.ones(rows, dtype=np.bool_), 0.0
    for one, names in (Level(judged, labels), *upper):
        found.append(thresholds_at(one.take(left), names, promise, given / (1 + len(upper)), table))
        accepts = accepted(one.confidence, one.best, names, found[-1])
        failed += _failed(one.take(left), ~accepts[left], names, promise, given) / (1 + len(upper))
        left = left & ~accepts
    bare = Certificate(promise=promise, gold_rows=rows, thresholds=found[0], groups=groups)
    bare = replace(bare, level=level, used=level * failed, spent=spent)
    if any(found):
        return replace(bare, upper=tuple(found[1:]))
    needed = rows_needed(judged, labels, promise, spent + bare.used, seed)
    short = _shortfall_of_groups(groups, promise, given) if groups else _shortfall(rows, promise, spent)
    return replace(bare, why_not=f"{short}; {_remedy(needed)}", rows_needed=needed)


def _failed(judged: Judged, left: Mask, names: Sequence[str], promise: Promise, level: float) -> float:
    """Return the share of a level that went to tests that failed somewhere: those of parts with rows `left` over."""
    if not promise.divided:
        return float(left.any())
    rows, over = np.array(rows_in(judged, names)), np.array(rows_in(judged.take(left), names)) > 0
    if not promise.by:
        return float(over.mean())
    parts, _ = promise.division(rows.tolist(), level)
    return float((over & (rows >= promise.rows_at(level / parts))).sum()) / parts


def no_promise(promise: Promise, rows: int, why: str, needed: RowsNeeded | None = None) -> Certificate:
    """Return a certificate that promises nothing and says why."""
    return Certificate(promise=promise, gold_rows=rows, thresholds={}, why_not=why, rows_needed=needed)


def in_force(certificate: Certificate, now: Fingerprint) -> Certificate:
    """Return the certificate, or one that promises nothing when its votes, gold or code version have changed."""
    then = certificate.fingerprint
    changed = [] if then is None else now.changed_since(then)
    if not changed:
        return certificate
    why = f"{' and '.join(changed)} changed since this promise was made: pcs fit makes it again, free of charge"
    return replace(no_promise(certificate.promise, certificate.gold_rows, why), fingerprint=then)


def _shortfall(rows: int, promise: Promise, spent: float) -> str:
    least = promise.least_rows(spent)
    if rows >= least:
        return f"on {rows:,} gold rows not even the most confident labels are shown to be right often enough"
    are = counted(rows, "gold row is", "gold rows are")
    return f"{are} too few: even without a single error it takes {least:,} of them"


def _shortfall_of_groups(groups: Mapping[str, int], promise: Promise, level: float) -> str:
    largest, by = max(groups, key=lambda name: groups[name]), promise.by
    if not promise.tested or promise.division(groups.values(), level)[1]:
        return f"in no group by {by} are even the most confident labels shown to be right often enough"
    rows, least = groups[largest], promise.rows_at(level)
    return f"no group by {by} has enough gold rows: {largest} has most, {rows:,}, and it takes at least {least:,}"


def _remedy(needed: RowsNeeded | None) -> str:
    """Return how many gold rows it takes, from even odds to four to one, or nothing about that."""
    if needed is None:
        return "label more random rows, or use better models"
    return (
        f"with {needed.even_odds:,} gold rows in all the odds are even, with {needed.likely:,} four to one, as far as "
        "these rows can tell"
    )
