import asyncio

import pytest

from pcs_annotator import Expectation, PromptedRelation, Relation, RelationOptions, Task, Variant
from pcs_annotator.base.errors import ConfigError, UnknownNameError
from pcs_annotator.core.task import Phrasing
from pcs_annotator.relations.base import Context, Original, QuestionRelation, relations, rephrased
from pcs_annotator.relations.combine import CheckedRelation, InTurn, choose_relations, find_relation, text_parts
from pcs_annotator.relations.function import FunctionRelation

WITH_MODEL = RelationOptions(rewriter=True)
WITHOUT = RelationOptions()
POLITE = PromptedRelation("polite", "Say it politely: {text}")


def test_a_bare_name_has_one_meaning_unless_it_is_ones_own_and_tables_show_it_as_it_was_written() -> None:
    assert find_relation("voice", WITH_MODEL).name == "llm:voice"
    assert find_relation("case", WITH_MODEL).name == "rule:case"
    chosen_names = [relation.name for relation in choose_relations(["original", "case", "rule:typo"], WITHOUT)]
    assert chosen_names == ["original", "case", "rule:typo"]
    mine = PromptedRelation("voice", "Rewrite my way.")
    assert find_relation("voice", RelationOptions(rewriter=True, own={"voice": mine})) is mine


def test_a_plus_makes_a_sequence() -> None:
    (both,) = choose_relations(["voice + synonym"], WITH_MODEL)
    assert isinstance(both, InTurn)
    assert [part.name for part in both.parts] == ["voice", "synonym"]
    assert both.needs == {"rewriter"}


def test_a_relation_of_an_installed_package_is_found() -> None:
    (found,) = choose_relations(["whispered"], WITHOUT)
    assert asyncio.run(found.rewrite("Calm Down", Context())).text == "calm down"


def test_every_relation_but_the_original_is_checked() -> None:
    original, *others = choose_relations(["original", "voice", POLITE], WITH_MODEL)
    assert isinstance(original, Original)
    assert [type(other) for other in others] == [CheckedRelation] * 2
    assert choose_relations(others, WITH_MODEL) == others


@pytest.mark.parametrize(
    ("specs", "options", "complaint"),
    [
        (["voise"], WITHOUT, "'voise'.*'voice'"),
        (["llm:voice"], WITHOUT, "'llm:voice'.*--rewriter MODEL"),
        (["paraphrase"], WITHOUT, "'llm:paraphrase'.*--rewriter MODEL"),
        (["case+original"], WITHOUT, "'case.original'.*'original'"),
        (["case", "case"], WITHOUT, "'case'.*twice"),
        (["case+"], WITHOUT, "no relation.*''"),
    ],
)
def test_what_cannot_be_chosen_is_refused_with_the_remedy(
    specs: list[str], options: RelationOptions, complaint: str
) -> None:
    with pytest.raises((ConfigError, UnknownNameError), match=complaint):
        choose_relations(specs, options)


@pytest.mark.parametrize("name", sorted(set(relations.names()) - {"original"}))
def test_every_relation_says_what_it_is(name: str) -> None:
    relation = relations.create(name)
    assert relation.name == name
    assert relation.version
    assert relation.deterministic == ("rewriter" not in relation.needs)
    assert relation.expects.shortest <= 1 < relation.expects.longest


LOUD = FunctionRelation("loud", str.upper, expects=Expectation(longest=2.0))
TWICE = FunctionRelation("twice", lambda text: f"{text} {text}", version="3", expects=Expectation(longest=3.0))
NEVER = FunctionRelation("never", lambda text: None)


def rewritten(relation: Relation, text: str = "a text") -> Variant:
    return asyncio.run(relation.rewrite(text, Context()))


def test_parts_are_applied_from_left_to_right() -> None:
    question = FunctionRelation("question", lambda text: f"{text}?")
    assert rewritten(InTurn("question+twice", (question, TWICE))).text == "a text? a text?"
    assert rewritten(InTurn("twice+question", (TWICE, question))).text == "a text a text?"


