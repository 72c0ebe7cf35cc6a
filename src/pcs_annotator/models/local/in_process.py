"""`embedded:smollm2` and `transformers:folder-or-repo`: models in this process, downloaded and loaded when first asked.

The embedded model has 135 million weights and needs neither a key nor a server. It is small: it labels topics well and
moods moderately, and hardly follows other instructions. With it, everything can be tried on any machine.
"""

import asyncio
from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from importlib.util import find_spec
from time import perf_counter

from pcs_annotator.base.errors import ConfigError, MissingPackage
from pcs_annotator.core.chat import ChatModel, Reply, Request
from pcs_annotator.models.local.download import ModelFiles, download, find_files, pull, weights_of, weights_path
from pcs_annotator.models.local.runner import Runner, Style
from pcs_annotator.models.provider import Named, lease, opens, release
from pcs_annotator.models.reasoning import ask_with_room, with_room

# The embedded model was trained on 8,192 tokens; long before that, attention in numpy gets slow and answers get poor.
CONTEXT_TOKENS = 2048
BATCH = 16
DTYPES = ("float32", "bfloat16", "float16")


class LocalModel(Named):
    """Base of models in this process; those with the same weights share them in memory, and answer in batches.

    Subclasses define `_key` and `_runner`.
    """

    can_constrain = True  # to choices; other constraints are refused
    can_grade = True  # choices are scored as a whole
    in_process = True
    may_think = True
    style: Style = "chat"
    thinking_tokens = 0  # room for thinking, added to the limit of every request; 0 until a reply shows thinking
    _key: Hashable  # of the weights

    async def ask(self, request: Request) -> Reply:
        """Return the answer to one request, asked once, or again with room to think."""
        return await ask_with_room(self, partial(self._ask, request)) if self.may_think else await self._ask(request)

    async def _ask(self, request: Request) -> Reply:
        started = perf_counter()
        runner = lease(self._key, self, self._runner)
        reply = await runner.ask(with_room(request, self.thinking_tokens), self.style)
        return replace(reply, latency=perf_counter() - started)

    async def close(self) -> None:
        """Free the memory unless another model uses the same weights; asking again loads them again."""
        runner = release(self._key, self)
        if runner is not None:
            await asyncio.to_thread(runner.close)

    def _runner(self) -> Runner:
        raise NotImplementedError


class EmbeddedModel(LocalModel):
    """A small model that runs on the CPU; an answer does not depend on the other questions that wait, nor their order.

    The style `chat` uses the model's own conversation template, `plain` asks it to continue a text. The model's bias,
    measured on empty texts, is subtracted from its answers.
    """

    context_tokens = CONTEXT_TOKENS
    may_think = False
    without_examples = True  # it repeats their labels

    def __init__(
        self,
        weights: str = "smollm2",
        *,
        style: Style = "chat",
        environment: Mapping[str, str] | None = None,
        threads: int | None = None,
    ) -> None:
        self.weights, self.style, self.threads = weights, style, threads
        self.name = f"embedded:{weights}" + ("/plain" if style == "plain" else "")
        self._environment = environment
        self._key = str(weights_path(weights, environment))

    def _runner(self) -> Runner:
        # The engine needs optional packages.
        from pcs_annotator.models.local.embedded import NumpyEngine, processors

        return Runner(
            f"embedded:{self.weights}",
            lambda: NumpyEngine(pull(self.weights, environment=self._environment)),
            context_tokens=CONTEXT_TOKENS,
            threads=self.threads or processors(),
            size=BATCH,
        )


class TransformersModel(LocalModel):
    """A causal model of the Hugging Face format, on a GPU if there is one."""

    def __init__(self, files: ModelFiles, environment: Mapping[str, str] | None = None) -> None:
        self.files, self.context_tokens = files, files.context_tokens
        self.name = f"transformers:{files.repo or files.folder.resolve().name}"
        self._environment = dict(environment or {})
        self._device = self._environment.get("PCS_DEVICE", "").strip() or None
        self._dtype = self._environment.get("PCS_DTYPE", "").strip() or None
        if self._dtype is not None and self._dtype not in DTYPES:
            raise ConfigError(f"PCS_DTYPE is {self._dtype!r}: set it to one of {', '.join(DTYPES)}")
        self._key = "transformers", str(files.folder.resolve()), self._device, self._dtype

    @cached_property
    def identity(self) -> str:
        """The name with the version of the files, so that other weights count as another model."""
        return f"{self.name}@{self.files.version}"

    def _runner(self) -> Runner:
        # torch takes seconds to import
        from pcs_annotator.models.local.transformers import TorchEngine, load_engine

        def load() -> TorchEngine:
            return load_engine(download(self.files, self._environment), self._device, self._dtype)

        return Runner(self.name, load, context_tokens=self.context_tokens)


@opens("embedded")
def open_embedded(model: str, environment: Mapping[str, str]) -> ChatModel:
    """Return `embedded:smollm2`, or `embedded:smollm2/plain`."""
    name, slash, style = model.partition("/")
    weights_of(name)
    if slash and style != "plain":
        raise ConfigError(f"embedded:{model} is not a valid name: write embedded:{name} or embedded:{name}/plain")
    require(f"embedded:{model}", ("tokenizers",), "local")
    return EmbeddedModel(name, style="plain" if slash else "chat", environment=environment)


@opens("transformers")
def open_transformers(model: str, environment: Mapping[str, str]) -> ChatModel:
    """Return the model of a folder or a name on the hub, loaded at the first question; what is missing is an error."""
    require(f"transformers:{model}", ("torch", "transformers"), "transformers")
    return TransformersModel(find_files(model, environment), environment)


def require(spec: str, packages: tuple[str, ...], extra: str) -> None:
    """Raise if a package is not installed that a model in this process needs."""
    if any(find_spec(package) is None for package in packages):
        needed = f"{spec} runs in this process and needs {' and '.join(packages)}"
        raise MissingPackage(f"{needed}: pip install 'perceived-confidence[{extra}]'")
