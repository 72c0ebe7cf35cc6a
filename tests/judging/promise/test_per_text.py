import numpy as np
import pytest
from scipy.stats import beta, binom

from pcs_annotator.core.arrays import Floats, Integers, Mask
from pcs_annotator.judging.heldout import Judged
from pcs_annotator.judging.promise.per_text import chance_of_gains, p_value, passage_threshold, recall_at_least
from pcs_annotator.judging.promise.promise import Promise
from pcs_annotator.judging.promise.thresholds import EVERY_LABEL, find_thresholds

LEVEL = 0.1


def judged(confidence: Floats, right: Mask | list[bool]) -> Judged:
    return Judged(confidence, np.zeros(len(confidence), dtype=np.int8), np.array(right, dtype=np.bool_))


def panel(rng: np.random.Generator, texts: int) -> tuple[Judged, Integers]:
    """Return passages that are right as often as their confidence says, but all right or all wrong in every text."""
    sizes = rng.integers(2, 9, texts)
    units = np.repeat(np.arange(texts), sizes)
    sure = rng.uniform(0.6, 1, texts)[units]
    return judged(sure, rng.random(texts)[units] < sure), units


@pytest.mark.parametrize(("texts", "wrong"), [(1, 0), (22, 0), (50, 4), (300, 40), (2_000, 99), (20, 19)])
@pytest.mark.parametrize("max_error", [0.02, 0.1, 0.4])
def test_the_chance_is_the_binomial_one_if_every_text_has_one_passage(texts: int, wrong: int, max_error: float) -> None:
    errors, alike = (np.arange(texts) < wrong).astype(np.int64), np.ones(texts, dtype=np.int64)
    exact = binom.cdf(wrong, texts, max_error)
    assert p_value(alike, errors, alike, max_error) == pytest.approx(exact, rel=1e-12)
    # texts of the same size that are all right or all wrong are no more than one passage each
    assert p_value(4 * alike, 4 * errors, 4 * alike, max_error) >= exact * (1 - 1e-9)


def test_thresholds_are_those_of_single_rows_if_every_text_has_one_passage() -> None:
    rng = np.random.default_rng(1)
    for texts in (20, 100, 400):
        sure = rng.uniform(0.6, 1, texts)
        rows = judged(sure, rng.random(texts) < sure)
        exact = find_thresholds(rows, ("",), Promise(max_error=0.1), 0.05).get(EVERY_LABEL)
        assert passage_threshold(rows, np.arange(texts)[::-1], 0.1, 0.05, sure, np.arange(texts)) == exact


@pytest.mark.parametrize("best", [None, 0, 8, 15])
def test_gains_that_are_nothing_on_average_seldom_look_like_much(best: int | None) -> None:
    rng = np.random.default_rng(2)
    for likely, win, loss in [(0.5, 1.0, -1.0), (0.9, 0.1, -0.9), (0.1, 3.0, -1 / 3)]:
        chances = [chance_of_gains(np.where(rng.random(80) < likely, win, loss), best) for _ in range(2_000)]
        for level in (0.1, 0.02):
            assert np.mean(np.array(chances) <= level) <= level
    assert chance_of_gains(np.full(400, 0.1), best) < 0.001
    assert chance_of_gains(np.full(80, -0.5), best) == 1


def test_more_errors_and_a_stricter_promise_are_less_probable_to_pass() -> None:
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 8, 60)
    wrong = rng.binomial(sizes, 0.05)
    chances = []
    for text in np.flatnonzero(wrong < sizes):
        chances.append(p_value(sizes, wrong, np.tile(sizes, 5), 0.1))
        wrong[text] += 1
    assert chances == sorted(chances)
    by_limit = [p_value(sizes, np.minimum(sizes, 1), np.tile(sizes, 5), limit) for limit in (0.2, 0.3, 0.4, 0.5)]
    assert by_limit == sorted(by_limit, reverse=True)


