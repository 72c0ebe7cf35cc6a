import pytest

from pcs_annotator.core.result_table import Content, Figure, ResultTable, best_in_groups, best_in_rows, number_of
from pcs_annotator.core.weights import Interval


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        (Figure(0.5), 0.5),
        (3, 3.0),
        (0.25, 0.25),
        ("0.9", None),
        (None, None),
        (float("nan"), None),
        (float("inf"), None),
    ],
)
def test_only_finite_numbers_are_numbers(cell: Content, number: float | None) -> None:
    assert number_of(cell) == number


def test_a_row_needs_a_cell_for_every_column() -> None:
    with pytest.raises(ValueError, match=r"'x' has 1 cells.*2 columns"):
        ResultTable(name="x", title="", columns=["a", "b"], rows=[["one"]])


def test_cells_that_print_the_same_are_equally_good() -> None:
    rows: list[list[Content]] = [
        ["a", 0.701, Figure(0.699, Interval(0.6, 0.8))],
        ["b", 0.71, 0.69],
        ["c", None, None],
        ["d", None, 0.1],
    ]
    assert best_in_rows(rows, [1, 2]) == {(0, 1), (0, 2), (1, 1), (3, 2)}


def test_the_best_of_a_group_is_marked() -> None:
    rows: list[list[Content]] = [["x", 0.5], ["x", 0.7], ["y", 0.6], ["y", None]]
    assert best_in_groups(rows, column=1, by=1) == {(1, 1), (2, 1)}
