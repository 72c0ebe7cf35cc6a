"""All checks together: on spoilt rewrites, on the rewrites of weak models, on bad input."""

import asyncio
import csv
from collections.abc import Sequence
from pathlib import Path

import pytest

from pcs_annotator import Expectation, PromptedRelation, RelationOptions, Variant
from pcs_annotator.core.chat import Reply, Request
from pcs_annotator.relations.base import Context
from pcs_annotator.relations.check_words import Rewrite
from pcs_annotator.relations.checks import CHECKS, LEXICAL, names, negation, run_checks
from pcs_annotator.relations.combine import CheckedRelation, choose_relations
from pcs_annotator.relations.function import FunctionRelation

EXPECTS = {
    "voice": Expectation(),
    "double-negation": Expectation(negations="doubled", longest=2.5),
    "synonym": Expectation(),
}


def failed(source: str, text: str, expects: Expectation = EXPECTS["synonym"]) -> list[str]:
    return [verdict.check for verdict in run_checks(Rewrite(source, text, expects)) if not verdict.passed]


def shares_rejected(path: Path) -> tuple[float, float]:
    """Return the shares of bad and of good rewrites that are rejected; an unchanged text is neither."""
    rejected: dict[str, list[bool]] = {"0": [], "1": []}
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            checks = failed(row["original"], row["rewrite"], EXPECTS[row["relation"]])
            rejected[row["keeps_meaning"]].append(bool(checks) and checks[0] != "unchanged")
    return sum(rejected["0"]) / len(rejected["0"]), sum(rejected["1"]) / len(rejected["1"])


def test_good_and_bad_rewrites_by_a_weak_model_are_told_apart(shared_data: Path) -> None:
    bad, good = shares_rejected(shared_data / "recorded" / "rewrites_judged.csv")
    assert bad >= 0.65
    assert good <= 0.15


def test_invented_rewrites_of_that_kind_are_told_apart() -> None:
    bad, good = shares_rejected(Path(__file__).with_name("weak_rewrites.csv"))
    assert bad >= 0.65
    assert good <= 0.10


GOOD = [
    (
        "The council of Norwick did not raise the 40 new taxes that Mira Lindqvist wanted.",
        "The council of Norwick didn't raise the 40 new taxes that Mira Lindqvist wished for.",
    ),
    (
        "On Monday, Tova Quist told Odalys Brent that the bridge was safe for 12 buses.",
        "On Monday, Tova Quist informed Odalys Brent that the bridge was safe for twelve buses.",
    ),
    (
        "The river rose by 3 feet, and the people of Selby were taken to a school by Captain Orla Finch.",
        "The river went up by three feet, and the people of Selby were brought to a school by Captain Orla Finch.",
    ),
]
SPOILT = [
    (0, "The council of Norwick raised the 40 new taxes that Mira Lindqvist wished for."),
    (0, "The council of Norwick didn't raise the 40 new taxes that Hanne Dahl wished for."),
    (0, "The council of Norwick didn't raise the 40"),
    (1, "On Monday, Tova Quist informed Odalys Brent that the bridge was not safe for twelve buses."),
    (1, "On Monday, Tova Quist informed Odalys Brent that the bridge was safe for twenty buses."),
    (1, "On Monday, Tova Quist informed Odalys Brent that"),
    (2, "The river did not go up by three feet, and the people of Selby were led to a school by Captain Orla Finch."),
    (2, "The river went up by nine feet, and the people of Selby were brought to a school by Captain Orla Finch."),
    (2, "The river went up by three feet, and the people of Lisbon were brought to a school by Captain Orla Finch."),
    (2, "The river went up by three feet, and the people of Selby were"),
]


@pytest.mark.parametrize(("which", "text"), SPOILT)
def test_spoilt_rewrites_are_rejected(which: int, text: str) -> None:
    assert failed(GOOD[which][0], text)


def test_every_check_gives_a_named_verdict_with_a_reason_when_it_fails() -> None:
    found = run_checks(Rewrite("He has 40 dogs.", "He has dogs."))
    assert [verdict.check for verdict in found] == list(CHECKS)
    assert all(verdict.passed == (verdict.detail == "") for verdict in found)
    assert "numbers" in [verdict.check for verdict in found if not verdict.passed]


def test_no_text_raises() -> None:
    signs = ("", " ", "a", "🙂🙂", "http://ex.am/ple", "def f(x): return x[0]", "1 2 3", "?!", "Ignore this.")
    for text in (*signs, "x" * 90_000):
        for other in ("", "a", "The dog sleeps.", text + " b"):
            run_checks(Rewrite(text, other))
            run_checks(Rewrite(other, text, EXPECTS["double-negation"]))


def test_typos_may_be_allowed() -> None:
    source, allowed = "Mira Lindqvist did not buy 3 boats.", Expectation(misspells=True)
    assert failed(source, "Mira Lidnqvist did nto buy 3 baots.")
    assert not failed(source, "Mira Lidnqvist did nto buy 3 baots.", allowed)
    assert failed(source, "Mira Lidnqvist did buy 3 boats.", allowed)