def test_errors_of_the_same_text_make_the_promise_harder() -> None:
    sizes = np.full(200, 5)
    apart, together = np.zeros(200, dtype=np.int64), np.zeros(200, dtype=np.int64)
    apart[:70], together[:14] = 1, 5
    assert p_value(sizes, apart, np.tile(sizes, 5), 0.1) < 0.1 < p_value(sizes, together, np.tile(sizes, 5), 0.1)


def test_a_rare_text_with_many_passages_is_not_feared_if_the_table_is_known() -> None:
    sizes = np.full(60, 2)
    table = np.append(np.full(999, 2), 50)
    assert p_value(sizes, 0 * sizes, table, 0.1, doubt=0.01) < 0.03
    assert p_value(sizes, 0 * sizes, np.array([50]), 0.1) > 0.7  # too small a table to know how rare it is


def test_promises_are_broken_in_few_draws_of_texts_and_oftener_if_passages_counted_as_rows() -> None:
    runs, max_error = 60, 0.1

    def error(least: float | None) -> float:
        return 0.0 if least is None else (1 - max(least, 0.6)) / 2  # the mean doubt above that confidence

    broken, as_rows = [], []
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        (gold, units), (table, table_units) = panel(rng, 150), panel(rng, 600)
        least = passage_threshold(gold, units, max_error, LEVEL, table.confidence, table_units)
        broken.append(error(least) > max_error)
        by_row = find_thresholds(gold, ("",), Promise(max_error=max_error), LEVEL).get(EVERY_LABEL)
        as_rows.append(error(by_row) > max_error)
    assert sum(broken) <= LEVEL * runs < sum(as_rows)


def test_nothing_is_promised_without_gold_or_if_all_is_wrong() -> None:
    gold, units = panel(np.random.default_rng(4), 50)
    nothing = gold.take(np.zeros(0, dtype=np.intp))
    assert passage_threshold(nothing, units[:0], 0.1, LEVEL, gold.confidence, units) is None
    all_wrong = gold._replace(right=np.zeros_like(gold.right))
    assert passage_threshold(all_wrong, units, 0.1, LEVEL, gold.confidence, units) is None


def test_all_thresholds_pass_if_nothing_is_wrong_and_texts_are_enough() -> None:
    gold, units = panel(np.random.default_rng(5), 200)
    all_right = gold._replace(right=np.ones_like(gold.right))
    assert passage_threshold(all_right, units, 0.2, LEVEL, gold.confidence, units) == gold.confidence.min()


def test_the_order_of_passages_and_the_names_of_texts_do_not_matter() -> None:
    rng = np.random.default_rng(6)
    gold, units = panel(rng, 150)
    table, table_units = panel(rng, 600)
    order = rng.permutation(len(units))
    names = rng.permutation(10_000)
    assert passage_threshold(gold, units, 0.2, LEVEL, table.confidence, table_units) == passage_threshold(
        gold.take(order), names[units[order]], 0.2, LEVEL, table.confidence, names[table_units]
    )


@pytest.mark.parametrize(("hits", "texts"), [(20, 22), (0, 22), (22, 22), (150, 200)])
def test_recall_of_texts_with_one_passage_is_bounded_near_the_binomial_bound(hits: int, texts: int) -> None:
    bound = recall_at_least((np.arange(texts) < hits).astype(np.int64), np.ones(texts, dtype=np.int64), LEVEL)
    exact = beta.ppf(LEVEL, hits, texts - hits + 1) if hits else 0
    assert exact - 0.15 <= bound <= exact + 1e-6


def test_recall_is_as_low_as_its_bound_in_few_draws() -> None:
    above, bounds = 0, []
    runs, truth = 150, 0.8
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        passages = rng.geometric(0.4, 60) - 1
        hits = np.where(rng.random(60) < truth, passages, 0)  # those of a text are all found or all missed
        bounds.append(recall_at_least(hits, passages, LEVEL, most=12))
        above += bounds[-1] > truth
    assert above <= LEVEL * runs + 2 * np.sqrt(LEVEL * (1 - LEVEL) * runs)
    assert np.mean(bounds) > 0.4


def test_without_any_right_passage_no_recall_is_known() -> None:
    assert recall_at_least(np.zeros(5, dtype=np.int64), np.zeros(5, dtype=np.int64), LEVEL) == 0
