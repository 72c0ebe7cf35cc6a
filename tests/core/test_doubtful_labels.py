from __future__ import annotations

import pytest

from pcs_annotator.base.errors import LabelError
from pcs_annotator.core.task import refuse_doubtful, unknown_label


def refuse(*gold: str | None) -> None:
    refuse_doubtful(gold, [f"row {row}" for row in range(1, len(gold) + 1)], "name all labels")


@pytest.mark.parametrize("value", ["NaN", "nan", "none", "None", "NULL", "N/A", "n/a", "NA", "#N/A", "<NA>"])
def test_a_word_for_a_missing_value_is_no_label(value: str) -> None:
    with pytest.raises(
        LabelError, match=f"row 3: '{value}' may mean that there is no label: empty such cells, or name"
    ):
        refuse("pro", None, value, "contra", value)


@pytest.mark.parametrize(
    "value", ["Wirtschaft;Migration", "a | b", "['a', 'b']", '["a"]', "pro, contra", "Pro/contra", "pro+contra"]
)
def test_several_labels_in_one_cell_are_refused(value: str) -> None:
    with pytest.raises(LabelError, match=r"row 2: .* looks like several labels in one cell, and a text gets one"):
        refuse("pro", value, "contra")


@pytest.mark.parametrize(
    "value", ["Sci/Tech", "R&D", "hate, but polite", "pro/other", "pro;", "C++", "[deleted]", "1st"]
)
def test_a_sign_in_a_label_is_part_of_it(value: str) -> None:
    refuse("pro", value, "contra", value)


@pytest.mark.parametrize("gold", [["1", "2", "7.5"], ["1", "7,5", "7,5"], ["7.5", "pro"], ["-1", "3", "1200"]])
def test_measurements_are_no_labels(gold: list[str]) -> None:
    with pytest.raises(LabelError, match="looks like a measurement: turn numbers into classes, or name all labels"):
        refuse(*gold)


@pytest.mark.parametrize(
    "gold",
    [
        ["0", "1"],
        ["1", "2", "3", "4", "5"],
        ["13", "7", "13", "7"],
        ["2020", "2021", "2020", "2021"],
        ["1.0", "2.0"],
        [],
    ],
)
def test_whole_numbers_are_codes_if_they_are_small_or_repeat(gold: list[str]) -> None:
    refuse(*gold, None)


@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        (
            "none",
            "'none' is not one of the labels 'a', 'b'; it may mean that there is no label: empty such cells, or add",
        ),
        ("a,b", "it looks like several labels in one cell, and a text gets one: keep one of them, or add it"),
        ("other", "'other' is not one of the labels 'a', 'b'$"),
    ],
)
def test_a_value_outside_of_the_labels_is_refused_with_what_it_may_be(value: str, remedy: str) -> None:
    with pytest.raises(LabelError, match=remedy):
        raise unknown_label(value, ["a", "b"], "gold.csv, row 3")
