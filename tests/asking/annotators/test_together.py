"""Several questions in one call: the prompt is the same for all of them, and each reads its own line of the reply."""

from dataclasses import replace

import pytest

from pcs_annotator import Annotator, Task
from pcs_annotator.asking.annotators.annotator import Question
from pcs_annotator.asking.annotators.reply import read_part
from pcs_annotator.core.chat import Reply
from pcs_annotator.core.task import AskedTogether, Part, Phrasing
from pcs_annotator.core.votes import Vote
from pcs_annotator.models.scripted import ScriptedModel
from pcs_annotator.relations.question import LabelOrder, Wording

TONE = Part("tone", "How does it sound?", ("warm", "cold"), (("warm", "kind"),))
FRAMES = Part("frames", "Which frames does it use?", ("conflict", "money, markets", "health"), many=True)
PARTS = (TONE, FRAMES)
MODEL = ScriptedModel(lambda request: "", name="scripted:one")


class Small(ScriptedModel):
    """A model that can only choose among labels."""

    can_constrain = True
    without_examples = True


def asked(name: str, label: str = "") -> AskedTogether:
    return AskedTogether(PARTS, name, label)


def task(together: AskedTogether) -> Task:
    labels = ("yes", "no") if together.label else together.own.labels
    return Task(together.own.instruction, labels, together=together)


def question(together: AskedTogether, model: ScriptedModel = MODEL, **annotator: object) -> Question:
    found = Annotator(model, **annotator).question(task(together), "Some text.", model)  # type: ignore[arg-type]
    assert isinstance(found, Question)
    return found


def test_all_variables_have_the_same_request_so_that_one_pays() -> None:
    tone, money = question(asked("tone")), question(asked("frames", "health"))
    assert tone.request == money.request
    said = tone.request.messages[0].content
    assert "<tone>: How does it sound?\n- warm: kind\n- cold" in said
    assert "Name every label that applies" in said
    assert said.index("<tone>") < said.index("<frames>")
    assert tone.request.messages[-1].content.endswith("Answer with <tone>…</tone> <frames>…; …</frames>")
    assert tone.request.max_tokens == 64 + 48
    assert (tone.request.logprobs, tone.request.constraint, tone.request.parts) == (0, None, None)


def test_models_that_are_told_what_to_say_get_the_single_question() -> None:
    alone = question(asked("frames", "health"), Small(lambda request: "warm", name="small:one"))
    assert alone.request.constraint is not None
    assert alone.request.constraint.choices == ("yes", "no")
    assert "<tone>" not in alone.request.messages[0].content
    stated = question(asked("tone"), elicitation="ling-1s")
    assert "<frames>" not in stated.request.messages[0].content


@pytest.mark.parametrize(
    ("reply", "name", "label", "vote"),
    [
        ("<tone>cold</tone>\n<frames>conflict; health</frames>", "tone", "", "cold"),
        ("<tone>cold</tone>\n<frames>conflict; health</frames>", "frames", "health", "yes"),
        ("<tone>cold</tone>\n<frames>conflict; health</frames>", "frames", "money, markets", "no"),
        ("<frames>money, markets</frames>", "frames", "money, markets", "yes"),
        ("<frames>Health, Conflict</frames>", "frames", "conflict", "yes"),
        ("<frames>none</frames>", "frames", "health", "no"),
        ("< Frames > [health] < / frames >", "frames", "health", "yes"),
        ('{"tone": "warm", "frames": ["health"]}', "tone", "", "warm"),
        ("<think><tone>warm</tone></think><tone>cold</tone>", "tone", "", "cold"),
        ("<tone>warm</tone> no, <tone>cold</tone>", "tone", "", "cold"),
        ("<tone>tepid</tone>\n<frames>conflict</frames>", "tone", "", None),
        ("<tone>warm</tone>", "frames", "health", None),
        ("<frames>health; love</frames>", "frames", "health", None),
        ("<frames>none; health</frames>", "frames", "health", None),
        ("<frames></frames>", "frames", "health", None),
        ("", "tone", "", None),
    ],
)
def test_each_variable_reads_its_own_line(reply: str, name: str, label: str, vote: str | None) -> None:
    assert read_part(reply, asked(name, label), "Some text.", ()).label == vote


@pytest.mark.parametrize("piece", ["<frames>", "<tone>", "<label>", '"frames": [', "< ", "<tone></tone>"])
def test_replies_that_never_end_what_they_begin_are_read_to_their_end(piece: str) -> None:
    for together in (asked("tone"), asked("frames", "health")):
        assert read_part(piece * (100_000 // len(piece)), together, "Some text.", ()).label is None


def test_a_variable_that_cannot_be_read_is_silent_and_the_others_are_not() -> None:
    reply = Reply(text="<tone>warm</tone>\n<frames>love</frames>")
    votes = [
        Annotator(MODEL).parse_reply(question(one), [reply], MODEL)
        for one in (asked("tone"), asked("frames", "health"))
    ]
    assert votes == [Vote(label="warm"), Vote(label=None, reason="<frames> has something that is not a label")]


def test_relations_change_all_questions_of_a_call_alike() -> None:
    for relation in (LabelOrder(), LabelOrder("order:2", 2), Wording()):
        found = []
        for together in (asked("tone"), asked("frames", "health")):
            whole = Task(together.own.instruction, ("a", "b", "c", "d", "e"), together=together)
            changed = relation.rephrase(Phrasing(task=whole)).task.together
            assert changed is not None
            found.append(changed.parts)
        assert found[0] == found[1] != PARTS
    backwards = LabelOrder().rephrase(Phrasing(task=task(asked("tone")))).task.together
    assert backwards is not None
    assert [part.name for part in backwards.parts] == ["frames", "tone"]
    assert backwards.own.labels == ("cold", "warm")
    assert replace(task(asked("tone")), together=None).together is None
