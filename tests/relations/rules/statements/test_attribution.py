"""What the rule for attribution does to invented news sentences, and what it leaves alone."""

from __future__ import annotations

import asyncio
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pcs_annotator.core.variant import Variant
from pcs_annotator.relations.base import Context, relations
from pcs_annotator.relations.rules.statements import attribution as _registered  # noqa: F401 - makes the rule known
from pcs_annotator.relations.rules.words import word_set

CONTEXT = Context()
GOLDEN = (Path(__file__).parent / "attribution_golden.txt").read_text(encoding="utf-8").splitlines()
PAIRS = [(old[2:], new[2:]) for old, new in pairwise(GOLDEN) if old.startswith("- ")]
LEFT_ALONE = [line[2:] for line in GOLDEN if line.startswith("= ")]
PIECES = ["\n", *sorted(word_set("The mayor said that , he told rates fell Reuters - ( ) “ ” ' \" . ; : ? 😀 the"))]


def rewrite(text: str) -> Variant:
    return asyncio.run(relations.create("rule:attribution").rewrite(text, CONTEXT))


def words(text: str) -> list[str]:
    return sorted(word for word in re.findall(r"[\w$]+", text.lower()) if word != "that")


@pytest.mark.parametrize(("text", "expected"), PAIRS)
def test_invented_sentence_names_its_speaker_at_the_other_end(text: str, expected: str) -> None:
    assert rewrite(text).text == expected


@pytest.mark.parametrize("text", LEFT_ALONE)
def test_sentence_whose_parts_cannot_change_places_is_left_alone(text: str) -> None:
    assert rewrite(text).status == "not_applicable"


@pytest.mark.parametrize(("text", "expected"), PAIRS)
def test_golden_rewrites_keep_every_word_but_that(text: str, expected: str) -> None:
    assert words(text) == words(expected)


def test_golden_file_holds_enough_to_mean_something() -> None:
    assert len(PAIRS) >= 50
    assert len(LEFT_ALONE) >= 20


@pytest.mark.parametrize(
    "text", ["The minister said that taxes would fall.", "The minister said on Monday that rents had doubled."]
)
def test_there_and_back_gives_the_sentence_again(text: str) -> None:
    there = rewrite(text).text
    assert there is not None
    assert rewrite(there).text == text


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from(PIECES) | st.text(max_size=6),
        max_size=14,
    )
)
def test_shuffled_words_and_signs_never_raise(pieces: list[str]) -> None:
    assert rewrite(" ".join(pieces)).status in ("changed", "not_applicable")
