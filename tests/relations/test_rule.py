from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from pcs_annotator import Relation, Variant
from pcs_annotator.relations import rule
from pcs_annotator.relations.base import Context
from pcs_annotator.relations.rule import NotApplicable, Replacement, SentenceRule, TextRule, in_pairs, splice

if TYPE_CHECKING:
    from spacy.tokens import Span


def rewritten(relation: Relation, text: str) -> Variant:
    return asyncio.run(relation.rewrite(text, Context()))


def shout_short(sentence: Span) -> str | NotApplicable:
    return sentence.text.upper() if len(sentence) < 6 else NotApplicable("a long sentence")


def test_every_sentence_that_can_be_is_rewritten_and_the_rest_stays() -> None:
    text = "The dog ran home.\n\n  The cat sat on the very old mat. It was late. "
    variant = rewritten(SentenceRule("shout", shout_short), text)
    assert variant.text == "THE DOG RAN HOME.\n\n  The cat sat on the very old mat. IT WAS LATE. "


def test_when_no_sentence_can_be_rewritten_the_commonest_reason_is_given() -> None:
    variant = rewritten(SentenceRule("shout", shout_short), "The cat sat on the very old mat by the window.")
    assert (variant.status, variant.reason) == ("not_applicable", "a long sentence")


def test_a_text_too_long_to_parse_is_not_applicable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule, "LONGEST", 50)
    variant = rewritten(SentenceRule("shout", shout_short), "The dog ran home. " * 5)
    assert variant.reason == "too long to parse"


@pytest.mark.parametrize("text", ["", " \n", "Это русский текст, который правило не трогает."])
def test_rules_do_not_apply_to_other_languages(text: str) -> None:
    for relation in (TextRule("shout", str.upper), SentenceRule("shout", shout_short)):
        variant = rewritten(relation, text)
        assert variant.status == "not_applicable"
        assert variant.reason


def test_a_rule_that_changes_nothing_is_not_applicable() -> None:
    assert rewritten(TextRule("same", lambda text: text), "The dog ran home.").reason == "the rewrite changed nothing"


def test_sentences_are_paired_unless_they_were_split_or_joined() -> None:
    text = "It is on.\nIt is late. I know. Go."
    assert in_pairs(text, "It's on.\nIt is late. I do. Go.") == [
        Replacement(0, 9, "It's on."),
        Replacement(22, 29, "I do."),
    ]
    for other in ("It is on.\nIt is late, I know. Go.", "It is on. It is late. I know. Go."):
        assert in_pairs(text, other) == [Replacement(0, len(text), other)]


def test_rules_cost_no_calls() -> None:
    assert TextRule("shout", str.upper).calls("text") == SentenceRule("shout", shout_short).calls("text") == 0.0


def test_replacements_must_not_overlap() -> None:
    assert splice("a cat sat", [Replacement(12, 15, "dog")], offset=10) == "a dog sat"
    with pytest.raises(ValueError, match="overlaps"):
        splice("a cat sat", [Replacement(0, 5, "the"), Replacement(2, 5, "dog")])
