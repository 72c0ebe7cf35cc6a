"""A loaded model and its worker thread, which answers the questions that wait in batches."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils.logging import disable_progress_bar, enable_progress_bar, is_progress_bar_enabled

from pcs_annotator.base.errors import BadRequest, ConfigError, Unanswerable
from pcs_annotator.base.text import first_line
from pcs_annotator.core.chat import Reply, Request
from pcs_annotator.models.batching import Batcher, BatchJob
from pcs_annotator.models.label_tree import LabelTree, Prompt, label_reply
from pcs_annotator.models.transformers_engine.layout import LabelQuestion
from pcs_annotator.models.transformers_engine.prompts import PromptWriter
from pcs_annotator.models.transformers_engine.reading import NotEnoughMemory, Reader
from pcs_annotator.models.transformers_engine.writing import (
    DEFAULT_ANSWER_TOKENS,
    TextQuestion,
    TextWriter,
    together,
)

# As many as may wait: the more there are to sort by length, the less padding.
MOST_WAITING = 1024
Job = BatchJob[Request, Reply]


class Placement(NamedTuple):
    """Where a model runs: a device such as `cpu`, `cuda` or `cuda:1`, and a type of numbers; None for the usual."""

    device: str | None = None
    dtype: str | None = None


class Loaded(NamedTuple):
    """A loaded model and what is needed to ask it."""

    prompts: PromptWriter
    reader: Reader
    writer: TextWriter


class Runner:
    """Loads a model at the first question and answers in batches.

    Args:
        name: The model's name, for messages.
        fetch: Returns the folder with the model, after downloading it if needed.
        placement: Where it runs.
        context_tokens: Tokens of a question and its answer; None if there is no limit.
    """

    def __init__(
        self, name: str, fetch: Callable[[], Path], placement: Placement, context_tokens: int | None = None
    ) -> None:
        self._name = name
        self._fetch = fetch
        self._placement = placement
        self._context = context_tokens
        self._loaded: Loaded | None = None
        self._tree = lru_cache(256)(LabelTree)
        self._batcher: Batcher[Request, Reply] = Batcher(self._work, threads=1, size=MOST_WAITING)

    async def ask(self, request: Request) -> Reply:
        """Return the answer."""
        return await self._batcher.ask(request)

    def close(self) -> None:
        """End the thread and free the memory."""
        self._batcher.close()
        self._loaded = None
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _work(self, jobs: Sequence[Job]) -> None:
        if self._loaded is None:
            self._loaded = load(self._fetch(), self._placement)
        prompts = self._loaded.prompts.prompts([job.question.messages for job in jobs])
        labels: list[tuple[Job, LabelQuestion]] = []
        texts: list[tuple[Job, TextQuestion]] = []
        for job, prompt in zip(jobs, prompts, strict=True):
            try:
                if _is_free(job.question):
                    texts.append((job, self._text_question(job.question, prompt)))
                else:
                    labels.append((job, self._label_question(job.question, prompt)))
            except Unanswerable as error:
                job.answer.set_exception(error)
        self._read(labels)
        self._write(texts)

    def _label_question(self, request: Request, prompt: Prompt) -> LabelQuestion:
        assert self._loaded is not None
        assert request.constraint is not None
        if not request.constraint.choices:
            raise BadRequest(f"{self._name} can be restricted to a list of answers, but not to a JSON schema")
        tokens = self._loaded.prompts.label_tokens(tuple(request.constraint.choices))
        self._check_length(prompt, max(map(len, tokens)))
        return LabelQuestion(prompt, self._tree(tokens))

    def _text_question(self, request: Request, prompt: Prompt) -> TextQuestion:
        self._check_length(prompt, 1)
        given = request.sampling.max_tokens
        limit = DEFAULT_ANSWER_TOKENS if given is None else given
        if self._context is not None:
            limit = min(limit, self._context - prompt.length)
        return TextQuestion(prompt.head + prompt.tail, request, limit)

    def _check_length(self, prompt: Prompt, answer: int) -> None:
        if self._context is not None and prompt.length + answer > self._context:
            raise Unanswerable(
                f"the text is too long for {self._name}: {prompt.length} tokens, the limit is {self._context}"
            )

    def _read(self, asked: Sequence[tuple[Job, LabelQuestion]]) -> None:
        assert self._loaded is not None
        for number, logs in self._loaded.reader.read([question for _, question in asked]):
            job, question = asked[number]
            if isinstance(logs, NotEnoughMemory):
                job.answer.set_exception(self._too_large(logs.tokens))
                continue
            request = job.question
            assert request.constraint is not None
            tokens = self._loaded.prompts.label_tokens(tuple(request.constraint.choices))
            job.answer.set_result(label_reply(request, logs, question.prompt.length, tokens))

    def _write(self, asked: Sequence[tuple[Job, TextQuestion]]) -> None:
        assert self._loaded is not None
        for batch in together([question for _, question in asked]):
            try:
                replies = self._loaded.writer.write([asked[number][1] for number in batch])
            except torch.OutOfMemoryError:
                torch.cuda.empty_cache()
                for number in batch:
                    job, question = asked[number]
                    job.answer.set_exception(self._too_large(len(question.tokens)))
                continue
            for number, reply in zip(batch, replies, strict=True):
                asked[number][0].answer.set_result(reply)

    def _too_large(self, tokens: int) -> Unanswerable:
        return Unanswerable(
            f"{self._name}: the device's memory does not hold a question of {tokens} tokens; use a smaller model or "
            "another device"
        )


def _is_free(request: Request) -> bool:
    constraint = request.constraint
    return constraint is None or (not constraint.choices and constraint.json_schema is None)


def load(folder: Path, placement: Placement) -> Loaded:
    """Return a loaded model.

    Raises:
        ConfigError: The files are damaged, need code of their own, or do not fit onto the device.
    """
    device = pick_device(placement.device)
    dtype = pick_dtype(placement.dtype, device)
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        with _quiet():
            model, found = AutoModelForCausalLM.from_pretrained(
                folder, dtype=dtype, local_files_only=True, output_loading_info=True
            )
        if found["missing_keys"]:
            missing = ", ".join(sorted(found["missing_keys"])[:3])
            raise ConfigError(f"the weights in {folder} are not complete: {missing} … are missing; download them again")
        model = model.to(device).eval()
        prompts = PromptWriter(tokenizer)
        return Loaded(prompts, Reader(model), TextWriter(model, prompts, tokenizer.eos_token_id))
    except ConfigError:
        raise
    except torch.OutOfMemoryError:
        raise ConfigError(
            f"the model in {folder} does not fit into the memory of {device}: use a smaller one, another device "
            "(PCS_DEVICE), or a server such as vLLM that splits it"
        ) from None
    except Exception as error:
        raise ConfigError(f"the model in {folder} cannot be loaded: {first_line(error)}") from error


def pick_device(wanted: str | None) -> torch.device:
    """Return the device to use: the one that is wanted, else a GPU if there is one."""
    if wanted is None:
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(wanted)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ConfigError(f"PCS_DEVICE is {wanted!r}, which cannot be used here: {first_line(error)}") from None
    return device


def pick_dtype(wanted: str | None, device: torch.device) -> Any:
    """Return the type of numbers: the one that is wanted, else half the size on a GPU and float32 elsewhere."""
    if wanted is not None:
        return getattr(torch, wanted)
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    # Most processors have no arithmetic for smaller numbers, and take many times as long with them.
    return torch.float32


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep loading from writing bars and notes: weights that are missing are an error of our own."""
    library = logging.getLogger("transformers")
    level, bars = library.level, is_progress_bar_enabled()
    library.setLevel(logging.CRITICAL)
    disable_progress_bar()
    try:
        yield
    finally:
        library.setLevel(level)
        if bars:
            enable_progress_bar()
