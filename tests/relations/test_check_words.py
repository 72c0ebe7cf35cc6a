"""Nothing changed, a part missing, a number changed."""

import pytest

from pcs_annotator import Expectation
from pcs_annotator.relations.check_words import Rewrite, language, length, numbers, read_numbers, unchanged

SENTENCE = "The mayor of Norwick said on Monday that the council would spend 40 million crowns on the old bridge."


def test_spaces_alone_are_no_change() -> None:
    assert unchanged(Rewrite("The cat  sat.", "The cat sat. "))
    assert not unchanged(Rewrite("The cat sat.", "The cat sat!"))


@pytest.mark.parametrize("share", [0.3, 0.5, 0.6])
def test_a_text_cut_short_is_detected(share: float) -> None:
    words = SENTENCE.split()
    assert "missing" in length(Rewrite(SENTENCE, " ".join(words[: int(share * len(words))])))


def test_scattered_missing_words_and_a_lot_added_are_detected() -> None:
    words = SENTENCE.split()
    assert length(Rewrite(SENTENCE, " ".join(word for place, word in enumerate(words) if place % 5 not in (1, 3))))
    assert "longer" in length(Rewrite(SENTENCE, f"{SENTENCE} {SENTENCE}"))
    assert not length(Rewrite(SENTENCE, f"{SENTENCE} {SENTENCE}", Expectation(longest=2.5)))


def test_empty_texts_are_complained_about_and_raise_nothing() -> None:
    assert length(Rewrite("A text.", ""))
    assert length(Rewrite("", "A text."))
    assert length(Rewrite("A text of six long words.", "…"))


def test_a_short_text_may_grow_and_lose_its_auxiliaries() -> None:
    assert not length(Rewrite("Good", "It is not bad"))
    assert not length(Rewrite("The ball was kicked by him.", "He kicked the ball."))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1,000 people", "1000 people"),
        ("five people", "5 people"),
        ("5 people", "5.0 people"),
        ("2m people", "two million people"),
        ("$2.5bn", "2.5 billion dollars"),
        ("42%", "forty-two percent"),
        ("one of them", "some of them"),
        ("at first I thought", "initially I thought"),
        ("see http://a.bc/d9", "look at http://a.bc/d9"),
    ],
)
def test_a_number_in_another_format_is_the_same(one: str, other: str) -> None:
    assert not numbers(Rewrite(one, other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("40 men", "41 men"),
        ("40 men", "many men"),
        ("some men", "40 men"),
        ("two men", "three men"),
        ("4 of 5 and 5 of 6", "4 of 5 and 6"),
        ("2.5 million", "2.5 billion"),
        ("in 2018", "in 2019"),
        ("thirty-one days", "thirty days"),
    ],
)
def test_a_changed_number_is_detected(one: str, other: str) -> None:
    assert "number" in numbers(Rewrite(one, other))
    assert numbers(Rewrite("40 men", "many men")) == 'missing: "40"; keep every number'


def test_groups_decimals_and_units_are_read() -> None:
    assert read_numbers("1,234,567 at 10:30 for $3.5bn, a 20-year-old, 5k, .5")[0] == (
        *(1234567.0, 10.0, 30.0, 3.5e9, 20.0, 5000.0, 0.5),
    )


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
