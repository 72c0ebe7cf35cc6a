from __future__ import annotations

from dataclasses import replace

import numpy as np

from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.promising.certificate import fingerprint

VOTES = Votes(
    codes=np.array([[[0, 1]], [[1, -1]], [[0, 0]]]),
    ids=["a", "b", "c"],
    annotators=["m"],
    relations=["original", "voice"],
    labels=["no", "yes"],
)
GOLD = np.array([0, -1, 1], dtype=np.int8)


def test_the_order_of_rows_and_relations_changes_nothing() -> None:
    rows = np.array([2, 0, 1])
    turned = VOTES.take(rows).select(relations=["voice", "original"])
    assert fingerprint(turned, GOLD[rows], "1") == fingerprint(VOTES, GOLD, "1")


def test_a_changed_vote_a_changed_gold_label_and_another_version_are_told_apart() -> None:
    before = fingerprint(VOTES, GOLD, "1")
    other_vote = replace(VOTES, codes=np.where(VOTES.codes == -1, 0, VOTES.codes))
    assert fingerprint(other_vote, GOLD, "1").changed_since(before) == ["votes"]
    assert fingerprint(VOTES, np.array([0, 0, 1], dtype=np.int8), "1").changed_since(before) == ["gold"]
    assert fingerprint(VOTES, GOLD, "2").changed_since(before) == ["version"]
    assert before.changed_since(before) == []
