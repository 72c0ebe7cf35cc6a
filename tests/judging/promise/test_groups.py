"""A promise for each group of texts: how certainty is divided, and what becomes of groups without one."""

from dataclasses import replace

import numpy as np
import pytest

from pcs_annotator import Votes
from pcs_annotator.base.plain import from_plain, to_plain
from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.gold_codes import UNLABELLED
from pcs_annotator.core.votes import NO_GROUP
from pcs_annotator.judging.evaluate.held_out_figures import FiguresByGroup, figures_by_group
from pcs_annotator.judging.fit_model import FitResult, Learning, fit_model, labelled_rows
from pcs_annotator.judging.heldout import Judged
from pcs_annotator.judging.promise.certificate import Certificate, certify
from pcs_annotator.judging.promise.promise import Promise
from pcs_annotator.judging.promise.thresholds import find_thresholds
from tests.builders import the

BY = Promise(max_error=0.1, by="language")
NAMES = ("en", "de", "fr")


def judged(right: dict[int, int], wrong: dict[int, int] | None = None) -> Judged:
    """Return rows of the same confidence: group → how many are right, and how many are wrong."""
    rows = [(group, True) for group, number in right.items() for _ in range(number)]
    rows += [(group, False) for group, number in (wrong or {}).items() for _ in range(number)]
    groups, correct = (np.array(values) for values in zip(*rows, strict=True))
    return Judged(np.full(len(rows), 0.9), groups, correct.astype(np.bool_))


def simulated(accuracies: dict[str, float], items: int = 600, seed: int = 0) -> tuple[Votes, Codes]:
    """Return the votes of three models that are right as often as the group of a text allows, and the truth."""
    rng = np.random.default_rng(seed)
    names = [*accuracies]
    group, truth = rng.integers(len(names), size=items), rng.integers(2, size=items).astype(np.int8)
    right = rng.random((items, 3, 2, 1)) < np.array([*accuracies.values()])[group, None, None, None]
    codes = np.where(right, truth[:, None, None, None], 1 - truth[:, None, None, None]).astype(np.int8)
    ids, groups = [f"{row:04}" for row in range(items)], [names[one] for one in group]
    return Votes(
        codes=codes, ids=ids, annotators=list("abc"), relations=["original", "x"], labels=["no", "yes"], groups=groups
    ), truth


def fitted(votes: Votes, truth: Codes, promise: Promise = BY, gold: int = 400) -> FitResult:
    codes = np.where(np.arange(len(truth)) < gold, truth, UNLABELLED).astype(np.int8)
    return fit_model(votes, codes, Learning(promise=promise))


def test_certainty_is_divided_by_the_groups_that_are_large_enough_to_pass() -> None:
    level = 0.05
    alone, shared = BY.rows_at(level), BY.rows_at(level / 2)
    assert BY.division([400, 3, 2, 1], level) == (1, 1)
    assert BY.division([400, 400, 5], level) == (2, 2)
    assert BY.division([400, alone], level) == (2, 1)  # too small for half of the level
    assert BY.division([400, shared], level) == (2, 2)
    assert BY.division([1, 1], level) == (1, 0)


def test_a_group_gets_its_own_threshold_and_small_ones_take_nothing_from_it() -> None:
    rows = {0: 50, 1: 8, 2: 8}
    assert find_thresholds(judged(rows), NAMES, BY) == {"en": 0.9}
    per_label = Promise(max_error=0.1, per_label=True)
    assert find_thresholds(judged(rows), NAMES, per_label) == {}  # a third of the certainty is not enough


def test_a_group_with_many_errors_has_no_promise_while_others_have() -> None:
    found = certify(judged({0: 100, 1: 100, 2: 80}, {2: 20}), NAMES, BY)
    assert found.thresholds == {"en": 0.9, "de": 0.9}
    assert found.groups == {"en": 100, "de": 100, "fr": 100}
    assert found.why_review("en") == ""
    assert found.why_review("fr") == "no promise for fr (100 gold rows)"
    assert found.why_review("it") == "no promise for it (0 gold rows)"
    assert from_plain(Certificate, to_plain(found)) == found


def test_only_the_tests_of_groups_without_a_promise_use_up_certainty() -> None:
    found = certify(judged({0: 100, 1: 100, 2: 80}, {2: 20}), NAMES, BY)
    assert found.level == pytest.approx(0.05)
    assert found.used == pytest.approx(0.05 / 3)
    every = certify(judged({0: 100, 1: 100, 2: 5}), NAMES, BY)
    assert every.used == 0  # the third is too small to be tested


