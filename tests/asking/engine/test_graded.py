"""Graded votes over real HTTP: what is asked, what is paid for, what the ledger keeps, and what is said about it."""

import asyncio
import sqlite3
import warnings
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from pcs_annotator import Annotator, CollectSettings, Item, PcsWarning, Task, Votes, collect
from pcs_annotator.asking.annotators import grading
from pcs_annotator.asking.ledger.sqlite import Ledger
from pcs_annotator.core.chat import Answers, Message, Reply, Request, TokenPosition
from pcs_annotator.core.task import AskedTogether, Part
from pcs_annotator.models.scripted import ScriptedModel
from tests.asking.stubbed import stubbed
from tests.stub import Behaviour, Stub, StubServer
from tests.stub.answers import chosen_label, several
from tests.stub.logprobs import CAPITALISED, probabilities
from tests.stub.questions import read_question

MOOD = Task("How does the writer feel?", ["positive", "neutral", "negative"])
DEGREES = Task("How does the writer feel?", ["rather positive", "rather negative", "neither"])
NESTED = Task("What kind of news is it?", ["good", "good news", "bad"])
MANY = Task("Which topic?", [f"topic{number}" for number in range(60)], candidates=60)
ROWS = 12


def items(count: int = ROWS) -> list[Item]:
    return [Item(id=str(row), text=f"Text number {row} is rather nice.") for row in range(count)]


def settings(answers: Answers = "auto") -> CollectSettings:
    return CollectSettings(environment={}, answers=answers)


def with_stub(behaviour: Behaviour, work: Callable[[Stub], Awaitable[None]]) -> None:
    async def main() -> None:
        async with StubServer(behaviour) as stub:
            await work(stub)

    asyncio.run(main())


async def ask(stub: Stub, ledger: Path, how: CollectSettings, task: Task = MOOD, **annotator: bool) -> Votes:
    return await collect(task, items(), [Annotator(f"{stub.url}#m", **annotator)], ledger=ledger, settings=how)  # type: ignore[arg-type]  # options of Annotator


def expected(task: Task) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """The probabilities that the stub gives to the labels."""
    rows = []
    for item in items():
        body = {"model": "m", "messages": [{"role": "user", "content": item.text}]}
        question = read_question(body, "/")._replace(labels=tuple(task.labels))
        shares = probabilities(question, chosen_label(question, Behaviour()), tuple(task.labels))
        rows.append([shares[label] for label in task.labels])
    return np.array(rows)


@stubbed(Behaviour())
async def test_votes_have_the_probabilities_of_the_model(stub: Stub, tmp_path: Path) -> None:
    how = settings()
    votes = await ask(stub, tmp_path / "l.db", how)
    truth = expected(MOOD)
    assert votes.grades is not None
    # with five tokens listed, some of the capitalised labels are missing
    assert votes.grades[:, 0, 0, 0] == pytest.approx(truth, abs=CAPITALISED * 0.5)
    assert (votes.codes.ravel() == truth.argmax(axis=1)).all()
    assert (how.tally.graded, how.tally.bounded, how.tally.hard) == (ROWS, 0, {})
    with Ledger(tmp_path / "l.db") as ledger:
        assert ledger.graded_models() == {f"{stub.url}#m": True}


@pytest.mark.parametrize("task", [DEGREES, NESTED])
@stubbed(Behaviour())
async def test_labels_that_share_their_first_token_are_told_apart_or_the_vote_is_hard(
    stub: Stub, tmp_path: Path, task: Task
) -> None:
    how = settings()
    with pytest.warns(PcsWarning, match="answers count as hard votes: tokens that leave the label open"):
        votes = await ask(stub, tmp_path / "l.db", how, task)
    truth = expected(task)
    assert votes.grades is not None
    grades = votes.grades[:, 0, 0, 0]
    graded = ~np.isnan(grades[:, 0])
    assert grades[graded] == pytest.approx(truth[graded], abs=CAPITALISED)
    # the third label has a token of its own; beside it, only the token that the other two share is listed
    assert graded.tolist() == ((truth.argmax(axis=1) < 2) | (truth[:, 2] > 0.9)).tolist()
    assert 0 < graded.sum() == how.tally.graded < ROWS


@stubbed(Behaviour())
async def test_a_second_run_gives_the_same_grades_from_the_ledger(stub: Stub, tmp_path: Path) -> None:
    first = await ask(stub, tmp_path / "l.db", settings())
    again = await ask(stub, tmp_path / "l.db", settings())
    forced = await ask(stub, tmp_path / "l.db", settings("graded"))
    assert stub.stats().requests == ROWS
    assert first.grades is not None
    for votes in (again, forced):
        assert votes.grades is not None
        assert (votes.grades == first.grades).all()


