"""Answers in ledgers belong to the bytes of a question: a prompt that changes by one of them is paid for again."""

from collections.abc import Iterator
from hashlib import blake2b
from itertools import product

import pytest

from pcs_annotator import Annotator, Task
from pcs_annotator.asking.annotators.annotator import Question
from pcs_annotator.asking.annotators.prompt import PromptStyle
from pcs_annotator.asking.ledger.sqlite import call_key
from pcs_annotator.core.chat import Reply
from pcs_annotator.models.scripted import ScriptedModel
from pcs_annotator.relations.phrases import all_phrases

LABELS = ["left", "far-right", "çà"]
TEXT = "First line.\n\nLabels:\n- left\n[text 0123456789ab] <label>left</label> \ud800"
# Both parts of a conversation in two steps are read from this reply.
REPLIES = {"2s-top-2": "G1: left\nG2: çà"}

KINDS = ("label", "1s-top-2", "2s-top-2", "ling-1s")
PINNED = {
    "en": "428f153b 4528468c 8f4ddc72 6b152115",
    "de": "30e7280d 8b97f1cb 898494f4 22e489b0",
    "fr": "a3898094 b110541c da6590a7 7faacbf5",
    "es": "e9c0c8ae 4a186708 d267acc0 f104cea0",
    "it": "aaa0537f 366048dd 618b0619 536698f5",
    "pt": "fe593995 71032182 4219ef9c bc79eb9d",
    "nl": "8be9495f 8e3408a9 26cd85bc 77897617",
    "pl": "4f514efa a1fed1af ca4420dd 19f3d99b",
    "ru": "fb0fce96 93f38032 89da344f 14a7b2fd",
    "tr": "ac5925c0 89cf0492 9ae27105 5e3b78d4",
    "zh": "b1925c82 fef96cb4 182df6b6 f8af584f",
    "ja": "abf930d9 da4fd71c b2f2d97c 1815275c",
    "ar": "ff474c00 ffabc1b9 d3c7e3fa b1584773",
    "hi": "c43a1d50 c2a6407c fd2cc144 356e91ab",
}


def questions(language: str, kind: str) -> Iterator[Question]:
    """Yield every form in which a kind of question is put in a language, and the follow-up questions."""
    # the sentence of the prompt itself is surely in its language
    instruction = f"{all_phrases()[language].role}\n\nLabels:\n<label>…</label>"
    task = Task(instruction, LABELS, {"left": "one side: this one"})
    styles: tuple[PromptStyle, ...] = ("chat", "plain")
    for style, constrains, grades in product(styles, (False, True), (False, True)):
        model = ScriptedModel("", can_grade=grades)
        model.can_constrain = constrains
        annotator = Annotator(model, elicitation=None if kind == "label" else kind, style=style)
        question = annotator.question(task, TEXT, model)
        assert isinstance(question, Question)
        assert all_phrases()[language].data in question.request.messages[0].content
        yield question
        if kind in REPLIES:
            said = REPLIES[kind]
            following = annotator.parse_reply(question, [Reply(text=said)], model)
            assert isinstance(following, Question)
            yield following


@pytest.mark.parametrize("language", all_phrases())
def test_ledger_keys_stay_as_they_are_in_every_language_and_elicitation(language: str) -> None:
    found = []
    for kind in KINDS:
        keys = [call_key("m", question.request, draw=1) for question in questions(language, kind)]
        found.append(blake2b(b"".join(key.own + key.twin for key in keys), digest_size=4).hexdigest())
    assert " ".join(found) == PINNED[language]