@pytest.mark.parametrize(
    ("right", "wrong", "why", "level"),
    [
        ({0: 80, 1: 80}, {0: 20, 1: 20}, "in no group by language do even the surest labels", 0.05),
        ({0: 20, 1: 12}, {}, "no group by language has enough gold rows: en has most, 20, and it takes at least", 0.0),
    ],
)
def test_why_no_group_has_a_promise_is_said(
    right: dict[int, int], wrong: dict[int, int], why: str, level: float
) -> None:
    found = certify(judged(right, wrong), NAMES[:2], BY)
    assert found.why_not.startswith(why)
    assert not found.holds
    assert found.level == pytest.approx(level)
    assert found.used == pytest.approx(level)
    assert found.why_review("en") == ""  # nothing is accepted anywhere, and that is said once


def test_a_group_without_a_promise_goes_to_review_and_the_reason_says_so() -> None:
    votes, truth = simulated({"en": 0.95, "hard": 0.6})
    model = fitted(votes, truth).model
    assert [*the(model.certificate).thresholds] == ["en"]
    unseen = Votes.joined([votes, replace(votes, ids=[f"new{one}" for one in votes.ids], groups=None)])
    groups = [*(votes.groups or ()), *["it"] * len(votes)]
    outcomes = list(model.judge(replace(unseen, groups=groups)))
    decided = {
        group: {one.decision for one, own in zip(outcomes, groups, strict=True) if own == group} for group in groups
    }
    assert "accept" in decided["en"]
    assert (decided["hard"], decided["it"]) == ({"review"}, {"review"})
    assert next(one for one in outcomes if one.id.startswith("new")).reason.startswith(
        "no promise for it (0 gold rows)"
    )
    assert not any(one.reason.startswith("no promise") for one in outcomes if one.decision == "accept")


def test_votes_without_groups_are_never_accepted_by_a_promise_about_groups() -> None:
    votes, truth = simulated({"en": 0.95, "de": 0.95})
    model = fitted(votes, truth).model
    bare = replace(votes, groups=None)
    assert bare.coded_groups()[0] == [NO_GROUP]
    accepted = the(model.judged(bare).accepted)
    assert not accepted.any()


def test_figures_of_groups_are_about_rows_that_the_fit_did_not_see() -> None:
    votes, truth = simulated({"en": 0.95, "hard": 0.6})
    model, trial = fitted(votes, truth)
    gold, _ = labelled_rows(votes.take(slice(0, 400)), truth[:400])
    of_rows = [*(votes.groups or ())[:-1], "it"]
    found = figures_by_group("language", of_rows, votes, gold, model, the(trial), right=the(trial).judged.right)
    easy, hard, unseen = found.groups
    assert the(easy.right).value > 0.9 > the(hard.right).value
    assert easy.gold_rows + hard.gold_rows == 400
    assert the(easy.accepted) > 0.5
    assert hard.accepted == hard.accepted_gold == 0
    assert easy.wrong <= 0.1 * easy.accepted_gold
    assert (unseen.rows, unseen.gold_rows, unseen.right, unseen.confidence) == (1, 0, None, None)
    assert from_plain(FiguresByGroup, to_plain(found)) == found


def test_a_group_whose_confidence_is_off_is_named() -> None:
    votes, truth = simulated({"en": 0.95, "hard": 0.6}, items=1_000)
    model, trial = fitted(votes, truth, Promise(max_error=0.1), gold=1_000)
    assert trial is not None
    gold, _ = labelled_rows(votes, truth)
    found = figures_by_group("language", votes.groups or (), votes, gold, model, trial, right=trial.judged.right)
    assert [one.group for one in found.groups if one.miscalibrated] == ["en", "hard"]
    assert found.table().notes[-1] == "Confidence is outside the interval for en, hard."
    no_promise = fit_model(votes, truth, Learning())
    model, trial = no_promise.model, the(no_promise.trial)
    bare = figures_by_group("language", votes.groups or (), votes, gold, model, trial, right=trial.judged.right)
    assert [one.accepted for one in bare.groups] == [None, None]


def test_promises_for_groups_are_kept_where_one_is_twice_as_hard() -> None:
    kept = hard_left = 0
    for seed in range(20):
        votes, truth = simulated({"en": 0.92, "de": 0.92, "hard": 0.7}, items=1_800, seed=seed)
        accepted = the((judged := fitted(votes, truth, gold=450).model.judged(votes.take(slice(450, None)))).accepted)
        groups, wrong = np.array(votes.groups)[450:], judged.best != truth[450:]
        rates = [wrong[accepted & (groups == name)] for name in ("en", "de", "hard")]
        kept += all(not len(one) or one.mean() <= 0.1 for one in rates)
        hard_left += len(rates[2]) < len(rates[0])
    assert kept >= 18
    assert hard_left >= 18
