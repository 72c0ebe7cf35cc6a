from __future__ import annotations

import asyncio

import pytest

from pcs_annotator import Variant
from pcs_annotator.relations.base import Context, relations
from pcs_annotator.relations.rules.prepared import as_written, in_sentence_case, prepared

CONTEXT = Context()


def rewritten(rule: str, text: str) -> Variant:
    return asyncio.run(relations.create(f"rule:{rule}").rewrite(text, CONTEXT))


@pytest.mark.parametrize(
    ("title", "sentence"),
    [
        ("The Mayor Saves Her Old School", "The mayor saves her old school"),
        ("Harry Potter Fans Will Love This Small Town", "Harry Potter fans will love this small town"),
        ("Mark Zane Talks About North Korea and the U.S. Vote", "Mark Zane talks about North Korea and the U.S. vote"),
        ("Stocks Rose After Apple Posted Its Earnings", "Stocks rose after Apple posted its earnings"),
        ('Everyone Is Quoting "Old Blue House" Right Now', 'Everyone is quoting "Old Blue House" right now'),
        ("17 Things You Shouldn't Say to Your iPhone", "17 things you shouldn't say to your iPhone"),
        ("Study: Children Sleep Less Than Parents Think", "Study: Children sleep less than parents think"),
    ],
)
def test_a_title_is_parsed_in_sentence_case_with_its_names(title: str, sentence: str) -> None:
    assert in_sentence_case(title) == sentence


@pytest.mark.parametrize(
    "sentence",
    ["The report by Ann Lee was Top Secret.", "Ann Lee wins the Harbour Prize in Paris"],
)
def test_other_sentences_keep_their_capitals(sentence: str) -> None:
    assert in_sentence_case(sentence) == sentence


@pytest.mark.parametrize(
    ("before", "words", "after"),
    [
        ("@ann @bob ", "the bus was late.", " 😡😡"),
        ("RT @ann: ", "The bus was late.", " https://t.co/Ab1 #buses #late"),
        ("BREAKING: ", "The bus was late", " via @city"),
        ('"', "The bus was late.", '" #buses'),
        ("@ann ", "The bus was late again!", '"'),
        ("", "I am back from #work", ""),
        ("", "@ann is right about the bus.", ""),
        ("@ann @bob ", "is late again", ""),
        ("", "@ann and @bob are late", " #buses"),
        ("#ely #buses ", "#mayor was late, and i know", " #late"),
        ("omg, ", "the bus was late", ""),
        ("Oslo News: ", "The bus was late", " | The Daily Bus"),
        ("", '"The bus" was late, said "Ann"', ""),
        ("", "#buses", ""),
    ],
)
def test_what_is_no_part_of_the_sentences_is_set_aside(before: str, words: str, after: str) -> None:
    ready = prepared(before + words + after)
    assert (ready.before, ready.source, ready.after) == (before, words, after)


@pytest.mark.parametrize(
    ("rule", "text", "rewrite"),
    [
        ("voice", "The Mayor Saves an Old School #proud", "An Old School Is Saved by the Mayor #proud"),
        ("voice", "The Mayor Of Ely Saves A School", "A School Is Saved By The Mayor Of Ely"),
        ("synonym", "Two Buses Collide Because Of Snow On The M4", "Two Buses Collide Due To Snow On The M4"),
        ("synonym", "@ann #Ely's mayor tried to buy a bus!", "@ann #Ely's mayor attempted to buy a bus!"),
        ("voice", "i bought the old bus from Ann.", "the old bus was bought by me from Ann."),
        ("synonym", "2 in 9 Buses Began to Rust", "2 in 9 Buses Started to Rust"),
        (
            "synonym",
            "Shares of Ely Bus Corp. fell after talks began.",
            "Shares of Ely Bus Corp. fell after talks started.",
        ),
        (
            "double-negation",
            "@ann Seen it? The Mayor Likes the Old School",
            "@ann Seen it? It Is Not Untrue That the Mayor Likes the Old School",
        ),
    ],
)
def test_rewrites_are_spelt_like_their_source(rule: str, text: str, rewrite: str) -> None:
    assert rewritten(rule, text).text == rewrite


@pytest.mark.parametrize(
    ("source", "rewrite", "written"),
    [
        ("my bus is late", "It seems my bus is late", "it seems my bus is late"),
        ("the bus has free FREE food", "So the bus has free free food", "so the bus has free FREE food"),
        ("THE BUS IS LATE", "So the bus is late", "SO THE BUS IS LATE"),
        ("#ely is far", "It is true that Xely is far", "It is true that #ely is far"),
        ("-the bus is VERY late", "-so the bus is very late", "-so the bus is VERY late"),
        ("The Way to Ely Is My Way To Ely", "So the way to Ely is my way to Ely", "So The Way to Ely Is My Way To Ely"),
    ],
)
def test_words_of_the_source_keep_their_capitals(source: str, rewrite: str, written: str) -> None:
    assert as_written(rewrite, source, prepared(source).text) == written


def test_a_backtick_is_an_apostrophe_and_comes_back_as_it_was() -> None:
    ready = prepared("The bus won`t stop")
    assert ready.text == "The bus won't stop"
    assert as_written("Indeed the bus won't stop", ready.source, ready.text) == "Indeed the bus won`t stop"
