"""Annotators that state probabilities: how many calls they take, which they share, and the votes they give."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pcs_annotator import ABSTAINED, NOT_ASKED, Annotator, CollectSettings, Item, Task, Votes, collect
from pcs_annotator.asking.engine.budget import Budget
from pcs_annotator.asking.engine.item_asker import FIRST_ROWS, VoteBuffer
from pcs_annotator.base.errors import BadRequest, ServerTrouble
from pcs_annotator.core.chat import Reply, Request
from pcs_annotator.core.votes import Vote
from pcs_annotator.faces.cli.main import main
from pcs_annotator.judging.baselines import baselines
from pcs_annotator.models.scripted import ScriptedModel
from pcs_annotator.runs.ask import open_job
from pcs_annotator.tables.vote_files import VoteAxes, read_votes
from tests.stub import Behaviour, StubServer
from tests.stub.answers import Answer, answer, chosen_label, labels_of
from tests.stub.questions import Question

TASK = Task("How does the writer feel?", ["positive", "neutral", "negative"])
KINDS = ["1s-top-2", "2s-top-2", "ling-1s"]


def some_items(count: int) -> list[Item]:
    return [Item(id=str(row), text=f"Text number {row} is rather nice.") for row in range(count)]


def said(fixed: str, last: str, guess: str, other: str) -> str | None:
    """Return a well-formed answer to a question of an elicitation; None for other questions."""
    if "What is the probability" in last:
        return "P1: 0.7\nP2: 0.2"
    if "(A) True" in last:
        return "(A) True"
    if "P1: <probability>" in fixed:
        return f"G1: {guess}\nP1: 0.8\nG2: {other}\nP2: 0.15"
    if "G1: <label>" in fixed:
        return f"G1: {guess}\nG2: {other}"
    return f"Guess: {guess}\nConfidence: Likely" if "Confidence: <phrase>" in fixed else None


def obliging(request: Request) -> str:
    found = said(request.messages[0].content, request.messages[-1].content, "positive", "negative")
    return "<label>positive</label>" if found is None else found


def stating(kind: str, question: Question, behaviour: Behaviour) -> Answer:
    guess = chosen_label(question, behaviour)
    other = next(label for label in labels_of(question, behaviour) if label != guess)
    found = said(question.system, question.text, guess, other)
    return answer(kind, question, behaviour) if found is None else Answer(found)


@pytest.fixture
def stub_that_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.stub.server.answer", stating)


def asked(
    annotators: Sequence[object], ledger: Path, *, rows: int = 1, settings: CollectSettings | None = None
) -> tuple[Votes, CollectSettings]:
    settings = settings or CollectSettings(environment={})
    return asyncio.run(collect(TASK, some_items(rows), annotators, ledger=ledger, settings=settings)), settings


def stated_by(votes: Votes, annotator: int = 0) -> list[float | None]:
    assert votes.stated is not None
    return [None if np.isnan(value) else value for value in votes.stated[0, annotator, 0, 0]]


@pytest.mark.parametrize(
    ("kind", "stated", "calls"),
    [("1s-top-2", [0.8, None, 0.15], 1), ("2s-top-2", [0.7, None, 0.2], 2), ("ling-1s", [0.71, None, None], 1)],
)
def test_an_elicited_annotator_votes_for_its_guess_and_states_probabilities(
    kind: str, stated: list[float | None], calls: int, tmp_path: Path
) -> None:
    model = ScriptedModel(obliging)
    votes, settings = asked([Annotator(model, elicitation=kind)], tmp_path / "l.db")
    assert votes.annotators == (f"scripted:script/{kind}",)
    assert votes.codes.ravel().tolist() == [0]
    assert stated_by(votes) == stated
    assert model.calls == settings.tally.calls == settings.tally.questions == calls


def test_among_elicited_annotators_a_plain_one_states_nothing(tmp_path: Path) -> None:
    model = ScriptedModel(obliging)
    votes, _ = asked([model, Annotator(model, elicitation="1s-top-2")], tmp_path / "l.db")
    assert stated_by(votes, 0) == [None, None, None]
    assert stated_by(votes, 1) == [0.8, None, 0.15]


def test_a_second_run_calls_no_model_and_states_the_same(tmp_path: Path) -> None:
    model = ScriptedModel(obliging)
    annotators = [model, *(Annotator(model, elicitation=kind) for kind in KINDS)]
    first, _ = asked(annotators, tmp_path / "l.db", rows=7)
    paid = model.calls
    second, settings = asked(annotators, tmp_path / "l.db", rows=7)
    assert paid == 7 * (1 + 1 + 2 + 1)
    assert model.calls == paid
    assert settings.tally.questions == settings.tally.from_ledger == 7 * (1 + 1 + 2 + 1)
    np.testing.assert_array_equal(first.codes, second.codes)
    assert first.stated is not None
    np.testing.assert_array_equal(first.stated, second.stated)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("garbage", ["", "Hello!", "G1: P1: G2:", "<think>positive 0.9", "\x00\ud800", "9" * 3000])
def test_garbage_is_a_silence_that_states_nothing_and_is_not_asked_again(
    kind: str, garbage: str, tmp_path: Path
) -> None:
    model = ScriptedModel([garbage])
    annotators = [Annotator(model, elicitation=kind, constrain=False)]
    votes, settings = asked(annotators, tmp_path / "l.db")
    assert votes.codes.ravel().tolist() == [ABSTAINED]
    assert stated_by(votes) == [None, None, None]
    assert sum(settings.tally.unreadable.values()) == model.calls == 1
    asked(annotators, tmp_path / "l.db")
    assert model.calls == 1


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        ("Who knows?", "no probability in reply"),
        (BadRequest("too odd"), "too odd"),
        (Reply(text="P1: 1", finish="filter"), "filtered by the provider"),
    ],
)
def test_without_an_answer_to_the_second_question_there_is_no_vote(second: Any, reason: str, tmp_path: Path) -> None:
    model = ScriptedModel(["G1: <label>positive</label>", second])
    votes, settings = asked([Annotator(model, elicitation="2s-top-2", constrain=False)], tmp_path / "l.db")
    assert votes.codes.ravel().tolist() == [ABSTAINED]
    assert stated_by(votes) == [None, None, None]
    assert settings.tally.unreadable == {reason: 1}


@pytest.mark.parametrize("kind", ["2s-top-2"])
def test_the_run_after_a_spent_budget_asks_only_what_is_missing(kind: str, tmp_path: Path) -> None:
    model = ScriptedModel(obliging)
    annotators = [Annotator(model, elicitation=kind)]
    tight = CollectSettings(environment={}, budget=Budget(calls=7))
    first, settings = asked(annotators, tmp_path / "l.db", rows=5, settings=tight)
    assert model.calls == 7
    settled = int((first.codes >= 0).sum())
    assert settings.tally.failed["budget reached"] == 5 - settled
    assert (first.codes[first.codes < 0] == NOT_ASKED).all()
    second, _ = asked(annotators, tmp_path / "l.db", rows=5)
    assert model.calls == 10
    assert (second.codes == 0).all()


def test_a_second_question_is_retried_like_any_other(tmp_path: Path) -> None:
    model = ScriptedModel(["G1: positive\nG2: negative", ServerTrouble("down"), "P1: 0.75\nP2: 0.25"])
    settings = CollectSettings(environment={})
    settings = replace(settings, patience=replace(settings.patience, first_wait=0.001))
    votes, _ = asked([Annotator(model, elicitation="2s-top-2")], tmp_path / "l.db", settings=settings)
    assert settings.tally.retries["ServerTrouble"] == 1
    assert votes.codes.ravel().tolist() == [0]
    assert stated_by(votes) == [0.75, None, 0.25]


def test_a_growing_buffer_keeps_the_stated_probabilities() -> None:
    buffer = VoteBuffer(["m", "m/1s-top-2"], ["original"], ["x", "y"], 1)
    for row in range(FIRST_ROWS + 1):
        buffer.add_row(Item(id=str(row), text=""))
        buffer.put(row, 1, 0, 0, Vote(label="x", stated=(0.75, 0.25)))
    votes = buffer.votes()
    assert votes.stated is not None
    assert votes.stated.shape == (FIRST_ROWS + 1, 2, 1, 1, 2)
    assert (votes.stated[:, 1, 0, 0] == (0.75, 0.25)).all()
    assert np.isnan(votes.stated[:, 0]).all()


def test_names_hold_the_elicitation_and_annotators_share_a_model() -> None:
    names = ["scripted:hash", "scripted:hash/1s-top-3", "http://127.0.0.1:9/v1#a/b/ling-1s"]
    job = open_job(TASK, names, ["original"], CollectSettings(environment={}))
    annotators, models = zip(*job.annotators, strict=True)
    assert [annotator.name for annotator in annotators] == names
    assert [annotator.elicitation for annotator in annotators] == [None, "1s-top-3", "ling-1s"]
    assert models[0] is models[1]
    assert models[2].name == "http://127.0.0.1:9/v1#a/b"


@pytest.mark.parametrize("name", ["embedded:smollm2", "embedded:smollm2/plain"])
def test_other_slashes_stay_part_of_the_model(name: str) -> None:
    pytest.importorskip("tokenizers")
    job = open_job(TASK, [name, f"{name}/ling-1s"], ["original"], CollectSettings(environment={}))
    (plain, model), (elicited, same) = job.annotators
    assert (plain.name, plain.elicitation) == (name, None)
    assert (elicited.name, elicited.elicitation) == (f"{name}/ling-1s", "ling-1s")
    assert model is same


def test_over_real_http_calls_are_shared_and_a_second_run_makes_none(stub_that_states: None, tmp_path: Path) -> None:
    async def run() -> None:
        async with StubServer(Behaviour(seed=1, share_429=0.1, share_500=0.05, retry_after="exact")) as stub:
            names = [f"{stub.url}#m", *(f"{stub.url}#m/{kind}" for kind in KINDS)]
            settings = CollectSettings(environment={})
            settings = replace(settings, patience=replace(settings.patience, first_wait=0.01, longest_wait=0.05))

            async def votes() -> Votes:
                return await collect(TASK, some_items(30), names, ledger=tmp_path / "l.db", settings=settings)

            first = await votes()
            assert stub.stats().answered == 30 * (1 + 1 + 2 + 1)
            second = await votes()
            assert stub.stats().answered == 30 * (1 + 1 + 2 + 1)
        assert first.stated is not None
        np.testing.assert_array_equal(first.stated, second.stated)
        # the stub's label depends on the model and the text, not on the elicitation
        assert (first.codes >= 0).all()
        assert (first.codes == first.codes[:, :1]).all()
        guess = np.take_along_axis(first.stated, first.codes[..., np.newaxis].astype(np.intp), axis=-1)
        assert [float(value) for value in guess[0, 1:, 0, 0, 0]] == [0.8, 0.7, 0.71]

    asyncio.run(run())


def test_a_run_records_stated_probabilities_and_the_baselines_score_them(
    stub_that_states: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "\n".join(f"{item.id},{item.text},{TASK.labels[row % 3]}" for row, item in enumerate(some_items(6)))
    Path("data.csv").write_text(f"id,text,gold\n{rows}\n", encoding="utf-8")

    async def run() -> list[str]:
        async with StubServer(Behaviour()) as stub:
            names = [f"{stub.url}#m", f"{stub.url}#m/1s-top-2"]
            models = [option for name in names for option in ("--model", name)]
            options = ["--labels", ",".join(TASK.labels), "--relations", "original", "-q"]
            assert await asyncio.to_thread(main, ["run", "data.csv", *options, *models]) == 0
            return names

    names = asyncio.run(run())
    axes = VoteAxes([str(row) for row in range(6)], names, ["original"], TASK.labels, 1)
    votes = read_votes(Path("runs/data/variables/label/votes.parquet"), axes)
    assert votes.stated is not None
    assert np.isnan(votes.stated[:, 0]).all()
    scores = baselines.create("1s-top-k").scores(votes)
    np.testing.assert_allclose(np.sort(scores, axis=1), [[0.05, 0.15, 0.8]] * 6)
    assert (scores.argmax(axis=1) == votes.plain().codes[:, 0, 0, 0]).all()