@stubbed(Behaviour())
async def test_hard_answers_that_were_paid_for_are_kept_unless_graded_ones_are_asked_for(
    stub: Stub, tmp_path: Path
) -> None:
    hard = await ask(stub, tmp_path / "l.db", settings("hard"))
    assert hard.grades is None
    how = settings()
    continued = await ask(stub, tmp_path / "l.db", how)
    assert stub.stats().requests == ROWS
    assert continued.grades is None
    assert (continued.codes == hard.codes).all()
    assert (how.tally.from_ledger, how.tally.calls, how.tally.hard) == (ROWS, 0, {})
    graded = await ask(stub, tmp_path / "l.db", settings("graded"))
    assert stub.stats().requests == 2 * ROWS
    assert graded.grades is not None
    # now that there are graded answers, they are used
    assert (await ask(stub, tmp_path / "l.db", settings())).grades is not None
    assert stub.stats().requests == 2 * ROWS


@stubbed(Behaviour())
async def test_a_hard_question_is_answered_by_the_text_of_a_graded_answer(stub: Stub, tmp_path: Path) -> None:
    graded = await ask(stub, tmp_path / "l.db", settings())
    hard = await ask(stub, tmp_path / "l.db", settings("hard"))
    assert stub.stats().requests == ROWS
    assert hard.grades is None
    assert (hard.codes == graded.codes).all()


@stubbed(Behaviour())
async def test_an_annotator_may_differ_from_the_run(stub: Stub, tmp_path: Path) -> None:
    panel = [Annotator(f"{stub.url}#m", name="graded"), Annotator(f"{stub.url}#m", name="hard", answers="hard")]
    votes = await collect(MOOD, items(), panel, ledger=tmp_path / "l.db", settings=settings())
    assert votes.grades is not None
    assert np.isnan(votes.grades[:, 1]).all()
    assert not np.isnan(votes.grades[:, 0]).any()


@pytest.mark.parametrize("constrain", [False, True])
@stubbed(Behaviour())
async def test_labels_are_asked_for_and_read(stub: Stub, tmp_path: Path, constrain: bool) -> None:
    keys = {"VLLM_BASE_URL": stub.url}
    how = CollectSettings(environment=keys)
    panel = [Annotator("vllm:m", constrain=constrain)]
    votes = await collect(MOOD, items(), panel, ledger=tmp_path / "l.db", settings=how)
    assert (votes.codes >= 0).all()
    assert votes.grades is not None
    assert how.tally.graded == ROWS
    assert votes.grades.sum(axis=-1).max() <= 1
    with Ledger(tmp_path / "l.db") as ledger:
        replies = {entry.reply for entry in ledger.entries()}
    words = set(MOOD.labels)
    assert replies <= (words if constrain else {f"<label>{word}</label>" for word in words})


@stubbed(Behaviour(logprobs="ignored"))
async def test_a_server_that_ignores_the_request_is_noticed_once_and_remembered(stub: Stub, tmp_path: Path) -> None:
    how = settings()
    with pytest.warns(PcsWarning, match=r"#m gives labels only, though log-probabilities") as said:
        votes = await ask(stub, tmp_path / "l.db", how)
    assert len(said) == 1
    assert votes.grades is None
    assert how.tally.hard == {grading.NOT_GIVEN: ROWS}
    with Ledger(tmp_path / "l.db") as ledger:
        assert ledger.graded_models() == {f"{stub.url}#m": False}
    # what is known is not asked for again: these requests are hard, and answered by the texts of the first run
    again = settings()
    assert (await ask(stub, tmp_path / "l.db", again)).grades is None
    assert stub.stats().requests == ROWS
    assert not again.tally.hard
    # not even if graded answers are asked for: what was paid for once is not paid for again
    assert (await ask(stub, tmp_path / "l.db", settings("graded"))).grades is None
    assert stub.stats().requests == ROWS


@stubbed(Behaviour(logprobs="refused"))
async def test_a_server_that_refuses_the_request_is_asked_again_without_it(stub: Stub, tmp_path: Path) -> None:
    how = settings()
    with pytest.warns(PcsWarning, match=r"#m gives no log-probabilities.*not supported with this model") as said:
        votes = await ask(stub, tmp_path / "l.db", how)
    assert len(said) == 1
    assert (votes.codes >= 0).all()
    assert not how.tally.retries
    with Ledger(tmp_path / "l.db") as ledger:
        assert ledger.graded_models() == {f"{stub.url}#m": False}
    asked = stub.stats().requests
    await ask(stub, tmp_path / "l.db", settings())
    assert stub.stats().requests == asked


