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

import numpy as np
import pytest
from pydantic import SecretStr

from pcs_annotator import Annotator, CollectSettings, Item, PcsWarning, Task, collect
from pcs_annotator.core.chat import identity_of
from pcs_annotator.models.langchain import LangChainModel
from pcs_annotator.models.own import fingerprint
from pcs_annotator.models.resolve import resolve_model

if TYPE_CHECKING:  # importing it takes a second, in every test process
    from langchain_openai import ChatOpenAI

Importer = Callable[[str], Any]

BEFORE = """
import functools, re, threading
from dataclasses import dataclass
from enum import Enum

PROMPT = "Label: "
WORDS = {"good", "fine", "nice"}
API_KEY = "old"
calls = 0
class Tone(Enum):
    KIND = 1
def helper(text, mark="!"):
    return text + mark
def ask(text):
    return PROMPT + helper(text)
def knows(text, words=WORDS):
    return "yes" if text in {"a", "b"} else str(sorted(words))
def counts(text):
    global calls
    calls += 1
    return text
def keyed(text):
    return text + API_KEY[:0]
def tries(text):
    try:
        return [word for word in text if word != "x"][0]
    except IndexError:
        return Tone.KIND.name
def made(kind):
    def inner(text):
        return kind + text
    return inner
closed = made("a")
@functools.lru_cache
def cached(text):
    return text
class Model:
    style = "short"
    __slots__ = ("heat", "calls", "pattern", "lock")
    def __init__(self, heat=0.1):
        self.heat, self.calls, self.pattern, self.lock = heat, 0, re.compile("a+"), threading.Lock()
    def __call__(self, text):
        self.calls += 1
        return self.method(text)
    def method(self, text):
        return text.lower()
@dataclass
class Data:
    heat: float = 0.1
    def __call__(self, text):
        return text
@dataclass(frozen=True, slots=True)
class Frozen:
    warmth: float
    api_key: str = "old"
    def __call__(self, text):
        return text
def prefixed(prefix):
    def decorate(function):
        @functools.wraps(function)
        def inner(text):
            return function(prefix + text)
        return inner
    return decorate
@prefixed("pre")
def decorated(text):
    return text.strip()
def later(text):
    return deep(text)
def deep(text):
    return later(text) if text else "end"
lambdas = [lambda text: "a" + text, lambda text: "b" + text]
model, data, frozen = Model(), Data(), Frozen(0.1)
bound = model.method
part = functools.partial(helper, mark="?")
wrapped = prefixed("a: ")(helper)
"""


@pytest.fixture
def module(tmp_path: Path) -> Iterator[Importer]:
    """Yield a function that writes a module to a folder of its own and imports it, as a later process would."""

    def imported(source: str = BEFORE) -> Any:
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
        ("ask", "PROMPT + helper", "helper"),
        ("ask", '"Label: "', '"Text: "'),
        ("ask", "return text + mark", "return mark + text"),
        ("ask", 'mark="!"', 'mark="?"'),
        ("knows", '"fine", ', ""),
        ("knows", '{"a", "b"}', '{"a", "c"}'),
        ("tries", '"x"', '"y"'),
        ("tries", "KIND = 1", "KIND = 2"),
        ("closed", 'made("a")', 'made("b")'),
        ("cached", "def cached(text):\n    return text", "def cached(text):\n    return text * 2"),
        ("later", '"end"', '"stop"'),
        ("model", "heat=0.1", "heat=0.2"),
        ("model", '"a+"', '"b+"'),
        ("model", '"short"', '"long"'),
        ("model", "text.lower()", "text.upper()"),
        ("bound", "heat=0.1", "heat=0.2"),
        ("bound", "text.lower()", "text.upper()"),
        ("data", "= 0.1\n    def", "= 0.2\n    def"),
        ("part", 'mark="?"', 'mark="."'),
        ("frozen", "Frozen(0.1)", "Frozen(0.2)"),
        ("decorated", '"pre"', '"post"'),
        ("wrapped", '"a: "', '"b: "'),
        ("decorated", "prefix + text", "text + prefix"),
        ("decorated", "text.strip()", "text.title()"),
    ],
)
def test_a_change_of_what_a_function_answers_by_is_noticed(module: Importer, what: str, old: str, new: str) -> None:
    assert old in BEFORE
    sources = BEFORE, BEFORE, BEFORE.replace(old, new)
    before, again, after = (fingerprint(getattr(module(source), what)) for source in sources)
    assert before == again
    assert before.digest != after.digest
    assert not before.unseen


