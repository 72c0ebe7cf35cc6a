"""`embedded:smollm2`: a real language model of 135 million weights in this process, without a key or a server.

It is small: it labels topics well, moods so-so, and hardly follows other instructions. Its worth is that everything can
be tried on one's own machine within a minute, as an honest stand-in for a larger model.

Why a forward pass of our own: measured in one run on two shared x86 cores, tweets of 29 tokens after an instruction of
20 (of 77 in brackets), it answered 12.2 (15.5) questions per second in float32; ctranslate2 6.9 (5.3) with the same
answers, as it cannot keep the beginning of a prompt in `forward_batch`, or 10.4 (9.8) with int8 and log-probabilities
off by 0.3 (0.2) on average; llama.cpp 1.9 to 2.4, and 4.3 in a quieter run against our 14.8. In onnxruntime only the
matrix products were timed: enough for 15.6 in float32 and 96 in int8, whose whole model and answers were not tried.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from pcs_annotator.asking.models.embedded_engine import CONTEXT_TOKENS
from pcs_annotator.asking.models.provider import provider
from pcs_annotator.asking.models.pull import Progress, pull, weights_of, weights_path
from pcs_annotator.core.chat import ChatModel, Reply, Request
from pcs_annotator.errors import ConfigError, MissingPackage

if TYPE_CHECKING:
    from pcs_annotator.asking.models.embedded_engine.prompts import Style

INSTALL = "pip install 'pcs-annotator[local]'"
NEEDED = ("tokenizers",)
STYLES: Mapping[str, Style] = {"chat": "chat", "plain": "plain"}
PRIORS = {"prior": True, "no-prior": False}


class EmbeddedModel:
    """A small model on the processor, fetched and loaded at the first question.

    Models of the same weights share them in memory, whatever their style. An answer does not depend on which other
    questions wait at the same time, nor on their order.

    Attributes:
        name: `embedded:smollm2`, with `/plain` and `/no-prior` where they differ from the default: other questions.
        style: `chat` asks in the model's own conversation template, `plain` has it go on with a text.
        prior: Whether what the model would answer about empty texts is taken off its answers.
        context_tokens: Tokens per question.
        can_constrain: True for choices; other constraints are refused.
        concurrency: How many questions should wait at once, so that batches are full.
    """

    can_constrain = True
    context_tokens = CONTEXT_TOKENS
    concurrency = 32

    def __init__(
        self,
        weights: str = "smollm2",
        *,
        style: Style = "chat",
        prior: bool = True,
        environment: Mapping[str, str] | None = None,
        progress: Progress | None = None,
        threads: int | None = None,
    ) -> None:
        self.weights = weights
        self.style: Style = style
        self.prior = prior
        self.progress = progress
        self.threads = threads
        self.name = f"embedded:{weights}" + ("/plain" if style == "plain" else "") + ("" if prior else "/no-prior")
        self._environment = environment

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    async def ask(self, request: Request) -> Reply:
        """Return the answer to one request."""
        # The engine needs optional packages.
        from pcs_annotator.asking.models.embedded_engine import runner

        started = perf_counter()
        running = runner.lease(self._key, self, self._fetch(), self.threads)
        reply = await running.ask(runner.Ask(request, self.style, prior=self.prior))
        return replace(reply, latency=perf_counter() - started)

    async def close(self) -> None:
        """Free the memory, if no other model uses the same weights; asking again loads them again."""
        from pcs_annotator.asking.models.embedded_engine import runner

        await asyncio.to_thread(runner.release, self._key, self)

    @property
    def _key(self) -> str:
        return str(weights_path(self.weights, self._environment))

    def _fetch(self) -> partial[Path]:
        return partial(pull, self.weights, self.progress, environment=self._environment)


@provider("embedded")
class EmbeddedProvider:
    """Opens `embedded:smollm2`, `embedded:smollm2/plain`, `embedded:smollm2/chat/no-prior` and the like."""

    def open(self, model: str, environment: Mapping[str, str]) -> ChatModel:
        """Return the model; a missing package is an error here, fetching and loading wait for the first question."""
        name, *options = model.split("/")
        weights_of(name)
        styles = [option for option in options if option in STYLES]
        priors = [option for option in options if option in PRIORS]
        if len(styles) > 1 or len(priors) > 1 or len(styles) + len(priors) != len(options):
            raise ConfigError(
                f"embedded:{model} is not understood: write embedded:{name}, and after it, each with a slash, "
                "chat or plain, prior or no-prior"
            )
        missing = [package for package in NEEDED if find_spec(package) is None]
        if missing:
            raise MissingPackage(f"embedded:{model} runs in this process and needs {' and '.join(missing)}: {INSTALL}")
        style = STYLES[styles[0]] if styles else "chat"
        prior = PRIORS[priors[0]] if priors else True
        return EmbeddedModel(name, style=style, prior=prior, environment=environment)
