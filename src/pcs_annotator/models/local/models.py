"""`embedded:smollm2` and `transformers:folder-or-repo`: models in this process, downloaded and loaded when first asked.

The embedded model has 135 million weights and needs neither a key nor a server. It is small: it labels topics well and
moods moderately, and hardly follows other instructions. With it, everything can be tried on any machine within a
minute, without a larger model.

Why our own forward pass: measured in one run on two shared x86 cores, with tweets of 29 tokens after an instruction of
20 tokens (77 in brackets), it answered 12.2 (15.5) questions per second in float32; ctranslate2 answered 6.9 (5.3) with
the same answers, because `forward_batch` cannot cache the start of a prompt, or 10.4 (9.8) with int8 and
log-probabilities off by 0.3 (0.2) on average; llama.cpp 1.9 to 2.4, and 4.3 in a quieter run against our 14.8. With
onnxruntime only the matrix products were timed: enough for 15.6 in float32 and 96 in int8; the whole model and its
answers were not tried.
"""

import asyncio
from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from importlib.util import find_spec
from time import perf_counter

from pcs_annotator.base.errors import ConfigError, MissingPackage
from pcs_annotator.core.chat import ChatModel, Reply, Request
from pcs_annotator.models.local.runner import Manner, Runner, Style
from pcs_annotator.models.local.weights import ModelFiles, download, find_files, pull, weights_of, weights_path
from pcs_annotator.models.provider import opens
from pcs_annotator.models.sharing import lease, release
from pcs_annotator.models.thinking import ask_with_room, with_room

# The embedded model was trained on 8,192 tokens; long before that, attention in numpy gets slow and answers get poor.
CONTEXT_TOKENS = 2048
BATCH = 16
TORCH = ("torch", "transformers")
DTYPES = ("float32", "bfloat16", "float16")


class LocalModel:
    """A model that runs in this process, downloaded if needed and loaded at the first question.

    Questions that wait at the same time are answered in batches; the log-probabilities of all labels come from one
    forward pass. Models with the same weights share them in memory.
    """

    can_constrain = True  # to choices; other constraints are refused
    can_grade = True  # choices are scored as a whole
    in_process = True
    may_think = True
    name: str
    manner = Manner()
    thinking_tokens = 0  # room for thinking, added to the limit of every request; 0 until a reply shows thinking

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    async def ask(self, request: Request) -> Reply:
        """Return the answer to one request, asked once, or again with room to think."""
        return await ask_with_room(self, partial(self._ask, request)) if self.may_think else await self._ask(request)

    async def _ask(self, request: Request) -> Reply:
        started = perf_counter()
        running = lease(self._key, self, self._runner)
        reply = await running.ask(with_room(request, self.thinking_tokens), self.manner)
        return replace(reply, latency=perf_counter() - started)

    async def close(self) -> None:
        """Free the memory unless another model uses the same weights; asking again loads them again."""
        runner = release(self._key, self)
        if runner is not None:
            await asyncio.to_thread(runner.close)

    @property
    def _key(self) -> Hashable:
        raise NotImplementedError

    def _runner(self) -> Runner:
        raise NotImplementedError


class EmbeddedModel(LocalModel):
    """A small model that runs on the CPU; an answer does not depend on the other questions that wait, nor their order.

    The style `chat` uses the model's own conversation template, `plain` asks it to continue a text. With `prior`, the
    model's bias, measured on empty texts, is subtracted from its answers.
    """

    context_tokens = CONTEXT_TOKENS
    may_think = False
    without_examples = True  # it repeats their labels

    def __init__(
        self,
        weights: str = "smollm2",
        *,
        style: Style = "chat",
        prior: bool = True,
        environment: Mapping[str, str] | None = None,
        threads: int | None = None,
    ) -> None:
        self.weights = weights
        self.manner = Manner(style, prior)
        self.threads = threads
        self.name = f"embedded:{weights}" + ("/plain" if style == "plain" else "") + ("" if prior else "/no-prior")
        self._environment = environment

    @property
    def _key(self) -> Hashable:
        return str(weights_path(self.weights, self._environment))

    def _runner(self) -> Runner:
        # The engine needs optional packages.
        from pcs_annotator.models.local.numpy_engine import NumpyEngine, processors

        def load() -> NumpyEngine:
            return NumpyEngine(pull(self.weights, environment=self._environment))

        return Runner(
            f"embedded:{self.weights}",
            load,
            context_tokens=CONTEXT_TOKENS,
            threads=self.threads or processors(),
            size=BATCH,
        )


class TransformersModel(LocalModel):
    """A causal model of the Hugging Face format, on a GPU if there is one."""

    def __init__(self, files: ModelFiles, environment: Mapping[str, str] | None = None) -> None:
        self.files = files
        self.name = f"transformers:{files.repo or files.folder.resolve().name}"
        self._environment = dict(environment or {})
        self._device = self._environment.get("PCS_DEVICE", "").strip() or None
        self._dtype = self._environment.get("PCS_DTYPE", "").strip() or None
        if self._dtype is not None and self._dtype not in DTYPES:
            raise ConfigError(f"PCS_DTYPE is {self._dtype!r}: set it to one of {', '.join(DTYPES)}")

    @cached_property
    def identity(self) -> str:
        """Return the name with the version of the files, so that other weights count as another model."""
        return f"{self.name}@{self.files.version}"

    @cached_property
    def context_tokens(self) -> int | None:
        """Return the tokens of a question and its answer together; None if the files do not say."""
        return self.files.context_tokens

    @property
    def _key(self) -> Hashable:
        return "transformers", str(self.files.folder.resolve()), self._device, self._dtype

    def _runner(self) -> Runner:
        # torch takes seconds to import
        from pcs_annotator.models.local.torch_engine import TorchEngine, load_engine

        def load() -> TorchEngine:
            return load_engine(download(self.files, self._environment), self._device, self._dtype)

        return Runner(self.name, load, context_tokens=self.context_tokens)


STYLES, PRIORS = ("chat", "plain"), ("prior", "no-prior")


@opens("embedded")
def open_embedded(model: str, environment: Mapping[str, str]) -> ChatModel:
    """Return `embedded:smollm2`, with options as in `embedded:smollm2/plain` or `embedded:smollm2/chat/no-prior`.

    A missing package is an error. Weights are downloaded and loaded at the first question.
    """
    name, *options = model.split("/")
    weights_of(name)
    if any(one not in STYLES + PRIORS for one in options) or any(
        sum(one in pair for one in options) > 1 for pair in (STYLES, PRIORS)
    ):
        raise ConfigError(
            f"embedded:{model} is not a valid name: write embedded:{name}, then optionally /chat or /plain, "
            "then optionally /prior or /no-prior"
        )
    require(f"embedded:{model}", ("tokenizers",), "local")
    style: Style = "plain" if "plain" in options else "chat"
    return EmbeddedModel(name, style=style, prior="no-prior" not in options, environment=environment)


@opens("transformers")
def open_transformers(model: str, environment: Mapping[str, str]) -> ChatModel:
    """Return the model of a folder or a name on the hub, loaded at the first question; what is missing is an error."""
    require(f"transformers:{model}", TORCH, "transformers")
    return TransformersModel(find_files(model, environment), environment)


def require(spec: str, packages: tuple[str, ...], extra: str) -> None:
    """Raise if a package is not installed that a model in this process needs."""
    if any(find_spec(package) is None for package in packages):
        needed = " and ".join(packages)
        raise MissingPackage(
            f"{spec} runs in this process and needs {needed}: pip install 'perceived-confidence[{extra}]'"
        )
