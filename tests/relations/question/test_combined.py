"""Relations of the question among others: not checked, combined with relations of the text, never an alternative."""

from __future__ import annotations

import asyncio

import pytest

from pcs_annotator import Relation, RelationOptions, Task, Variant
from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.task import Phrasing
from pcs_annotator.relations.base import Context, QuestionRelation, rephrased
from pcs_annotator.relations.checks.run import CheckedRelation
from pcs_annotator.relations.choose import choose_relations, text_parts

TASK = Task("How does the writer feel?", ["positive", "neutral", "negative"], wordings=["What is the mood?"])
TEXTS = ["My sister liked the wonderful hotel.", "", "El hotel no fue bueno.", "政府昨天宣布", "\ud800"]
QUESTION = ["order", "order:rotated", "order:3", "wording", "wording:2", "layout", "order+wording", "layout+order:2"]


def chosen(name: str, **options: bool) -> Relation:
    (relation,) = choose_relations([name], RelationOptions(**options))  # type: ignore[arg-type]  # all of them are bool
    return relation


def rewritten(relation: Relation, text: str) -> Variant:
    return asyncio.run(relation.rewrite(text, Context()))


@pytest.mark.parametrize("name", QUESTION)
@pytest.mark.parametrize("options", [{}, {"rewriter": True, "judged": True}])
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


def test_parts_change_the_question_in_turn() -> None:
    put = rephrased(chosen("layout+order+wording"), Phrasing(task=TASK))
    assert put.one_message
    assert (put.task.instruction, put.task.labels) == ("What is the mood?", ("negative", "neutral", "positive"))


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


def test_relations_of_the_text_leave_the_question_alone() -> None:
    for name in ("original", "typo", "voice+synonym", "voice|frame"):
        assert rephrased(chosen(name), Phrasing(task=TASK)) == Phrasing(task=TASK)


@pytest.mark.parametrize("spec", ["order|rule:voice", "rule:voice|wording:2", "rule:voice|order+typo"])
def test_what_always_applies_is_no_alternative(spec: str) -> None:
    with pytest.raises(ConfigError, match=r"changes the question and always applies.*of its own"):
        chosen(spec)


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
