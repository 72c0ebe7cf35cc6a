import math
from dataclasses import dataclass, replace

import pytest

from pcs_annotator import Annotator, Task
from pcs_annotator.asking.annotators import grading
from pcs_annotator.asking.annotators.annotator import ELICITED_TOKENS, Question
from pcs_annotator.asking.annotators.length import estimate_tokens
from pcs_annotator.base.errors import UnknownNameError
from pcs_annotator.core.chat import Finish, Reply, Request, TokenPosition
from pcs_annotator.core.votes import Vote

NEWS = Task("Is it true?", ["Fake", "Real"])
LONG = " ".join(f"word{number}" for number in range(5000))


@dataclass(frozen=True)
class Model:
    name: str = "test:model"
    context_tokens: int | None = None
    can_constrain: bool = False
    can_grade: bool = False

    async def ask(self, request: Request) -> Reply:
        raise AssertionError("no model is called in these tests")

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


def test_a_given_name_is_used_and_kept_by_replace() -> None:
    annotator = Annotator("openai:gpt-4o-mini", name="strict")
    assert replace(annotator, style="plain").name == "strict"


def test_question_carries_the_limit_and_the_style() -> None:
    question = asked(Annotator("a", max_tokens=9, style="plain"), "A text.", Model())
    assert question.request.max_tokens == 9
    assert [message.role for message in question.request.messages] == ["user"]


def test_model_that_supports_it_is_constrained_to_the_labels_and_asked_without_tags() -> None:
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
def test_empty_text_is_a_silence_without_a_question(text: str) -> None:
    assert Annotator("a").question(NEWS, text, Model()) == Vote(label=None, reason="empty text", asked=False)


@pytest.mark.parametrize("most", [None, 500])
def test_long_text_is_cut_to_the_context_and_the_cut_is_counted(most: int | None) -> None:
    annotator = Annotator("a", max_tokens=most)
    question = asked(annotator, LONG, Model(context_tokens=2000))
    assert len(LONG) - 12 <= len(question.text) + question.cut <= len(LONG) + 12
    sent = sum(estimate_tokens(message.content) for message in question.request.messages)
    assert sent + (most or 0) <= 2000
    assert question.text in question.request.messages[-1].content


def test_a_text_that_fits_or_may_fit_is_not_cut() -> None:
    assert asked(Annotator("a"), LONG, Model()).cut == 0
    question = asked(Annotator("a"), "A text.", Model(context_tokens=2000))
    assert (question.text, question.cut) == ("A text.", 0)


def test_too_small_context_is_a_silence_without_a_question() -> None:
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
    annotator, model = Annotator("a"), Model()
    question = replace(asked(annotator, "A Fake text.", model), cut=3)
    assert annotator.parse_reply(question, [Reply(text=text, finish=finish)], model) == vote


PLAIN_ONES = [
    Model(),
    Model(can_constrain=True),
    Model(context_tokens=600),
    Model(context_tokens=600, can_constrain=True),
]
ELICITED = ["1s-top-2", "2s-top-2", "ling-1s"]


@pytest.mark.parametrize("name", ["", "mine", "mine/1s-top-2", "mine/ling-1s"])
def test_the_elicitation_is_appended_to_the_name_once(name: str) -> None:
    annotator = Annotator("org/mine" if not name else "a", name=name, elicitation="ling-1s")
    assert annotator.name == ("org/mine/ling-1s" if not name else "mine/ling-1s")
    assert replace(annotator, style="plain").name == annotator.name


def test_unknown_elicitation_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"'top-2'.*1s-top-2"):
        Annotator("a", elicitation="top-2")


def test_stating_probabilities_allows_more_tokens_by_default() -> None:
    assert [Annotator("a", elicitation=kind).max_tokens for kind in ELICITED] == [ELICITED_TOKENS] * 3
    assert Annotator("a", elicitation="1s-top-2", max_tokens=99).max_tokens == 99


@pytest.mark.parametrize("kind", ELICITED)
def test_guesses_with_probabilities_are_not_constrained_to_the_labels(kind: str) -> None:
    request = asked(Annotator("a", elicitation=kind), "A text.", Model(can_constrain=True)).request
    assert request.constraint is None