TEXT = "The council rejected 40 plans on Monday."
REORDERED = "On Monday the council turned down 40 plans."
WRONG_NUMBER = "On Monday the council turned down 41 plans."


class Rewriter:
    """Answers one thing after the other and remembers what it was asked."""

    def __init__(self, replies: Sequence[str]) -> None:
        self.replies, self.asked = list(replies), list[Request]()

    async def __call__(self, request: Request) -> Reply:
        self.asked.append(request)
        return Reply(text=self.replies[len(self.asked) - 1])


def tried(*replies: str) -> tuple[Variant, Rewriter]:
    ask = Rewriter(replies)
    relation = CheckedRelation(PromptedRelation("llm:reorder", "Put the time first."), "reorder")
    return asyncio.run(relation.rewrite(TEXT, Context(ask=ask))), ask


def test_a_good_rewrite_passes_with_its_verdicts_under_the_name_the_user_wrote() -> None:
    variant, ask = tried(REORDERED)
    assert (variant.relation, variant.status, variant.text) == ("reorder", "changed", REORDERED)
    assert {"length", "numbers", "negation", "names"} <= {verdict.check for verdict in variant.checks}
    assert all(verdict.passed for verdict in variant.checks)
    assert len(ask.asked) == 1


def test_a_rejected_rewrite_is_tried_once_more_with_the_reason() -> None:
    variant, ask = tried(WRONG_NUMBER, REORDERED)
    assert variant.text == REORDERED
    assert len(ask.asked) == 2
    first, second = ("\n".join(message.content for message in request.messages) for request in ask.asked)
    assert "number" in second.replace(first, "")
    assert second != first


def test_a_rewrite_rejected_twice_casts_no_vote_and_can_still_be_seen() -> None:
    variant, ask = tried(WRONG_NUMBER, WRONG_NUMBER)
    assert (variant.status, variant.text, variant.refused) == ("rejected", None, WRONG_NUMBER)
    assert variant.cause == "failed the check of numbers"
    assert "40" in variant.reason
    assert len(ask.asked) == 2
    variant, _ = tried(WRONG_NUMBER, "NOT APPLICABLE")  # an attempt that gives up leaves the first reason
    assert (variant.status, variant.refused) == ("rejected", WRONG_NUMBER)


def test_a_rule_is_not_tried_again() -> None:
    calls = []

    def wrong(text: str) -> str:
        calls.append(text)
        return text.replace("40", "41")

    relation = CheckedRelation(FunctionRelation("wrong", wrong), "wrong")
    assert asyncio.run(relation.rewrite(TEXT, Context())).status == "rejected"
    assert calls == [TEXT]


def test_a_checked_relation_is_what_it_wraps() -> None:
    inner = PromptedRelation("llm:x", "Rewrite.", version="7", expects=Expectation(longest=3.0))
    relation = CheckedRelation(inner, "x")
    assert (relation.version, relation.needs, relation.deterministic) == ("7", frozenset({"rewriter"}), False)
    assert relation.expects is inner.expects
    assert relation.calls(TEXT) == 2.0  # a rejected rewrite is tried once more


def test_the_most_calls_count_a_second_attempt() -> None:
    rewriting, rule = choose_relations(["llm:voice", "case"], RelationOptions(rewriter=True))
    assert (rewriting.calls(TEXT), rule.calls(TEXT)) == (2, 0)


DOUBLED = Expectation(negations="doubled", longest=2.5)

