"""What of a question is the same for every text, and which words a text must not contain."""

from __future__ import annotations

from types import SimpleNamespace

from pcs_annotator import Task
from pcs_annotator.asking.annotators.prompt import build_messages
from pcs_annotator.asking.models.transformers_engine import prompts


def test_the_shared_part_of_an_annotators_question_ends_at_its_marker() -> None:
    task = Task("What is the mood?", ["positive", "negative"])
    starts = set()
    for text in ("What a day!", "[text 0123456789ab]"):
        for style in ("chat", "plain"):
            last = build_messages(task, text, style=style)[-1].content
            found = prompts._MARKER.search(last)
            assert found is not None
            starts.add((style, last[: found.start()]))
    assert len(starts) == 2
    assert all(start.endswith("The text stands between the lines ") for _, start in starts)


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
