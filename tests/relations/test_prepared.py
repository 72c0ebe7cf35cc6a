from __future__ import annotations

import asyncio

import pytest

from pcs_annotator.relations.base import Context, relations
from pcs_annotator.relations.parse import prepared


@pytest.mark.parametrize(
    ("before", "words", "after"),
    [
        ("@ann @bob ", "the bus was late.", " 😡😡"),
        ("RT @ann: ", "The bus was late.", " https://t.co/Ab1 #buses #late"),
        ("BREAKING: ", "The bus was late", " via @city"),
        ("@ann ", "The bus was late again!", ""),
        ("", "I am back from #work", ""),
        ("", "@ann is right about the bus.", ""),
        ("", "@ann and @bob are late", " #buses"),
        ("#ely #buses ", "#mayor was late, and i know", " #late"),
        ("", '"The bus" was late, said "Ann"', ""),
        ("", "#buses", ""),
        ("", "", ""),
    ],
)
def test_what_is_no_part_of_the_sentences_is_set_aside(before: str, words: str, after: str) -> None:
    assert prepared(before + words + after) == (before, words, after)


@pytest.mark.parametrize(
    ("rule", "text", "rewrite"),
    [
        ("voice", "@ann The mayor saved an old school. #proud", "@ann An old school was saved by the mayor. #proud"),
        ("synonym", "@ann The mayor tried to buy a bus! 😀", "@ann The mayor attempted to buy a bus! 😀"),
        (
            "double-negation",
            "@ann Seen it? The mayor likes the old school. https://t.co/Ab1",
            "@ann Seen it? It is not incorrect to say that the mayor likes the old school. https://t.co/Ab1",
        ),
    ],
)
def test_what_was_set_aside_comes_back_as_it_was(rule: str, text: str, rewrite: str) -> None:
    assert asyncio.run(relations.create(f"rule:{rule}").rewrite(text, Context())).text == rewrite
