"""What models are asked for where they quote, and what is read from their replies."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator.asking.annotators.annotator import Annotator, Question
from pcs_annotator.asking.annotators.extraction import (
    EXTRACTION_TOKENS,
    MOST_QUOTATIONS,
    example_answer,
    read_quotations,
)
from pcs_annotator.asking.engine.job import Job
from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.chat import Reply
from pcs_annotator.core.passages import VALUE, Extraction, Passage, Quotation
from pcs_annotator.core.task import Task
from pcs_annotator.core.votes import Vote
from pcs_annotator.models.resolve import resolve_model
from pcs_annotator.relations.combine import RelationOptions, choose_relations

TYPES = Extraction(("claim", "evidence"))
AMOUNT = Extraction((VALUE,), "number")
TASK = Task("Which passages are these?", labels=TYPES.types, extraction=TYPES)


def quoted(*rows: tuple[str, str]) -> list[Quotation]:
    return [Quotation(type_, quotation) for type_, quotation in rows]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ('[{"type": "claim", "quotation": "it rained"}]', quoted(("claim", "it rained"))),
        ('```json\n[{"type": "Claim", "quote": "it rained"}]\n```', quoted(("claim", "it rained"))),
        ('Sure! {"claim": ["a", "b"], "evidence": []} Done.', quoted(("claim", "a"), ("claim", "b"))),
        ('{"passages": [{"label": "evidence", "text": "a"}]}', quoted(("evidence", "a"))),
        ('[{"type": "claim", "quotation": "a"}, {"type": "evi', quoted(("claim", "a"))),  # cut off
        ('[{"type": "claim", "quotation": "a"}, {"type": "claim", "quotation": "a"}]', quoted(("claim", "a"))),
        ("<think>[1]</think>[]", []),
        ("None.", []),
        ("", "empty reply"),
        ("It rained.", "no JSON in the reply"),
        ("[" * 50_000, "no JSON in the reply"),
        ('{"a":' * 50_000, "no JSON in the reply"),
        ('[{"type": "name", "quotation": "a"}]', "no quotation of a type that was asked for"),
        ("[1, 2]", "no quotation of a type that was asked for"),
    ],
)
def test_quotations_are_read_however_models_write_the_list(reply: str, expected: list[Quotation] | str) -> None:
    assert read_quotations(reply, TYPES) == expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ('{"quotation": "paid 30 euros", "value": 30}', [Quotation(VALUE, "paid 30 euros", "30")]),
        ('[{"quotation": "30"}]', [Quotation(VALUE, "30", "30")]),
        ("{}", []),
        ('{"quotation": "", "value": null}', []),
        ('{"quotation": "none", "value": "not stated"}', []),
        ('[{"quotation": "a", "value": 1}, {"quotation": "b", "value": 2}]', "several values in the reply"),
    ],
)
def test_at_most_one_value_is_read(reply: str, expected: list[Quotation] | str) -> None:
    assert read_quotations(reply, AMOUNT) == expected


def test_a_reply_with_very_many_quotations_is_silent_with_its_reason() -> None:
    rows = [{"type": "claim", "quotation": f"passage {number}"} for number in range(10_000)]
    assert read_quotations(json.dumps(rows), TYPES) == f"more than {MOST_QUOTATIONS} quotations in the reply"


@given(st.text(max_size=200))
def test_no_reply_raises(reply: str) -> None:
    for extraction in (TYPES, AMOUNT):
        assert isinstance(read_quotations(reply, extraction), list | str)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 10), st.sampled_from(TYPES.types)), max_size=5))
def test_what_is_shown_as_an_example_is_read_as_it_was_meant(spans: list[tuple[int, int, str]]) -> None:
    text = 'He said "it is\nlate", and left — quite suddenly, at 9'
    passages = [Passage(start, start + length, type_) for start, length, type_ in spans]
    passages = [passage for passage in passages if text[passage.start : passage.end].strip()]
    expected = [Quotation(type_, text[start:end].strip()) for start, end, type_, _ in passages]
    assert read_quotations(example_answer(text, passages, TYPES), TYPES) == list(dict.fromkeys(expected))


def test_models_are_asked_for_a_list_with_room_and_without_labels_to_choose_from() -> None:
    model = resolve_model(lambda prompt: "[]", {})
    annotator = Annotator(model, name="m")
    question = annotator.question(TASK, "It rained. The road is wet.", model)
    assert isinstance(question, Question)
    asked = "\n".join(message.content for message in question.request.messages)
    assert "- claim\n- evidence" in asked
    assert '{"type": "claim", "quotation": "…"}' in asked
    assert "<label>" not in asked
    assert question.request.max_tokens == EXTRACTION_TOKENS
    assert question.request.constraint is None
    value = Task("How much was paid?", labels=(VALUE,), extraction=AMOUNT)
    asked = "\n".join(message.content for message in annotator.question(value, "Ann paid 3.", model).request.messages)  # type: ignore[union-attr]
    assert "as a number in digits" in asked
    assert "Labels" not in asked


def test_a_reply_that_cannot_be_read_is_a_silence() -> None:
    model = resolve_model(lambda prompt: "[]", {})
    annotator = Annotator(model, name="m")
    question = annotator.question(TASK, "It rained.", model)
    assert isinstance(question, Question)
    assert annotator.parse_reply(question, [Reply(text="[]")], model) == Vote(label="claim")
    silent = annotator.parse_reply(question, [Reply(text="Hm.")], model)
    assert silent == Vote(label=None, reason="no JSON in the reply")


def test_relations_that_change_texts_are_refused_where_models_quote() -> None:
    model = resolve_model(lambda prompt: "[]", {})
    annotators = [(Annotator(model, name="m"), model)]
    with pytest.raises(ConfigError, match="'case' rewrites a text, and quotations are looked up in the text as it is"):
        Job(task=TASK, annotators=annotators, relations=choose_relations(["original", "case"], RelationOptions()))
    Job(
        task=TASK,
        annotators=annotators,
        relations=choose_relations(["original", "order", "wording", "layout"], RelationOptions()),
    )
