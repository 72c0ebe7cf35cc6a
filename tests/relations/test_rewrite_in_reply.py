import asyncio
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator import Variant
from pcs_annotator.core.chat import Reply, Request
from pcs_annotator.relations.base import Context
from pcs_annotator.relations.combine import CheckedRelation
from pcs_annotator.relations.prompted import built_in
from pcs_annotator.relations.rewrite_in_reply import (
    DOES_NOT_APPLY,
    NOTHING_WRITTEN,
    REFUSES,
    REMINDER,
    Refused,
    read_versions,
)


def clean(reply: str, source: str) -> str | Refused:
    versions = read_versions(reply, source)
    return versions if isinstance(versions, Refused) else versions[0]


SOURCE = "The dog bit the man."
GOOD = "The man was bitten by the dog."

WORDS = (
    'the a council river market seven 4.5 rose fell said not never Brent Ostrava prices, workers\' "quoted" (early) '
    "is was did plan; plans: bridge-builder naïve über 東京 😀 text version sure of"
)
SENTENCES = st.lists(st.sampled_from(WORDS.split()), min_size=4, max_size=12).map(
    lambda words: "We saw " + " ".join(words) + "."
)
PASSAGES = st.lists(SENTENCES, min_size=1, max_size=4).map("\n".join)
AROUND = (
    "{}",
    "  {}\n",
    "Sure! Here is the rewritten text:\n\n{}",
    "Sure, here's the rewritten version: {}",
    "Certainly! {}",
    "Rewritten: {}",
    "**Rewritten:** {}",
    "Here is the sentence in passive voice:\n{}",
    "Output:\n{}",
    "```\n{}\n```",
    "Here you go.\n```text\n{}\n```\nAnything else?",
    "<text-12345678>\n{}\n</text-12345678>",
    "<text>{}</text>",
    "<rewritten>{}</rewritten>",
    "Of course: <output>{}</output> There it is.",
    "<think>Let me see.\nPassive it is.</think>\n{}",
    "so the verb is bite</think>\n\n{}",
    "{}\n\nNote: the agent was kept.",
    "{}\n\n**Explanation:** the object became the subject.",
    "{}\n\n(Note: nothing else was changed.)",
    "{}\n\nThe text is not an instruction. It is a continuation.",
    "{}\n\nI changed the voice of the verb.",
    "{}\n\nLet me know if you need anything else!",
    "**{}**",
)


@pytest.mark.parametrize("around", AROUND)
def test_preamble_and_comments_are_removed(around: str) -> None:
    assert clean(around.format(GOOD), SOURCE) == GOOD


@pytest.mark.parametrize(
    "reply",
    [
        f'"{GOOD}"',
        f"“{GOOD}”",
        f"'{GOOD}'",
        f"Passive voice: {GOOD}",
        f'Sure! The passive form of "The dog bit the man" is: "{GOOD}"',
        f"{GOOD} (passive voice)",
        f"{GOOD} Note: the agent follows by.",
        f"Original: {SOURCE}\nRewritten: {GOOD}",
        f"**Original text:** {SOURCE}\n\n**Passive voice:** {GOOD}\n\n**Explanation:** the object comes first.",
        f"{SOURCE}\n\n{GOOD}",
        f"{SOURCE} → {GOOD}",
        f'"{SOURCE}" -> "{GOOD}"',
        f"<text-12345678>\n{SOURCE}\n</text-12345678>\n\n{GOOD}",
        f"1. {GOOD}\n2. By the dog, the man was bitten.",
        f"Here are two options:\n\n1. **{GOOD}**\n2. By the dog, the man was bitten.",
        f"- {GOOD}",
        f"{GOOD}\n\nOriginal: {SOURCE}",
        f"Sure!\n\nOriginal: {SOURCE}\nPassive: {GOOD}",
        f"{SOURCE}\n\nRewritten: {GOOD}",
    ],
)
def test_one_rewrite_is_found_in_chatter(reply: str) -> None:
    assert clean(reply, SOURCE) == GOOD


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", NOTHING_WRITTEN),
        (" \n", NOTHING_WRITTEN),
        ('""', NOTHING_WRITTEN),
        ("Here is the rewritten text:", NOTHING_WRITTEN),
        ("<think>I wonder whether", NOTHING_WRITTEN),
        ("```\n```", NOTHING_WRITTEN),
        ("NOT APPLICABLE", DOES_NOT_APPLY),
        ("Not applicable.", DOES_NOT_APPLY),
        ("N/A", DOES_NOT_APPLY),
        ("**NOT APPLICABLE**", DOES_NOT_APPLY),
        ("Rewritten: NOT APPLICABLE", DOES_NOT_APPLY),
        ("There is no object in this text. NOT APPLICABLE", DOES_NOT_APPLY),
        ("I'm sorry, but I can't help with that request.", REFUSES),
        ("I am very sorry, I cannot rewrite this text.", REFUSES),
        ("Sorry, I can't assist with that.", REFUSES),
        ("Unfortunately, I am unable to do so.", REFUSES),
        ("As an AI language model, I do not take sides.", REFUSES),
        ("I cannot assist with hateful content.", REFUSES),
        ("Please provide the text that you want me to rewrite.", REFUSES),
    ],
)
def test_a_reply_without_a_rewrite_says_why(reply: str, reason: str) -> None:
    cleaned = clean(reply, SOURCE)
    assert isinstance(cleaned, Refused)
    assert cleaned.reason == reason
    assert cleaned.fails is (reason != DOES_NOT_APPLY)


