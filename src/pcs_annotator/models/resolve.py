"""Opens a model from a name, a URL, an object or a function."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeGuard

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.base.text import did_you_mean
from pcs_annotator.core.chat import ChatModel
from pcs_annotator.models.catalog import provider_of
from pcs_annotator.models.objects import FunctionModel, LangChainModel
from pcs_annotator.models.openai import open_url
from pcs_annotator.models.provider import hide_keys, providers, read_environment, refuse_key


def resolve_model(spec: object, environment: Mapping[str, str] | None = None) -> ChatModel:
    """Return the model for a spec; nothing is sent yet, but a missing key or package is an error.

    A spec is a `ChatModel` (returned unchanged), `provider:model`, `http://host:port/v1#model`, one of the paper's
    bare names such as `llama3-8b-8192`, a LangChain chat model, or a function of a text or of messages. `environment`
    has keys and base URLs; None for those of the process and of `.env` in the working folder.
    """
    if isinstance(spec, str):
        return _resolve_name(spec.strip(), read_environment(Path.cwd()) if environment is None else environment)
    if is_chat_model(spec):
        return spec
    if not isinstance(spec, type) and callable(getattr(spec, "ainvoke", None)):  # LangChain itself is not imported
        return LangChainModel(spec)
    if callable(spec) and not isinstance(spec, type):
        return FunctionModel(spec)
    missing = [name for name in _NEEDED if not hasattr(spec, name)]
    hint = _POSSIBLE if "ask" in missing else f"it has no {', '.join(missing)}, which a chat model needs"
    hint = "pass an instance, not the class" if isinstance(spec, type) else hint
    raise ConfigError(f"{spec!r:.100} is not a model: {hint.format(', '.join(providers.names()))}")


class KnownAs:
    """A model that the ledger knows by another identity than its own."""

    def __init__(self, identity: str, model: ChatModel) -> None:
        self.identity, self._model = identity, model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


_POSSIBLE = (
    "write provider:model with one of the providers {}; http://host:port/v1#model for any server that speaks the "
    "OpenAI protocol; or pass a LangChain chat model or a function"
)
_NEEDED = ("ask", "close", "name", "context_tokens", "can_constrain", "can_grade")


def is_chat_model(thing: object) -> TypeGuard[ChatModel]:
    """Return whether an object implements `ChatModel`."""
    return not isinstance(thing, type) and all(hasattr(thing, name) for name in _NEEDED)


def _resolve_name(spec: str, environment: Mapping[str, str]) -> ChatModel:
    refuse_key(spec, "a model's name")
    if spec.lower().startswith(("http://", "https://")):
        return open_url(spec, environment)
    prefix, colon, model = spec.partition(":")
    if colon and providers.has(prefix):
        if not model.strip():
            raise ConfigError(f"{spec!r} names no model: write {prefix}:model")
        return providers.create(prefix).open(model.strip(), environment)
    guessed = provider_of(spec)
    if guessed is not None:
        return providers.create(guessed).open(spec, environment)
    again = "; a function or an object is not kept in a run folder: pass it again, load_run(folder, models=[…])"
    hint = did_you_mean(prefix, providers.names()) + _POSSIBLE.format(", ".join(providers.names()))
    raise ConfigError(f"no model is called {hide_keys(spec)!r}: {hint}{'' if colon else again}")
