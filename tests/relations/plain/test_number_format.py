from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator.relations.base import Context, relations
from pcs_annotator.relations.plain.number_format import number_format
from pcs_annotator.relations.rule import NotApplicable

GOLDEN = [
    ("The storm closed two bridges.", "The storm closed 2 bridges."),
    ("She won five medals in three years.", "She won 5 medals in 3 years."),
    ("Police arrested seven men on Friday.", "Police arrested 7 men on Friday."),
    ("The town has nine old mills.", "The town has 9 old mills."),
    ("About twenty people came.", "About 20 people came."),
    ("He paid for twenty-two meals.", "He paid for 22 meals."),
    ("The fleet lost forty boats.", "The fleet lost 40 boats."),
    ("The valley has two hundred farms.", "The valley has 200 farms."),
    ("The march drew three thousand workers.", "The march drew 3,000 workers."),
    ("The fund paid four million dollars.", "The fund paid 4 million dollars."),
    ("Prices rose by five percent.", "Prices rose by 5%."),
    ("Prices rose by 20 percent.", "Prices rose by 20%."),
    ("Prices rose by 2.5 per cent in May.", "Prices rose by 2.5% in May."),
    ("The crowd of 25000 people cheered.", "The crowd of 25,000 people cheered."),
    ("The list of eleven names is long.", "The list of 11 names is long."),
    ("It lasted for twelve hours.", "It lasted for 12 hours."),
    ("The firm cut fifteen jobs.", "The firm cut 15 jobs."),
    ("The two sides will meet again.", "The 2 sides will meet again."),
    ("The last four games were lost.", "The last 4 games were lost."),
    ("It took ten children to lift it.", "It took 10 children to lift it."),
    ("“We have six boats,” he said.", "“We have 6 boats,” he said."),
    ("After eight months, the road opened.", "After 8 months, the road opened."),
    ("The mill needs ninety-nine new parts.", "The mill needs 99 new parts."),
    ("Every six weeks, the board meets.", "Every 6 weeks, the board meets."),
    ("The storm closed 2 bridges.", "The storm closed two bridges."),
    ("The team scored 10 goals.", "The team scored ten goals."),
    ("Police arrested 7 men on Friday.", "Police arrested seven men on Friday."),
    ("The town has 9 old mills.", "The town has nine old mills."),
    ("It lasted for 12 hours.", "It lasted for twelve hours."),
    ("More than 4 million voters stayed home.", "More than four million voters stayed home."),
    ("9 boats that made history", "Nine boats that made history"),
    ("7 Reasons To Visit The Harbour", "Seven Reasons To Visit The Harbour"),
    ("Prices rose by 20%.", "Prices rose by 20 percent."),
    ("Turnout was 61.5% this year.", "Turnout was 61.5 percent this year."),
    ("Sales fell 5%, profits 3%.", "Sales fell 5 percent, profits 3 percent."),
    ("The school has 3,500 pupils.", "The school has 3500 pupils."),
    ("The fund gave 435,000 euros.", "The fund gave 435000 euros."),
    ("A ticket costs $2,500 now.", "A ticket costs $2500 now."),
    ("It is 10,000 years old.", "It is 10000 years old."),
    ("The house sold for £99,000.", "The house sold for £99000."),
    ("He waited 3 long weeks.", "He waited three long weeks."),
    ("In 6 days, the vote begins.", "In six days, the vote begins."),
    ("The board has 5 women and a chairman.", "The board has five women and a chairman."),
    ("She kept 11 sheep.", "She kept eleven sheep."),
    ("Only 8 seats are left.", "Only eight seats are left."),
    ("The road is 6 miles long.", "The road is six miles long."),
    ("We need 2 more votes.", "We need two more votes."),
    ("Nearly 50% of shops closed.", "Nearly 50 percent of shops closed."),
    ("The lake lost 30% (a record).", "The lake lost 30 percent (a record)."),
    ("At least 3 officers were hurt.", "At least three officers were hurt."),
]

