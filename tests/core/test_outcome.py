from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from pcs_annotator import Outcome
from pcs_annotator.core.outcome import Counts


def test_outcome_has_no_reason_by_default() -> None:
    outcome = Outcome(id="1", label="real", scores={"fake": 0.1, "real": 0.9}, confidence=None, decision=None)

    assert outcome.reason == ""


def test_outcome_is_frozen() -> None:
    outcome = Outcome(id="1", label=None, scores={"fake": 0.5, "real": 0.5}, confidence=None, decision="review")

    with pytest.raises(FrozenInstanceError):
        outcome.decision = "accept"  # type: ignore[misc]  # that is what is tested


def test_counts_add_up() -> None:
    real = Outcome(id="1", label="real", scores={"fake": 0.1, "real": 0.9}, confidence=None, decision="accept")
    silent = Outcome(id="2", label=None, scores={"fake": 0.5, "real": 0.5}, confidence=None, decision="review")
    unasked = Outcome(id="3", label="fake", scores={"fake": 0.9, "real": 0.1}, confidence=None, decision=None)
    both = Counts.of([real, silent]).plus(Counts.of([real, unasked]))
    assert both == Counts(rows=4, labels={"real": 2, "fake": 1}, decisions={"accept": 2, "review": 1})
    assert both.unlabelled == 1
