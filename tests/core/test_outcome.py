from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from pcs_annotator import Outcome


def test_outcome_has_no_reason_by_default() -> None:
    outcome = Outcome(id="1", label="real", scores={"fake": 0.1, "real": 0.9}, confidence=None, decision=None)

    assert outcome.reason == ""


def test_outcome_is_frozen() -> None:
    outcome = Outcome(id="1", label=None, scores={"fake": 0.5, "real": 0.5}, confidence=None, decision="review")

    with pytest.raises(FrozenInstanceError):
        outcome.decision = "accept"  # type: ignore[misc]  # that is what is tested
