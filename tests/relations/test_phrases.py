import pytest

from pcs_annotator.core.task import usual_instruction
from pcs_annotator.relations.language import known_language, language_of
from pcs_annotator.relations.phrases import PLACE, all_phrases, phrases_around

ENGLISH = all_phrases()["en"]
INSTRUCTIONS = {
    "de": "Wie ist die Stimmung des Textes?",
    "fr": "Ce commentaire est-il toxique ?",
    "es": "¿Cuál es el sentimiento del texto?",
    "it": "Qual è il sentimento del testo?",
    "pt": "Qual é o sentimento do texto?",
    "nl": "Wat is het sentiment van de tekst?",
    "pl": "Jaki jest wydźwięk tekstu?",
    "ru": "Какое настроение выражает автор этого текста?",
    "tr": "Bu metnin yazarı ürünü nasıl değerlendiriyor?",
    "zh": "这段文字的情感是什么？",
    "ja": "この文章の感情は何ですか？",
    "ar": "ما هو شعور النص؟",
    "hi": "यह समीक्षा उत्पाद के बारे में क्या कहती है?",
}


@pytest.mark.parametrize("language", [language for language in all_phrases() if language != "en"])
def test_every_sentence_is_in_its_language(language: str) -> None:
    phrases = all_phrases()[language]
    sentences = " ".join((phrases.lead_in, phrases.role, phrases.data, phrases.bare, phrases.every, phrases.lines))
    assert known_language(sentences) == language
    assert "none" in phrases.every
    assert phrases.applies.count("{label}") == 1
    assert len(phrases.wordings) == 3
    assert all(wording.count(PLACE) == 1 for wording in phrases.wordings)
    assert language_of(phrases.wordings[1]) in (language, "")


@pytest.mark.parametrize(("language", "instruction"), INSTRUCTIONS.items())
def test_an_instruction_has_sentences_of_its_language_around_it(language: str, instruction: str) -> None:
    assert phrases_around(instruction, ["good", "bad"]) == all_phrases()[language]


@pytest.mark.parametrize(
    "instruction",
    [
        "How does the writer feel?",
        "Toxic comment detection",
        "Sentiment?",
        "Is this a complaint? (Beschwerde)",
        "Decide whether the review of the Hotel Adlon in Berlin is positive",
        usual_instruction(["Beschwerde", "Anfrage", "Lob", "Sonstiges"]),
        "Каково настроение текста?",
    ],
)
def test_english_and_unclear_instructions_have_english_ones(instruction: str) -> None:
    assert phrases_around(instruction, ["Beschwerde", "Anfrage", "Lob", "Sonstiges"]) == ENGLISH
