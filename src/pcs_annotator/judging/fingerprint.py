"""Which votes and which gold something was learned from."""

from __future__ import annotations

import hashlib
import json
from typing import NamedTuple

from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.fitting import in_canonical_order

DIGITS = 16


class Fingerprint(NamedTuple):
    """Digests of what a promise rests on; equal digests mean equal things, whatever the order of rows and columns."""

    votes: str
    gold: str
    version: str

    def changed_since(self, earlier: Fingerprint) -> list[str]:
        """Return the names of what has changed."""
        return [name for name, now, then in zip(self._fields, self, earlier, strict=True) if now != then]


def fingerprint(votes: Votes, gold: Codes, version: str) -> Fingerprint:
    """Return the fingerprint of votes and of their gold codes."""
    ordered, codes = in_canonical_order(votes, gold)
    axes = [ordered.ids, ordered.annotators, ordered.relations, ordered.labels, ordered.codes.shape]
    named = json.dumps(axes, ensure_ascii=True).encode()
    return Fingerprint(_digest(named + ordered.codes.tobytes()), _digest(named + codes.tobytes()), version)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:DIGITS]