TRAPS = [
    "One of the boats sank.",
    "No one saw the boats.",
    "They helped one another.",
    "The two or three boats sank.",
    "One in five people voted.",
    "Nine out of ten people agree.",
    "The shop is open 24/7.",
    "The memory of 9/11 remains.",
    "The home side won 3-2.",
    "He was born on May 5 weeks early.",
    "She bought an iPhone 5 yesterday.",
    "Windows 7 users complained.",
    "Article 5 rights were cited.",
    "The show moved to Channel 4 last year.",
    "In 1984 people voted.",
    "In 2016 voters stayed home.",
    "Version 2.5 fixes the bug.",
    "Call 555 1234 today.",
    "The train leaves at 5 pm.",
    "It begins at five o'clock.",
    "Fantastic Four fans queued.",
    "The Big Ten teams met.",
    "Formula One drivers met.",
    "The two-year-old boy slept.",
    "She read page five twice.",
    "Phase two trials began.",
    "No two people are alike.",
    "Two men were hurt.",
    "They are at sixes and sevens.",
    "He went the whole nine yards.",
    "They own two thirds of the land.",
    "The album has 1,984 copies.",
    "Room 5 guests left.",
    "The #5 seeds lost.",
    "It costs $5 these days.",
    "The odds are ten to one.",
    "The three hundred and fifty boats sank.",
    "They won 6 games to 4.",
    "The boats sank.",
]


@pytest.mark.parametrize(("text", "expected"), GOLDEN)
def test_numbers_get_another_format(text: str, expected: str) -> None:
    assert number_format(text) == expected


@pytest.mark.parametrize("text", TRAPS)
def test_names_dates_scores_and_idioms_stay(text: str) -> None:
    assert number_format(text) == NotApplicable("no number that may be written otherwise")


@pytest.mark.asyncio
async def test_the_rule_declares_that_it_reformats_numbers() -> None:
    rule = relations.create("rule:number-format")
    variant = await rule.rewrite("The storm closed two bridges.", Context())
    assert variant.text == "The storm closed 2 bridges."
    assert rule.expects.renumbers


SMALL = "two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905  # read as a line
VALUES = {word: str(value) for value, word in enumerate(SMALL, start=2)} | {"percent": "%"}


def values(text: str) -> list[str]:
    """Return the numbers of a text in one way of writing them."""
    found = re.findall(r"\d[\d,]*(?:\.\d+)?|%|[a-z]+", text.lower())
    found = [VALUES.get(piece, piece).replace(",", "") for piece in found]
    return [piece for piece in found if piece == "%" or piece[0].isdigit()]


NUMBERS = st.one_of(
    st.integers(0, 10**7).map(str),
    st.integers(0, 10**6).map("{:,}".format),
    st.sampled_from(SMALL),
    st.floats(0, 100).map("{:.1f}%".format),
    st.integers(0, 100).map("{} percent".format),
)


@given(
    st.lists(
        st.tuples(st.sampled_from(["with", "and", "Room", "to", "the"]), NUMBERS, st.sampled_from(["boats", "men,"]))
    )
)
def test_values_stay_the_same(pieces: list[tuple[str, str, str]]) -> None:
    text = " ".join(" ".join(piece) for piece in pieces)
    changed = number_format(text)
    if isinstance(changed, str):
        assert changed != text
        assert values(changed) == values(text)


@given(st.text())
def test_any_text_gets_an_answer(text: str) -> None:
    assert number_format(text) != text


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("Rund 20 % der 12500 Menschen kamen 2016.", "Rund 20 Prozent der 12.500 Menschen kamen 2016."),
        ("Rund 20 Prozent der 12.500 Menschen kamen.", "Rund 20 % der 12500 Menschen kamen."),
        ("Этот фильм посмотрели 12500 человек.", "Этот фильм посмотрели 12\u00a0500 человек."),
        ("اشتريت 20 كتابا من القاهرة", "اشتريت ٢٠ كتابا من القاهرة"),
        ("اشتريت ٢٠ كتابا، انظر http://a.b/٢٠", "اشتريت 20 كتابا، انظر http://a.b/٢٠"),
        ("यह फिल्म 20 लोगों ने देखी।", "यह फिल्म २० लोगों ने देखी।"),
        ("今日は２０人が来ました。", "今日は20人が来ました。"),
        ("Das kostet 1.234,56 Euro im Jahr 2016.", None),
        ("Die Leitung hat die Nummer 0301234567 bekommen", None),
        ("اشتريت 1,5 كيلو من التفاح", None),
        ("Det kostade 12500 kronor och var inte bra", None),
        ("这个手机卖 3000 元，太贵了", None),
    ],
)
def test_numbers_of_other_languages_change_only_where_that_is_certain(text: str, changed: str | None) -> None:
    expected = NotApplicable("no number that may be written otherwise") if changed is None else changed
    assert number_format(text) == expected
