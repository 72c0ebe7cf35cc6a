from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from pcs_annotator.core.task import Task
from pcs_annotator.errors import LabelError


def test_labels_become_a_tuple_in_the_order_given() -> None:
    assert Task("Feeling?", labels=["positive", "negative"]).labels == ("positive", "negative")


def test_meanings_are_found_whatever_their_capitals() -> None:
    task = Task("Feeling?", ["Positive", "negative"], {"positive": "is pleased", "NEGATIVE": "is not"})

    assert task.meanings == {"Positive": "is pleased", "negative": "is not"}


def test_meanings_are_optional() -> None:
    assert Task("Feeling?", ["a", "b"]).meanings == {}


def test_later_changes_to_the_callers_values_do_not_leak_in() -> None:
    labels, meanings = ["a", "b"], {"a": "first"}
    task = Task("Which?", labels, meanings)

    labels.append("c")
    meanings["b"] = "second"

    assert task == Task("Which?", ["a", "b"], {"a": "first"})


def test_task_is_frozen() -> None:
    task = Task("Which?", ["a", "b"])

    with pytest.raises(FrozenInstanceError):
        task.instruction = "Other"  # type: ignore[misc]  # that is what is tested


@pytest.mark.parametrize(
    ("labels", "meanings", "parts"),
    [
        pytest.param(["only"], {}, ["at least two", "'only'"], id="nothing to choose from"),
        pytest.param([], {}, ["no labels"], id="no labels"),
        pytest.param(["yes", "YES"], {}, ["capitals"], id="two that can be confused"),
        pytest.param(["yes", "no"], {"maybe": "?"}, ["'maybe'", "'yes'", "'no'"], id="meaning without a label"),
    ],
)
def test_unusable_task_is_refused(labels: list[str], meanings: dict[str, str], parts: list[str]) -> None:
    with pytest.raises(LabelError) as caught:
        Task("Which?", labels, meanings)

    assert [part for part in parts if part not in str(caught.value)] == []
