from __future__ import annotations

import asyncio
import functools
import importlib.util
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

from pcs_annotator import Annotator, CollectSettings, Item, Task, collect
from pcs_annotator.base.errors import ConfigError, RateLimited, ServerTrouble
from pcs_annotator.core.chat import identity_of
from pcs_annotator.models.objects import FunctionModel, LangChainModel, fingerprint
from pcs_annotator.models.resolve import resolve_model
from tests.models.stub import ask_once, question, run

if TYPE_CHECKING:  # importing it takes a second, in every test process
    from langchain_openai import ChatOpenAI

Importer = Callable[[str], Any]

BEFORE = """
import functools
from dataclasses import dataclass

def ask(text, words={"good", "fine", "nice"}, api_key="old"):
    return text + "!"
def made(kind):
    calls = 0
    def inner(text):
        nonlocal calls
        calls += 1
        return kind + text
    return inner
closed = made("a")
@functools.lru_cache
def cached(text):
    return text
class Model:
    style = "short"
    def __init__(self, heat=0.1):
        self.heat, self.calls = heat, 0
    def __call__(self, text):
        self.calls += 1
        return self.method(text)
    def method(self, text):
        return text.lower()
@dataclass
class Data:
    heat: float = 0.1
    api_key: str = "old"
    def __call__(self, text):
        return text
lambdas = [lambda text: "a" + text, lambda text: "b" + text]
model, data = Model(), Data()
bound = model.method
part = functools.partial(ask, words=["?"])
"""
NAMES = ["ask", "closed", "cached", "model", "bound", "part", "data"]


