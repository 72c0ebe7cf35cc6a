"""Providers: names in front of the colon in `groq:llama-3.1-8b-instant`, built-in or from a plug-in.

A package adds its own in `pyproject.toml`::

    [project.entry-points."pcs_annotator.models"]
    my-cloud = "my_package:MyProvider"
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from pcs_annotator.asking.models.base import ChatModel
from pcs_annotator.errors import ConfigError
from pcs_annotator.registry import Registry


class Provider(Protocol):
    """Opens models by name."""

    def open(self, model: str, environment: Mapping[str, str]) -> ChatModel:
        """Return the model, ready to be asked; nothing is sent yet.

        Args:
            model: What stands after the colon.
            environment: Keys and base URLs; a missing key is a `ConfigError` here and not at the first call.
        """
        ...


providers: Registry[Provider] = Registry("model provider", "pcs_annotator.models")
provider = providers.register
"""Decorator: make a class of providers known by a name."""


def read_key(environment: Mapping[str, str], variables: Sequence[str], owner: str, *, required: bool = True) -> str:
    """Return the key from the first variable that is set, or "" where none is needed.

    Raises:
        ConfigError: A key is needed and no variable has one, or it can be no key. The key itself is never shown.
    """
    for variable in variables:
        key = environment.get(variable, "").strip()
        if not key:
            continue
        # aiohttp would refuse such a header with a message that shows the key.
        if not key.isascii() or not key.isprintable() or " " in key:
            raise ConfigError(f"{variable} holds spaces or characters that no key has: copy the key again")
        return key
    if not required:
        return ""
    others = f" (or {', '.join(variables[1:])})" if len(variables) > 1 else ""
    raise ConfigError(
        f"{owner} needs a key: set {variables[0]}{others} in the environment or in a .env file in the working folder"
    )
