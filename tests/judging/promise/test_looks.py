"""Promises that are tested again and again while gold rows come in; the large version is `benchmarks/looks.py`."""

from __future__ import annotations

import numpy as np

from pcs_annotator.core.arrays import Floats
from pcs_annotator.judging.heldout import Judged
from pcs_annotator.judging.promise.certificate import certify
from pcs_annotator.judging.promise.promise import Promise
from pcs_annotator.judging.promise.thresholds import EVERY_LABEL

SEQUENCES, LOOKS, FIRST, EVERY = 120, 30, 200, 20
CONFIDENCE, ERROR, TOP = np.array([0.98, 0.78]), np.array([0.02, 0.22]), 0.6
"""Two kinds of rows: those with the higher confidence may be accepted; both together are wrong in just 10 %."""


def judged(kind: Floats, right: Floats) -> Judged:
    return Judged(CONFIDENCE[kind.astype(int)], np.zeros(len(kind), dtype=np.int8), right.astype(bool))


def test_few_sequences_of_looks_have_a_broken_promise_though_every_look_finds_one() -> None:
    promise, rng, broken, found = Promise(max_error=0.0999), np.random.default_rng(0), 0, 0
    for _ in range(SEQUENCES):
        kind = (rng.random(FIRST + LOOKS * EVERY) > TOP).astype(float)
        right = rng.random(len(kind)) > ERROR[kind.astype(int)]
        spent, failed = 0.0, False
        for look in range(LOOKS):
            rows = FIRST + look * EVERY
            certificate = certify(judged(kind[:rows], right[:rows]), ("a", "b"), promise, spent)
            spent += certificate.used
            found += certificate.holds
            failed |= certificate.thresholds.get(EVERY_LABEL) == CONFIDENCE[1]
        broken += failed
    assert found > 0.8 * SEQUENCES * LOOKS
    assert broken / SEQUENCES <= 0.1