@stubbed(Behaviour(logprobs="after sampling"))
async def test_a_server_that_reports_its_choice_instead_of_the_model_is_noticed(stub: Stub, tmp_path: Path) -> None:
    how = settings()
    with pytest.warns(PcsWarning, match=r"12 of 12 answers count as hard votes: log-probabilities of the choice"):
        votes = await ask(stub, tmp_path / "l.db", how)
    assert votes.grades is None
    assert how.tally.hard == {grading.AFTER_SAMPLING: ROWS}
    with Ledger(tmp_path / "l.db") as ledger:
        assert ledger.graded_models() == {f"{stub.url}#m": False}
    # known by now: asked for a label alone, which the ledger has, and nothing more to say
    await ask(stub, tmp_path / "l.db", settings())
    assert stub.stats().requests == ROWS


@pytest.mark.parametrize("most", [5, 20])
def test_sixty_labels_and_a_server_that_lists_few_tokens(most: int, tmp_path: Path) -> None:
    async def work(stub: Stub) -> None:
        how = settings()
        with pytest.warns(PcsWarning, match=rf"of {ROWS} graded answers, a label was not among the tokens"):
            votes = await ask(stub, tmp_path / "l.db", how, MANY)
        assert 0 < how.tally.bounded <= how.tally.graded == ROWS
        assert votes.grades is not None
        grades = votes.grades[:, 0, 0, 0]
        truth = expected(MANY)
        assert (grades.argmax(axis=1) == truth.argmax(axis=1)).all()
        assert grades.sum(axis=1).max() <= 1 + 1e-6
        assert np.abs(grades - truth).max() < 0.02
        # one more request finds out that twenty are too many
        assert stub.stats().requests - ROWS <= (ROWS if most == 5 else 0)

    with_stub(Behaviour(max_logprobs=most), work)


def test_answers_in_prose_are_hard_votes(tmp_path: Path) -> None:
    def answer(request: Request) -> Reply:
        return Reply(text="I would say that it is positive.", logprobs=())

    how = settings()
    model = ScriptedModel(answer, can_grade=True)
    with pytest.warns(PcsWarning, match="an answer in prose"):
        votes = asyncio.run(collect(MOOD, items(3), [model], ledger=tmp_path / "l.db", settings=how))
    assert (votes.codes == 0).all()
    assert how.tally.hard == {grading.IN_PROSE: 3}


def test_a_model_that_cannot_grade_is_not_asked_for_log_probabilities(tmp_path: Path) -> None:
    model = ScriptedModel(["positive"])
    asyncio.run(collect(MOOD, items(3), [model], ledger=tmp_path / "a.db", settings=settings()))
    with pytest.warns(PcsWarning, match="no log-probabilities come from scripted:script"):
        asyncio.run(collect(MOOD, items(3), [model], ledger=tmp_path / "b.db", settings=settings("graded")))
    assert [request.logprobs for request in model.requests] == [0] * 6


OLD_TABLE = """CREATE TABLE calls (key BLOB PRIMARY KEY, model TEXT NOT NULL, purpose TEXT NOT NULL,
    reply TEXT NOT NULL, finish TEXT NOT NULL, input_tokens INTEGER, output_tokens INTEGER, usd REAL,
    latency REAL NOT NULL, asked_at REAL NOT NULL) WITHOUT ROWID"""


def as_old(ledger: Path, old: Path) -> None:
    """Write the calls of a ledger as the first schema had them."""
    columns = "key, model, purpose, reply, finish, input_tokens, output_tokens, usd, latency, asked_at"
    with closing(sqlite3.connect(ledger)) as source, closing(sqlite3.connect(old)) as target, target:
        target.execute(OLD_TABLE)
        target.execute("PRAGMA user_version = 1")
        rows = source.execute(f"SELECT {columns} FROM calls")
        target.executemany(f"INSERT INTO calls VALUES ({','.join('?' * 10)})", rows)


@stubbed(Behaviour())
async def test_an_old_ledger_is_upgraded_in_place_and_pays_for_nothing_again(stub: Stub, tmp_path: Path) -> None:
    before = await ask(stub, tmp_path / "new.db", settings("hard"))
    as_old(tmp_path / "new.db", tmp_path / "old.db")
    after = await ask(stub, tmp_path / "old.db", settings())
    assert stub.stats().requests == ROWS
    assert (before.codes == after.codes).all()
    as_old(tmp_path / "new.db", tmp_path / "other.db")
    with Ledger(tmp_path / "fresh.db") as ledger, Ledger(tmp_path / "other.db") as other:
        assert ledger.import_from(other) == ROWS
    assert (await ask(stub, tmp_path / "fresh.db", settings())).grades is None
    assert stub.stats().requests == ROWS


