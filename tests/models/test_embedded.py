"""The embedded model: names and errors always, answers if its weights are in the cache."""

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pcs_annotator import Annotator, CollectSettings, Item, Task, collect
from pcs_annotator.asking.annotators.annotator import Question
from pcs_annotator.asking.engine.call import Patience
from pcs_annotator.base.errors import BadRequest, ConfigError, MissingPackage, Unanswerable, UnknownNameError
from pcs_annotator.core.chat import ChatModel, Constraint, Reply, Request
from pcs_annotator.models import provider as sharing
from pcs_annotator.models.local import in_process as embedded
from pcs_annotator.models.local.download import WEIGHTS, is_intact, weights_path
from pcs_annotator.models.local.embedded import NumpyEngine
from pcs_annotator.models.local.in_process import EmbeddedModel, open_embedded
from tests.models.embedded_engine.tiny import write_tiny
from tests.models.stub import question, run

pytestmark = pytest.mark.system

HERE = is_intact(weights_path("smollm2"), WEIGHTS["smollm2"])
needs_weights = pytest.mark.skipif(not HERE, reason="needs the weights: `pcs models pull embedded:smollm2`")
TOPICS = Task(labels=["sports", "business", "science"], instruction="What is the topic of this news item?")
ITEMS = {
    "The home side scored twice in the last minutes and won the cup final.": "sports",
    "Shares of the airline fell after it cut its profit forecast for the year.": "business",
    "Astronomers found a planet that circles two stars at once.": "science",
}


def opened(model: str) -> ChatModel:
    return open_embedded(model, {})


def test_a_model_has_two_styles_and_other_names_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [opened(name).name for name in ("smollm2", "smollm2/plain")] == [
        "embedded:smollm2",
        "embedded:smollm2/plain",
    ]
    for spec in ("smollm2/loud", "smollm2/chat/plain", "smollm2/"):
        with pytest.raises(ConfigError, match=f"embedded:{spec} "):
            opened(spec)
    with pytest.raises(UnknownNameError, match=r"smollm3.*smollm2"):
        opened("smollm3")
    monkeypatch.setattr(embedded, "find_spec", lambda name: None)
    with pytest.raises(MissingPackage, match=r"tokenizers: pip install 'perceived-confidence\[local\]'"):
        opened("smollm2")


def test_a_failed_download_is_raised_when_asking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> Path:
        raise ConfigError("no network")

    monkeypatch.setattr(embedded, "pull", broken)
    model = EmbeddedModel(environment={"XDG_CACHE_HOME": str(tmp_path)})

    async def go() -> None:
        with pytest.raises(ConfigError, match="no network"):
            await model.ask(question())
        await model.close()

    run(go())


@pytest.fixture
def tiny_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[EmbeddedModel, list[str]]:
    """A model with random weights, and a list with an entry per download."""
    path = write_tiny(tmp_path / "tiny.gguf")
    downloads: list[str] = []

    def fetch(name: str, *_: object, **__: object) -> Path:
        downloads.append(name)
        return path

    monkeypatch.setattr(embedded, "pull", fetch)
    return EmbeddedModel(environment={"XDG_CACHE_HOME": str(tmp_path)}, threads=2), downloads


def test_weights_are_loaded_once_until_the_last_style_is_closed(tiny_model: tuple[EmbeddedModel, list[str]]) -> None:
    model, downloads = tiny_model
    other = EmbeddedModel(style="plain", environment=model._environment)
    request = question(constraint=Constraint(choices=["new", "old", "new text"]))

    async def go() -> None:
        replies = await asyncio.gather(*(one.ask(request) for one in (model, other) for _ in range(20)))
        assert len({reply.text for reply in replies[:20]}) == 1
        assert len(downloads) == 1
        await model.close()
        await other.ask(request)
        assert len(downloads) == 1
        await other.close()
        assert await model.ask(request) is not None
        assert len(downloads) == 2
        await model.close()

    run(go())
    assert model._key not in sharing._shared


