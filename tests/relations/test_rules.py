import asyncio
import csv
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator import RelationOptions, Variant
from pcs_annotator.core.variant import edits_between
from pcs_annotator.relations.base import Context, relations
from pcs_annotator.relations.check_words import one_typo
from pcs_annotator.relations.combine import choose_relations
from pcs_annotator.relations.function import NotApplicable
from pcs_annotator.relations.language import NO_LEAD_IN, NO_TYPOS
from pcs_annotator.relations.limits import READ, languages_of
from pcs_annotator.relations.rules import MOST_TYPOS, WORDS_PER_TYPO, case, frame, kept_as_they_are, typo

TEXT = "The committee rejected every proposal, although several members wanted a longer discussion about it."
WORDS = (
    "committee rejected proposal although several members wanted discussion nothing without Berlin Anna hotel work a"
)


def typos(text: str) -> list[tuple[str, str]]:
    found = typo(text)
    assert isinstance(found, str)
    return [(edit.before, edit.after) for edit in edits_between(text, found)]


def test_a_few_long_words_are_misspelt() -> None:
    made = typos(TEXT)
    assert len(made) == round(len(TEXT.split()) / WORDS_PER_TYPO)
    assert all(one_typo(after, before) and before in TEXT for before, after in made)


def test_the_text_decides_where() -> None:
    assert typo(TEXT) == typo(TEXT)
    assert len({str(typo(f"{TEXT} {number}")).rsplit(" ", 1)[0] for number in range(20)}) > 10


def test_a_long_text_has_few_typos() -> None:
    text = " ".join([TEXT] * 30)
    changed = sum(old != new for old, new in zip(text.split(), str(typo(text)).split(), strict=True))
    assert changed == MOST_TYPOS


@pytest.mark.parametrize(
    "text",
    [
        "Anna Bergmann Copenhagen is on TV",
        "see https://committee.example/members or www.members.example now",
        "@committee #discussion members@example.org a b c d",
        "nothing without nobody hardly cannot be",
        "it is not so bad at all, no",
        "soooo goooood yesss omggg and so on",
        "12th of 500members in a4sized and 2nd",
        "don't isn't couldn't won't be it",
    ],
)
def test_names_numbers_addresses_negations_and_short_words_are_kept(text: str) -> None:
    assert typo(text) == NotApplicable("no word to misspell")


def test_scripts_in_which_letters_cannot_be_swapped_and_short_texts_have_no_typos() -> None:
    for text in ("今日は とても良い天気です ね とても", "नमस्ते दुनिया आज मौसम अच्छा", "我们明天来看你"):
        assert typo(text) == NotApplicable(NO_TYPOS)
    for text in ("Really good", "", "Great app"):
        assert typo(text) == NotApplicable("too short")


def test_marks_stay_on_their_letters() -> None:
    text = "والكِتابُ المَدرسيُّ هناك؛ شكرا\u200f جزيلا cafe\u0301 de\u0301cide\u0301ment"
    changed = str(typo(text))
    marks = "\u064f\u0650\u0651َ\u200f\u0301"
    pairs = [pair for pair in pairwise(text) if pair[1] in marks]
    assert changed != text
    assert [pair for pair in pairwise(changed) if pair[1] in marks] == pairs


def test_a_german_typo_makes_no_other_word() -> None:
    assert "deinen" not in {str(typo(f"Sie sollen hier dienen {number}")).split()[3] for number in range(50)}


def test_other_alphabets_have_typos_too() -> None:
    russian, greek = "Правительство вчера объявило о новых налогах", "η κυβέρνηση ανακοίνωσε χθες νέους φόρους"
    for text in ("El gobierno anunció ayer impuestos nuevos", russian, greek, "أعلنت الحكومة أمس أنها لن ترفع الضرائب"):
        assert all(one_typo(after, before) for before, after in typos(text))


@given(st.lists(st.sampled_from(WORDS.split()), min_size=4, max_size=40).map(" ".join))
def test_negations_names_and_the_number_of_words_stay(text: str) -> None:
    found = typo(text)
    if isinstance(found, NotApplicable):
        return
    before, after = text.split(), found.split()
    assert len(before) == len(after)
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert changed
    assert all(one_typo(new, old) and new not in WORDS.split() for old, new in changed)
    assert {old for old, _ in changed}.isdisjoint({"nothing", "without", "Berlin", "Anna", "a"})


@pytest.mark.parametrize("word", ["scared", "casual", "silver", "signed", "tired", "diary"])
def test_no_typo_makes_another_word(word: str) -> None:
    others = {"sacred", "causal", "sliver", "singed", "tried", "dairy"}
    assert others.isdisjoint(after for number in range(30) for _, after in typos(f"one {word} two {number} more"))


