import pytest

from pcs_annotator.base.thinking import thinking_spans, without_thinking


@pytest.mark.parametrize(
    "reply",
    [
        "Good",
        "<think>Cheap?\nNo.</think>Good",
        "Cheap? No.</think>Good",
        "<think>One.</think>Good<think>Two.",
        "< Thinking >Cheap?< / Thinking >Good",
        "<seed:think>Cheap?</seed:think>Good",
        "<think>A <thought>in a</thought> thought</think>Good",
        "[THINK]Cheap?[/THINK]Good",
        "◁think▷Cheap?◁/think▷Good",
        "<|begin_of_thought|>Cheap?<|end_of_thought|>Good",
        "<|channel|>analysis<|message|>Cheap?<|end|>Good",
        "<|channel|>analysis<|message|><think>Cheap?</think> No.<|end|>Good",
        "<think><|channel|>analysis<|message|>Cheap?<|end|> No.</think>Good",
        "<think>One.<|channel|>analysis<|message|>Two.</think> Three.<|end|>Good",
        "analysisThe user wants it cheap.assistantfinalGood",
    ],
)
def test_thinking_of_many_models_is_left_out(reply: str) -> None:
    assert without_thinking(reply) == "Good"


@pytest.mark.parametrize("reply", ["<think>Cheap?", "analysisIs it cheap?", "[THINK]Cheap?"])
def test_thinking_that_never_ends_leaves_nothing(reply: str) -> None:
    assert without_thinking(reply) == ""


@pytest.mark.parametrize("reply", ["analysis of the film", "I think so.", "[think] <thinker>", "</thought"])
def test_words_about_thinking_are_no_thinking(reply: str) -> None:
    assert thinking_spans(reply) == []
