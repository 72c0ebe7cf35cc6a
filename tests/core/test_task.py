from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator import Item, Task, UserError
from pcs_annotator.base.errors import ConfigError, LabelError
from pcs_annotator.core.passages import Extraction
from pcs_annotator.core.task import (
    MAX_LABELS,
    Example,
    check_labels,
    in_order,
    label_lookup,
    refuse_doubtful,
    refuse_line_breaks,
    unknown_label,
    usual_instruction,
)


def test_item_has_no_field_for_gold() -> None:
    # gold that travels with the text would sooner or later end up in a prompt
    assert [field.name for field in fields(Item)] == ["id", "text"]

    with pytest.raises((AttributeError, TypeError)):
        Item(id="1", text="Fine weather.").gold = "positive"  # type: ignore[attr-defined]  # that is what is tested


def test_labels_become_a_tuple_in_the_order_given() -> None:
    assert Task("Feeling?", labels=["positive", "negative"]).labels == ("positive", "negative")


def test_case_of_meanings_does_not_matter() -> None:
    task = Task("Feeling?", ["Positive", "negative"], {"positive": "is pleased", "NEGATIVE": "is not"})

    assert task.meanings == {"Positive": "is pleased", "negative": "is not"}


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
        ("a,b", "it looks like several labels in one cell, .*: keep one of them, or use kind = 'many', or add it"),
        ("other", "'other' is not one of the labels 'a', 'b'$"),
    ],
)
def test_a_value_outside_of_the_labels_is_refused_with_what_it_may_be(value: str, remedy: str) -> None:
    with pytest.raises(LabelError, match=remedy):
        raise unknown_label(value, ["a", "b"], "gold.csv, row 3")


def test_labels_that_are_numbers_are_in_their_order() -> None:
    assert in_order(["10", "2", "1"]) == ("1", "2", "10")
    assert in_order(["b", "10", "a"]) == ("10", "a", "b")


def test_an_example_without_a_text_is_refused() -> None:
    with pytest.raises(ConfigError, match="example 1 has an empty text"):
        Task("Feeling?", ["positive", "negative"], examples=[Example(" ", "positive")])


def test_the_answer_of_an_example_is_whole_where_passages_are_quoted() -> None:
    shown = Example("It rained.", '[{"start": 0, "end": 10, "type": "claim"}]')
    task = Task("Which claims?", ["claim"], extraction=Extraction(("claim",)), examples=[shown])
    assert task.examples == (shown,)
