from __future__ import annotations

from dataclasses import FrozenInstanceError, fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator import Item, Task, UserError
from pcs_annotator.base.errors import ConfigError, LabelError
from pcs_annotator.core.task import (
    MAX_LABELS,
    Phrasing,
    check_labels,
    label_lookup,
    refuse_line_breaks,
    unknown_label,
    usual_instruction,
)


def test_item_has_no_field_for_gold() -> None:
    # gold that travels with the text would sooner or later end up in a prompt
    assert [field.name for field in fields(Item)] == ["id", "text"]

    with pytest.raises((AttributeError, TypeError)):
        Item(id="1", text="Fine weather.").gold = "positive"  # type: ignore[attr-defined]  # that is what is tested


def test_item_is_frozen_and_compares_by_value() -> None:
    item = Item(id="1", text="Fine weather.")

    assert item == Item(id="1", text="Fine weather.")
    with pytest.raises(FrozenInstanceError):
        item.text = "Rain."  # type: ignore[misc]  # that is what is tested


def test_labels_become_a_tuple_in_the_order_given() -> None:
    assert Task("Feeling?", labels=["positive", "negative"]).labels == ("positive", "negative")


def test_case_of_meanings_does_not_matter() -> None:
    task = Task("Feeling?", ["Positive", "negative"], {"positive": "is pleased", "NEGATIVE": "is not"})

    assert task.meanings == {"Positive": "is pleased", "negative": "is not"}


def test_meanings_are_optional() -> None:
    assert Task("Feeling?", ["a", "b"]).meanings == {}


def test_later_changes_to_the_callers_values_do_not_leak_in() -> None:
    labels, meanings, wordings = ["a", "b"], {"a": "first"}, ["Which one?"]
    task = Task("Which?", labels, meanings, wordings)

    labels.append("c")
    meanings["b"] = "second"
    wordings.append("Which of them?")

    assert task == Task("Which?", ["a", "b"], {"a": "first"}, ["Which one?"])


def test_wordings_are_optional_and_become_a_tuple_in_the_order_given() -> None:
    assert Task("Which?", ["a", "b"]).wordings == ()
    assert Task("Which?", ["a", "b"], wordings=["Name one.", "Choose."]).wordings == ("Name one.", "Choose.")


def test_tasks_with_other_wordings_differ() -> None:
    plain = Task("Which?", ["a", "b"])

    assert Task("Which?", ["a", "b"], wordings=["Choose."]) != plain


