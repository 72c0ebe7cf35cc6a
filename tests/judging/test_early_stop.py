from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pcs_annotator import ABSTAINED, NOT_ASKED, Votes, Weights, score
from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.votes import OPEN, Cell, Strategy
from pcs_annotator.core.weights import Evidence, VoteScale
from pcs_annotator.judging import early_stop as stopping
from pcs_annotator.judging.calibrate import Calibrator
from pcs_annotator.judging.early_stop import ExactStop, order_of, simulate
from pcs_annotator.judging.score import choose
from tests.builders import votes_of
from tests.judging.panels import (
    CALIBRATIONS,
    READS,
    Calibration,
    Panel,
    Reads,
    all_cells,
    futures,
    opened,
    random_panel,
)
from tests.judging.strategies import any_votes, asked_in, weights_for


class HardPanel(NamedTuple):
    votes: Votes
    weights: Weights
    order: list[Cell]


@st.composite
def hard_panels(draw: st.DrawFn) -> HardPanel:
    """Votes, weights of either kind, some of them zero, and any order of the cells."""
    votes = draw(any_votes(max_items=4))
    weights = draw(weights_for(votes))
    if draw(st.booleans()):
        weights = with_evidence(draw, votes, weights)
    order = draw(st.permutations(all_cells(votes)))
    return HardPanel(votes, weights, order)


def with_evidence(draw: st.DrawFn, votes: Votes, weights: Weights) -> Weights:
    labels = len(votes.labels)
    numbers = st.one_of(st.just(0.0), st.sampled_from([-1.0, 1.0, 0.5]), st.floats(-3, 3))
    shape = (len(votes.annotators), len(votes.relations), labels, labels)
    table = draw(arrays(np.float64, shape, elements=numbers))
    empty = draw(arrays(np.bool_, shape[:2]))
    evidence = Evidence(
        labels=draw(st.permutations(votes.labels)),
        log_prior=draw(arrays(np.float64, labels, elements=numbers)),
        log_likelihood=np.where(empty[..., np.newaxis, np.newaxis], 0.0, table),
    )
    return replace(weights, evidence=evidence)


def exact(panel: HardPanel) -> ExactStop:
    return ExactStop(panel.weights, panel.votes.labels, panel.order)


def calibrated(panel: Panel) -> ExactStop:
    return ExactStop(panel.weights, panel.votes.labels, panel.order, panel.calibrator)


def linear(votes: Votes, annotators: list[float], relations: list[float]) -> Weights:
    return Weights.normalised(votes, np.array(annotators), np.array(relations))


class OneByOne:
    """A strategy that asks one cell at a time."""

    def __init__(self, rule: Strategy) -> None:
        self.order = rule.order
        self.rule = rule

    def text_priors(self, texts: Sequence[str]) -> Floats | None:
        return None

    def needed(self, cells: Codes, said: Floats | None = None) -> int:
        return min(self.rule.needed(cells), 1)


@given(hard_panels())
def test_the_label_after_an_exact_stop_is_that_of_asking_everything(panel: HardPanel) -> None:
    stopped = simulate(panel.votes, exact(panel))
    early, late = (choose(score(votes, panel.weights), votes.labels) for votes in (stopped, panel.votes))
    np.testing.assert_array_equal(early, late)
    np.testing.assert_array_equal(stopped.silent, panel.votes.silent)


@given(hard_panels())
def test_asking_stops_as_soon_as_no_future_can_change_the_label(panel: HardPanel) -> None:
    """Every future of the last two cells is tried; where all agree beyond a tie, the rule must have stopped."""
    votes = panel.votes.take(slice(1))
    rule = exact(HardPanel(votes, panel.weights, all_cells(votes)))
    cells = votes.codes[0].copy()
    places = [cell for cell in rule.order if cells[cell] != NOT_ASKED][-2:]
    for place in places:
        cells[place] = OPEN
    if (cells >= 0).any() and rule.needed(cells):
        assert len(labels_of_futures(votes, panel.weights, cells, places)) > 1


def labels_of_futures(votes: Votes, weights: Weights, cells: Codes, places: list[Cell]) -> set[int]:
    """All labels that some future chooses; where two tie, both count."""
    found: set[int] = set()
    for answers in np.ndindex(*([len(votes.labels) + 1] * len(places))):
        future = cells.copy()
        for place, answer in zip(places, answers, strict=True):
            future[place] = answer - 1
        scores = score(votes_of_shape(votes, future), weights)[0]
        found |= set(np.flatnonzero(scores >= scores.max() - 1e-8).tolist())
    return found