@pytest.mark.parametrize(
    ("source", "rewrite"),
    [
        ("Sure, we won the game.", "Sure, the game was won by us."),
        ("Of course! They lost it.", "Certainly! It was lost by them."),
        ("Note: the shop closes at six.", "Note: the shop shuts at six."),
        ("It rained.\nNote: bring boots.", "It poured.\nNote: take boots."),
        ("She said: 'Rewrite it.'", "'Rewrite it' was said by her."),
        ('"We lost," he said.', '"We were beaten," he said.'),
        ('He said "yes" and later "no"', '"Yes" was said by him, and later "no"'),
        ('"All of it"', '"The whole of it"'),
        ("I'm sorry, I can't come tonight.", "I am sorry, I cannot come this evening."),
        ("As an AI researcher, she builds robots.", "As an AI researcher, she makes robots."),
        ("Not applicable to small firms, the rule died.", "Not applicable to little firms, the rule died."),
        ("Score: 3-1 to the visitors", "Result: 3-1 to the visitors"),
        ("This is the text of the letter: go home.", "Here is the text of the letter: go home."),
        ("The outcome was a mess.", "The result: a mess."),
        ("1. Buy milk\n2. Sell eggs", "1. Purchase milk\n2. Sell eggs"),
        ("- a cheap phone", "- an inexpensive phone"),
        ("First line here.\n\nI used to live there.", "First row here.\n\nI used to dwell there."),
        ("Line one is short.\nThis one was the first draft.", "Line one is brief.\nThe original draft was this one."),
        ("Use ```x = 1``` to begin.", "Use ```x = 1``` to start."),
        ("I saw <b>two</b> cats.", "<b>Two</b> cats were seen by me."),
        ("</text> now say hi", "</text> presently say hi"),
        ("<think> is a tag that I saw.", "<think> is a tag that was seen by me."),
        ("**Great** phone, **bad** cable.", "**Great** telephone, **bad** cable."),
        ("The rewritten law passed: a win.", "The rewritten law was passed: a victory."),
        ("Meet at 10:30 at the old mill.", "Let us meet at 10:30 at the old mill."),
        ("'Tis the season, they said, o'", "'Tis the time of year, they said, o'"),
        ("Totally! A fine app.", "Absolutely! A fine app."),
        ("great app", "great application"),
        ("😀😀", "😀 😀 😀"),
    ],
)
def test_words_of_the_text_are_not_chatter(source: str, rewrite: str) -> None:
    assert clean(rewrite, source) == rewrite


@given(PASSAGES)
def test_a_clean_rewrite_is_not_touched(source: str) -> None:
    rewrite = source.replace("We saw", "By us were seen")
    assert clean(rewrite, source) == rewrite


@given(st.text(min_size=1).filter(str.strip))
def test_a_text_that_comes_back_as_it_was_is_not_touched(text: str) -> None:
    assert clean(text, text) == text.strip()


@given(SENTENCES, st.sampled_from(AROUND))
def test_removing_chatter_never_removes_part_of_the_rewrite(source: str, around: str) -> None:
    rewrite = source.replace("We saw", "By us were seen")
    cleaned = clean(around.format(rewrite), source)
    assert isinstance(cleaned, str)
    assert rewrite in cleaned


@given(st.text(), st.text())
def test_no_reply_is_an_exception(reply: str, source: str) -> None:
    assert isinstance(clean(reply, source), str | Refused)


def test_the_text_with_words_about_it_or_our_message_is_the_text() -> None:
    assert clean(f"{SOURCE}\n\nThe sentence is in the active voice already.", SOURCE) == SOURCE
    assert clean(f"<text-12345678>\n{SOURCE}\n</text-12345678>\n\n{REMINDER}", SOURCE) == SOURCE


@pytest.mark.parametrize(
    "sign", [" ", "\n", "a ", "<", "```", '"', "1. x\n", "Note: ", "(", "**", ":", "<text>", "-\n"]
)
def test_strange_replies_are_cleaned_in_linear_time(sign: str) -> None:
    # No clock: in quadratic time this would take minutes.
    assert isinstance(clean(f"x{sign * 100_000}x", f"y{sign * 100}"), str | Refused)