@pytest.mark.parametrize(("name", "covers"), [("case", 0.97), ("typo", 0.84)])
@pytest.mark.parametrize("file", ["tweets_sentiment", "multiclass_sentiment"])
def test_nearly_all_real_texts_change_and_pass_the_checks(
    name: str, covers: float, file: str, shared_data: Path
) -> None:
    with (shared_data / "texts" / f"{file}.csv").open(encoding="utf-8") as rows:
        texts = [row["text"] for row in csv.DictReader(rows)]
    (relation,) = choose_relations([name], RelationOptions())

    async def all_of_them() -> list[Variant]:
        return [await relation.rewrite(text, Context()) for text in texts]

    statuses = [variant.status for variant in asyncio.run(all_of_them())]
    changed, rejected = statuses.count("changed"), statuses.count("rejected")
    assert changed >= covers * len(texts)
    assert changed >= 0.99 * (changed + rejected)


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("The hotel was GOOD. I loved it!", "the hotel was good. i loved it!"),
        ("We met Ann Lee in New York on 5 May.", "we met Ann Lee in New York on 5 May."),
        ("Ann Lee called. She's AMAZING, I'm not.", "Ann Lee called. she's amazing, i'm not."),
        ("So NASA and eBay said. McCain didn't, says the US.", "so NASA and eBay said. McCain didn't, says the US."),
        ("STOP SHOUTING AT ME NOW", "stop shouting at me now"),
        ("How the Mayor Saved Her Old School", "how the mayor saved her old school"),
        ("@Bob Look at #BlackFriday: http://A.b/C, 5PM!", "@Bob look at #BlackFriday: http://A.b/C, 5PM!"),
        ("So happy :D XD &AMP; you", "so happy :D XD &AMP; you"),
        ("Der Hund schläft. Er ist müde.", "der Hund schläft. er ist müde."),
        ("¿Dónde está? ¡Qué bonito es todo!", "¿dónde está? ¡qué bonito es todo!"),
        ("Iğdır'da IŞIK yok. İzmir güzel.", "ığdır'da IŞIK yok. izmir güzel."),
        ("Сегодня хорошо. Мы гуляем.", "сегодня хорошо. мы гуляем."),
        ("ΟΔΥΣΣΕΥΣ", "οδυσσευς"),
    ],
)
def test_capitals_become_small_letters_except_in_names(text: str, changed: str) -> None:
    assert case(text) == changed


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("今日はとても良い天気です", NotApplicable("no letter has another case")),
        ("سنرى غدا", NotApplicable("no letter has another case")),
        ("12:30 @BOB", NotApplicable("no letter has another case")),
        ("heading to work. bye!", "Heading to work. Bye!"),
        ("@user he knows Putin", "@user He knows Putin"),
        ("26 pin cable for eBay", "26 Pin Cable For eBay"),
        ("ﬁne", "Fine"),
    ],
)
def test_a_text_without_capitals_to_change_gets_some_where_its_script_has_them(
    text: str, changed: str | NotApplicable
) -> None:
    assert case(text) == changed


@given(st.text(alphabet=st.sampled_from("aBcİßÄéΣ .,!?'@#/:0…\n-"), max_size=60))
def test_only_the_case_changes(text: str) -> None:
    found = case(text)
    if isinstance(found, str):
        assert found != text
        assert found.casefold().replace("\u0307", "") == text.lower().casefold().replace("\u0307", "")
    assert case(text) == found


def test_the_shortest_text_is_within_what_the_checks_allow() -> None:
    expects = relations.create("rule:frame").expects
    assert expects.shortest <= len(str(frame("I am"))) / len("I am") <= expects.longest


@pytest.mark.parametrize(
    ("text", "framed"),
    [
        ("Le chat dort sur le lit.", "Voici le texte : Le chat dort sur le lit."),
        ("今天天气真好。", "文本内容如下：今天天气真好。"),
        ("هذا الفيلم ممل جدا", "النص كما يلي: هذا الفيلم ممل جدا"),
        ("Цей фільм дуже нудний", NotApplicable(NO_LEAD_IN)),
        ("Ek weet nie wat om te doen nie", NotApplicable(NO_LEAD_IN)),
        ("Wer?", NotApplicable(NO_LEAD_IN)),
        ("The text reads: The bridge is closed.", NotApplicable("already framed")),
    ],
    ids=["French", "Chinese", "Arabic", "Ukrainian, not Russian", "Afrikaans, not Dutch", "unclear", "framed"],
)
def test_a_lead_in_is_in_the_language_of_the_text_or_there_is_none(text: str, framed: str | NotApplicable) -> None:
    assert frame(text) == framed


@given(st.text())
def test_every_text_is_kept_to_the_letter(text: str) -> None:
    framed = frame(text)
    assert isinstance(framed, NotApplicable) or framed.endswith(text)


# The definition, as one pattern; it backtracks, so it is for short texts only.
KEPT = re.compile(
    r"""(?:https?://|www\.)\S+ | \S+@\S+\.\w+ | [@\#]\w+ | &\#?\w+; | \S*\w[/\\_.]\w\S*
    | \w*\d\w*(?:[.,:/-]\w*\d\w*)* | [:;=8xX][-'^o]?[DPpOoSsXxCcLl3](?!\w) | \b[xX]D+\b""",
    re.VERBOSE,
)


@given(st.lists(st.sampled_from([*"ab@#&;./\\_x8D:- 1,'XP=w!é", "http://", "www."]), max_size=14).map("".join))
def test_what_is_kept_is_what_the_definition_says(text: str) -> None:
    kept = bytearray(len(text))
    for found in KEPT.finditer(text):
        kept[found.start() : found.end()] = b"\1" * (found.end() - found.start())
    assert kept_as_they_are(text) == kept


@pytest.mark.parametrize("piece", ["a@", "x", "@a", "@a#b_c", "&a;", "1-", "word ", "! "])
def test_rules_for_letters_come_to_an_end_on_long_texts(piece: str) -> None:
    text = "It is so. " + piece * (100_000 // len(piece))
    assert len(kept_as_they_are(text)) == len(text)
    assert case(text) != text
    assert typo(text) != text


def test_rules_are_tried_on_the_beginning_of_a_text() -> None:
    assert [len(text) for text in languages_of(["word " * READ]).sample] == [READ]