def votes_of_shape(votes: Votes, cells: Codes) -> Votes:
    return Votes(
        codes=cells[np.newaxis],
        ids=["one"],
        annotators=votes.annotators,
        relations=votes.relations,
        labels=votes.labels,
    )


SEEDS = 16
COMBINATIONS = list(product(READS, CALIBRATIONS))


@pytest.mark.parametrize(("reads", "calibration"), COMBINATIONS)
def test_after_a_stop_no_future_changes_the_most_probable_label(reads: Reads, calibration: Calibration) -> None:
    stops = 0
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        panel = random_panel(seed, reads, calibration)
        cells, places = opened(panel, rng, most=3)
        if places and (cells >= 0).any() and not calibrated(panel).needed(cells):
            stops += 1
            assert len(set(panel.labels(futures(panel, cells, places)).tolist())) == 1, seed
    assert calibration == "falling" or stops >= 1


# Asking one by one takes twice as long as the rest, so most panels are replayed that way among the slow tests.
@pytest.mark.parametrize("one_by_one", [5, pytest.param(SEEDS, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("reads", "calibration"), COMBINATIONS)
def test_a_replay_gives_the_labels_of_asking_everything_and_asks_in_parallel_what_it_must(
    reads: Reads, calibration: Calibration, one_by_one: int
) -> None:
    spared = 0
    for seed in range(SEEDS):
        panel = random_panel(seed, reads, calibration, items=3)
        rule = calibrated(panel)
        stopped = simulate(panel.votes, rule)
        np.testing.assert_array_equal(panel.labels(stopped), panel.labels(panel.votes))
        if seed < one_by_one:
            np.testing.assert_array_equal(asked_in(stopped), asked_in(simulate(panel.votes, OneByOne(rule))))
        spared += int((panel.votes.codes != NOT_ASKED).sum() - asked_in(stopped).sum())
    assert spared > 0


@pytest.mark.parametrize("calibration", ["softmax", "none"])
def test_linear_weights_stop_as_soon_as_no_future_can_change_the_label(calibration: Calibration) -> None:
    early = 0
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        panel = random_panel(seed, "linear", calibration)
        cells, places = opened(panel, rng, most=2)
        if places and (cells >= 0).any() and calibrated(panel).needed(cells):
            found = panel.calibrator.strengths(score(futures(panel, cells, places), panel.weights), panel.votes.labels)
            # some future comes within what rounding can change
            rivals = np.sort(found, axis=1)[:, -1:] - found
            early += not (len(set(found.argmax(axis=1).tolist())) > 1 or np.sort(rivals, axis=1)[:, 1].min() < 0.01)
    assert early == 0


@pytest.mark.parametrize("reads", ["log-odds", "mean log-odds", "shares"])
def test_graded_answers_and_weights_that_read_log_odds_ask_about_everything(reads: VoteScale) -> None:
    votes = votes_of([[[0, 0, 0]]])
    evidence = Evidence(
        labels=votes.labels, log_prior=np.zeros(2), log_likelihood=np.tile(np.eye(2), (1, 3, 1, 1)), reads=reads
    )
    rule = ExactStop(
        replace(Weights.uniform(votes), evidence=evidence), votes.labels, all_cells(votes), graded=reads == "shares"
    )
    cells = np.array([[[0], [0], [OPEN]]], dtype=np.int8)
    assert rule.needed(cells) == 1
    assert rule.needed(np.zeros_like(cells)) == 0


def test_cells_without_weight_are_asked_only_when_no_other_cell_votes() -> None:
    votes = votes_of([[[0, 1]], [[ABSTAINED, 1]], [[NOT_ASKED, ABSTAINED]]])
    rule = ExactStop(linear(votes, [1], [1, 0]), votes.labels, all_cells(votes))
    assert asked_in(simulate(votes, rule)).tolist() == [1, 2, 1]


def test_a_strong_prior_still_needs_a_vote() -> None:
    votes = votes_of([[[1, 1]]])
    evidence = Evidence(
        labels=votes.labels, log_prior=np.array([0, 9.0]), log_likelihood=np.tile(np.eye(2), (1, 2, 1, 1))
    )
    sure = replace(Weights.uniform(votes), evidence=evidence)
    assert asked_in(simulate(votes, ExactStop(sure, votes.labels, all_cells(votes)))).tolist() == [1]


def biased_panel(draws: int) -> tuple[ExactStop, Codes]:
    """A vote for the first label, and an open cell in which any vote at all favours the second."""
    votes = votes_of([[[0, 0]]])
    table = np.array([[1.5 * np.eye(2), [[0, 3], [0, 3]]]])
    evidence = Evidence(labels=votes.labels, log_prior=np.zeros(2), log_likelihood=table)
    weights = replace(Weights.uniform(votes), evidence=evidence)
    cells = np.full((1, 2, draws), OPEN, dtype=np.int8)
    cells[0, 0] = 0
    return ExactStop(weights, votes.labels, [Cell(*place) for place in np.ndindex(1, 2, draws)]), cells


def test_silence_counts_where_every_vote_would_change_the_label() -> None:
    rule, cells = biased_panel(draws=1)
    assert rule.needed(cells) == 1


def test_offsets_settle_a_label_that_is_behind() -> None:
    votes = votes_of([[[0, 1, 1]]])
    cells = np.array([[[0], [1], [OPEN]]], dtype=np.int8)
    for offset, needed in ((0.0, 1), (0.5, 1), (1.5, 0)):
        calibrator = Calibrator(labels=votes.labels, slope=1.0, offsets=np.array([offset, 0.0]))
        rule = ExactStop(Weights.uniform(votes), votes.labels, all_cells(votes), calibrator)
        assert rule.needed(cells) == needed  # log((2/3 + .02) / (1/3 + .02)) is .66


def test_a_full_memory_of_patterns_is_emptied_and_changes_no_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    votes = votes_of([[[0, 0, 0, 1]]])
    rule = ExactStop(Weights.uniform(votes), votes.labels, all_cells(votes))
    monkeypatch.setattr(stopping, "MOST_KNOWN", 1)
    for _ in range(2):
        assert rule.needed(np.array([[[0], [0], [OPEN], [OPEN]]], dtype=np.int8)) == 1
        assert rule.needed(np.array([[[0], [1], [OPEN], [OPEN]]], dtype=np.int8)) == 2


WEIGHTS = Weights(
    annotators=["a", "b"],
    relations=["original", "passive"],
    annotator_weights=np.array([0.3, 0.7]),
    relation_weights=np.array([1.0, 0.0]),
)


def test_cells_are_asked_by_weight_and_those_without_any_last() -> None:
    assert order_of(WEIGHTS) == [Cell(1, 0), Cell(0, 0), Cell(0, 1), Cell(1, 1)]


def test_class_aware_weights_are_ordered_by_how_far_a_vote_moves_the_odds() -> None:
    table = np.zeros((2, 2, 2, 2))
    table[0, 1], table[1, 0] = np.eye(2), -3 * np.eye(2)
    votes = votes_of([[[0, 0], [0, 0]]])
    evidence = Evidence(labels=votes.labels, log_prior=np.zeros(2), log_likelihood=table)
    weights = replace(Weights.uniform(votes), evidence=evidence)
    assert order_of(weights)[:2] == [Cell(1, 0), Cell(0, 1)]


class AskTwo:
    """Asks two cells, whatever they answer, as long as there are any."""

    order = (Cell(0, 2), Cell(0, 0), Cell(0, 1))

    def text_priors(self, texts: Sequence[str]) -> Floats | None:
        return None

    def needed(self, cells: Codes, said: Floats | None = None) -> int:
        is_open = [cells[cell] == OPEN for cell in self.order]
        return int(sum(is_open) > 1)


def test_a_replay_asks_along_the_order_and_skips_what_was_never_asked() -> None:
    votes = votes_of([[[0, 1, 0, 1]], [[0, 1, NOT_ASKED, 1]], [[-1, 1, 1, 0]], [[0, 1, 0, 1]]])
    stopped = simulate(votes, AskTwo())
    assert asked_in(stopped).tolist() == [2, 1, 2, 2]
    assert stopped.codes[..., 0].tolist() == [[[0, -2, 0, -2]], [[0, -2, -2, -2]], [[-1, -2, 1, -2]], [[0, -2, 0, -2]]]
    assert stopped.ids == votes.ids
