from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from pcs_annotator.core.arrays import Codes
from pcs_annotator.judging.metrics.coefficients import (
    Agreement,
    Scale,
    Weighting,
    alpha_on,
    cohens_kappa,
    coincidences,
    kappa_on,
    krippendorffs_alpha,
    pair_tables,
)

FOUR_OBSERVERS = ("123321412...", "1233224125.3", ".3332342251.", "12332441251.")
"""Example C of Krippendorff (2011), with missing values."""


def pair_of(table: list[list[int]]) -> tuple[Codes, Codes]:
    """Return two people's labels, given how often each pair of labels occurs."""
    cells = [(row, column) for row, counts in enumerate(table) for column, n in enumerate(counts) for _ in range(n)]
    first, second = np.array(cells, dtype=np.int8).T
    return first, second


def people(*labels: str) -> Codes:
    """Return codes of labels that are single characters; a dot is a missing one."""
    known = sorted({*"".join(labels)} - {"."})
    return np.array([[-1 if one == "." else known.index(one) for one in row] for row in labels], dtype=np.int8)


def test_kappa_of_the_example_in_cohens_paper() -> None:
    found = cohens_kappa(*pair_of([[88, 14, 18], [10, 40, 10], [2, 6, 12]]))
    assert found.value == pytest.approx(0.29 / 0.59)
    assert found.rows == 200


@pytest.mark.parametrize("weighting", ["equal", "linear", "quadratic"])
@given(pairs=st.lists(st.tuples(st.integers(-1, 4), st.integers(-1, 4)), min_size=2, max_size=40))
def test_kappa_is_that_of_scikit_learn_on_rows_with_both_labels(
    weighting: Weighting, pairs: list[tuple[int, int]]
) -> None:
    first, second = np.array(pairs, dtype=np.int8).T
    both = (first >= 0) & (second >= 0)
    found = cohens_kappa(first, second, weighting)
    assert found.rows == both.sum()
    if found.value is None:
        assert len({*first[both], *second[both]}) < 2
    else:
        weights = None if weighting == "equal" else weighting
        expected = cohen_kappa_score(first[both], second[both], weights=weights, labels=range(5))
        assert found.value == pytest.approx(expected, abs=1e-9)


def exact_alpha(labels: tuple[str, ...], scale: Scale) -> Fraction:
    """Return α by its definition: differences within rows over differences among all labels that have a partner."""
    rows = [[int(one) for one in row if one != "."] for row in zip(*labels, strict=True)]
    rows = [row for row in rows if len(row) > 1]
    values = [one for row in rows for one in row]
    times = Counter(values)

    @cache
    def apart(first: int, second: int) -> Fraction:
        low, high = sorted((first, second))
        between = sum(times[one] for one in range(low, high + 1))
        ordinal = between - Fraction(times[low] + times[high], 2)
        return Fraction(first != second) if scale == "nominal" else ordinal**2

    within = [sum((apart(*pair) for pair in permutations(row, 2)), Fraction()) / (len(row) - 1) for row in rows]
    expected = sum((apart(*pair) for pair in permutations(values, 2)), Fraction()) / (len(values) - 1)
    return 1 - sum(within, Fraction()) / expected


@pytest.mark.parametrize(("scale", "published"), [("nominal", 0.743), ("ordinal", 0.815)])
def test_alpha_of_four_observers_is_the_exact_fraction_behind_the_published_figure(
    scale: Scale, published: float
) -> None:
    exact = exact_alpha(FOUR_OBSERVERS, scale)
    found = krippendorffs_alpha(people(*FOUR_OBSERVERS), scale)
    assert found.rows == 11
    assert found.value == pytest.approx(float(exact), abs=1e-12)
    assert float(exact) == pytest.approx(published, abs=5e-4)


@given(st.lists(st.text("12345.", min_size=3, max_size=3), min_size=2, max_size=8))
def test_alpha_is_the_exact_fraction_on_every_scale(rows: list[str]) -> None:
    labels = tuple(map("".join, zip(*rows, strict=True)))
    codes = np.array([[-1 if one == "." else int(one) for one in row] for row in labels], dtype=np.int8)
    scales: tuple[Scale, ...] = ("nominal", "ordinal")
    for scale in scales:
        found = krippendorffs_alpha(codes, scale)
        if found.value is not None:
            assert found.value == pytest.approx(float(exact_alpha(labels, scale)), abs=1e-9)


def test_figures_of_resamples_are_those_of_the_rows_they_drew() -> None:
    codes = people(*FOUR_OBSERVERS)
    drawn = np.random.default_rng(0).integers(codes.shape[1], size=(5, codes.shape[1]))
    counts = np.array([np.bincount(rows, minlength=codes.shape[1]) for rows in drawn], dtype=np.float64).T
    tables = pair_tables(codes[1], codes[2], counts, 5)
    for rows, pairs, table in zip(drawn, coincidences(codes, counts, 5), tables, strict=True):
        again = codes[:, rows]
        assert alpha_on(pairs, "ordinal") == pytest.approx(krippendorffs_alpha(again, "ordinal").value)
        assert kappa_on(table, "linear") == pytest.approx(cohens_kappa(again[1], again[2], "linear").value)


@pytest.mark.parametrize(
    ("labels", "alpha", "rows"),
    [(("0100000010", "1110010000"), 0.095, 10), (("aabbdcccedda", "babbbccceddd"), 0.692, 12)],
)
def test_alpha_of_the_examples_in_krippendorffs_paper(labels: tuple[str, ...], alpha: float, rows: int) -> None:
    found = krippendorffs_alpha(people(*labels))
    assert found.value == pytest.approx(alpha, abs=5e-4)
    assert found.rows == rows


@pytest.mark.parametrize(
    ("labels", "rows"), [(("ab..", "..ab"), 0), (("....", "...."), 0), (("aab.", "aa.b"), 2), (("", ""), 0)]
)
def test_without_two_labels_there_is_nothing_to_agree_about(labels: tuple[str, ...], rows: int) -> None:
    codes = people(*labels)
    assert cohens_kappa(*codes) == krippendorffs_alpha(codes) == Agreement(None, rows)