@pytest.mark.parametrize("parts", [(NEVER, LOUD), (LOUD, NEVER)])
def test_one_failed_part_makes_the_whole_not_applicable(parts: tuple[Relation, ...]) -> None:
    variant = rewritten(InTurn("both", parts))
    assert (variant.status, variant.text) == ("not_applicable", None)
    assert variant.reason == "never: the function gave nothing"


def test_a_composition_needs_and_allows_what_its_parts_do() -> None:
    both = InTurn("loud+twice", (LOUD, TWICE))
    assert both.expects.longest == 6.0
    assert (both.version, both.deterministic, both.needs) == ("1+3", True, frozenset())
    assert both.calls("a text") == 0.0


TASK = Task("How does the writer feel?", ["positive", "neutral", "negative"], wordings=["What is the mood?"])
TEXTS = ["My sister liked the wonderful hotel.", "", "El hotel no fue bueno.", "政府昨天宣布", "\ud800"]
QUESTION = ["order", "order:rotated", "order:3", "wording", "wording:2", "layout", "order+wording", "layout+order:2"]


def chosen(name: str, **options: bool) -> Relation:
    (relation,) = choose_relations([name], RelationOptions(**options))  # type: ignore[arg-type]  # all of them are bool
    return relation


@pytest.mark.parametrize("name", QUESTION)
@pytest.mark.parametrize("options", [{}, {"rewriter": True}])
def test_every_text_stays_as_it_is_free_of_charge(name: str, options: dict[str, bool]) -> None:
    relation = chosen(name, **options)
    assert isinstance(relation, QuestionRelation)
    assert not isinstance(relation, CheckedRelation)
    assert (relation.name, relation.needs, relation.deterministic) == (name, frozenset(), True)
    assert text_parts(relation) == ()
    for text in TEXTS:
        assert relation.calls(text) == 0
        assert rewritten(relation, text) == Variant(relation=name, status="original", text=text, source=text)
    assert rephrased(relation, Phrasing(task=TASK)) != Phrasing(task=TASK)


@pytest.mark.parametrize("name", ["order+typo", "typo+order", "wording+typo+layout"])
def test_with_a_relation_of_the_text_both_change(name: str) -> None:
    relation = chosen(name)
    variant = rewritten(relation, TEXTS[0])
    assert (variant.relation, variant.status) == (name, "changed")
    assert variant.text == rewritten(chosen("typo"), TEXTS[0]).text
    assert variant.checks
    assert rephrased(relation, Phrasing(task=TASK)) != Phrasing(task=TASK)
    assert rewritten(relation, "").reason == "typo: empty text"
    assert [part.name for part in text_parts(relation)] == ["typo"]


def test_parts_change_the_question_in_turn_and_relations_of_the_text_leave_it_alone() -> None:
    put = rephrased(chosen("layout+order+wording"), Phrasing(task=TASK))
    assert put.one_message
    assert (put.task.instruction, put.task.labels) == ("What is the mood?", ("negative", "neutral", "positive"))
    for name in ("original", "typo", "case+typo"):
        assert rephrased(chosen(name), Phrasing(task=TASK)) == Phrasing(task=TASK)


def test_a_relation_of_one_s_own_may_change_the_question() -> None:
    class Polite:
        name, version, needs, deterministic = "polite", "1", frozenset[str](), True
        expects = chosen("order").expects

        def calls(self, text: str) -> float:
            return 0.0

        async def rewrite(self, text: str, context: Context) -> Variant:
            return Variant(relation=self.name, status="original", text=text, source=text)

        def rephrase(self, question: Phrasing) -> Phrasing:
            task = question.task
            return Phrasing(task=Task(f"Please: {task.instruction}", task.labels))

    mine: Relation = Polite()  # type: ignore[assignment]  # it needs nothing
    assert choose_relations([mine], RelationOptions()) == [mine]
    assert rephrased(mine, Phrasing(task=TASK)).task.instruction == "Please: How does the writer feel?"
