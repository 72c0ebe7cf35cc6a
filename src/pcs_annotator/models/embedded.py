"""`embedded:smollm2`: a real language model with 135 million weights in this process, without a key or a server.

It is small: it labels topics well and moods moderately, and hardly follows other instructions. With it, everything can
be tried on any machine within a minute, without a larger model.

Why our own forward pass: measured in one run on two shared x86 cores, with tweets of 29 tokens after an instruction of
20 tokens (77 in brackets), it answered 12.2 (15.5) questions per second in float32; ctranslate2 answered 6.9 (5.3) with
the same answers, because `forward_batch` cannot cache the start of a prompt, or 10.4 (9.8) with int8 and
log-probabilities off by 0.3 (0.2) on average; llama.cpp 1.9 to 2.4, and 4.3 in a quieter run against our 14.8. With
onnxruntime only the matrix products were timed: enough for 15.6 in float32 and 96 in int8; the whole model and its
answers were not tried.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter

from pcs_annotator.base.errors import ConfigError, MissingPackage
from pcs_annotator.core.chat import ChatModel, Reply, Request
from pcs_annotator.models.batching import lease, release
from pcs_annotator.models.embedded_engine import CONTEXT_TOKENS, INSTALL, Style
from pcs_annotator.models.provider import provider
from pcs_annotator.models.pull import Progress, pull, weights_of, weights_path

STYLES: Mapping[str, Style] = {"chat": "chat", "plain": "plain"}
PRIORS = {"prior": True, "no-prior": False}


class EmbeddedModel:
    """A small model that runs on the CPU, downloaded and loaded at the first question.

    Models with the same weights share them in memory, whatever their style. An answer does not depend on the other
    questions that wait at the same time, nor on their order.

    Attributes:
        name: `embedded:smollm2`, with `/plain` and `/no-prior` where they differ from the default.
        style: `chat` uses the model's own conversation template, `plain` asks it to continue a text.
        prior: Whether the model's bias, measured on empty texts, is subtracted from its answers.
        context_tokens: Tokens per question.
        can_constrain: True for choices; other constraints are refused.
        can_grade: True: choices are scored as a whole.
        in_process: True.
    """

    can_constrain = True
    can_grade = True
    in_process = True
    context_tokens = CONTEXT_TOKENS

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
        from pcs_annotator.models.embedded_engine import runner

        started = perf_counter()
        running = lease(self._key, self, partial(runner.Runner, self._fetch(), self.threads))
        reply = await running.ask(runner.Ask(request, self.style, prior=self.prior))
        return replace(reply, latency=perf_counter() - started)

    async def close(self) -> None:
        """Free the memory unless another model uses the same weights; asking again loads them again."""
        await asyncio.to_thread(release, self._key, self)

    @property
    def _key(self) -> str:
        return str(weights_path(self.weights, self._environment))

    def _fetch(self) -> partial[Path]:
        return partial(pull, self.weights, self.progress, environment=self._environment)


@provider("embedded")
class EmbeddedProvider:
    """Opens `embedded:smollm2`, with options such as `embedded:smollm2/plain` or `embedded:smollm2/chat/no-prior`."""

    def open(self, model: str, environment: Mapping[str, str]) -> ChatModel:
        """Return the model; raises if a package is missing. Weights are downloaded and loaded at the first question."""
        name, *options = model.split("/")
        weights_of(name)
        styles = [option for option in options if option in STYLES]
        priors = [option for option in options if option in PRIORS]
        if len(styles) > 1 or len(priors) > 1 or len(styles) + len(priors) != len(options):
            raise ConfigError(
                f"embedded:{model} is not a valid name: write embedded:{name}, then optionally /chat or /plain, "
                "then optionally /prior or /no-prior"
            )
        if find_spec("tokenizers") is None:
            raise MissingPackage(f"embedded:{model} runs in this process and needs tokenizers: {INSTALL}")
        style = STYLES[styles[0]] if styles else "chat"
        prior = PRIORS[priors[0]] if priors else True
        return EmbeddedModel(name, style=style, prior=prior, environment=environment)
