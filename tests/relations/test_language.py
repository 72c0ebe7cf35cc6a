import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator.relations.language import known_language, language_of, may_be_english, other_language, why_not_prose

ENGLISH = [
    "Oscar Pistorius Attempts To Commit Suicide",
    "Harbour Workers Reject Pay Offer",
    "STOCKS TUMBLE AS STORM CLOSES PORTS",
    "The minister said on Monday that the bridge will stay closed.",
    "omg this is sooo good 😂😂 #blessed @somebody",
    "@user thanks for the ride!! https://t.co/abc123",
    "Café owner Zoë Brontë opens a second shop near the Champs-Élysées",
    "José María González visits São Paulo after the vote",
    "Reuters - Oil prices rose on Friday as traders waited for news.",
    "Prices fell (again) by 5% - a record; shops are happy",
    "Call print() when you want to see the value of a variable on the screen.",
    "Read more at https://example.org/a?b=c&d=e before you decide.",
    "Score: 3-2, a late win for the home side",
    "He said: <3 you all ;)",
]

FOREIGN = {
    "es": ["El gobierno anunció nuevas medidas para los barrios pobres.", "¿Dónde está todo?", "no me gusta nada"],
    "fr": ["Le chat dort sur le canapé depuis ce matin.", "je ne sais pas", "Les prix ont encore augmenté"],
    "de": ["Der Hund schläft nicht auf dem Sofa.", "Ich habe keine Zeit", "Die Preise sind wieder gestiegen"],
    "pt": ["eu daria 5 se estivesse traduzido para português", "não gostei do jogo", "O menino foi para casa"],
    "it": ["Il gatto dorme sul divano della nonna.", "non mi piace questo gioco", "Che cosa è successo ieri?"],
    "nl": ["De kat slaapt op de bank en wil niet opstaan.", "ik weet het niet", "Het is vandaag heel koud"],
    "tr": ["Bu oyun çok güzel ama daha iyi olabilir", "ben bunu istemiyorum çünkü çok pahalı"],
    "pl": ["Nie wiem, co się stało z moim psem.", "to jest bardzo dobra gra"],
    "id": ["Saya tidak suka dengan permainan ini", "aplikasi ini sangat bagus dan mudah untuk dipakai"],
    "sv": ["Katten sover på soffan och vill inte gå ut.", "jag vet inte vad det är"],
    "ru": ["Кошка спит на диване.", "не знаю"],
    "ar": ["القطة تنام على الأريكة.", "لا أعرف"],
    "hi": ["बिल्ली सोफे पर सो रही है।", "मुझे नहीं पता"],
    "zh": ["猫在沙发上睡觉。", "我不知道"],
    "ja": ["猫はソファで寝ています。", "わかりません"],
}

CODE = [
    "def add(a, b):\n    return a + b\n",
    "for i in range(10): print(i)",
    "const total = items.reduce((a, b) => a + b, 0);",
    "<div class='note'><p>Hello</p></div>",
    "SELECT name, age FROM people WHERE age > 30;",
    '{"name": "Ann", "age": 30, "tags": ["a", "b"]}',
    "git commit -m 'first'",
    "sudo apt-get install -y curl && curl -s localhost",
    "import numpy as np\nx = np.zeros(3)\nprint(x)",
    "#include <stdio.h>\nint main() { return 0; }",
]


@pytest.mark.parametrize("text", ENGLISH)
def test_english_prose_is_recognised(text: str) -> None:
    assert why_not_prose(text) == ""
    assert may_be_english(text)
    assert language_of(text) == "en"


@pytest.mark.parametrize(("language", "text"), [(code, text) for code, texts in FOREIGN.items() for text in texts])
def test_other_languages_are_recognised(language: str, text: str) -> None:
    assert not may_be_english(text)
    assert language_of(text) == language


@pytest.mark.parametrize("text", CODE)
def test_code_is_left_alone(text: str) -> None:
    assert why_not_prose(text) == "looks like code"


def test_a_text_without_words_gets_its_reason() -> None:
    assert why_not_prose("") == why_not_prose(" \n\t") == "empty text"
    for text in ("12345 !!! 😂", "https://example.org/page?x=1", "#tag @handle", " " * 4000 + "far away"):
        assert why_not_prose(text) == "no words"


def test_too_little_text_and_an_unknown_script_have_no_language() -> None:
    assert [language_of(text) for text in ("12 !!", "Obama!", "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ ᎠᏂ")] == [""] * 3


@pytest.mark.parametrize(
    "text",
    [
        "Los Angeles Museum Reopens Wednesday",
        "Cristiano Ronaldo Real Madrid for iPhone 5 5S 5C 6 6Plus Case Cover",
        "Kendall Jenner Blake Griffin Clash",
        "They head towards the western town #أخبار_اليوم_المهمة",
    ],
)
def test_foreign_names_and_tags_do_not_make_a_text_foreign(text: str) -> None:
    assert may_be_english(text)


def test_the_end_of_a_long_text_does_not_matter() -> None:
    english = "The harbour is closed because of the storm. " * 100
    assert known_language(english + "el perro no está en la casa " * 3000) == "en"


@pytest.mark.parametrize(
    "text",
    [
        "De film was saai en veel te lang voor ons.",
        "El govern aprova el nou pressupost",
        "Serikali imepitisha sheria mpya",
        "Qeveria miraton ligjin e ri",
        "Das war richtig gut, I love it!",
        "I like the phone. Der Akku ist aber schlecht.",
        "Great product, aber die Lieferung war leider viel zu spät.",
    ],
    ids=["Dutch", "Catalan", "Swahili", "Albanian", "two halves", "two sentences", "mostly German"],
)
def test_near_english_and_mixed_texts_are_not_english(text: str) -> None:
    assert not may_be_english(text)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Das Essen war kalt und der Kellner unfreundlich.", "de"),
        ("Ek weet nie wat om te doen nie", "af"),
        ("Я не знаю, що робити завтра", "uk"),
        ("Я не знаю, что делать завтра", "ru"),
        ("این فیلم خیلی خسته کننده بود", "fa"),
        ("لا أعرف ماذا أفعل غدا", "ar"),
        ("今日は天気がいいですね", "ja"),
        ("这家餐厅的服务很差", "zh"),
        ("lol so true", "en"),
        ("Wer kommt?", ""),
        ("42", ""),
    ],
)
def test_a_language_is_known_where_it_is_certain(text: str, language: str) -> None:
    assert known_language(text) == language


def test_a_rewrite_that_is_short_has_the_benefit_of_the_doubt() -> None:
    source = "Das Essen war kalt und der Kellner unfreundlich."
    assert other_language(source, "The food was cold and the waiter unfriendly.") == "en"
    assert other_language(source, "Kalt war das Essen, unfreundlich der Kellner.") == ""


@given(st.text())
def test_any_text_gets_an_answer(text: str) -> None:
    assert isinstance(why_not_prose(text), str)
    assert isinstance(language_of(text), str)
    assert isinstance(known_language(text), str)
