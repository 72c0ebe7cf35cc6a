"""`transformers:folder-or-repo`: causal models of the Hugging Face format in this process, on a GPU if there is one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, partial
from importlib.util import find_spec
from time import perf_counter

from pcs_annotator.base.errors import ConfigError, MissingPackage
from pcs_annotator.core.chat import ChatModel, Reply, Request
from pcs_annotator.models.batching import lease, release
from pcs_annotator.models.provider import provider
from pcs_annotator.models.thinking import ask_with_room, with_room
from pcs_annotator.models.transformers_engine import INSTALL
from pcs_annotator.models.transformers_engine.files import ModelFiles, download, find_files

NEEDED = ("torch", "transformers")
DTYPES = ("float32", "bfloat16", "float16")


class TransformersModel:
    """A causal model that runs in this process, downloaded if needed and loaded at the first question.

    Questions that wait at the same time are answered in batches; the log-probabilities of all labels come from one
    forward pass. Models with the same files on the same device share them in memory.

    Attributes:
        name: `transformers:` and the model's name on the hub, or the name of its folder.
        files: Where its files are.
        thinking_tokens: Room for thinking, added to the limit of every request; 0 until a reply shows thinking.
        can_constrain: True for choices; other constraints are refused.
        can_grade: True.
        in_process: True.
    """

    can_constrain = True
    can_grade = True
    in_process = True

    def __init__(self, files: ModelFiles, environment: Mapping[str, str] | None = None) -> None:
        self.files = files
        self.name = f"transformers:{files.repo or files.folder.resolve().name}"
        self.thinking_tokens = 0
        self._environment = dict(environment or {})
        self._device = self._environment.get("PCS_DEVICE", "").strip() or None
        self._dtype = self._environment.get("PCS_DTYPE", "").strip() or None
        if self._dtype is not None and self._dtype not in DTYPES:
            raise ConfigError(f"PCS_DTYPE is {self._dtype!r}: set it to one of {', '.join(DTYPES)}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.files.folder)!r})"

    @cached_property
    def identity(self) -> str:
        """Return the name with the version of the files, so that other weights count as another model."""
        return f"{self.name}@{self.files.version}"

    @cached_property
    def context_tokens(self) -> int | None:
        """Return the tokens of a question and its answer together; None if the files do not say."""
        return self.files.context_tokens

    async def ask(self, request: Request) -> Reply:
        """Return the answer to one request, asked once, or again with room to think."""
        return await ask_with_room(self, partial(self._ask, request))

    async def _ask(self, request: Request) -> Reply:
        # torch takes seconds to import
        from pcs_annotator.models.transformers_engine.runner import Placement, Runner

        started = perf_counter()
        fetch = partial(download, self.files, self._environment)
        placement = Placement(self._device, self._dtype)
        running = lease(self._key, self, partial(Runner, self.name, fetch, placement, self.context_tokens))
        reply = await running.ask(with_room(request, self.thinking_tokens))
        return replace(reply, latency=perf_counter() - started)

    async def close(self) -> None:
        """Free the memory unless another model uses the same weights; asking again loads them again."""
        await asyncio.to_thread(release, self._key, self)

    @property
    def _key(self) -> object:
        return "transformers", str(self.files.folder.resolve()), self._device, self._dtype


@provider("transformers")
class TransformersProvider:
    """Opens `transformers:folder` and `transformers:repo`, such as `transformers:Qwen/Qwen3-0.6B`."""

    def open(self, model: str, environment: Mapping[str, str]) -> ChatModel:
        """Return the model; raises if a package or the model is missing. It is loaded at the first question."""
        if any(find_spec(package) is None for package in NEEDED):
            raise MissingPackage(
                f"transformers:{model} runs in this process and needs {' and '.join(NEEDED)}: {INSTALL}"
            )
        return TransformersModel(find_files(model, environment), environment)