def test_rewrites_wait_for_their_turn_without_a_timeout(
    tiny_model: tuple[EmbeddedModel, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, _ = tiny_model
    write = NumpyEngine.generate

    def slow(*asked: Any) -> list[Reply]:
        time.sleep(0.05)
        return write(*asked)

    monkeypatch.setattr(NumpyEngine, "generate", slow)
    items = [Item(id=str(row), text=f"The club won match {row}.") for row in range(12)]
    settings = CollectSettings(environment={}, rewriter=model, patience=Patience(deadline=0.1, first_wait=0.01))
    run(
        collect(
            TOPICS, items, ["scripted:hash"], ["original", "llm:voice"], ledger=tmp_path / "l.db", settings=settings
        )
    )
    assert settings.tally.rows == len(items)
    assert not settings.tally.retries
    assert not settings.tally.failed


def test_texts_that_nobody_waits_for_any_more_are_not_written(
    tiny_model: tuple[EmbeddedModel, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, _ = tiny_model
    started, may_go_on = threading.Event(), threading.Event()
    written: list[object] = []

    def slow(_: object, questions: list[object]) -> list[Reply]:
        written.extend(questions)
        started.set()
        may_go_on.wait(10)
        return [Reply(text="x")]

    monkeypatch.setattr(NumpyEngine, "generate", slow)
    model.threads = 1

    async def go() -> None:
        tasks = [asyncio.create_task(model.ask(question(letter))) for letter in "abcdefgh"]
        await asyncio.to_thread(started.wait, 10)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        may_go_on.set()
        await model.close()

    run(go())
    assert len(written) == 1


@pytest.fixture(scope="module")
def kept() -> Iterator[None]:
    """Keep the weights loaded between tests."""
    holder = EmbeddedModel()
    key = str(weights_path("smollm2", {}))
    sharing.lease(key, holder, holder._runner)
    yield
    sharing._shared.pop(key)  # also if a test left its model open: other tests count what is shared


def asked(text: str, task: Task = TOPICS, model: ChatModel | None = None) -> Request:
    made = Annotator("m").question(task, text, model or opened("smollm2"))
    assert isinstance(made, Question)
    return made.request


def scores(reply: Reply) -> dict[str, float]:
    """The choices and their log-probabilities."""
    assert isinstance(reply.logprobs, tuple)
    ((token, alternatives),) = reply.logprobs
    assert token == f"{reply.text}\n"
    return {choice.removesuffix("\n"): log for choice, log in alternatives}


async def ask_all(model: ChatModel, requests: list[Request]) -> list[Reply]:
    return list(await asyncio.gather(*(model.ask(request) for request in requests)))


@needs_weights
@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("spec", ["smollm2", "smollm2/plain"])
def test_easy_topics_are_right(spec: str) -> None:
    replies = run(ask_all(opened(spec), [asked(text) for text in ITEMS]))
    assert [reply.text for reply in replies] == list(ITEMS.values())
    for reply in replies:
        found = scores(reply)
        assert max(found, key=found.__getitem__) == reply.text
        assert np.exp(list(found.values())).sum() == pytest.approx(1, abs=1e-3)
        assert reply.usage.input_tokens
        assert reply.latency > 0


@pytest.mark.slow
@needs_weights
@pytest.mark.usefixtures("kept")
def test_an_answer_does_not_depend_on_the_other_questions() -> None:
    model = opened("smollm2")
    requests = [asked(f"{text} {'Really. ' * number}") for number, text in enumerate([*ITEMS, *ITEMS])]
    together = run(ask_all(model, requests))
    backwards = run(ask_all(model, requests[::-1]))[::-1]
    alone = [run(model.ask(request)) for request in requests]
    logs = [[reply.logprobs for reply in replies] for replies in (together, backwards, alone)]
    assert logs[0] == logs[1] == logs[2]


@needs_weights
@pytest.mark.usefixtures("kept")
def test_votes_are_graded(tmp_path: Path) -> None:
    items = [Item(id=str(row), text=text) for row, text in enumerate(ITEMS)]
    annotator = Annotator("embedded:smollm2")
    settings = CollectSettings(environment={})
    votes = run(collect(TOPICS, items, [annotator], ledger=tmp_path / "l.db", settings=settings))
    assert votes.grades is not None
    assert votes.grades.sum(axis=-1) == pytest.approx(np.ones(votes.codes.shape), abs=1e-3)
    assert (votes.grades.argmax(axis=-1) == votes.codes).all()
    assert [TOPICS.labels[code] for code in votes.codes.ravel().tolist()] == list(ITEMS.values())
    again = run(collect(TOPICS, items, [annotator], ledger=tmp_path / "l.db", settings=settings))
    assert settings.tally.calls == len(items)
    assert again.grades is not None
    assert (again.grades == votes.grades).all()


@needs_weights
@pytest.mark.usefixtures("kept")
def test_free_text_is_repeatable_and_stops_at_the_limit() -> None:
    request = question("Name a colour.", system=None, max_tokens=3, logprobs=5)
    model = opened("smollm2")
    first, second = run(model.ask(request)), run(model.ask(request))
    assert first.text == second.text != ""
    assert (first.finish, first.usage.output_tokens) == ("length", 3)
    assert first.logprobs is None


@needs_weights
@pytest.mark.usefixtures("kept")
def test_questions_that_cannot_be_answered_do_not_affect_the_others() -> None:
    model = opened("smollm2")
    good = asked(next(iter(ITEMS)))
    schema = question(constraint=Constraint(json_schema={"type": "object"}))
    long = question("word " * 3000, constraint=Constraint(choices=["a", "b"]))

    async def go() -> list[object]:
        return list(await asyncio.gather(*(model.ask(r) for r in (good, schema, long)), return_exceptions=True))

    fine, refused, too_long = run(go())
    assert isinstance(fine, Reply)
    assert isinstance(refused, BadRequest)
    assert isinstance(too_long, Unanswerable)


@pytest.mark.slow
@needs_weights
@pytest.mark.usefixtures("kept")
def test_a_text_that_is_read_in_several_parts_is_answered() -> None:
    text = "The club won the match. " * 110
    (reply,) = run(ask_all(opened("smollm2/plain"), [asked(text)]))
    assert reply.text == "sports"
    assert (reply.usage.input_tokens or 0) > 512