def test_the_key_of_a_hard_question_is_that_of_earlier_versions() -> None:
    from pcs_annotator.asking.ledger.sqlite import call_key
    from pcs_annotator.core.chat import Constraint

    request = Request(
        messages=(Message("system", 'label "it"\n'), Message("user", "hé\ud800llo \\ 😀")),
        max_tokens=64,
        constraint=Constraint(choices=("a", "b")),
    )
    assert call_key("m", request, 0).own.hex() == "0800d30a7dc92b9329a35c5c76345bbb"


@stubbed(Behaviour())
async def test_what_is_known_about_models_is_imported_and_pruned(stub: Stub, tmp_path: Path) -> None:
    name = f"{stub.url}#m"
    await ask(stub, tmp_path / "a.db", settings())
    with Ledger(tmp_path / "b.db") as ledger, Ledger(tmp_path / "a.db") as other:
        assert ledger.graded_models() == {}
        ledger.import_from(other)
        assert ledger.graded_models() == {name: True}
        grades = (await ask(stub, tmp_path / "b.db", settings())).grades
        assert grades is not None
        assert stub.stats().requests == ROWS
        ledger.prune(model="another")
        assert ledger.graded_models() == {name: True}
        ledger.prune(model=name)
        assert ledger.graded_models() == {}


TOPIC = Part("topic", "What is it about?", ("economy", "health", "world news"))
TONE = Part("tone", "How does it sound?", ("warm", "cold"))
FRAMES = Part("frames", "Which frames does it use?", ("conflict", "health"), many=True)


def part_task(name: str, label: str = "") -> Task:
    """The task of one of three variables that are asked about in one call."""
    together = AskedTogether((TOPIC, TONE, FRAMES), name, label)
    return Task(together.own.instruction, ("yes", "no") if label else together.own.labels, together=together)


def probabilities_of(part: Part) -> list[list[float]]:
    """What the stub gives to the labels of a variable, for every text."""
    rows = []
    for item in items():
        body = {"model": "m", "messages": [{"role": "user", "content": item.text}]}
        question = read_question(body, "/")._replace(parts=((part.name, part.labels),))
        ((_, chosen),) = several(question, Behaviour()).parts
        shares = probabilities(question, chosen, part.labels)
        rows.append([shares[label] for label in part.labels])
    return rows


@stubbed(Behaviour())
async def test_each_variable_of_one_call_has_the_probabilities_of_its_own_labels(stub: Stub, tmp_path: Path) -> None:
    for part in (TOPIC, TONE):
        how = settings()
        votes = await ask(stub, tmp_path / "l.db", how, part_task(part.name))
        assert votes.grades is not None
        assert votes.grades[:, 0, 0, 0] == pytest.approx(np.array(probabilities_of(part)), abs=CAPITALISED * 0.5)
        assert (how.tally.graded, how.tally.hard) == (ROWS, {})
    how = settings()
    listed = await ask(stub, tmp_path / "l.db", how, part_task("frames", "health"))
    assert listed.grades is None  # a list of labels has no probability for each of them
    assert (how.tally.from_ledger, how.tally.hard) == (ROWS, {})
    assert stub.stats().requests == ROWS  # the first variable pays for all
    with Ledger(tmp_path / "l.db") as ledger:
        assert ledger.graded_models() == {f"{stub.url}#m": True}


@stubbed(Behaviour())
async def test_the_order_of_variables_and_labels_changes_places_and_no_probability(stub: Stub, tmp_path: Path) -> None:
    annotators = [Annotator(f"{stub.url}#m")]
    task, where = part_task("topic"), tmp_path / "l.db"
    votes = await collect(task, items(), annotators, ["original", "order"], ledger=where, settings=settings())
    assert votes.grades is not None
    same = votes.codes[:, 0, 0, 0] == votes.codes[:, 0, 1, 0]
    assert votes.grades[same, 0, 0, 0] == pytest.approx(votes.grades[same, 0, 1, 0], abs=CAPITALISED * 0.5)
    assert same.any()


def test_a_variable_without_its_tag_is_a_hard_vote(tmp_path: Path) -> None:
    def answer(request: Request) -> Reply:
        tokens = [TokenPosition("<topic>", ()), TokenPosition("health", (("health", -0.2), ("economy", -1.8)))]
        return Reply(
            text='<topic>health</topic> {"tone": "warm"}', logprobs=tuple(tokens) if request.logprobs else None
        )

    model, votes, hard = ScriptedModel(answer, name="scripted:one", can_grade=True), {}, {}
    for name in ("topic", "tone"):
        how = settings()
        found = collect(part_task(name), items(1), [model], ledger=tmp_path / "l.db", settings=how)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PcsWarning)
            votes[name] = asyncio.run(found)
        hard[name] = dict(how.tally.hard)
    assert (votes["topic"].grades is None, votes["tone"].grades is None) == (False, True)
    assert hard == {"topic": {}, "tone": {"an answer without its tag": 1}}
