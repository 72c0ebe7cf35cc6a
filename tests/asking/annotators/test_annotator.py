from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass, replace

import pytest

from pcs_annotator.asking.annotators.annotator import DEFAULT_SAMPLING, Annotator, Question
from pcs_annotator.asking.annotators.length import CutPolicy, estimate_tokens
from pcs_annotator.asking.models.base import Finish, Reply, Request, Sampling
from pcs_annotator.core.task import Task
from pcs_annotator.core.vote import Vote

NEWS = Task("Is it true?", ["Fake", "Real"])
LONG = " ".join(f"word{number}" for number in range(5000))


@dataclass(frozen=True)
class Model:
    name: str = "test:model"
    context_tokens: int | None = None
    can_constrain: bool = False

    async def ask(self, request: Request) -> Reply:
        raise AssertionError("nobody asks here")

    async def close(self) -> None: ...


def asked(annotator: Annotator, text: str, model: Model) -> Question:
    question = annotator.question(NEWS, text, model)
    assert isinstance(question, Question)
    return question


def sensible(text: str) -> str:
    return text


@pytest.mark.parametrize(
    ("model", "name"),
    [
        pytest.param("groq:llama-3.1-8b-instant", "groq:llama-3.1-8b-instant", id="text"),
        pytest.param(Model(), "test:model", id="chat model"),
        pytest.param(sensible, "sensible", id="function"),
        pytest.param(Model(name=""), "Model", id="object without a name"),
        pytest.param(object(), "object", id="anything"),
    ],
)
def test_annotator_is_named_after_its_model(model: object, name: str) -> None:
    assert Annotator(model).name == name


def test_own_name_wins_and_survives_a_change() -> None:
    annotator = Annotator("openai:gpt-4o-mini", name="strict")

    assert replace(annotator, style="plain").name == "strict"


def test_annotator_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        Annotator("a").name = "b"  # type: ignore[misc]  # that is what is tested


def test_question_carries_the_fixed_sampling_and_the_style() -> None:
    sampling = Sampling(temperature=0.7, max_tokens=9)
    question = asked(Annotator("a", sampling=sampling, style="plain"), "A text.", Model())

    assert question.request.sampling == sampling
    assert [message.role for message in question.request.messages] == ["user"]


def test_answers_are_repeatable_by_default() -> None:
    assert asked(Annotator("a"), "A text.", Model()).request.sampling == DEFAULT_SAMPLING
    assert DEFAULT_SAMPLING.temperature == 0


def test_model_that_can_is_held_to_the_labels_and_asked_without_tags() -> None:
    request = asked(Annotator("a"), "A text.", Model(can_constrain=True)).request

    assert request.constraint is not None
    assert request.constraint.choices == ("Fake", "Real")
    assert "<label>" not in request.messages[0].content


@pytest.mark.parametrize(("can", "wanted"), [(True, False), (False, True), (False, False)])
def test_other_models_are_asked_for_a_tag(can: bool, wanted: bool) -> None:
    request = asked(Annotator("a", constrain=wanted), "A text.", Model(can_constrain=can)).request

    assert request.constraint is None
    assert "<label>Fake</label> or <label>Real</label>" in request.messages[0].content


@pytest.mark.parametrize("text", ["", " \n\t", "\u200b\ufeff", "\0\0", "\ud800", "\u3000"])
def test_empty_text_is_a_silence_without_asking(text: str) -> None:
    assert Annotator("a").question(NEWS, text, Model()) == Vote(label=None, reason="empty text", asked=False)


@pytest.mark.parametrize("policy", ["head", "tail", "head+tail"])
@pytest.mark.parametrize("most", [None, 500])
def test_long_text_is_cut_to_the_context_and_the_cut_is_counted(policy: CutPolicy, most: int | None) -> None:
    annotator = Annotator("a", cut=policy, sampling=Sampling(max_tokens=most))
    question = asked(annotator, LONG, Model(context_tokens=2000))

    assert len(LONG) - 12 <= len(question.text) + question.cut <= len(LONG) + 12
    sent = sum(estimate_tokens(message.content) for message in question.request.messages)
    assert sent + (most or 0) <= 2000
    assert question.text in question.request.messages[-1].content


def test_text_of_a_model_with_unknown_context_is_not_cut() -> None:
    assert asked(Annotator("a"), LONG, Model()).cut == 0


def test_short_text_is_not_cut() -> None:
    question = asked(Annotator("a"), "A text.", Model(context_tokens=2000))

    assert (question.text, question.cut) == ("A text.", 0)


def test_context_without_room_is_a_silence_without_asking() -> None:
    vote = Annotator("a").question(NEWS, "A text.", Model(context_tokens=20))

    assert vote == Vote(label=None, reason="no room for the text in the model's context", asked=False, cut=7)


@pytest.mark.parametrize(
    ("text", "finish", "vote"),
    [
        ("<label>fake</label>", "stop", Vote(label="Fake", cut=3)),
        ("<label>fake</label> since", "length", Vote(label="Fake", cut=3)),
        ("Well, this", "length", Vote(label=None, reason="answer cut off", cut=3)),
        ("Well, this", "stop", Vote(label=None, reason="no label in reply", cut=3)),
        ("Real", "filter", Vote(label=None, reason="filtered by the provider", cut=3)),
        ("A Fake text.", "other", Vote(label=None, reason="only echoes the text", cut=3)),
    ],
)
def test_reply_becomes_a_vote(text: str, finish: Finish, vote: Vote) -> None:
    assert Annotator("a").vote(Reply(text=text, finish=finish), NEWS, "A Fake text.", 3) == vote
