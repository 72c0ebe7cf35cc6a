"""No regular expression of ours takes long on any text: each is fed with what makes backtracking ones slow."""

import ast
import importlib
import inspect
import pkgutil
import re
import signal
from collections.abc import Callable, Iterator
from types import FrameType, ModuleType
from typing import NamedTuple

import pytest

import pcs_annotator

SIZE = 100_000
# Of processor time, so that a busy machine does not matter: linear patterns need a hundredth, quadratic ones minutes.
MOST_SECONDS = 1.0
PIECES = (
    "a@", "x", "X", " ", "\n", "7", "'", '"', "“", "(", "[", "{", "<", "-", ".", "a.", "a-", "a ", "A ", "A.", "@",
    "#", "/", "a/", "*", "_", ",", "7,", "7.", "7 ", "!", "no ", "a'", "\\", "=", "|", "<label>", "a:", ": ", "$", " '",
    '" ', "é", "你", "http://", "www.a.com/", "<a", "<think>", "```", "-1", "the ", "not a, ", "\\n", "f(,", " \n",
)  # fmt: skip
METHODS: dict[str, Callable[[re.Pattern[str], str], object]] = {
    "finditer": lambda pattern, text: sum(1 for _ in pattern.finditer(text)),
    "search": re.Pattern.search,
    "match": re.Pattern.match,
    "fullmatch": re.Pattern.fullmatch,
}
ONE_AFTER_ANOTHER = ("findall", "finditer", "sub", "subn", "split")
# What reads no text of anybody's: settings, and parts of a text whose length is limited where they are cut out.
SHORT = {
    "core.ledger_address._PASSWORD": "the address of a ledger",
    "core.numbers._RANGE": "the range of a number, in the settings",
    "models.provider._HIDDEN": "the address of a model",
    "relations.rules._OPENS": "12 characters before a word",
    "relations.rewrite_in_reply._SPEAKER": "one mark of a template",
}


class Use(NamedTuple):
    """A pattern, where it is, and how it is used."""

    where: str
    pattern: re.Pattern[str]
    method: str


def modules() -> Iterator[ModuleType]:
    for module in pkgutil.walk_packages(pcs_annotator.__path__, "pcs_annotator."):
        if not module.name.endswith(("__main__", "local.transformers")):
            yield importlib.import_module(module.name)


def uses() -> Iterator[Use]:
    """Yield every pattern of a module, and those that stand in a call such as `re.sub`, with the methods called."""
    sources = {module: inspect.getsource(module) for module in modules()}
    everything = "\n".join(sources.values())
    for module, source in sources.items():
        where = module.__name__.removeprefix("pcs_annotator.")
        for name, value in vars(module).items():
            if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
                called = set(re.findall(rf"\b{name}\.(\w+)\(", source if name.startswith("_") else everything))
                for method in sorted({_kind(method) for method in called} & METHODS.keys()) or ["match"]:
                    yield Use(f"{where}.{name}", value, method)
        for call in ast.walk(ast.parse(source)):
            if isinstance(call, ast.Call) and ast.unparse(call.func).startswith("re."):
                yield from _written(module, call, where)


def _kind(method: str) -> str:
    return "finditer" if method in ONE_AFTER_ANOTHER else method


def _written(module: ModuleType, call: ast.Call, where: str) -> Iterator[Use]:
    """Yield the pattern of a call; names that only the function knows are replaced by a word."""
    method = _kind(ast.unparse(call.func).removeprefix("re."))
    flags = [keyword.value for keyword in call.keywords if keyword.arg == "flags"] or call.args[2:]
    flag = next((one for one in map(ast.unparse, flags) if "re." in one), "0")
    known = {"name": "stance", "names": "a|b", "key": "k", **vars(module)}
    try:
        written = eval(ast.unparse(call.args[0]), known) if method in METHODS else None
    except (NameError, TypeError):  # made of what is not written here
        return
    if isinstance(written, str):
        yield Use(f"{where}:{ast.unparse(call.args[0])[:40]}", re.compile(written, eval(flag, known)), method)


class TooSlow(Exception):
    """A pattern took longer than any linear one."""


def _stop(signal_number: int, frame: FrameType | None) -> None:
    raise TooSlow


@pytest.fixture
def impatient() -> Iterator[None]:
    before = signal.signal(signal.SIGVTALRM, _stop)
    yield
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, before)


def slow_pieces(use: Use, size: int = SIZE) -> Iterator[str]:
    """Yield the pieces that make a pattern slow when a text repeats them; the last character makes a match fail."""
    for piece in PIECES:
        text = piece * (size // len(piece)) + "\0"
        signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
        try:
            METHODS[use.method](use.pattern, text)
        except TooSlow:
            yield piece
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)


@pytest.mark.usefixtures("impatient")
def test_a_quadratic_pattern_is_noticed() -> None:
    assert list(slow_pieces(Use("here", re.compile(r"\s*[;|]\s*"), "finditer"))) == [" ", "\n", " \n"]


@pytest.mark.system
@pytest.mark.usefixtures("impatient")
def test_every_pattern_reads_100_kb_of_anything_in_no_time() -> None:
    patterns = {(use.pattern, use.method): use for use in uses() if use.where not in SHORT}
    assert len(patterns) > 150
    slow = {f"{use.where}.{use.method}": piece for use in patterns.values() if (piece := next(slow_pieces(use), ""))}
    assert slow == {}
