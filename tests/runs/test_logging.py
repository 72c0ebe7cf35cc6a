"""Requests and decisions are logged, with the names of models alone: no text, no reply and no key."""

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from starlette.exceptions import HTTPException

from pcs_annotator import alabel, arun
from pcs_annotator.asking.engine.budget import Budget, BudgetTracker, Cost
from pcs_annotator.asking.ledger.open_ledger import open_ledger
from pcs_annotator.base.errors import BudgetReached
from pcs_annotator.faces.cli.main import main
from pcs_annotator.faces.serve.bodies import TextQueue
from tests.stub import Behaviour, StubServer

KEY = "sk-test-0123456789abcdef0123"
TEXTS = [f"A guest wrote sentence {row} about the harbour." for row in range(20)]
TABLE = {"text": TEXTS, "gold": ["good", "bad"] * 10}


@pytest.mark.system
def test_a_full_log_has_requests_and_decisions_but_no_text_reply_or_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    caplog.set_level(logging.DEBUG, "pcs_annotator")
    meanings = '[task.meanings]\ngood = "Praise."\nbad = "A complaint."\n'  # so that no model has to define them
    Path("pcs.toml").write_text(f'[task]\nlabels = ["good", "bad"]\n{meanings}', encoding="utf-8")

    async def ask() -> None:
        async with StubServer(Behaviour(share_429=0.2, share_chatter=0.3, retry_after="none")) as stub:
            environment = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": stub.url}
            asked: dict[str, Any] = {"models": ["openai:gpt-4o-mini"], "config": "pcs.toml"}
            await arun(TABLE, "here", **asked, optimiser="lr", max_error=0.3, environment=environment)
            await alabel(["The harbour again."], "here", environment=environment)

    asyncio.run(ask())
    logged = [record.getMessage() for record in caplog.records]
    assert all(record.name.startswith("pcs_annotator.") for record in caplog.records)
    levels = {record.levelno for record in caplog.records}
    assert levels == {logging.DEBUG, logging.INFO}
    everything = "\n".join(logged)
    for words in ("openai:gpt-4o-mini: stop after", "RateLimited", "asked again in", "tokens in", "(label)"):
        assert words in everything
    for words in (
        "questions: ",
        "20 gold rows, lr: Weights(",
        "promise",
        "RunResult('here', 20 rows",
        "1 texts labelled",
    ):
        assert words in everything
    secrets = {KEY, KEY[-8:], *TEXTS, "guest", "harbour"}
    with open_ledger(Path("here/ledger.db")) as ledger:
        replies = {entry.reply for entry in ledger.entries()}
    secrets |= {reply for reply in replies if reply not in ("good", "bad")}
    secrets |= set(pq.read_table("here/variables/label/variants.parquet")["text"].drop_null().to_pylist())
    assert [secret for secret in secrets if secret in everything] == []


def test_the_command_logs_where_it_is_told_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("texts.csv").write_text("text\nOne.\nTwo.\n")
    command = ["run", "texts.csv", "--labels", "good,bad", "--model", "scripted:hash", "--relations", "original"]
    assert main(["--log-level", "debug", *command]) == 0
    logged = capsys.readouterr().err
    assert "DEBUG pcs_annotator.asking.engine.call: scripted:hash: stop after" in logged
    assert "INFO pcs_annotator.verbs.run: RunResult" in logged
    assert main([*command, "--json"]) == 0
    assert "pcs_annotator" not in capsys.readouterr().err


def test_a_budget_and_a_queue_are_logged_at_80_and_at_100_percent_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pcs_annotator")
    tracker = BudgetTracker(Budget(calls=10))
    for _ in range(10):
        assert tracker.hold(Cost(None, 1))
        tracker.pay(Cost(None, 1))
        tracker.release(Cost(None, 1))
    for _ in range(3):
        with pytest.raises(BudgetReached):
            tracker.check(Cost(None, 1))
    queue = TextQueue(10)
    for _ in range(10):
        queue.take(1)
    for _ in range(3):
        with pytest.raises(HTTPException):
            queue.take(1)
    logged = [record.getMessage() for record in caplog.records]
    option = logged[0].partition(":")[0]
    assert logged == [
        f"{option}: 80 % is spent",
        f"{option}: 100 % is spent",
        "queue length 8 of 10",
        "queue length 11 of 10",
    ]


def test_events_are_lines_of_json_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("texts.csv").write_text("text\n" + "".join(f"Text {row}.\n" for row in range(20)))
    asked = ["texts.csv", "--labels", "good,bad", "--model", "scripted:hash", "--relations", "original"]
    main(["--log-json", "run", *asked, "--max-calls", "10"])
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("{")]
    events = [json.loads(line) for line in lines]
    spent = [event["percent"] for event in events if "percent" in event]
    assert spent == [80, 100]
    assert all(event["level"] in ("INFO", "WARNING") and event["message"] and event["time"] for event in events)


def test_a_library_logs_nothing_of_its_own_accord() -> None:
    handlers = logging.getLogger("pcs_annotator").handlers
    assert any(isinstance(handler, logging.NullHandler) for handler in handlers)
