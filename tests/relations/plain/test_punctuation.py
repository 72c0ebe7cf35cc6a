from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator.relations.base import Context, relations
from pcs_annotator.relations.plain.punctuation import punctuation
from pcs_annotator.relations.rule import NotApplicable

GOLDEN = [
    ("The bridge is closed.", "The bridge is closed"),
    ("Harbour Workers Reject Pay Offer", "Harbour Workers Reject Pay Offer."),
    ("It's late and the ferry hasn't left.", "It’s late and the ferry hasn’t left."),
    ("It’s late and the ferry hasn’t left.", "It's late and the ferry hasn't left."),
    ('"We are ready," the captain said.', "“We are ready,” the captain said."),
    ("“We are ready,” the captain said.", '"We are ready," the captain said.'),
    ('The mayor called it "a mess" and left.', "The mayor called it “a mess” and left."),
    ('He didn\'t call it "a mess" twice.', "He didn’t call it “a mess” twice."),
    ("Reuters - Oil rose on Friday.", "Reuters – Oil rose on Friday."),
    ("LAKEVIEW (AP) -- A storm closed the port.", "LAKEVIEW (AP) – A storm closed the port."),
    ("The plan – a good one – was dropped.", "The plan - a good one - was dropped."),
    ("The plan — a good one — was dropped.", "The plan – a good one – was dropped."),
    ("The plan—a good one—was dropped.", "The plan – a good one – was dropped."),
    ("Well... maybe tomorrow!", "Well… maybe tomorrow!"),
    ("Well… maybe tomorrow!", "Well... maybe tomorrow!"),
    ("Is it over?  It’s over!", "Is it over? It's over!"),
    ("Sales rose by 5%.", "Sales rose by 5%"),
    ("It costs $299.", "It costs $299"),
    ("The house sold for £99,000", "The house sold for £99,000."),
    ("We said no (twice).", "We said no (twice)"),
    ("She called him ‘brave’ and left.", "She called him 'brave' and left."),
    ("The workers' pay will rise.", "The workers' pay will rise"),
    ("They live in the '90s house.", "They live in the '90s house"),
    ("so the match is over now", "so the match is over now."),
    ("The vote is in three days.\n", "The vote is in three days\n"),
    ("It was a well-known.", "It was a well-known"),
    ("The “old” plan - and the new one.", 'The "old" plan – and the new one.'),
]

TRAPS = [
    "The firm moved to the U.S.",
    "She works for Harbour Inc.",
    "The meeting begins at 5 p.m.",
    "What a day!",
    "Who won?",
    "Great match :)",
    "See you there #harbour",
    "Read it at https://example.org/a",
    "Write to me at example.com.",
    "They won 3 - 2 :)",
    "Nooooo!!!",
    "The board is 5'10\" and he is 6'2\"!",
    'He asked for a 12" pipe!',
    "Wait.... what?",
    "So good 😂",
    "He left him for A.",
    'The "odd mark was left open!',
    "The dogs' and 'cats!",
    "Use `x = '5'` for that!",
]


@pytest.mark.parametrize(("text", "expected"), GOLDEN)
def test_marks_change_their_style_and_nothing_else(text: str, expected: str) -> None:
    assert punctuation(text) == expected


@pytest.mark.parametrize("text", TRAPS)
def test_marks_with_a_meaning_stay(text: str) -> None:
    assert punctuation(text) == NotApplicable("no punctuation that may change")


def test_a_shortened_address_keeps_its_dots() -> None:
    assert punctuation("Look: https://example.org/ab… It’s here!") == "Look: https://example.org/ab… It's here!"
    assert punctuation("Look: https://example.org/ab... It’s here!") == "Look: https://example.org/ab... It's here!"


@pytest.mark.asyncio
async def test_the_rule_is_known_by_its_name() -> None:
    variant = await relations.create("rule:punctuation").rewrite("The bridge is closed.", Context())
    assert variant.text == "The bridge is closed"


@given(st.text())
def test_words_and_numbers_are_never_touched(text: str) -> None:
    changed = punctuation(text)
    if isinstance(changed, str):
        assert changed != text
        assert [sign for sign in changed if sign.isalnum()] == [sign for sign in text if sign.isalnum()]


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ('Er sagte: "Wir kommen morgen."', "Er sagte: „Wir kommen morgen.“"),
        ("Il a dit « non » hier soir.", 'Il a dit "non" hier soir.'),
        ('Он сказал: "Мы придём завтра вечером".', "Он сказал: «Мы придём завтра вечером»."),
        ("¿Dónde está la biblioteca? ¡Qué bonito!", "Dónde está la biblioteca? Qué bonito!"),
        ("我们明天来，你呢？", "我们明天来, 你呢?"),
        ("我们明天来看你", "我们明天来看你。"),
        ("今日は２０人が来ました。", "今日は２０人が来ました"),
        ("هل أنت بخير، يا صديقي؟", "هل أنت بخير, يا صديقي?"),
        ("यह फिल्म अच्छी थी।", "यह फिल्म अच्छी थी"),
        ("오늘 날씨가 정말 좋네요", "오늘 날씨가 정말 좋네요."),
        ("Brot, Milch, Käse usw.", NotApplicable("no punctuation that may change")),
        ("วันนี้อากาศดีมาก", NotApplicable("no punctuation that may change")),
        ('Kto "to" widział wczoraj?', "Kto „to” widział wczoraj?"),
    ],
)
def test_marks_follow_script_and_language(text: str, changed: str | NotApplicable) -> None:
    assert punctuation(text) == changed
