"""What rules for letters leave alone, found in time that grows with the text."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator.relations.facts import kept_as_they_are
from pcs_annotator.relations.languages import READ, languages_of
from pcs_annotator.relations.plain.case import case
from pcs_annotator.relations.plain.typo import typo

# The definition, as one pattern; it backtracks, so it is for short texts only.
KEPT = re.compile(
    r"""(?:https?://|www\.)\S+ | \S+@\S+\.\w+ | [@\#]\w+ | &\#?\w+; | \S*\w[/\\_.]\w\S*
    | \w*\d\w*(?:[.,:/-]\w*\d\w*)* | [:;=8xX][-'^o]?[DPpOoSsXxCcLl3](?!\w) | \b[xX]D+\b""",
    re.VERBOSE,
)


@given(st.lists(st.sampled_from([*"ab@#&;./\\_x8D:- 1,'XP=w!é", "http://", "www."]), max_size=14).map("".join))
def test_what_is_kept_is_what_the_definition_says(text: str) -> None:
    kept = bytearray(len(text))
    for found in KEPT.finditer(text):
        kept[found.start() : found.end()] = b"\1" * (found.end() - found.start())
    assert kept_as_they_are(text) == kept


@pytest.mark.parametrize("piece", ["a@", "x", "@a", "@a#b_c", "&a;", "1-", "word ", "! "])
def test_rules_for_letters_come_to_an_end_on_long_texts(piece: str) -> None:
    text = "It is so. " + piece * (100_000 // len(piece))
    assert len(kept_as_they_are(text)) == len(text)
    assert case(text) != text
    assert typo(text) != text


def test_rules_are_tried_on_the_beginning_of_a_text() -> None:
    assert [len(text) for text in languages_of(["word " * READ]).sample] == [READ]
