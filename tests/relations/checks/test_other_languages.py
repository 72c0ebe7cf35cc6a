"""Rewrites in other languages: good ones pass, and what is wrong is found as far as it can be."""

from __future__ import annotations

import pytest

from pcs_annotator import Expectation
from pcs_annotator.relations.checks.reading import Rewrite
from pcs_annotator.relations.checks.run import run_checks

PARAPHRASE = Expectation(reorders=True, renumbers=True)
DOUBLED = Expectation(negations="doubled", longest=2.5)

GOOD = [
    ("Die Lieferung kam am Montag und das Gerät läuft gut.", "Das am Montag gelieferte Gerät läuft wirklich gut."),
    ("Angela Merkel hat das Gesetz nicht unterschrieben.", "Das Gesetz wurde von Angela Merkel nicht unterschrieben."),
    ("Die BBC zahlte 1.234,56 Euro.", "1234,56 Euro wurden von der BBC gezahlt."),
    ("Drei Kinder spielen im Garten.", "Im Garten spielen 3 Kinder."),
    ("Lange files door ongeluk op de A2", "Door een ongeluk staan er lange files op de A2"),
    ("No vi nada en el cine de Madrid.", "En el cine de Madrid no vi cosa alguna."),
    ("Je n'ai jamais rien vu de tel à Lyon.", "À Lyon, je n'ai rien vu de tel, jamais."),
    ("Мы поехали в Москву летом.", "Летом мы были в Москве."),
    ("Nikt nie przyszedł na spotkanie w Krakowie.", "Na spotkanie w Krakowie nie przyszedł nikt."),
    ("Kimse toplantıya gelmedi.", "Toplantıya hiç kimse gelmedi."),
    ("这部电影很无聊，我不喜欢。", "我觉得这部电影没意思，不怎么喜欢。"),
    ("你明天来吗？", "明天你会不会来呢"),
    ("هذا الفيلم ممل جدا ولم يعجبني", "لم يعجبني هذا الفيلم لأنه ممل للغاية"),
    ("اشتريت ٢٠ كتابا من القاهرة", "من القاهرة اشتريت 20 كتابا"),
]
DOUBLE_NEGATIONS = [
    (
        "Die Bäckerei öffnete im Mai.",
        "Es ist nicht wahr, dass die Bäckerei im Mai nicht öffnete.",
        "öffnete nicht im Mai",
    ),
    (
        "El ayuntamiento abrió el puente.",
        "No es cierto que el ayuntamiento no abriera el puente.",
        "no abrió el puente",
    ),
]
BAD = [
    ("Die Bäckerei öffnete im Mai.", "Die Bäckerei öffnete nicht im Mai.", "negation"),
    ("El tren llegó con retraso.", "El tren no llegó con retraso.", "negation"),
    ("Никто не пришёл вчера на встречу.", "Все пришли вчера на встречу.", "negation"),
    ("Das Hotel hat 120 Zimmer.", "Das Hotel hat 130 Zimmer.", "numbers"),
    ("Drei Hotels mit 3 Zimmern je Haus.", "Drei Hotels mit 5 Zimmern je Haus.", "numbers"),
    ("اشتريت ٢٠ كتابا من القاهرة", "اشتريت ٣٠ كتابا من القاهرة", "numbers"),
    ("Das Essen war kalt, der Kellner unfreundlich.", "The food was cold, the waiter unfriendly.", "language"),
    ("这部电影很无聊，我不喜欢。", "This film is boring and I do not like it.", "language"),
    ("El tren llegó a Madrid con retraso.", "El tren llegó a Lima con retraso.", "names"),
    ("Die BBC berichtete gestern darüber.", "Die CNN berichtete gestern darüber.", "names"),
    ("Мы поехали в Москву летом.", "Мы поехали в Киев летом.", "names"),
    ("Siehe https://a.b/c für mehr Informationen.", "Siehe die Seite für mehr Informationen.", "names"),
    ("你明天来吗？", "你明天来。", "certainty"),
    ("هل تأتي غدا إلى البيت؟", "أنت تأتي غدا إلى البيت", "certainty"),
]


def failed(source: str, text: str, expects: Expectation = PARAPHRASE) -> list[str]:
    return [verdict.check for verdict in run_checks(Rewrite(source, text, expects)) if not verdict.passed]


@pytest.mark.parametrize(("source", "text"), GOOD)
def test_good_rewrites_pass(source: str, text: str) -> None:
    assert failed(source, text) == []


@pytest.mark.parametrize(("source", "text", "denied"), DOUBLE_NEGATIONS)
def test_two_negations_cancel_out_and_one_does_not(source: str, text: str, denied: str) -> None:
    assert failed(source, text, DOUBLED) == []
    assert failed(source, f"{' '.join(source.split()[:2])} {denied}.", DOUBLED) == ["negation"]


@pytest.mark.parametrize(("source", "text", "check"), BAD)
def test_what_is_wrong_is_found(source: str, text: str, check: str) -> None:
    assert check in failed(source, text)


def test_checks_that_cannot_be_made_say_so() -> None:
    details = {
        verdict.check: verdict.detail for verdict in run_checks(Rewrite(*GOOD[10], PARAPHRASE)) if verdict.detail
    }
    assert details == {
        "negation": "not checked: no list of negations in this language",
        "names": "only addresses are checked: the script has no capitals",
        "roles": "not checked: it is made for English",
    }
    rewrite = Rewrite("The dog barks.", "The dog is barking.", PARAPHRASE)
    assert not any(verdict.detail for verdict in run_checks(rewrite))