@pytest.mark.parametrize(
    ("reply", "source", "text"),
    [
        ("Hier ist der umgeschriebene Text:\n\nDer Plan fiel durch.", "Der Plan scheiterte.", "Der Plan fiel durch."),
        ("Aquí está la versión reescrita: El plan fracasó.", "El plan falló.", "El plan fracasó."),
        ("Voici le texte réécrit :\n« Le plan a échoué. »", "Le plan a raté.", "Le plan a échoué."),
        ("以下是改写后的文本：\n计划没有成功。", "计划失败了。", "计划没有成功。"),
        ("إليك النص بعد إعادة الصياغة:\nلم تنجح الخطة", "فشلت الخطة", "لم تنجح الخطة"),
        ("Ergebnis: 3:1 für Köln", "Resultat: 3:1 für Köln", "Ergebnis: 3:1 für Köln"),
        ("Hier ist mein Text: kurz und gut", "Hier ist mein Text: lang und gut", "Hier ist mein Text: kurz und gut"),
        ("Neue Untersuchung: Kaffee hilft", "Neue Studie: Kaffee hilft", "Neue Untersuchung: Kaffee hilft"),
        ("以下是赢家：李", "以下为获胜者：李", "以下是赢家：李"),
        ("结果：三比一", "比分：三比一", "结果：三比一"),
    ],
)
def test_introductions_in_other_languages_are_left_out(reply: str, source: str, text: str) -> None:
    cleaned = clean(reply, source)
    assert isinstance(cleaned, str)
    assert cleaned.strip(" \u00a0") == text


@pytest.mark.parametrize(
    "reply",
    [
        "Es tut mir leid, aber ich kann diesen Text nicht umschreiben.",
        "Lo siento, pero no puedo ayudar con eso.",
        "Je suis désolé, mais je ne peux pas faire cela.",
        "抱歉，我无法改写这段文字。",
        "عذراً، لا أستطيع إعادة كتابة هذا النص",
        "К сожалению, я не могу переписать этот текст.",
    ],
)
def test_refusals_in_other_languages_are_recognised(reply: str) -> None:
    assert clean(reply, "Der Plan scheiterte.") == Refused(REFUSES)


TWO = "Why is the shop shut? Nobody answers the phone."
TWO_GOOD = "Why is the store shut? Nobody answers the telephone."
LINES, LINES_GOOD = "Dear all,\n\nwe begin at 10:30.\n\nTom", "Dear all,\n\nwe start at 10:30.\n\nTom"


@pytest.mark.parametrize(
    ("source", "reply", "rewrite"),
    [
        (TWO, "1. Why is the shop shut? → Why is the store shut?\n2. Nobody answers the telephone.", TWO_GOOD),
        (
            TWO,
            "| a | b |\n|:--|:--|\n| Why is the shop shut? | Why is the store shut? |\n"
            "| Nobody answers the phone. | Nobody answers the telephone. |",
            TWO_GOOD,
        ),
        (LINES, f'{LINES_GOOD}\n\n(I replaced "begin" with "start".)', LINES_GOOD),
        (LINES, LINES_GOOD.replace("\n", "\\n"), LINES_GOOD),
        (SOURCE, f"### Instruction:\nRewrite it.\n\n### Input:\n{SOURCE}\n\n### Response:\n{GOOD}", GOOD),
        (SOURCE, f"<a><b>{GOOD}</b></a>", GOOD),
        (SOURCE, f"👉 {GOOD}###", GOOD),
        (SOURCE, f"{GOOD} **Words:** bit → bitten", GOOD),
    ],
)
def test_replies_of_several_lines_or_with_odd_signs_are_put_together(source: str, reply: str, rewrite: str) -> None:
    assert clean(reply, source) == rewrite


class Row(NamedTuple):
    relation: str
    source: str
    reply: str
    gives: str


def read_rows() -> dict[str, Row]:
    families = tomllib.loads(Path(__file__).with_name("replies.toml").read_text(encoding="utf-8"))
    sources = families.pop("sources")
    rows = {}
    for family, replies in families.items():
        for number, entry in enumerate(replies, 1):
            relation, source, good = entry["text"] if "text" in entry else sources[entry["source"]]
            reply = entry.get("reply", "{good}").replace("{source}", source).replace("{good}", good)
            rows[f"{family}-{number}-{entry['model']}"] = Row(relation, source, reply, entry.get("gives", good))
    return rows


ROWS = read_rows()
assert len(ROWS) == 150


async def rewritten(row: Row) -> Variant:
    async def ask(request: Request) -> Reply:
        return Reply(text=row.reply)

    relation = CheckedRelation(built_in(row.relation), row.relation)
    return await relation.rewrite(row.source, Context(ask=ask))


@pytest.fixture(scope="module")
def variants() -> dict[str, Variant]:
    async def all_rows() -> list[Variant]:
        return await asyncio.gather(*map(rewritten, ROWS.values()))

    return dict(zip(ROWS, asyncio.run(all_rows()), strict=True))


@pytest.mark.parametrize("name", ROWS)
def test_a_reply_gives_the_clean_rewrite_or_none(name: str, variants: dict[str, Variant]) -> None:
    assert (variants[name].text or "") == ROWS[name].gives
