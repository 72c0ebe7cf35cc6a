"""The language stays, and a rewrite is no talk about rewriting; questions and rumours stay what they are."""

from __future__ import annotations

import pytest

from pcs_annotator.relations.checks.reading import Rewrite, certainty, language

SENTENCES = {
    "en": "The dog is in the garden and it was not for you",
    "pt": "O cão está no jardim e não é para você",
    "es": "El perro está en el jardín y no es para ti",
    "fr": "Le chien est dans le jardin et ce n'est pas pour vous",
    "de": "Der Hund ist im Garten und das ist nicht für dich",
    "it": "Il cane è in giardino e questo non è per te",
    "nl": "De hond is in de tuin en dat is niet voor je",
    "sv": "Hunden är i trädgården och det är inte för dig",
    "pl": "Pies jest w ogrodzie i to nie jest dla ciebie",
    "tr": "Köpek bahçede ve bu senin için değil ama çok güzel",
    "id": "Anjing itu ada di kebun dan ini tidak untuk kamu",
    "ru": "Собака в саду и это не для тебя",
    "ja": "犬は庭にいます",
    "zh": "狗在花园里",
}


def test_a_translation_is_no_rewrite() -> None:
    for name, sentence in SENTENCES.items():
        if name != "en":
            assert "keep the language" in language(Rewrite(sentence, SENTENCES["en"]))
            assert "keep the language" in language(Rewrite(SENTENCES["en"], sentence))


@pytest.mark.parametrize(
    "reply",
    [
        "Sure, here is the rewritten text: The dog sleeps.",
        "Here's the sentence in the passive voice: The dog is let out.",
        "I'm sorry, but I can't assist with that.",
        "As an AI language model, I have no dog.",
        "The sentence is already in active voice.",
        "Rewritten: The dog sleeps.",
        "Thank you for sharing! How can I help you today?",
        "```\nThe dog sleeps.\n```",
    ],
)
def test_chatter_is_rejected(reply: str) -> None:
    assert "nothing but" in language(Rewrite("The dog is asleep in the garden.", reply))


def test_chatter_from_the_text_itself_may_stay() -> None:
    source = "I'm sorry, but I can't assist with that, the clerk said."
    assert language(Rewrite(source, "The clerk said: I'm sorry, but I can't assist with that.")) == ""


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("Did Ann leave Bob?", "Ann left Bob."),
        ("Ann left Bob.", "Ann left Bob?"),
        ("Ann reportedly left Bob.", "Ann left Bob."),
        ("It looks like Ann left Bob.", "Ann left Bob."),
    ],
)
def test_a_rumour_or_question_must_not_become_a_fact(source: str, text: str) -> None:
    assert certainty(Rewrite(source, text))


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("Did Ann leave Bob?", "Was Bob left by Ann?"),
        ("Ann reportedly left Bob.", "Ann is said to have left Bob."),
        ("It looks like Ann left Bob.", "Ann seems to have left Bob."),
        ("The school?s roof leaks.", "The school's roof leaks."),
    ],
)
def test_another_way_to_ask_or_doubt_passes(source: str, text: str) -> None:
    assert certainty(Rewrite(source, text)) == ""
