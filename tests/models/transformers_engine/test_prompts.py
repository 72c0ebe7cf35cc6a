"""What of a question is the same for every text, and which words a text must not contain."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pcs_annotator import Example, Task
from pcs_annotator.asking.annotators.prompt import PromptStyle, build_messages, task_prompt
from pcs_annotator.models.local import prompts
from pcs_annotator.models.local.prompts import PromptWriter
from pcs_annotator.relations.phrases import all_phrases


class Letters:
    """A tokenizer whose tokens are letters, of a model whose template has no place for a system message."""

    chat_template = "any"
    added_tokens_decoder: Mapping[int, Any] = {}

    def apply_chat_template(self, turns: Sequence[Mapping[str, str]], **_: object) -> str:
        return "".join(f"<{turn['role']}>{turn['content']}" for turn in turns if turn["role"] != "system") + "<reply>"

    def __call__(self, texts: Sequence[str], **_: object) -> dict[str, list[list[int]]]:
        return {"input_ids": [[ord(letter) for letter in text] for text in texts]}


@pytest.mark.parametrize("style", ["chat", "plain"])
@pytest.mark.parametrize("language", all_phrases())
def test_the_head_of_a_question_ends_where_its_text_begins(language: str, style: PromptStyle) -> None:
    phrases = all_phrases()[language]
    task = Task(f"  {phrases.role} [text 0123456789ab]", ["positive", "negative"])
    texts = ("What a day!", "[text 0123456789ab]")
    writer = PromptWriter(Letters())
    one, other = writer.prompts([build_messages(task, text, style=style) for text in texts])
    assert one.head == other.head
    assert "".join(map(chr, one.head)) == f"<user>{task_prompt(task)}\n\n{phrases.fenced}"[:-1]


@pytest.mark.parametrize("style", ["chat", "plain"])
def test_the_head_ends_before_examples_that_are_chosen_for_a_text(style: PromptStyle) -> None:
    fixed = Task("Good or bad?", ["good", "bad"], examples=[Example("Fine.", "good"), Example("Poor.", "bad")])
    writer = PromptWriter(Letters())
    for task, kept in ((fixed, True), (replace(fixed, nearest=2), False)):
        (prompt,) = writer.prompts([build_messages(task, "What a day!", style=style)])
        head, tail = ("".join(map(chr, part)) for part in prompt)
        assert "Good or bad?" in head
        assert ("Fine." in head, "Fine." in tail) == (kept, not kept)
        assert tail.index("What a day!") > tail.find("Poor.")


def test_control_words_are_special_tokens_and_markup() -> None:
    tokens = {
        number: SimpleNamespace(content=content, special=special)
        for number, (content, special) in enumerate(
            [("<|end|>", True), (" <s>", True), ("  ", True), ("covid", False), ("<think>", False), ("<", True)]
        )
    }
    pattern = prompts._control_words(SimpleNamespace(added_tokens_decoder=tokens))
    assert pattern.findall("a <|end|> <s> covid  19 <think>") == ["<|end|>", "<s>", "<think>"]
    assert prompts._control_words(SimpleNamespace(added_tokens_decoder={})).search("anything") is None
