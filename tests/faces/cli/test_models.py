import json

import pytest

from pcs_annotator.faces.cli.main import main
from pcs_annotator.verbs import models
from tests.command_line import Pcs
from tests.models import hostile
from tests.stub import Behaviour, stub_process
from tests.stub.behaviour import Logprobs


@pytest.fixture(autouse=True)
def without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GROQ_API_KEY", raising=False)


def test_list_shows_prices_with_their_date_within_80_columns_and_never_takes_unknown_for_free(pcs: Pcs) -> None:
    lines = pcs.out("models", "list").splitlines()
    assert all(len(line) <= 80 for line in lines)
    shown = {line.split()[0]: line.split()[1:] for line in lines if ":" in line.split(" ")[0]}
    assert shown["openai:gpt-4o-mini"] == ["128k", "0.15", "0.6", "2025-11"]
    assert shown["huggingface:mistralai/Mistral-7B-Instruct-v0.3"][1:] == ["price", "unknown"]
    listed = {model["name"]: model for model in pcs.json("models", "list")}
    assert listed["openai:gpt-4o-mini"]["usd_per_million_out"] == 0.6
    assert listed["huggingface:mistralai/Mistral-7B-Instruct-v0.3"]["usd_per_million_in"] is None


def test_check_shows_which_models_answer_and_why_others_do_not(pcs: Pcs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    with stub_process(Behaviour()) as stub:
        specs = [f"{stub.url}#m", "scripted:hash", "groq:llama-3.1-8b-instant", "http://127.0.0.1:9/v1#m"]
        lines = pcs.out("models", "check", *specs, code=2).splitlines()
    assert lines[0].startswith(f"✓ {stub.url}#m: ")
    assert "price unknown" in lines[0]
    assert ", log-probabilities, " in lines[0]
    assert lines[1].startswith("✓ scripted:hash: ")
    assert ", no log-probabilities, " in lines[1]
    assert lines[2].startswith("✗ groq:llama-3.1-8b-instant: ")
    assert "GROQ_API_KEY" in lines[2]
    assert lines[3].startswith("✗ http://127.0.0.1:9/v1#m: ")


@pytest.mark.parametrize("logprobs", ["ignored", "after sampling"])
def test_check_shows_whether_log_probabilities_are_of_use(
    logprobs: Logprobs, capsys: pytest.CaptureFixture[str]
) -> None:
    with stub_process(Behaviour(logprobs=logprobs)) as stub:
        assert main(["models", "check", f"{stub.url}#m"]) == 0
    assert ", no log-probabilities, " in " ".join(capsys.readouterr().out.split())


def test_check_as_json_is_exit_code_0_when_all_answer(pcs: Pcs) -> None:
    (checkup,) = pcs.json("models", "check", "scripted:hash")
    assert checkup["answers"]
    assert checkup["usd"] == 0.0


def test_check_notes_another_models_name(capsys: pytest.CaptureFixture[str]) -> None:
    with stub_process(Behaviour()) as stub, hostile.in_a_thread(hostile.says(model="other")) as url:
        assert main(["models", "check", f"{stub.url}#m", url, "--json"]) == 0
    printed = capsys.readouterr()
    assert len(json.loads(printed.out)) == 2
    assert printed.err.startswith(f"note: {url}: the server answers as 'other'")


def test_a_check_of_a_model_that_hangs_times_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(models, "CHECK_SECONDS", 0.2)
    with stub_process(Behaviour(share_hang=1.0)) as stub:
        assert main(["models", "check", f"{stub.url}#m"]) == 2
    assert "0.2 s" in capsys.readouterr().out
