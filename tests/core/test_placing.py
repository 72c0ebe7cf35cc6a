"""Quotations stand where models took them from, however they changed them; what is not in a text has no place."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.placing import measured, worst_cases
from pcs_annotator.core.placing import Places

TEXT = """The party met on Monday. “We can’t pay 1,500 euros,” said Mrs. O’Neill, the ﬁrst infor-
mation oﬃcer of the well-known   bank [2] of Cork. The committee agreed in 2019 that it would not
raise the price before −5 degrees, 1.5 litres and Ａｃｍｅ are irresponsible.
東京は日本の首都であり、最大の都市です。"""
AGREED = "The council met on Monday and agreed on {}. "


def placed(quotation: str, text: str = TEXT) -> list[str]:
    return [text[start:end] for start, end in Places(text).all_of(quotation)]


@pytest.mark.parametrize(
    ("quotation", "place"),
    [
        ("party", "party"),
        (" PARTY. ", "party"),
        ('"we can\'t pay 1,500 euros."', "We can’t pay 1,500 euros"),
        ("We can’t pay 1500 euros", "We can’t pay 1,500 euros"),
        ("first information officer", "ﬁrst infor-\nmation oﬃcer"),
        ("the wellknown bank", "the well-known   bank"),
        ("acme", "Ａｃｍｅ"),
        ("-5 degrees", "−5 degrees"),
        ("日本", "日本"),
        ("東京は日本の首都で、最大の都市", "東京は日本の首都であり、最大の都市"),
        ("the commitee agred in 2019 that it would", "The committee agreed in 2019 that it would"),
        ("of the well-known bank of Cork", "of the well-known   bank [2] of Cork"),
        ("[…] The committee agreed...", "The committee agreed"),
        ("...party", "party"),
        ("the comittee agreed (...) not raise teh price", TEXT[TEXT.index("The comm") : TEXT.index(" before")]),
    ],
)
def test_a_changed_quotation_stands_where_it_was_taken_from(quotation: str, place: str) -> None:
    assert placed(quotation) == [place]


@pytest.mark.parametrize(
    "quotation",
    [
        *("", " ", "...", "“”", "\u200b", "art", "responsible", "5 litres", "500 euros", "commitee", "bankers", ".5"),
        "We can’t pay 7,500 euros, said Mrs. O’Neill",
        "The commitee agreed in 2018 that it would not raise the price",
        "raise the price before −5 degrees, 15 litres and Acme are irresponsible.",
        "We will never know how this was decided, or by whom",
        "the price before … The party met",  # in another order
        "the ... price",
        "raise the price … " * 9,
    ],
)
def test_what_is_not_in_the_text_has_no_place(quotation: str) -> None:
    assert placed(quotation) == []
    assert Places(TEXT).of(quotation) is None


def test_all_places_that_do_not_overlap_are_known_and_the_first_is_the_one() -> None:
    text = AGREED.format("1 ﬁsh") * 3
    assert placed("met on Monday", text) == ["met on Monday"] * 3
    assert placed("MET ON MONDAY", text) == ["met on Monday"] * 3
    assert Places(text).of("1 fish.") == (text.index("1"), text.index(". ") + 1)
    assert placed("Monday and … 1 ﬁsh", text) == []  # a part of so few letters may be anything
    assert placed("met on Monday … agreed on 1 ﬁsh", text) == ["met on Monday and agreed on 1 ﬁsh"] * 3
    assert placed("met on Monday … Monday and agreed", text) == [
        "met on Monday and agreed on 1 ﬁsh. The council met on Monday and agreed"
    ]


def test_a_letter_is_one_however_its_accent_is_written() -> None:
    text = "A cafe\u0301 in\u00adside ガ"
    assert placed("Café inside", text) == ["cafe\u0301 in\u00adside"]
    assert [placed(part, text) for part in ("cafe", "side", "カ", "ガ")] == [[], [], [], ["ガ"]]


def test_a_similar_place_has_to_be_the_only_one() -> None:
    lines = [AGREED.format(topic) for topic in ("higher prices", "11 new bridges", "12 new bridges", "railways")]
    assert placed("The counsil met on Monday and agreed on 12 new bridges", "".join(lines)) == [lines[2].strip(". ")]
    assert placed("The counsil met on Monday and agreed on railways", "".join(lines)) == [lines[3].strip(". ")]
    assert placed("The counsil met on Monday and agreed on", "".join(lines)) == []


def test_parts_between_dots_stand_close_to_each_other() -> None:
    text = f"It began with the harvest. {'Much happened since. ' * 20}{{}}It ended with the winter."
    assert len(placed("It began with … with the winter.", text.format(""))) == 1
    assert placed("It began with … with the winter.", text.format("And more. " * 20)) == []
    assert placed("It began with the harvest … And", text.format("And more.")) == []  # rather than the first part
    assert placed("It begann … with the harvest", "It began … with the harvest") == ["It began … with the harvest"]


@pytest.mark.parametrize("letters", [600, 3_000])
def test_long_quotations_keep_both_ends_whatever_they_leave_out(letters: int) -> None:
    text = " ".join(f"word{'abcdefghij'[number % 10]}{'klmnopqrstu'[number % 11]}x{number}" for number in range(2_000))
    start, end = text.index(" ", 4_000) + 1, text.index(" ", 4_000 + 2 * letters)
    passage = text[start:end]
    middle = passage.index(" ", len(passage) // 2)
    assert Places(text).of(passage.replace("word", "wrod", 20)) == (start, end)
    assert Places(text).of(passage[:middle] + passage[middle:].replace("x", "", 30)) == (start, end)
    assert Places(passage).of(text.replace("word", "wrod", 20)) is None
    assert Places(text[end - 400 :]).of(passage.replace("word", "wrod")) is None


@given(
    words=st.lists(st.text(st.characters(exclude_categories=["Z", "Cc"]), min_size=1, max_size=8), min_size=1),
    space=st.sampled_from([" ", "\n", "  "]),
    data=st.data(),
)
def test_words_of_a_text_stand_where_they_are(words: list[str], space: str, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(words) - 1))
    last = data.draw(st.integers(first, len(words) - 1))
    quotation = space.join([*words[first:last], f"{words[last]}a"])
    text = space.join([*words[: first or 0], quotation, *words[last:]])
    start, end = Places(text).of(quotation) or (0, 0)
    assert text[start:end] == quotation
    changed = Places(text).of(f"“{quotation.replace(space, '  ')}”")
    assert changed is not None
    assert 0 <= changed[0] < changed[1] <= len(text)


@pytest.mark.parametrize("case", worst_cases())
def test_nothing_takes_long(case: str) -> None:
    text, quotation = worst_cases()[case]
    begin = time.process_time()
    Places(text).all_of(quotation)
    assert time.process_time() - begin < 2


def test_of_changed_quotations_nearly_all_are_placed_and_none_wrongly() -> None:
    results = measured(400)
    assert results.placed >= 0.98
    assert results.count("wrong") == 0
