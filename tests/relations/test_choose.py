from __future__ import annotations

import asyncio

import pytest

from pcs_annotator import PromptedRelation, RelationOptions
from pcs_annotator.base.errors import ConfigError, UnknownNameError
from pcs_annotator.relations.base import Context, Original, relations
from pcs_annotator.relations.checks.run import CheckedRelation
from pcs_annotator.relations.choose import FirstOf, InTurn, choose_relations, find_relation, known_relations

WITH_MODEL = RelationOptions(rewriter=True)
WITHOUT = RelationOptions()
POLITE = PromptedRelation("polite", "Say it politely: {text}")


def names(*specs: str, options: RelationOptions = WITHOUT) -> list[str]:
    return [relation.name for relation in choose_relations(specs, options)]


def test_a_bare_name_means_the_rewriter_if_there_is_one_and_a_rule_otherwise() -> None:
    assert find_relation("voice", WITHOUT).name == "rule:voice"
    assert find_relation("voice", WITH_MODEL).name == "llm:voice"
    assert find_relation("case", WITH_MODEL).name == "rule:case"


def test_tables_show_the_name_that_the_user_wrote() -> None:
    assert names("original", "voice", "rule:synonym") == ["original", "voice", "rule:synonym"]


def test_ones_own_relation_wins_over_a_built_in_one() -> None:
    mine = PromptedRelation("voice", "Rewrite my way.")
    assert find_relation("voice", RelationOptions(rewriter=True, own={"voice": mine})) is mine


def test_a_plus_makes_a_sequence_and_a_bar_a_choice() -> None:
    both, either = choose_relations(["voice + synonym", "rule:voice|llm:voice"], WITH_MODEL)
    assert isinstance(both, InTurn)
    assert [part.name for part in both.parts] == ["voice", "synonym"]
    assert isinstance(either, FirstOf)
    assert either.name == "voice"
    assert either.needs == {"rewriter", "parser"}


def test_alternatives_of_different_names_get_a_name_that_tables_can_hold() -> None:
    assert names("rule:voice|rule:frame") == ["rule:voice/rule:frame"]


def test_a_relation_of_an_installed_package_is_found() -> None:
    (found,) = choose_relations(["whispered"], WITHOUT)
    assert asyncio.run(found.rewrite("Calm Down", Context())).text == "calm down"


def test_every_relation_but_the_original_is_checked() -> None:
    original, voice, own = choose_relations(["original", "voice", POLITE], WITH_MODEL)
    assert isinstance(original, Original)
    assert isinstance(voice, CheckedRelation)
    assert isinstance(own, CheckedRelation)
    assert choose_relations([voice], WITH_MODEL) == [voice]


@pytest.mark.parametrize(
    ("specs", "options", "complaint"),
    [
        (["voise"], WITHOUT, "'voise'.*'voice'"),
        (["llm:voice"], WITHOUT, "'llm:voice'.*--rewriter MODEL"),
        (["paraphrase"], WITHOUT, "'llm:paraphrase'.*--rewriter MODEL"),
        (["voice+original"], WITHOUT, "'voice.original'.*'original'"),
        (["voice", "voice"], WITHOUT, "'voice'.*twice"),
        (["rule:voice|llm:voice"], WITHOUT, "'llm:voice'.*--rewriter MODEL"),
        (["voice+"], WITHOUT, "no relation.*''"),
    ],
)
def test_what_cannot_be_chosen_is_refused_with_the_remedy(
    specs: list[str], options: RelationOptions, complaint: str
) -> None:
    with pytest.raises((ConfigError, UnknownNameError), match=complaint):
        choose_relations(specs, options)


def test_the_paper_s_three_and_the_others_are_known() -> None:
    known = {relation.name for relation in known_relations({"polite": POLITE})}
    by_model = ("voice", "double-negation", "synonym", "paraphrase", "expansion", "register")
    by_rule = ("case", "typo", "frame", "voice", "double-negation")
    assert {f"llm:{name}" for name in by_model} | {f"rule:{name}" for name in by_rule} <= known
    assert {"original", "polite", "llm:noise", "rule:synonym"} <= known


@pytest.mark.parametrize("name", sorted(set(relations.names()) - {"original"}))
def test_every_relation_says_what_it_is(name: str) -> None:
    relation = relations.create(name)
    assert relation.name == name
    assert relation.version
    assert relation.deterministic == ("rewriter" not in relation.needs)
    assert relation.expects.shortest <= 1 < relation.expects.longest
