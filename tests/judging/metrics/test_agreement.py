from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from pcs_annotator.core.arrays import Codes
from pcs_annotator.judging.metrics.agreement import Agreement, cohens_kappa, krippendorffs_alpha


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


@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 3)), min_size=2, max_size=40))
def test_kappa_is_that_of_scikit_learn_on_rows_with_both_labels(pairs: list[tuple[int, int]]) -> None:
    first, second = np.array(pairs, dtype=np.int8).T
    both = (first >= 0) & (second >= 0)
    found = cohens_kappa(first, second)
    assert found.rows == both.sum()
    if found.value is None:
        assert len({*first[both], *second[both]}) < 2
    else:
        assert found.value == pytest.approx(cohen_kappa_score(first[both], second[both]))


@pytest.mark.parametrize(
    ("labels", "alpha", "rows"),
    [
        (("0100000010", "1110010000"), 0.095, 10),
        (("aabbdcccedda", "babbbccceddd"), 0.692, 12),
        (("123321412...", "1233224125.3", ".3332342251.", "12332441251."), 0.743, 11),
    ],
)
def test_alpha_of_the_examples_in_krippendorffs_paper(labels: tuple[str, ...], alpha: float, rows: int) -> None:
    found = krippendorffs_alpha(people(*labels))
    assert found.value == pytest.approx(alpha, abs=5e-4)
    assert found.rows == rows


def test_agreement_on_every_row_is_one() -> None:
    codes = people("abca", "abca")
    assert cohens_kappa(*codes) == krippendorffs_alpha(codes) == Agreement(1.0, 4)


@pytest.mark.parametrize(
    ("labels", "rows"), [(("ab..", "..ab"), 0), (("....", "...."), 0), (("aab.", "aa.b"), 2), (("", ""), 0)]
)
def test_without_two_labels_there_is_nothing_to_agree_about(labels: tuple[str, ...], rows: int) -> None:
    codes = people(*labels)
    assert cohens_kappa(*codes) == krippendorffs_alpha(codes) == Agreement(None, rows)


def test_chance_gives_zero() -> None:
    codes = np.random.default_rng(0).integers(0, 3, (3, 20_000)).astype(np.int8)
    assert krippendorffs_alpha(codes).value == pytest.approx(0, abs=0.02)
    assert cohens_kappa(codes[0], codes[1]).value == pytest.approx(0, abs=0.02)
