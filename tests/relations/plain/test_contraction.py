from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pcs_annotator.relations.base import Context, relations
from pcs_annotator.relations.plain.contraction import contraction, expand
from pcs_annotator.relations.rule import NotApplicable

NOTHING = NotApplicable("no contraction to write out")

WRITTEN_OUT = [
    ("We don't sell fish.", "We do not sell fish."),
    ("We don’t sell fish.", "We do not sell fish."),
    ("The ferry can't leave.", "The ferry cannot leave."),
    ("The ferry won't leave.", "The ferry will not leave."),
    ("They shan't pass.", "They shall not pass."),
    ("DON'T PANIC NOW", "DO NOT PANIC NOW"),
    ("WE CAN'T STOP", "WE CANNOT STOP"),
    ("Don't touch the wire.", "Do not touch the wire."),
    ("I'm sure he's a baker.", "I am sure he is a baker."),
    ("I'M TIRED", "I AM TIRED"),
    ("It's raining in the valley.", "It is raining in the valley."),
    ("It's been raining for days.", "It has been raining for days."),
    ("She's already had lunch.", "She has already had lunch."),
    ("He's never been here.", "He has never been here."),
    ("That's why the mayor left.", "That is why the mayor left."),
    ("There's no bread left.", "There is no bread left."),
    ("Here's what the board said.", "Here is what the board said."),
    ("What's going on in the port?", "What is going on in the port?"),
    ("The man who's running the mill left.", "The man who is running the mill left."),
    ("They're late and you're early.", "They are late and you are early."),
    ("We've seen the report.", "We have seen the report."),
    ("He could've won.", "He could have won."),
    ("She'll speak on Monday.", "She will speak on Monday."),
    ("I'd like some tea.", "I would like some tea."),
    ("I'd better leave.", "I had better leave."),
    ("She'd been ill for weeks.", "She had been ill for weeks."),
    ("We'd never go there.", "We would never go there."),
    ("The minister hasn't answered, and he isn't going to.", "The minister has not answered, and he is not going to."),
    ("Prices haven't moved; they weren't expected to.", "Prices have not moved; they were not expected to."),
    ("Mayor Doesn't Want New Bridge", "Mayor Does Not Want New Bridge"),
    ("It's Over: Harbour Strike Ends", "It Is Over: Harbour Strike Ends"),
    ('"We aren\'t ready," she said.', '"We are not ready," she said.'),
    ("Those who don't.", "Those who do not."),
    ("Why don't you stay? We're open.", "Why don't you stay? We are open."),
    ("It isn't that bad.", "It is not that bad."),
    ("It's cold, isn't it?", "It is cold, isn't it?"),
]

TRAPS = [
    "The report did NOT say so.",
    "The cause is not known.",
    "They are going to vote, and it is not over.",
    "The plan has not one but two parts.",
    "The crew is not only fast but clever.",
    "Nobody knows how important it is to vote.",
    "They have mixed feelings about the plan.",
    "The farmers are richer than they are in the north.",
    "Whether it is or is not true matters.",
    "We ain't going.",
    "Isn't it cold?",
    "Don't you think so?",
    "Can't we stay?",
    "Didn't the mayor promise that?",
    "The baker's shop opens at five o'clock.",
    "O'Brien plays rock 'n' roll.",
    "He's finished.",
    "It's called home.",
    "He'd put the book away.",
    "The dog lost it's own bone.",
    "With it's small port, the town grew.",
    "Who's car is that?",
    "What's he want?",
    "The won't-go crowd stayed.",
    "I will be when they ask.",
    "She should've'd more.",
    "Everyone's here.",
    "The boats sail at dawn.",
    "Whoever he'd.",
    "Let's go home.",
    "It's Anna's boat on the lake.",
    "There're",
]


@pytest.mark.parametrize(("text", "expected"), WRITTEN_OUT)
def test_contractions_are_written_out(text: str, expected: str) -> None:
    assert contraction(text) == expected


@pytest.mark.parametrize("text", TRAPS)
def test_ambiguous_contractions_stay(text: str) -> None:
    assert contraction(text) == NOTHING


@pytest.mark.asyncio
async def test_the_rule_is_known_by_its_name() -> None:
    variant = await relations.create("rule:contraction").rewrite("We don't sell fish.", Context())
    assert (variant.status, variant.text) == ("changed", "We do not sell fish.")


PIECES = st.sampled_from(
    ["it's", "don't", "I'd", "he'd", "who's", "not", "is", "been", "like", "you", "?", ".", "’s", "the"]
)


@example("I'D DON'T")
@given(st.one_of(st.text(), st.lists(PIECES).map(" ".join)))
def test_writing_out_twice_is_writing_out_once(text: str) -> None:
    assert expand(expand(text)) == expand(text)


@given(st.one_of(st.text(), st.lists(PIECES).map(" ".join)))
def test_a_rewrite_is_never_the_text_itself(text: str) -> None:
    assert contraction(text) != text