@pytest.mark.parametrize(
    ("what", "old", "new"),
    [
        ("ask", "def ask(text):\n", "# other lines above\n\ndef ask(text):\n    # a comment\n"),
        ("ask", "WORDS = {", "WORDS = {'unused', "),
        ("counts", "calls = 0", "calls = 7"),
        ("keyed", 'API_KEY = "old"', 'API_KEY = "new"'),
        ("frozen", "Frozen(0.1)", 'Frozen(0.1, "new")'),
    ],
)
def test_comments_counters_and_keys_do_not_count(module: Importer, what: str, old: str, new: str) -> None:
    before, after = (fingerprint(getattr(module(source), what)) for source in (BEFORE, BEFORE.replace(old, new)))
    assert old in BEFORE
    assert before == after


def test_lambdas_on_one_line_differ_and_using_a_function_changes_nothing(module: Importer) -> None:
    users = module(BEFORE)
    first, second = users.lambdas
    assert fingerprint(first).digest != fingerprint(second).digest
    used = users.tries, users.model
    before = list(map(fingerprint, used))
    for _ in range(100):  # Python rewrites the bytecode of what is called often, and the model counts its calls
        assert [function("yz") for function in used] == ["y", "yz"]
    assert list(map(fingerprint, used)) == before


def test_the_digest_is_the_same_in_every_process(module: Importer) -> None:
    names = [
        "ask",
        "knows",
        "closed",
        "cached",
        "tries",
        "model",
        "bound",
        "part",
        "data",
        "later",
        "frozen",
        "decorated",
    ]
    code = (
        "import sys, users_own; from pcs_annotator.models.own import fingerprint as f\n"
        "print(*(f(getattr(users_own, name)).digest for name in sys.argv[1:]))"
    )
    users = module(BEFORE)
    mine = [fingerprint(getattr(users, name)).digest for name in names]
    path = os.pathsep.join(filter(None, [os.path.dirname(users.__file__), *sys.path]))
    for seed in "12":
        call = [sys.executable, "-c", code, *names]
        found = subprocess.run(call, env={"PYTHONHASHSEED": seed, "PYTHONPATH": path}, capture_output=True, check=True)
        assert found.stdout.decode().split() == mine


def test_a_function_without_a_source_counts_by_its_code() -> None:
    def made(source: str) -> str:
        names: dict[str, Any] = {}
        exec(source, names)
        return fingerprint(names["ask"]).digest

    one, again, other = map(made, ["ask = lambda text: 'a' + text"] * 2 + ["ask = lambda text: 'b' + text"])
    assert one == again != other


def test_what_cannot_be_seen_is_listed() -> None:
    client, weights = (text for text in ""), np.zeros(3)
    assert fingerprint(lambda text: client).unseen == ("generator",)
    assert fingerprint(len).unseen == ("builtins.len",)
    assert fingerprint(str.upper).unseen == ("builtins.str.upper",)
    assert not fingerprint(lambda text: weights).unseen
    lock = threading.Lock()
    assert not fingerprint(lambda text: lock).unseen


def test_arrays_count() -> None:
    def using(array: Any) -> Callable[[str], object]:
        return lambda text: array

    assert fingerprint(using(np.zeros(3))) == fingerprint(using(np.zeros(3)))
    assert fingerprint(using(np.zeros(3))) != fingerprint(using(np.ones(3)))
    assert fingerprint(using(np.array(["a"], object))) != fingerprint(using(np.array(["b"], object)))


def chat(**more: Any) -> ChatOpenAI:
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(**{"model": "gpt-4o-mini", "api_key": SecretStr("sk-one"), **more})


