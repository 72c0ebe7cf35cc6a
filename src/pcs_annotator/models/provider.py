"""Providers, such as `groq` in `groq:llama-3.1-8b-instant`: built-in or from a plug-in; keys, and what models share.

A package adds its own in `pyproject.toml`::

    [project.entry-points."pcs_annotator.models"]
    my-cloud = "my_package:MyProvider"

What looks like a key is never shown, stored or counted among a model's settings.
"""

import os
import re
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol, TypeVar
from weakref import WeakSet

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.base.registry import Registry
from pcs_annotator.core.chat import ChatModel


class Provider(Protocol):
    """Opens models by name."""

    def open(self, model: str, environment: Mapping[str, str]) -> ChatModel:
        """Return the model of this name, after the colon; a missing key is a `ConfigError`, and nothing is sent yet."""


_BUILT_IN = ("anthropic", "local.in_process", "objects", "openai", "scripted")
providers: Registry[Provider] = Registry(
    "model provider", "pcs_annotator.models", [f"pcs_annotator.models.{name}" for name in _BUILT_IN]
)
provider = providers.register  # decorator: register a provider class under a name
Open = Callable[[str, Mapping[str, str]], ChatModel]
T = TypeVar("T")


class Named:
    """Base of models, which show their names."""

    name: str

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


def opens(name: str) -> Callable[[Open], Open]:
    """Return a decorator that registers a function as what opens the models of a provider."""

    def decorate(function: Open) -> Open:
        providers.register(name)(lambda: SimpleNamespace(open=function))
        return function

    return decorate


_lock = threading.Lock()
_shared: dict[Hashable, tuple[Any, WeakSet[Any]]] = {}


def lease(key: Hashable, holder: object, make: Callable[[], T]) -> T:
    """Return what models share under a key, such as connections; it is kept until each holder has released it."""
    with _lock:
        if key not in _shared:
            _shared[key] = (make(), WeakSet())
        resource: T
        resource, holders = _shared[key]
        holders.add(holder)
        return resource


def release(key: Hashable, holder: object) -> Any | None:
    """Return what nobody holds any more, for the caller to close; None if others hold it, or the holder did not."""
    with _lock:
        holders = _shared[key][1] if key in _shared else WeakSet[Any]()
        if holder not in holders:
            return None
        holders.discard(holder)
        return None if holders else _shared.pop(key)[0]


class Environment(dict[str, str]):
    """The variables of the process and of a `.env` file, and which of them only the file has."""

    from_file: Mapping[str, str] = {}


class Unasked(dict[str, str]):
    """An environment in which keys may be missing, because its models are not asked: for planning."""


def unasked(environment: Mapping[str, str] | None) -> Unasked:
    """Return an environment for planning; None for that of the process and of `.env` in the working folder."""
    return Unasked(read_environment(Path.cwd()) if environment is None else environment)


def read_key(environment: Mapping[str, str], variables: Sequence[str], owner: str, *, required: bool = True) -> str:
    """Return the key from the first variable that is set; "" if none is, and none is required. Errors never show it."""
    for variable in variables:
        key = environment.get(variable, "").strip()
        if not key:
            continue
        # aiohttp would reject such a header with a message that shows the key.
        if not key.isascii() or not key.isprintable() or " " in key:
            raise ConfigError(f"{variable} contains spaces or characters that keys do not have: copy the key again")
        return key
    if not required or isinstance(environment, Unasked):
        return ""
    others = f" (or {', '.join(variables[1:])})" if len(variables) > 1 else ""
    raise ConfigError(
        f"{owner} needs a key: set {variables[0]}{others} in the environment or in a .env file in the working folder"
    )


LINE = re.compile(
    r"""\s*(?:export\s+)?
        (?P<name>[A-Za-z_][A-Za-z0-9_.]*)\s*=\s*
        (?:'(?P<single>[^']*)'|"(?P<double>[^"]*)"|(?P<bare>[^\s'"\#](?:[^\n]*?[^\s])??)?)
        \s*(?:(?<=[\s'"=])\#.*)?$""",
    re.VERBOSE,
)


def read_environment(folder: Path) -> dict[str, str]:
    """Return the variables of the process and of `folder/.env`, if it exists; those of the process take precedence."""
    path, variables = folder / ".env", dict[str, str]()
    try:
        variables = parse_environment(path.read_text(encoding="utf-8-sig"), str(path))
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        pass
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read as UTF-8 text: {type(error).__name__}; fix or remove it") from None
    from_file = {name: value for name, value in variables.items() if name not in os.environ}
    environment = Environment({**from_file, **os.environ})
    environment.from_file = from_file
    return environment


def check_same_source(environment: Mapping[str, str], url: str, keys: Sequence[str]) -> None:
    """Raise if a base URL comes from a `.env` file and the key from elsewhere: the file may be in downloaded data."""
    from_file = getattr(environment, "from_file", {})
    key = next((name for name in keys if environment.get(name, "").strip()), None)
    if url in from_file and key is not None and key not in from_file:
        raise ConfigError(
            f"{url} is in a .env file, and {key} is not: nothing was sent. If the address is yours, put {key} into the "
            f"same file, or set {url} where {key} is set"
        )


def parse_environment(text: str, source: str = ".env") -> dict[str, str]:
    """Return the variables of a `.env` text: `KEY=value` lines, quotes, `export`, comments."""
    variables: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = LINE.match(line)
        if match is None:
            problem = "not of the form KEY=value; put values that contain quotes in quotes"  # never the line: a key
            raise ConfigError(f"{source}, line {number}: {problem}")
        variables[match["name"]] = match["single"] or match["double"] or match["bare"] or ""
    return variables


KEY_LIKE = re.compile(r"\b(?:sk|gsk|hf|pk|xai|key)[-_][\w*.\-]{6,}|\bAIza[\w*.\-]{10,}|(?<=Bearer )\S+")
CERTAIN_KEY = re.compile(r"\b(?:gsk_|hf_|xai-|sk-(?=[\w-]*\d))[\w-]{16,}|\bAIza[\w-]{20,}|(?<=Bearer )\S{16,}")
_HIDDEN = re.compile(rf"{CERTAIN_KEY.pattern}|[^/\s]+(?=@)|(?<=\?).*")
_SECRET_NAME = re.compile(
    r"(?:api|access|account|admin|auth|master|private|secret|service|subscription)key$"
    r"|^(?:api|access|auth|bearer|hf|hub|id|refresh|sas|security|session|x)*token$|hubapitoken$"
    r"|secret|passw|passphrase|credential|authorization|cookie|^bearer$|jwt$"
)


def is_secret_name(name: str) -> bool:
    """Return whether something with this name is a key or a password."""
    return _SECRET_NAME.search(re.sub(r"[^a-z]", "", name.lower())) is not None


def hide_keys(address: str) -> str:
    """Return a URL or a model's name as it may be shown."""
    return _HIDDEN.sub("…", address)


def refuse_key(address: str, source: str, remedy: str = "set PCS_API_KEY instead") -> None:
    """Raise if a URL or a model's name has a key, a password or parameters in it; the message never shows them."""
    host = address.partition("://")[2].partition("/")[0]
    if "@" in host or "?" in address or CERTAIN_KEY.search(address):
        raise ConfigError(
            f"{source} has a key, a password or parameters (after ?) in it, which would be stored with every answer: "
            f"remove them and {remedy}"
        )