FOREIGN_GOOD = [
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
BAKERY, TOWN = "Die Bäckerei öffnete im Mai.", "El ayuntamiento abrió el puente."
DOUBLE_NEGATIONS = [
    (BAKERY, "Es ist nicht wahr, dass die Bäckerei im Mai nicht öffnete.", "öffnete nicht im Mai"),
    (TOWN, "No es cierto que el ayuntamiento no abriera el puente.", "no abrió el puente"),
]
FOREIGN_BAD = [
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
]


@pytest.mark.parametrize(("source", "text"), [*GOOD, *FOREIGN_GOOD])
def test_good_rewrites_in_any_language_pass(source: str, text: str) -> None:
    assert failed(source, text) == []


@pytest.mark.parametrize(("source", "text", "denied"), DOUBLE_NEGATIONS)
def test_two_negations_cancel_out_and_one_does_not(source: str, text: str, denied: str) -> None:
    assert failed(source, text, DOUBLED) == []
    assert failed(source, f"{' '.join(source.split()[:2])} {denied}.", DOUBLED) == ["negation"]


@pytest.mark.parametrize(("source", "text", "check"), FOREIGN_BAD)
def test_what_is_wrong_is_found(source: str, text: str, check: str) -> None:
    assert check in failed(source, text)


def test_checks_that_cannot_be_made_say_so() -> None:
    details = {verdict.check: verdict.detail for verdict in run_checks(Rewrite(*FOREIGN_GOOD[10])) if verdict.detail}
    assert details == {
        "negation": "not checked: no list of negations in this language",
        "names": "only addresses are checked: the script has no capitals",
    }
    rewrite = Rewrite("The dog barks.", "The dog is barking.")
    assert not any(verdict.detail for verdict in run_checks(rewrite))


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("Then Mira Lindqvist left Norwick.", "Then Lindqvist went away from Norwick."),
        ("We saw Mira Lindqvist's house.", "We saw the house of Mira Lindqvist."),
        ("They blamed the U.S. for it.", "They blamed the United States for it."),
        ("They went to Russia.", "They made a Russian journey."),
        ("Best day EVER with MOM", "The best day ever with my mother"),
        ("Is Odalys Brent Upset About Her Role?", "Is Odalys Brent Unhappy With Her Part?"),
        ("thx @mira_l for http://ex.am/ple1 #fun", "Thank you @mira_l for https://ex.am/ple1 #fun"),
        ("While he slept, Bob called.", "Whilst he slept, Bob called."),
    ],
)
def test_kept_names_pass(source: str, text: str) -> None:
    assert names(Rewrite(source, text)) == ""


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("Then Mira Lindqvist left.", "Then a woman left."),
        ("Then Mira Lindqvist left.", "Then Mira Quist left."),
        ("Then Mira Lindqvist left.", "Then Tova Quist left."),
        ("They like the BBC.", "They like the radio."),
        ("thx @mira_l for that", "thx for that"),
        ("look: http://ex.am/ple1", "look: http://ex.am/ple2"),
        ("nice day", "nice day @mira_l"),
    ],
)
def test_a_missing_or_new_name_is_detected(source: str, text: str) -> None:
    assert names(Rewrite(source, text))


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("He did not come.", "He didn’t come."),
        ("i dont care", "I don't care"),
        ("Smoking is not allowed here.", "Smoking is prohibited here."),
        ("The door is not safe.", "The door is unsafe."),
        ("She has no money.", "She lacks money."),
        ("He did not remember it.", "He failed to remember it."),
        ("I can't wait for Friday", "I am looking forward to Friday"),
        ("She not only sang but danced.", "She sang and danced as well."),
        ("Oh no. It rains.", "Dear me. It rains."),
        ("It's warm, isn't it?", "It is warm, right?"),
        ("Don't think me ugly.", "Think me beautiful."),
        ("There is no doubt that he won.", "He certainly won."),
        ("My uncle discussed an important interest.", "My uncle talked about an important interest."),
    ],
)
def test_the_same_polarity_in_other_words_passes(source: str, text: str) -> None:
    assert negation(Rewrite(source, text)) == ""


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("He came.", "He did not come."),
        ("He never came.", "He always came."),
        ("He didn't come.", "He came."),
        ("Nobody knew.", "Somebody knew."),
        ("She is happy.", "She is unhappy."),
        ("Prices rose.", "Prices fell."),
        ("She is honest.", "She is dishonest."),
        ("She bought a farm, and he sold a boat.", "She did not buy a farm, and he did not sell a boat."),
        ("a good girl nevah tells", "a good girl tells"),
        ("Eu gosto muito de você e do aplicativo", "Eu não gosto de você e do aplicativo"),
    ],
)
def test_a_changed_polarity_is_detected(source: str, text: str) -> None:
    assert negation(Rewrite(source, text))


@pytest.mark.parametrize(
    "text",
    [
        "It is not untrue that the council raised taxes.",
        "The council did not fail to raise taxes.",
        "No one can deny that the council raised taxes.",
        "The council has raised taxes.",
        "It is not false that the council raised taxes.",
        "It is not inaccurate to say that the council raised taxes.",
        "It is incorrect to say that the council did not raise taxes.",
        "The council never failed to raise taxes.",
    ],
)
def test_an_even_number_of_negations_may_be_added(text: str) -> None:
    assert negation(Rewrite("The council raised taxes.", text, DOUBLED)) == ""


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("The council raised taxes.", "The council did not raise taxes."),
        ("The council raised taxes.", "It is not true that the council raised taxes."),
        ("The council raised taxes.", "It is not untrue that the council did not raise taxes."),
        ("The council raised taxes.", "It is not the case that the council did not fail to raise taxes."),
        ("The council raised taxes.", "It is incorrect to say that the council raised taxes."),
        ("Our mayor raised taxes.", "It is not false that our mayor never raised taxes."),
        ("The tax is legal.", "The tax is not legal."),
        ("I had the best day.", "I did not have the worst day."),
        ("She dates a cook, she met his mother.", "She does not date a cook, she did not meet his mother."),
        ("She does not force anything.", "She forces things."),
        ("Don't think me ugly.", "Think me beautiful."),
    ],
)
def test_a_single_negation_is_not_a_double_one(source: str, text: str) -> None:
    assert "double negation" in negation(Rewrite(source, text, DOUBLED))


def test_an_opposite_denied_counts_as_two_and_words_that_only_look_negative_do_not_count() -> None:
    assert negation(Rewrite("The film was good.", "The film was not bad.", DOUBLED)) == ""
    assert LEXICAL.isdisjoint(["uncle", "important", "interest", "discuss", "under", "until", "image", "distance"])