@pytest.mark.parametrize(
    "more",
    [
        {"temperature": 0.7},
        {"base_url": "http://127.0.0.1:1/v1"},
        {"model_kwargs": {"thoroughness": {"1": 5}}},
        {"extra_body": {"top_k": 3}},
        {"seed": 4},
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


def test_bound_settings_prompts_and_functions_of_a_chain_count() -> None:
    from langchain_core.prompts import ChatPromptTemplate

    prompts = [ChatPromptTemplate.from_template(f"{word} {{x}}") for word in ("Label", "Judge")]
    chains: list[Any] = [chat(), chat().bind(stop=["x"]), chat().bind(stop=["y"])]
    chains += [prompt | chat() for prompt in prompts] + [chat() | (lambda message: message.content)]
    chains += [chat().with_config(configurable={"heat": 1}), prompts[0] | chat(temperature=1)]
    assert len({fingerprint(chain).digest for chain in chains}) == len(chains)
    assert {unseen for chain in chains for unseen in fingerprint(chain).unseen} == set()


def test_a_model_of_langchain_opened_by_its_name_keeps_its_keys() -> None:
    from langchain_core.language_models.fake_chat_models import ParrotFakeChatModel

    model = LangChainModel(ParrotFakeChatModel(), by_name=True)
    assert identity_of(model) == model.name == "langchain:ParrotFakeChatModel"


TASK = Task("Which?", ["yes", "no"])


def ask(model: object, ledger: Path, **more: Any) -> int:
    """Ask about two texts and return the number of calls."""
    settings = CollectSettings(environment={})
    annotator = Annotator(model, name="mine", **more)
    items = [Item(id=text, text=text) for text in "xy"]
    votes = asyncio.run(collect(TASK, items, [annotator], ledger=ledger, settings=settings))
    assert votes.annotators == ("mine",)
    return settings.tally.calls


ANSWERS = "def model(text):\n    return 'yes'\n"


def test_an_edited_function_is_asked_again_and_an_unchanged_one_is_not(module: Importer, tmp_path: Path) -> None:
    edited = ANSWERS.replace("yes", "no")
    calls = [ask(module(source).model, tmp_path / "l.db") for source in (ANSWERS, ANSWERS, edited, ANSWERS)]
    assert calls == [2, 0, 2, 0]


REMEMBERS = """
SEEN = []
def model(text):
    SEEN.append(text)
    return 'yes'
"""


def test_a_function_that_fills_a_global_stays_the_same_model_and_that_is_said_once(
    module: Importer, tmp_path: Path
) -> None:
    model = module(REMEMBERS).model
    assert ask(model, tmp_path / "l.db") == 2
    with pytest.warns(PcsWarning, match=r"a value that .*model uses has changed .* set another version") as warned:
        assert [ask(model, tmp_path / "l.db") for _ in range(3)] == [0, 0, 0]
    assert len(warned) == 1
    assert ask(module(REMEMBERS).model, tmp_path / "l.db") == 0  # in another process


def test_a_version_decides_instead(module: Importer, tmp_path: Path) -> None:
    versions = [("1", ANSWERS), ("1", ANSWERS.replace("yes", "no")), ("2", ANSWERS)]
    calls = [ask(module(source).model, tmp_path / "l.db", version=version) for version, source in versions]
    assert calls == [2, 0, 2]
    assert ask("scripted:hash", tmp_path / "l.db") == 2
    assert ask("scripted:hash", tmp_path / "l.db", version="b") == 2


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


def test_what_cannot_be_seen_is_said_with_the_remedy(tmp_path: Path) -> None:
    opaque = (text for text in "")
    with pytest.warns(PcsWarning, match=r"generator changes.*version='2'"):
        ask(lambda text: "yes" if opaque else "no", tmp_path / "l.db")
    ask(lambda text: "yes" if opaque else "no", tmp_path / "m.db", version="1")


def test_a_version_stays_while_a_model_changes_what_it_uses(tmp_path: Path) -> None:
    seen: list[str] = []

    def model(text: str) -> str:
        seen.append(text)
        return "yes"

    assert ask(model, tmp_path / "l.db") == 2
    assert ask(model, tmp_path / "l.db", version="1") == 2
    assert ask(functools.partial(model), tmp_path / "l.db", version="1") == 0
