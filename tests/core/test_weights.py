import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pcs_annotator import Weights
from pcs_annotator.base.errors import TableError, UnknownNameError
from pcs_annotator.core.arrays import Floats
from pcs_annotator.core.weights import Diagnostics, Evidence, Flag, Interval, to_simplex
from tests.builders import the, votes_of


def two_by_two(evidence: Evidence | None = None) -> Weights:
    return Weights(
        annotators=["a", "b"],
        relations=["original", "voice"],
        annotator_weights=np.array([0.75, 0.25]),
        relation_weights=np.array([0.9, 0.1]),
        evidence=evidence,
    )


def some_evidence() -> Evidence:
    return Evidence(
        labels=["fake", "real"], log_prior=np.log([0.4, 0.6]), log_likelihood=np.arange(16.0).reshape(2, 2, 2, 2)
    )


def test_weights_are_found_by_name() -> None:
    assert two_by_two().by_annotator == {"a": 0.75, "b": 0.25}
    assert two_by_two().by_relation == {"original": 0.9, "voice": 0.1}


def test_matrix_weighs_every_cell_and_sums_to_one() -> None:
    matrix = two_by_two().matrix

    np.testing.assert_allclose(matrix, [[0.675, 0.075], [0.225, 0.025]])
    assert matrix.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("values", "parts"),
    [
        pytest.param([1.5, -0.5], ["[1.5, -0.5]"], id="negative"),
        pytest.param([0.5, 0.4], ["[0.5, 0.4]"], id="too small a sum"),
        pytest.param([1.0, 1.0], ["[1.0, 1.0]"], id="too large a sum"),
        pytest.param([np.nan, 1.0], ["nan"], id="nan"),
        pytest.param([np.inf, 0.0], ["inf"], id="infinite"),
        pytest.param([1.0], ["(1,)", "2 annotators"], id="too few"),
        pytest.param([[0.5, 0.5]], ["(1, 2)"], id="too many axes"),
    ],
)
def test_unusable_weights_are_refused(values: list[float], parts: list[str]) -> None:
    with pytest.raises(ValueError, match="annotator_weights") as caught:
        Weights(
            annotators=["a", "b"],
            relations=["original"],
            annotator_weights=np.array(values),
            relation_weights=np.ones(1),
        )

    assert [part for part in parts if part not in str(caught.value)] == []


def test_weights_over_relations_are_checked_too() -> None:
    with pytest.raises(ValueError, match=r"relation_weights.*\[0\.5\]"):
        Weights(
            annotators=["a"], relations=["original"], annotator_weights=np.ones(1), relation_weights=np.full(1, 0.5)
        )


def test_two_annotators_of_one_name_are_refused() -> None:
    with pytest.raises(TableError, match=r"annotators: 'a'.*row 1.*row 2"):
        Weights(annotators=["a", "a"], relations=["r"], annotator_weights=np.full(2, 0.5), relation_weights=np.ones(1))


def test_weights_cannot_be_written_to_and_do_not_freeze_the_callers_array() -> None:
    own = np.array([0.5, 0.5])
    weights = Weights(annotators=["a", "b"], relations=["r"], annotator_weights=own, relation_weights=np.ones(1))

    own[0] = 9.0

    assert weights.by_annotator == {"a": 0.5, "b": 0.5}
    with pytest.raises(ValueError, match="read-only"):
        weights.annotator_weights[0] = 1.0


def test_evidence_cannot_be_written_to() -> None:
    evidence = some_evidence()

    assert evidence.labels == ("fake", "real")
    for array in (evidence.log_prior, evidence.log_likelihood):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0


def test_uniform_weights_are_equal_and_keep_their_diagnostics() -> None:
    diagnostics = Diagnostics(optimiser="uniform")
    weights = Weights.uniform(votes_of(np.zeros((1, 4, 2))), diagnostics)

    assert weights.by_annotator == {"a0": 0.25, "a1": 0.25, "a2": 0.25, "a3": 0.25}
    assert weights.by_relation == {"original": 0.5, "r1": 0.5}
    assert weights.diagnostics is diagnostics


def test_normalised_weights_are_divided_by_their_sum() -> None:
    weights = Weights.normalised(votes_of(np.zeros((1, 2, 2))), np.array([3.0, 1.0]), np.zeros(2))

    assert weights.by_annotator == {"a0": 0.75, "a1": 0.25}
    assert weights.by_relation == {"original": 0.5, "r1": 0.5}
    assert weights.diagnostics == Diagnostics()


