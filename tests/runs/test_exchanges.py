"""Prompts and replies of rows, from the ledger alone."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pcs_annotator import RunResult
from pcs_annotator.models.scripted import ScriptedModel
from pcs_annotator.runs.folder_votes import Evidence, evidence_of
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.settings import AskSettings, Config, RelationSettings, TaskSettings
from tests.simulated import MODELS, SimulatedProvider, run, simulated_models, simulated_run, write_texts

QUESTIONS = [(relation, model) for relation in ("original", "frame") for model in MODELS]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    return simulated_run(tmp_path_factory.mktemp("made"), rows=12, gold_rows=0)


@pytest.fixture
def nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    async def refuse(*_: object) -> None:
        raise AssertionError("a model was called")

    monkeypatch.setattr(ScriptedModel, "ask", refuse)
    with simulated_models():
        yield


def evidence(result: RunResult, *rows: int) -> Evidence:
    return evidence_of(result.folder, result.config, [result.dataset.items[row] for row in rows])


@pytest.mark.usefixtures("nobody_is_asked")
def test_every_question_is_there_as_it_was_sent_with_its_reply(made: RunResult) -> None:
    found = evidence(made, 7, 2)
    assert found.missing == ""
    for at, row in enumerate((7, 2)):
        exchanges = found.exchanges[at]
        assert [(one.relation, one.annotator) for one in exchanges] == QUESTIONS
        votes = [made.votes.labels[code] for code in made.votes.codes[row, :, :, 0].T.ravel().tolist()]
        assert [one.reply.text for one in exchanges] == votes
        for one in exchanges:
            assert [message.role for message in one.messages] == ["system", "user"]
            assert made.dataset.items[row].text in one.messages[-1].content
            assert ("The text reads: " in one.messages[-1].content) == (one.relation == "frame")
            assert one.reply.usage.input_tokens is not None


@pytest.mark.usefixtures("nobody_is_asked")
def test_rows_without_replies_have_none_and_nobody_is_asked(made: RunResult) -> None:
    other = replace(made.dataset.items[0], text="Never asked about.")
    calls = made.folder.ledger.stat().st_size
    assert evidence_of(made.folder, made.config, [other]) == Evidence([[]])
    assert made.folder.ledger.stat().st_size == calls


def test_where_there_is_no_evidence_the_reason_is_said(made: RunResult, tmp_path: Path) -> None:
    assert "no model is called" in evidence(made, 0).missing  # without `simulated_models`
    imported = replace(made, config=replace(made.config, ask=replace(made.config.ask, models=())))
    assert "table of votes" in evidence(imported, 0).missing
    elsewhere = replace(made.config, ask=replace(made.config.ask, ledger=str(tmp_path / "gone.db")))
    assert "ledger is gone" in evidence(replace(made, config=elsewhere), 0).missing
    assert not (tmp_path / "gone.db").exists()
    (tmp_path / "damaged.db").write_text("not a ledger, but a text that somebody put here" * 20)
    damaged = replace(made.config, ask=replace(made.config.ask, ledger=str(tmp_path / "damaged.db")))
    with simulated_models():
        assert "damaged.db" in evidence(replace(made, config=damaged), 0).missing


def test_a_provider_that_fails_in_its_own_way_is_a_reason_too(made: RunResult, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(SimulatedProvider, "open", broken)
    with simulated_models():
        assert evidence(made, 0).missing == "the run's models cannot be opened here (ZeroDivisionError)"


def test_a_missing_key_does_not_matter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, made: RunResult) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    shutil.copy(made.folder.ledger, tmp_path / "ledger.db")
    asked = replace(made.config.ask, models=("openai:gpt-4o-mini",), ledger=str(tmp_path / "ledger.db"))
    assert evidence_of(made.folder, replace(made.config, ask=asked), made.dataset.items[:1]) == Evidence([[]])


def test_draws_and_models_that_state_how_sure_they_are_are_in_it(tmp_path: Path) -> None:
    config = Config(
        task=TaskSettings(labels=("good", "bad")),
        ask=AskSettings(models=("scripted:hash", "scripted:hash/2s-top-2"), draws=2),
        relations=RelationSettings(use=("original", "typo")),
    )
    data = write_texts(tmp_path / "data.csv", range(4))
    result = run(RunRequest(data=data, folder=tmp_path / "run", config=config))
    [exchanges] = evidence(result, 1).exchanges
    plain = [(one.relation, one.annotator) for one in exchanges if one.annotator == "scripted:hash"]
    assert plain == [("original", "scripted:hash")] * 2 + [("typo", "scripted:hash")] * 2
    assert len(exchanges) > len(plain)