@pytest.fixture
def module(tmp_path: Path) -> Iterator[Importer]:
    """Yield a function that writes a module to a folder of its own and imports it, as a later process would."""

    def imported(source: str) -> Any:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        (folder / "users_own.py").write_text(source)
        spec = importlib.util.spec_from_file_location("users_own", folder / "users_own.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules["users_own"] = made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
        return made

    yield imported
    sys.modules.pop("users_own", None)


@pytest.mark.parametrize(
    ("what", "old", "new"),
    [
        ("ask", '"!"', '"?"'),
        ("ask", '"fine", ', ""),
        ("closed", 'made("a")', 'made("b")'),
        ("cached", "def cached(text):\n    return text", "def cached(text):\n    return text * 2"),
        ("model", "heat=0.1", "heat=0.2"),
        ("model", '"short"', '"long"'),
        ("bound", "heat=0.1", "heat=0.2"),
        ("bound", "text.lower()", "text.upper()"),
        ("data", "Data()", "Data(0.2)"),
        ("part", 'words=["?"]', 'words=["."]'),
    ],
)
def test_a_change_of_what_a_function_answers_by_is_noticed(module: Importer, what: str, old: str, new: str) -> None:
    assert old in BEFORE
    sources = BEFORE, BEFORE, BEFORE.replace(old, new)
    before, again, after = (fingerprint(getattr(module(source), what)) for source in sources)
    assert before == again != after


def test_comments_counters_and_keys_do_not_count(module: Importer) -> None:
    for what, old, new in (
        ("ask", "def ask(text, ", "# other lines above\n\ndef ask(text,\n    # a comment\n"),
        ("closed", "calls = 0\n    def", "calls = 0 \n    def"),
        ("data", "Data()", 'Data(api_key="new")'),
    ):
        assert old in BEFORE
        assert fingerprint(getattr(module(BEFORE), what)) == fingerprint(
            getattr(module(BEFORE.replace(old, new)), what)
        )


def test_lambdas_on_one_line_differ_and_using_a_function_changes_nothing(module: Importer) -> None:
    users = module(BEFORE)
    first, second = users.lambdas
    assert fingerprint(first) != fingerprint(second)
    functions = users.closed, users.model, users.cached
    before = list(map(fingerprint, functions))
    for _ in range(100):  # Python rewrites the bytecode of what is called often, and two count their calls
        assert [function("yz") for function in functions] == ["ayz", "yz", "yz"]
    assert list(map(fingerprint, functions)) == before


def test_the_digest_is_the_same_in_every_process(module: Importer) -> None:
    code = (
        "import sys, users_own; from pcs_annotator.models.objects import fingerprint\n"
        "print(*(fingerprint(getattr(users_own, name)) for name in sys.argv[1:]))"
    )
    users = module(BEFORE)
    path = os.pathsep.join(filter(None, [os.path.dirname(users.__file__), *sys.path]))
    for seed in "12":
        call = [sys.executable, "-c", code, *NAMES]
        done = subprocess.run(call, env={"PYTHONHASHSEED": seed, "PYTHONPATH": path}, capture_output=True, check=True)
        assert done.stdout.decode().split() == [fingerprint(getattr(users, name)) for name in NAMES]


def test_a_function_without_a_source_counts_by_its_code() -> None:
    def made(source: str) -> str:
        names: dict[str, Any] = {}
        exec(source, names)
        return fingerprint(names["ask"])

    first, again, other = map(made, ["ask = lambda text: 'a' + text"] * 2 + ["ask = lambda text: 'b' + text"])
    assert first == again != other
    assert fingerprint(str.lower) != fingerprint(str.upper)


def chat(**more: Any) -> ChatOpenAI:
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(**{"model": "gpt-4o-mini", "api_key": SecretStr("sk-one"), **more})


@pytest.mark.parametrize(
    "more",
    [
        {"temperature": 0.7},
        {"base_url": "http://127.0.0.1:1/v1"},
        {"model_kwargs": {"thoroughness": {"1": 5}}},
        {"default_headers": {"X-Model-Variant": "b"}},
    ],
)
def test_settings_of_a_langchain_model_count(more: dict[str, Any]) -> None:
    plain, other = resolve_model(chat()), resolve_model(chat(**more))
    assert plain.name == other.name == "langchain:ChatOpenAI:gpt-4o-mini"
    assert identity_of(plain) != identity_of(other)
    assert identity_of(other) == identity_of(resolve_model(chat(**more)))


def test_keys_and_what_does_not_shape_answers_do_not_count() -> None:
    more = {"api_key": SecretStr("sk-two"), "max_retries": 0, "timeout": 3, "tags": ["x"], "callbacks": []}
    headers = {"default_headers": {"Authorization": "Bearer x"}}
    assert len({identity_of(resolve_model(chat(**some))) for some in ({}, more)}) == 1
    assert identity_of(resolve_model(chat(**headers))) == identity_of(resolve_model(chat(default_headers={})))


def test_bound_settings_and_prompts_of_a_chain_count() -> None:
    from langchain_core.prompts import ChatPromptTemplate

    prompts = [ChatPromptTemplate.from_template(f"{word} {{x}}") for word in ("Label", "Judge")]
    chains: list[Any] = [chat(), chat().bind(stop=["x"]), chat().bind(stop=["y"])]
    chains += [*(prompt | chat() for prompt in prompts), prompts[0] | chat(temperature=1)]
    assert len(set(map(fingerprint, chains))) == len(chains)


def test_a_model_of_langchain_opened_by_its_name_keeps_its_keys() -> None:
    from langchain_core.language_models.fake_chat_models import ParrotFakeChatModel

    model = LangChainModel(ParrotFakeChatModel(), by_name=True)
    assert identity_of(model) == model.name == "langchain:ParrotFakeChatModel"


TASK = Task("Which?", ["yes", "no"])


def calls_of(model: object, ledger: Path, **more: Any) -> int:
    """Ask about two texts and return the number of calls."""
    settings = CollectSettings(environment={})
    items = [Item(id=text, text=text) for text in "xy"]
    asyncio.run(collect(TASK, items, [Annotator(model, name="mine", **more)], ledger=ledger, settings=settings))
    return settings.tally.calls


ANSWERS = "SEEN = []\ndef model(text):\n    SEEN.append(text)\n    return 'yes'\n"


def test_an_edited_function_is_asked_again_and_an_unchanged_one_is_not(module: Importer, tmp_path: Path) -> None:
    edited = ANSWERS.replace("yes", "no")
    calls = [calls_of(module(source).model, tmp_path / "l.db") for source in (ANSWERS, ANSWERS, edited, ANSWERS)]
    assert calls == [2, 0, 2, 0]


def test_a_function_that_fills_a_list_stays_the_same_model(tmp_path: Path) -> None:
    seen: list[str] = []

    def model(text: str) -> str:
        seen.append(text)
        return "yes"

    assert [calls_of(model, tmp_path / "l.db") for _ in range(2)] == [2, 0]
    assert calls_of(model, tmp_path / "l.db", version="1") == 2
    assert calls_of(functools.partial(model), tmp_path / "l.db", version="1") == 0


def test_a_version_decides_instead(module: Importer, tmp_path: Path) -> None:
    versions = [("1", ANSWERS), ("1", ANSWERS.replace("yes", "no")), ("2", ANSWERS)]
    calls = [calls_of(module(source).model, tmp_path / "l.db", version=version) for version, source in versions]
    assert calls == [2, 0, 2]
    assert calls_of("scripted:hash", tmp_path / "l.db") == 2
    assert calls_of("scripted:hash", tmp_path / "l.db", version="b") == 2


def test_a_version_decides_for_a_rewriter_as_well(tmp_path: Path) -> None:
    def calls(rewriter: object) -> int:
        settings = CollectSettings(environment={}, rewriter=rewriter)
        items = [Item(id="1", text="The dog chased the cat.")]
        asyncio.run(collect(TASK, items, ["scripted:hash"], ["llm:voice"], ledger=tmp_path / "l.db", settings=settings))
        return settings.tally.calls

    def passive(text: str) -> str:
        return "The cat was chased by the dog."

    def other(text: str) -> str:
        return "The cat, it was chased by the dog."

    asked = [
        calls(Annotator(model, name="mine", version=v)) for model, v in ((passive, "1"), (other, "1"), (other, "2"))
    ]
    assert asked[1] == 0 < min(asked[0], asked[2])
    assert calls(passive) > 0 == calls(passive)


def shout(text: str) -> str:
    return text.upper()


async def whisper(text: str) -> str:
    await asyncio.sleep(0)
    return text.lower()


def roles(messages: list[dict[str, str]]) -> str:
    return ",".join(message["role"] for message in messages)


class Callable_:
    async def __call__(self, text: str) -> str:
        return "object"


@pytest.mark.parametrize(
    ("function", "answer"),
    [
        (shout, "LABEL IT.\n\nNICE!"),
        (whisper, "label it.\n\nnice!"),
        (roles, "system,user"),
        (lambda text: f"<{text}>", "<Label it.\n\nNice!>"),
        (Callable_(), "object"),
        (functools.partial(shout), "LABEL IT.\n\nNICE!"),
        (lambda text: whisper(text + "!"), "label it.\n\nnice!!"),
    ],
)
def test_functions_answer(function: Callable[[Any], Any], answer: str) -> None:
    assert run(ask_once(resolve_model(function))).text == answer


def test_a_sync_function_does_not_block_the_loop() -> None:
    model = FunctionModel(lambda text: threading.current_thread().name)
    assert run(ask_once(model)).text != threading.current_thread().name


def test_functions_and_lambdas_have_names_of_their_own() -> None:
    first = FunctionModel(lambda text: "a")
    second, mine = FunctionModel(lambda text: "b"), FunctionModel(shout, name="x")
    assert first.name != second.name
    assert FunctionModel(shout).name == f"function:{__name__}.shout"
    assert (mine.name, repr(mine)) == ("function:x", "FunctionModel('function:x')")


def test_what_a_function_raises_is_server_trouble_but_for_a_model_error() -> None:
    def breaks(text: str) -> str:
        raise RateLimited("slow down", 3.0) if text == "hi" else ValueError("no luck")

    with pytest.raises(ServerTrouble, match="ValueError: no luck"):
        run(ask_once(FunctionModel(breaks)))
    with pytest.raises(RateLimited):
        run(ask_once(FunctionModel(breaks), question("hi", system=None)))
    with pytest.raises(ServerTrouble, match="NoneType"):
        run(ask_once(FunctionModel(lambda text: None)))  # type: ignore[arg-type,return-value]  # this is what is tested


def test_a_function_without_arguments_is_refused_and_one_without_a_signature_gets_text() -> None:
    with pytest.raises(ConfigError, match="no argument"):
        resolve_model(lambda: "x")
    model = FunctionModel(type("Odd", (), {"__signature__": 3, "__call__": lambda self, text: text})())
    assert run(ask_once(model, question("hi", system=None))).text == "hi"
