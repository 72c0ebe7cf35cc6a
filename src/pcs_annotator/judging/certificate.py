"""The certificate: a promise about accepted labels, and everything it rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats, Mask
from pcs_annotator.core.weights import Interval
from pcs_annotator.judging.acceptance import (
    EVERY_LABEL,
    Judged,
    Promise,
    Thresholds,
    accepted,
    find_thresholds,
)
from pcs_annotator.judging.auditing import Audit
from pcs_annotator.judging.fingerprint import Fingerprint
from pcs_annotator.judging.scarcity import rows_needed


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What is promised about accepted labels, or why nothing is.

    Attributes:
        promise: What was asked for.
        gold_rows: Gold rows behind it.
        thresholds: The least confidence at which a label is accepted; empty when nothing is promised.
        why_not: Why nothing is promised; empty when something is.
        rows_needed: Gold rows that would probably carry the promise; None when it is given, or when nobody can tell.
        split: How gold was split, in a sentence.
        accepted_share: Share of the rows at hand that are accepted.
        review_rows: Number of the rows at hand that a person must see.
        fingerprint: What it rests on.
        audit: What a person's look at accepted rows found; None before that.
    """

    promise: Promise
    gold_rows: int
    thresholds: Thresholds
    why_not: str = ""
    rows_needed: int | None = None
    split: str = ""
    accepted_share: float = 0.0
    review_rows: int = 0
    fingerprint: Fingerprint | None = None
    audit: Audit | None = None

    @property
    def revoked(self) -> bool:
        """Whether an audit found it broken."""
        return self.audit is not None and self.audit.finding == "revoked"

    @property
    def holds(self) -> bool:
        """Whether labels may be accepted because of it."""
        return bool(self.thresholds) and not self.revoked

    def accepts(self, confidence: Floats, best: Codes, labels: Sequence[str]) -> Mask:
        """Return which rows are accepted."""
        if not self.holds:
            return np.zeros(len(best), dtype=np.bool_)
        return accepted(confidence, best, labels, self.thresholds)

    def over(self, accepted_rows: Mask) -> Certificate:
        """Return the certificate with what it means for the rows at hand."""
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
            "threshold": common if not promise.per_label else None,
            "thresholds": dict(self.thresholds) if promise.per_label else None,
            "accepted_share": self.accepted_share,
            "review_rows": self.review_rows,
            "why_not": self.why_not,
            "rows_needed": self.rows_needed,
            "split": self.split,
            "fingerprint": self.fingerprint and self.fingerprint._asdict(),
            "audit": self.audit and self.audit._asdict(),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Certificate:
        """Return the certificate that `to_dict` wrote."""
        common, by_label = values["threshold"], values["thresholds"]
        audit = values["audit"]
        return cls(
            promise=Promise(
                max_error=values["alpha"],
                certainty=values["certainty"],
                kind=values["promise"],
                per_label=values["per_label"],
            ),
            gold_rows=values["n_gold"],
            thresholds=by_label or ({} if common is None else {EVERY_LABEL: common}),
            fingerprint=values["fingerprint"] and Fingerprint(**values["fingerprint"]),
            audit=audit and Audit(**{**audit, "error": Interval(*audit["error"])}),
            **{name: values[name] for name in ("why_not", "rows_needed", "split", "accepted_share", "review_rows")},
        )


def certify(judged: Judged, labels: Sequence[str], promise: Promise, seed: int = 0) -> Certificate:
    """Return the certificate that gold rows carry, or one that says why they carry none.

    Args:
        judged: The rows, each judged by a model that did not see it.
        labels: Names of the label codes.
        promise: What is asked for.
        seed: Fixes the simulation of how many more rows are needed.
    """
    rows = len(judged.right)
    thresholds = find_thresholds(judged, labels, promise)
    if thresholds:
        return Certificate(promise=promise, gold_rows=rows, thresholds=thresholds)
    needed = rows_needed(judged, labels, promise, seed)
    return no_promise(promise, rows, f"{_shortfall(rows, promise)}; {_remedy(needed)}", needed)


def no_promise(promise: Promise, rows: int, why: str, needed: int | None = None) -> Certificate:
    """Return a certificate that promises nothing, and says why."""
    return Certificate(promise=promise, gold_rows=rows, thresholds={}, why_not=why, rows_needed=needed)


def in_force(certificate: Certificate, now: Fingerprint) -> Certificate:
    """Return the certificate, or one that says that what it rests on has changed since."""
    then = certificate.fingerprint
    changed = [] if then is None else now.changed_since(then)
    if not changed:
        return certificate
    why = f"{' and '.join(changed)} changed since this promise was made: pcs fit makes it anew, free of charge"
    return replace(no_promise(certificate.promise, certificate.gold_rows, why), fingerprint=then)


def _shortfall(rows: int, promise: Promise) -> str:
    if rows >= promise.least_rows:
        return f"on {rows:,} gold rows not even the most confident labels are shown to be right often enough"
    return f"{rows:,} gold rows are too few: even without a single error it takes {promise.least_rows:,} of them"


def _remedy(needed: int | None) -> str:
    if needed is None:
        return "thousands more of this kind would hardly help: use better models, or allow more error"
    return f"about {needed:,} would probably do, as far as these rows can tell"
