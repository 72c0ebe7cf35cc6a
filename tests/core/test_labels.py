from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator.core.labels import MAX_LABELS, check_labels, label_lookup, unknown_label
from pcs_annotator.errors import LabelError, UserError


def test_labels_keep_their_order_and_spelling() -> None:
    assert check_labels(iter(["Positive", "negative", "Straße"])) == ("Positive", "negative", "Straße")


def test_as_many_labels_as_a_code_can_hold_are_allowed() -> None:
    names = [f"label {number}" for number in range(MAX_LABELS)]

    assert check_labels(names) == tuple(names)


@pytest.mark.parametrize(
    ("labels", "parts"),
    [
        pytest.param("positive", ["list of names", "'positive'"], id="one string instead of a list"),
        pytest.param([], ["no labels", "at least one"], id="none"),
        pytest.param([f"{n}" for n in range(128)], ["128 labels", "at most 127", "merge"], id="more than a code holds"),
        pytest.param(["fake", ""], ["''", "non-empty"], id="empty"),
        pytest.param(["fake", " \t"], ["' \\t'", "non-empty"], id="blank"),
        pytest.param(["fake", 1], ["label 1", "texts"], id="a number"),
        pytest.param(["fake", None], ["label None", "texts"], id="nothing"),
        pytest.param(["Fake", "real", "FAKE"], ["'Fake'", "'FAKE'", "capitals", "keep one"], id="capitals"),
        pytest.param(["straße", "STRASSE"], ["'straße'", "'STRASSE'", "keep one"], id="capitals beyond ASCII"),
        pytest.param(["fake", "real", "fake"], ["'fake'", "twice"], id="the same object twice"),
        pytest.param(["fake", "real", "".join(["fa", "ke"])], ["'fake'", "twice"], id="the same text twice"),
    ],
)
def test_unusable_label_set_is_refused(labels: list[str], parts: list[str]) -> None:
    with pytest.raises(LabelError) as caught:
        check_labels(labels)

    assert [part for part in parts if part not in str(caught.value)] == []


@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=5, unique_by=str.casefold), st.data())
def test_every_label_finds_its_position_whatever_its_capitals(labels: list[str], data: st.DataObject) -> None:
    lookup = label_lookup(check_labels(labels))
    position = data.draw(st.integers(0, len(labels) - 1))

    assert lookup[labels[position].casefold()] == position
    assert len(lookup) == len(labels)


def test_unknown_label_names_the_place_the_value_and_the_labels() -> None:
    error = unknown_label("maybe", ["fake", "real"], "column 'a|original', row 3")

    assert str(error) == "column 'a|original', row 3: 'maybe' is none of the labels 'fake', 'real'"
    assert isinstance(error, UserError)


@pytest.mark.parametrize("value", [" Real", "real\n", "\u00a0REAL "])
def test_unknown_label_with_spaces_around_a_known_one_says_so(value: str) -> None:
    assert "spaces around 'real': remove them" in str(unknown_label(value, ["fake", "real"], "here"))