@pytest.mark.parametrize(("kind", "first", "most"), [("2s-top-2", "G1: Fake\nG2: Real", 256)])
@pytest.mark.parametrize("text", ["A text.", LONG])
def test_both_questions_and_their_answers_fit_into_a_small_context(kind: str, first: str, most: int, text: str) -> None:
    annotator, model = Annotator("a", elicitation=kind), Model(context_tokens=900)
    question = asked(annotator, text, model)
    following = annotator.parse_reply(question, [Reply(text=first)], model)
    assert isinstance(following, Question)
    assert (following.text, following.cut) == (question.text, question.cut)
    for one in (question, following):
        sent = sum(estimate_tokens(message.content) for message in one.request.messages)
        assert sent + (one.request.max_tokens or 0) <= 900
    kept = following.request.max_tokens or 0
    assert kept == most if text == "A text." else 16 <= kept < most


@pytest.mark.parametrize(
    ("text", "finish", "reason"),
    [
        ("G1: Fake\nP1: 0.9", "filter", "filtered by the provider"),
        ("G1: Fake\nP1: 0.", "length", "answer cut off"),
        ("G1: Fake\nP1: 9", "length", "answer cut off"),
        ("G1: Fake\nP1: 900 %", "stop", "probability out of range"),
        ("Dear reader", "stop", "no label in reply"),
    ],
)
def test_reply_without_probabilities_is_a_silence_with_its_reason(text: str, finish: Finish, reason: str) -> None:
    annotator = Annotator("a", elicitation="1s-top-2")
    question = replace(asked(annotator, "A text.", Model()), cut=3)
    heard = annotator.parse_reply(question, [Reply(text=text, finish=finish)], Model())
    assert heard == Vote(label=None, reason=reason, cut=3)


@pytest.mark.parametrize("finish", ["stop", "length"])
def test_probabilities_become_a_vote_for_the_best_guess(finish: Finish) -> None:
    annotator = Annotator("a", elicitation="1s-top-2")
    reply = Reply(text="G1: real\nP1: 70%\nG2: fake\nP2: 0.2\nSo", finish=finish)
    assert annotator.parse_reply(asked(annotator, "A text.", Model()), [reply], Model()) == Vote(
        label="Real", stated=(0.2, 0.7)
    )


def position(token: str, **shares: float) -> tuple[TokenPosition, ...]:
    return (TokenPosition(token, tuple((other, math.log(share)) for other, share in shares.items())),)


@pytest.mark.parametrize(
    ("annotator", "model", "wanted"),
    [
        (Annotator("a"), Model(can_grade=True), 5),
        (Annotator("a", answers="graded"), Model(can_grade=True), 5),
        (Annotator("a", answers="hard"), Model(can_grade=True), 0),
        (Annotator("a", elicitation="1s-top-2"), Model(can_grade=True), 0),
        (Annotator("a", answers="graded"), Model(), 0),
    ],
)
def test_log_probabilities_are_requested_where_they_tell_the_label(
    annotator: Annotator, model: Model, wanted: int
) -> None:
    assert asked(annotator, "A text.", model).request.logprobs == wanted


def test_more_labels_need_more_alternatives() -> None:
    many = Task("Which?", [f"label {number}" for number in range(30)])
    question = Annotator("a").question(many, "A text.", Model(can_grade=True))
    assert isinstance(question, Question)
    assert question.request.logprobs == 32


@pytest.mark.parametrize(
    ("reply", "vote"),
    [
        (
            Reply(text="<label>Real</label>", logprobs=position("Real", Real=0.75, Fake=0.25)),
            Vote(label="Real", grades=(0.25, 0.75)),
        ),
        (Reply(text="<label>Real</label>"), Vote(label="Real", remark=grading.NOT_GIVEN)),
        (Reply(text="It is real.", logprobs=position("It", It=0.9)), Vote(label="Real", remark=grading.IN_PROSE)),
        (Reply(text="Hm", logprobs=position("Hm", Hm=0.9)), Vote(label=None, reason="no label in reply")),
    ],
)
def test_a_reply_with_log_probabilities_becomes_a_graded_vote(reply: Reply, vote: Vote) -> None:
    annotator, model = Annotator("a"), Model(can_grade=True)
    heard = annotator.parse_reply(asked(annotator, "A text.", model), [reply], model)
    assert isinstance(heard, Vote)
    assert heard == replace(vote, grades=heard.grades)
    assert (heard.grades or ()) == pytest.approx(vote.grades or ())


def test_log_probabilities_that_were_not_requested_are_not_used() -> None:
    annotator, model = Annotator("a", answers="hard"), Model(can_grade=True)
    reply = Reply(text="Real", logprobs=position("Real", Real=0.75, Fake=0.25))
    assert annotator.parse_reply(asked(annotator, "A text.", model), [reply], model) == Vote(label="Real")
