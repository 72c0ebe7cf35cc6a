from __future__ import annotations

import asyncio
import csv
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator import RelationOptions, Variant
from pcs_annotator.core.variant import edits_between
from pcs_annotator.relations.base import Context
from pcs_annotator.relations.checks.reading import one_typo
from pcs_annotator.relations.choose import choose_relations
from pcs_annotator.relations.language import NO_TYPOS
from pcs_annotator.relations.plain.typo import MOST_TYPOS, WORDS_PER_TYPO, typo
from pcs_annotator.relations.rule import NotApplicable

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


@pytest.mark.parametrize("text", ["今日は とても良い天気です ね とても", "नमस्ते दुनिया आज मौसम अच्छा", "我们明天来看你"])
def test_scripts_in_which_letters_cannot_be_swapped_have_no_typos(text: str) -> None:
    assert typo(text) == NotApplicable(NO_TYPOS)


def test_marks_stay_on_their_letters() -> None:
    text = "والكِتابُ المَدرسيُّ هناك؛ شكرا\u200f جزيلا cafe\u0301 de\u0301cide\u0301ment"
    changed = str(typo(text))
    marks = "\u064f\u0650\u0651َ\u200f\u0301"
    pairs = [pair for pair in pairwise(text) if pair[1] in marks]
    assert changed != text
    assert [pair for pair in pairwise(changed) if pair[1] in marks] == pairs


def test_a_german_typo_makes_no_other_word() -> None:
    assert "deinen" not in {str(typo(f"Sie sollen hier dienen {number}")).split()[3] for number in range(50)}


@pytest.mark.parametrize("text", ["Really good", "", "Great app"])
def test_short_texts_are_left_alone(text: str) -> None:
    assert typo(text) == NotApplicable("too short")


@pytest.mark.parametrize(
    "text",
    [
        "El gobierno anunció ayer impuestos nuevos",
        "Правительство вчера объявило о новых налогах",
        "η κυβέρνηση ανακοίνωσε χθες νέους φόρους",
        "أعلنت الحكومة أمس أنها لن ترفع الضرائب",
    ],
)
def test_other_alphabets_have_typos_too(text: str) -> None:
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


def test_no_typo_makes_another_word() -> None:
    lemminflect = pytest.importorskip("lemminflect")
    risky = (
        "scared united casual silver perfect signed farmers complaint insulated indicated thorough tired diary heating"
    )
    for word in risky.split():
        for number in range(30):
            made = typos(f"one {word} two {number} more")
            assert [after for _, after in made if lemminflect.getAllLemmas(after)] == []


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
