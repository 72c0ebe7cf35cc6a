"""The examples nearest to a text: never the text itself, the same ones every time."""

from __future__ import annotations

import pytest

from pcs_annotator import Example, Task
from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.ngrams import NearestExamples, nearest_among

BANK = (
    Example("The striker scored a late goal.", "sport"),
    Example("The bank raised its interest rates.", "money"),
    Example("The keeper let in a goal.", "sport"),
    Example("Interest on bank loans fell.", "money"),
    Example("A goal by the striker decided the cup.", "sport"),
)


def test_the_most_similar_come_first_and_a_second_set_has_the_next_ones() -> None:
    bank = NearestExamples(BANK)
    first, second = bank.of("The striker scored a goal.", 2), bank.of("The striker scored a goal.", 2, skipped=2)
    assert first[0] == BANK[0]
    assert {one.label for one in first} == {"sport"}
    assert not {*first} & {*second}
    assert len(bank.of("The bank.", 9)) == len(BANK)


@pytest.mark.parametrize(
    "copy", [BANK[0].text, "the  STRIKER scored a late goal. ", "\nThe striker scored\ta late goal."]
)
def test_a_text_is_never_shown_itself_or_a_copy(copy: str) -> None:
    found = NearestExamples([*BANK, Example(BANK[0].text.upper(), "sport")]).of(copy, 9)
    assert len(found) == len(BANK) - 1
    assert BANK[0] not in found


def test_equally_similar_ones_come_in_their_order_and_a_bank_is_read_once() -> None:
    twins = tuple(Example(text, "a") for text in ("xx one", "xx two", "xx six"))
    assert NearestExamples(twins).of("qqqq", 3) == twins
    assert nearest_among(BANK) is nearest_among(tuple(BANK))


def test_a_number_of_examples_below_zero_is_refused() -> None:
    with pytest.raises(ConfigError, match="nearest is -1, must be 0"):
        Task("About?", ["sport", "money"], examples=BANK, nearest=-1)
