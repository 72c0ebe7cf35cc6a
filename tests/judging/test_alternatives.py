"""What else the same gold rows would allow."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.judging.alternatives import Alternatives, alternatives
from pcs_annotator.judging.fit_model import Trial
from pcs_annotator.judging.promising.acceptance import Promise
from pcs_annotator.judging.weighing.label_shape import ONE, LabelShape

LABELS = ("a", "b", "c")
PROMISE = Promise(max_error=0.1)


def trial(probabilities: Floats, gold: Codes, labels: tuple[str, ...] = LABELS, shape: LabelShape = ONE) -> Trial:
    return Trial(gold, probabilities, probabilities, labels, shape)


def confusing(rows: int, seed: int, labels: tuple[str, ...] = LABELS, shape: LabelShape = ONE) -> Trial:
    """Return rows of which `c` is always found, while `a` and `b` are told apart no better than by chance."""
    rng = np.random.default_rng(seed)
    gold = rng.integers(len(labels), size=rows).astype(np.int8)
    values = np.where((gold == 2)[:, None], [0.01, 0.01, 0.98], [0.5, 0.49, 0.01])[:, : len(labels)]
    return trial(values, gold, labels, shape)


def test_two_labels_that_are_confused_are_named_with_what_merging_them_accepts() -> None:
    gold, others = confusing(300, 0), confusing(500, 1)
    found = alternatives(gold, others, PROMISE)
    known = int((others.probabilities.argmax(axis=1) == 2).sum())
    assert (found.rows, found.gold_rows) == (500, 300)
    assert found.accepted["error-among-accepted"] == found.accepted["false-discoveries"] == known
    assert found.merge == ["a", "b"]
    assert found.confused == int((gold.judged.best != gold.gold).sum())
    assert found.accepted_merged == 500
    assert found.in_sets == 500
    assert found.sets_right == 1.0  # the set of a row with `a` or `b` has both


def test_what_was_found_survives_json() -> None:
    found = alternatives(confusing(60, 0), confusing(80, 1), PROMISE)
    assert Alternatives(**json.loads(json.dumps(found._asdict()))) == found


def test_a_perfect_machine_needs_nothing_else_and_a_useless_one_gets_nothing() -> None:
    gold = np.arange(300, dtype=np.int8) % 3
    right = trial(np.eye(3)[gold] * 0.97 + 0.01, gold)
    perfect = alternatives(right, right, PROMISE)
    assert set(perfect.accepted.values()) == {300}
    assert (perfect.merge, perfect.confused) == ((), 0)
    rng = np.random.default_rng(0)
    random = trial(rng.dirichlet((1, 1, 1), 300), rng.integers(3, size=300).astype(np.int8))
    useless = alternatives(random, random, PROMISE)
    assert useless.accepted["error-among-accepted"] == useless.accepted["false-discoveries"] == 0


def test_two_labels_are_neither_merged_nor_given_as_a_set() -> None:
    found = alternatives(confusing(90, 0, ("a", "b")), confusing(90, 1, ("a", "b")), PROMISE)
    assert (found.merge, found.in_sets) == ((), 0)


def test_a_scale_can_also_be_promised_within_one_step() -> None:
    scale = LabelShape.of("scale", LABELS)
    found = alternatives(confusing(300, 0, shape=scale), confusing(300, 1, shape=scale), PROMISE)
    assert found.accepted["off-by-more-than-one"] == 300
    assert found.merge == ()
    assert "off-by-more-than-one" not in alternatives(confusing(90, 0), confusing(90, 1), PROMISE).accepted


def test_without_other_rows_it_is_about_the_gold_rows_and_rows_without_a_label_are_never_accepted() -> None:
    nobody = trial(np.zeros((0, 3)), np.zeros(0, dtype=np.int8))
    assert alternatives(confusing(300, 0), nobody, PROMISE).rows == 300
    silent = trial(np.zeros((50, 3)), np.zeros(50, dtype=np.int8))
    found = alternatives(confusing(300, 0), silent, PROMISE)
    assert set(found.accepted.values()) == {0}
    assert found.in_sets == 0


@pytest.mark.parametrize("rows", [1, 5])
def test_few_gold_rows_allow_nothing(rows: int) -> None:
    found = alternatives(confusing(rows, 0), confusing(100, 1), PROMISE)
    assert found.accepted["error-among-accepted"] == found.accepted["false-discoveries"] == 0