@pytest.mark.parametrize(
    ("wordings", "parts"),
    [
        pytest.param("Choose.", ["list", "'Choose.'"], id="one string instead of a list"),
        pytest.param(["Choose.", " "], ["number 2", "' '", "remove"], id="blank"),
        pytest.param([7], ["number 1", "7"], id="a number"),
    ],
)
def test_unusable_wordings_are_refused(wordings: list[str], parts: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        Task("Which?", ["a", "b"], wordings=wordings)

    assert [part for part in parts if part not in str(caught.value)] == []


def test_a_question_is_put_as_the_annotator_puts_it_unless_asked_for_in_one_message() -> None:
    task = Task("Which?", ["a", "b"])

    assert Phrasing(task=task) == Phrasing(task=task, one_message=False)
    assert Phrasing(task=task, one_message=True) != Phrasing(task=task)


def test_phrasing_is_frozen() -> None:
    phrasing = Phrasing(task=Task("Which?", ["a", "b"]))

    with pytest.raises(FrozenInstanceError):
        phrasing.one_message = True  # type: ignore[misc]  # that is what is tested


def test_task_is_frozen() -> None:
    task = Task("Which?", ["a", "b"])

    with pytest.raises(FrozenInstanceError):
        task.instruction = "Other"  # type: ignore[misc]  # that is what is tested


@pytest.mark.parametrize(
    ("labels", "meanings", "parts"),
    [
        pytest.param(["only"], {}, ["two", "'only'"], id="nothing to choose from"),
        pytest.param([], {}, ["no labels"], id="no labels"),
        pytest.param(["yes", "YES"], {}, ["'yes'", "'YES'"], id="two that can be confused"),
        pytest.param(["yes", "no"], {"maybe": "?"}, ["'maybe'", "'yes'", "'no'"], id="meaning without a label"),
    ],
)
def test_unusable_task_is_refused(labels: list[str], meanings: dict[str, str], parts: list[str]) -> None:
    with pytest.raises(LabelError) as caught:
        Task("Which?", labels, meanings)

    assert [part for part in parts if part not in str(caught.value)] == []


def test_labels_keep_their_order_and_spelling() -> None:
    assert check_labels(iter(["Positive", "negative", "Straße"])) == ("Positive", "negative", "Straße")


def test_as_many_labels_as_a_code_can_hold_are_allowed() -> None:
    names = [f"label {number}" for number in range(MAX_LABELS)]

    assert check_labels(names) == tuple(names)


@pytest.mark.parametrize(
    ("labels", "parts"),
    [
        pytest.param("positive", ["list", "'positive'"], id="one string instead of a list"),
        pytest.param([], ["no labels"], id="none"),
        pytest.param([f"{n}" for n in range(5_001)], ["5001", "5,000"], id="more than a code holds"),
        pytest.param(["fake", ""], ["''"], id="empty"),
        pytest.param(["fake", " \t"], ["' \\t'"], id="blank"),
        pytest.param(["fake", 1], ["label 1"], id="a number"),
        pytest.param(["fake", None], ["label None"], id="nothing"),
        pytest.param(["Fake", "real", "FAKE"], ["'Fake'", "'FAKE'"], id="case"),
        pytest.param(["straße", "STRASSE"], ["'straße'", "'STRASSE'"], id="case beyond ASCII"),
        pytest.param(["fake", "real", "fake"], ["'fake'", "twice"], id="the same object twice"),
        pytest.param(["fake", "real", "".join(["fa", "ke"])], ["'fake'", "twice"], id="the same text twice"),
    ],
)
def test_unusable_label_set_is_refused(labels: list[str], parts: list[str]) -> None:
    with pytest.raises(LabelError) as caught:
        check_labels(labels)

    assert [part for part in parts if part not in str(caught.value)] == []


@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=5, unique_by=str.casefold), st.data())
def test_every_label_has_its_position_regardless_of_case(labels: list[str], data: st.DataObject) -> None:
    lookup = label_lookup(check_labels(labels))
    position = data.draw(st.integers(0, len(labels) - 1))

    assert lookup[labels[position].casefold()] == position
    assert {*lookup.values()} == {*range(len(labels))}


def test_unknown_label_names_the_place_the_value_and_the_labels() -> None:
    error = unknown_label("maybe", ["fake", "real"], "column 'a|original', row 3")

    assert [part for part in ("'a|original', row 3", "'maybe'", "'fake', 'real'") if part not in str(error)] == []
    assert "spaces" not in str(error)
    assert isinstance(error, UserError)


@pytest.mark.parametrize("value", [" Real", "real\n", "\u00a0REAL "])
def test_spaces_around_a_known_label_are_named_as_the_cause(value: str) -> None:
    assert "spaces around 'real'" in str(unknown_label(value, ["fake", "real"], "here"))


@pytest.mark.parametrize("label", ["two\nlines", "tab\there", "next\u2028line"])
def test_label_with_a_line_break_is_refused(label: str) -> None:
    with pytest.raises(LabelError, match="write it in one line"):
        refuse_line_breaks(["fine, really", label])


def test_labels_with_commas_are_in_quotes_in_the_usual_instruction() -> None:
    labels = ["sports, games", "👩‍💻 work"]
    assert usual_instruction(labels) == 'Which label fits the text best: "sports, games", "👩‍💻 work"?'


def test_a_whole_number_is_one_label_with_and_without_what_pandas_adds() -> None:
    assert label_lookup(["6", "-3.0", "6.5", "six"]) == {
        **{"6": 0, "6.0": 0, "-3.0": 1, "-3": 1},
        **{"6.5": 2, "six": 3},
    }
    assert label_lookup(["6", "6.0"]) == {"6": 0, "6.0": 1}