@given(hnp.arrays(np.float64, st.integers(1, 6), elements=st.floats(-1e6, 1e6, allow_subnormal=False)))
def test_simplex_is_non_negative_sums_to_one_and_keeps_the_order(values: Floats) -> None:
    shares = to_simplex(values)

    assert (shares >= 0).all()
    assert shares.sum() == pytest.approx(1)
    assert (np.diff(shares[np.argsort(values, kind="stable")]) >= 0).all()


def test_reordering_moves_names_weights_and_evidence_together() -> None:
    weights = two_by_two(some_evidence())
    turned = weights.reordered(["b", "a"], ["voice", "original"])

    assert (turned.annotators, turned.relations) == (("b", "a"), ("voice", "original"))
    assert turned.by_annotator == weights.by_annotator
    assert turned.by_relation == weights.by_relation
    np.testing.assert_array_equal(the(turned.evidence).log_likelihood, the(weights.evidence).log_likelihood[::-1, ::-1])
    np.testing.assert_array_equal(turned.matrix, weights.matrix[::-1, ::-1])


def test_reordering_to_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"model.*'c'.*a, b"):
        two_by_two().reordered(["c", "a"], ["original", "voice"])


def test_weights_survive_json_without_evidence() -> None:
    back = Weights.from_dict(json.loads(json.dumps(two_by_two().to_dict())))

    assert back.to_dict() == two_by_two().to_dict()
    assert back.evidence is None
    assert back.diagnostics == Diagnostics()


def test_weights_survive_json_with_everything_in_them() -> None:
    diagnostics = Diagnostics(
        optimiser="auto",
        gold_rows=30,
        objective=0.25,
        iterations=7,
        flags=(Flag("no original", "look at the relations"),),
        annotator_intervals={"a": Interval(0.5, 0.9), "b": Interval(0.1, 0.5)},
        relation_intervals={"original": Interval(0.0, 1.0)},
    )
    weights = Weights(
        annotators=["a", "b"],
        relations=["original", "voice"],
        annotator_weights=np.array([1 / 3, 2 / 3]),
        relation_weights=np.array([0.1, 0.9]),
        evidence=some_evidence(),
        diagnostics=diagnostics,
    )

    back = Weights.from_dict(json.loads(json.dumps(weights.to_dict(), allow_nan=False)))

    assert back.by_annotator == weights.by_annotator
    assert back.by_relation == weights.by_relation
    assert back.diagnostics == diagnostics
    assert back.diagnostics.flags[0].kind == "no original"
    assert back.diagnostics.annotator_intervals["a"].low == 0.5
    assert back.evidence is not None
    assert back.evidence.labels == ("fake", "real")
    np.testing.assert_array_equal(back.evidence.log_prior, some_evidence().log_prior)
    np.testing.assert_array_equal(back.evidence.log_likelihood, some_evidence().log_likelihood)


def test_nan_from_a_failed_optimiser_does_not_become_equal_weights() -> None:
    with pytest.raises(ValueError, match="nan"):
        to_simplex(np.array([0.5, np.nan]))


@given(st.tuples(*[st.floats(-1, 1)] * 3).map(sorted), st.integers(1, 4), st.integers(1, 4))
def test_a_rounded_interval_contains_its_value_however_that_is_rounded(
    values: list[float], digits: int, digits_of_value: int
) -> None:
    low, value, high = values
    ends = Interval(low, high).rounded(digits)
    shown = float(f"{value:.{max(digits, digits_of_value)}f}")
    assert float(f"{ends.low:.{digits}f}") <= shown <= float(f"{ends.high:.{digits}f}")
    assert ends.low == pytest.approx(low, abs=10**-digits)
    assert ends.high == pytest.approx(high, abs=10**-digits)


def test_an_end_that_needs_no_rounding_stays_and_a_missing_one_too() -> None:
    assert Interval(0.29, 0.57).rounded(2) == (0.29, 0.57)
    assert str(Interval(float("nan"), float("inf")).rounded(2)) == "Interval(low=nan, high=inf)"


def test_weights_are_shown_for_those_that_cast_votes_and_sum_to_1() -> None:
    votes = votes_of([[[0, -2, 1]], [[1, -1, 0]]])
    details = Diagnostics(relation_intervals={"original": Interval(0.25, 0.9), "r1": Interval(0.1, 0.2)})
    weights = Weights.normalised(votes, np.ones(1), np.array([0.5, 0.375, 0.125]), details)
    annotators, relations = weights.shares(votes)
    assert annotators == {"a0": (1.0, None)}
    assert relations == {"original": (0.8, (0.4, 1.0)), "r1": None, "r2": (0.2, None)}
    silent = votes_of([[[-1, -1, -1]]])
    assert weights.shares(silent) == ({"a0": None}, {"original": None, "r1": None, "r2": None})
