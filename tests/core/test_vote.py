from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from pcs_annotator.core.votes import Vote


def test_vote_is_a_plain_label_by_default() -> None:
    vote = Vote(label="real")

    assert vote == Vote(label="real", reason="", asked=True, cut=0, stated=None, grades=None)


def test_vote_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        Vote(label=None, reason="two labels in reply").label = "real"  # type: ignore[misc]  # that is what is tested
