"""A loaded model and its threads, shared by all who ask the same weights: two styles need not load them twice."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakSet

import numpy as np

from pcs_annotator.asking.models.embedded_engine import CONTEXT_TOKENS
from pcs_annotator.asking.models.embedded_engine.batcher import Batcher, BatchJob
from pcs_annotator.asking.models.embedded_engine.engine import Engine, LabelQuestion, draw
from pcs_annotator.asking.models.embedded_engine.prompts import (
    EMPTY_TEXTS,
    Prompt,
    Style,
    chat_prompt,
    label_prompt,
    label_sequences,
    take_apart,
)
from pcs_annotator.core.chat import Message, Reply, Request, Usage
from pcs_annotator.errors import BadRequest, Unanswerable

BATCH = 16
MOST_THREADS = 8


class Ask:
    """One request with the way it is to be asked."""

    __slots__ = ("prior", "request", "style")

    def __init__(self, request: Request, style: Style, *, prior: bool) -> None:
        self.request = request
        self.style = style
        self.prior = prior


class Runner:
    """Loads the model at the first question and answers in batches.

    Args:
        fetch: Returns the path of the weights; may take a while.
        threads: Batches at once; None is one per processor.
    """

    def __init__(self, fetch: Callable[[], Path], threads: int | None = None) -> None:
        self._fetch = fetch
        self._engine: Engine | None = None
        self._loading = threading.Lock()
        # One thread of BLAS per batch: its own threads wait for each other by spinning, which costs more than they gain
        # on matrices this small, and far more when somebody else uses the processor too.
        self._limits = _one_blas_thread()
        self._batcher: Batcher[Ask, Reply] = Batcher(self._work, threads=threads or processors(), size=BATCH)

    async def ask(self, ask: Ask) -> Reply:
        """Return the answer."""
        return await self._batcher.ask(ask)

    def close(self) -> None:
        """End the threads and forget the weights."""
        self._batcher.close()
        self._engine = None
        self._limits.restore_original_limits()

    def engine(self) -> Engine:
        """Return the loaded model."""
        with self._loading:
            if self._engine is None:
                self._engine = Engine(self._fetch())
            return self._engine

    def _work(self, jobs: Sequence[BatchJob[Ask, Reply]]) -> None:
        engine = self.engine()
        questions: list[tuple[BatchJob[Ask, Reply], LabelQuestion]] = []
        texts: list[BatchJob[Ask, Reply]] = []
        for job in jobs:
            constraint = job.question.request.constraint
            if constraint is None or (not constraint.choices and constraint.json_schema is None):
                texts.append(job)
                continue
            try:
                questions.append((job, label_question(engine, job.question)))
            except (BadRequest, Unanswerable) as error:
                job.answer.set_exception(error)
        if questions:
            found = engine.label([question for _, question in questions])
            for (job, question), logs in zip(questions, found, strict=True):
                job.answer.set_result(label_reply(job.question.request, question, logs))
        for job in texts:
            job.answer.set_result(_text_reply(engine, job.question.request))


def label_question(engine: Engine, ask: Ask) -> LabelQuestion:
    """Return a request for a label as tokens."""
    request, vocabulary = ask.request, engine.vocabulary
    constraint = request.constraint
    assert constraint is not None
    labels = tuple(constraint.choices)
    if not labels:
        raise BadRequest("the embedded model can be held to a list of answers, but not to a JSON schema")
    asked = take_apart(request.messages)
    prompt = label_prompt(vocabulary, ask.style, asked, labels)
    sequences = tuple(tuple(label) for label in label_sequences(vocabulary, ask.style, labels))
    _check_length(prompt, max(len(sequence) for sequence in sequences))
    empty = EMPTY_TEXTS if ask.prior else ()
    priors = tuple(label_prompt(vocabulary, ask.style, asked._replace(text=text), labels) for text in empty)
    return LabelQuestion(prompt, sequences, priors)


def label_reply(request: Request, question: LabelQuestion, logs: Any) -> Reply:
    """Return the likeliest label, or one drawn where there is a temperature."""
    assert request.constraint is not None
    labels = request.constraint.choices
    chosen = draw(logs, request.sampling, np.random.default_rng(request.sampling.seed))
    tokens = len(question.prompt.head) + len(question.prompt.tail)
    return Reply(
        text=labels[chosen],
        usage=Usage(input_tokens=tokens, output_tokens=len(question.labels[chosen])),
        logprobs=dict(zip(labels, logs.tolist(), strict=True)) if request.logprobs else None,
    )


def _text_reply(engine: Engine, request: Request) -> Reply:
    messages: tuple[Message, ...] = request.messages
    prompt = chat_prompt(engine.vocabulary, messages)
    _check_length(prompt, 1)
    written = engine.write(prompt, request.sampling)
    return Reply(
        text=written.text.strip(),
        finish="stop" if written.ended else "length",
        usage=Usage(input_tokens=len(prompt.head) + len(prompt.tail), output_tokens=written.tokens),
        logprobs=written.first if request.logprobs else None,
    )


def _check_length(prompt: Prompt, answer: int) -> None:
    tokens = len(prompt.head) + len(prompt.tail)
    if tokens + answer > CONTEXT_TOKENS:
        raise Unanswerable(f"the text is too long for the embedded model: {tokens} tokens, {CONTEXT_TOKENS} fit in")


def processors() -> int:
    """Return how many processors this process may use, within reason."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(usable, MOST_THREADS))


_lock = threading.Lock()
_runners: dict[object, tuple[Runner, WeakSet[Any]]] = {}


def lease(key: object, holder: object, fetch: Callable[[], Path], threads: int | None = None) -> Runner:
    """Return the runner of some weights for a holder, which gives it back with `release`."""
    with _lock:
        if key not in _runners:
            _runners[key] = (Runner(fetch, threads), WeakSet())
        runner, holders = _runners[key]
        holders.add(holder)
        return runner


def release(key: object, holder: object) -> None:
    """Take a holder's runner back; the last one to leave closes it."""
    with _lock:
        runner, holders = _runners.get(key, (None, WeakSet[Any]()))
        if runner is None or holder not in holders:
            return
        holders.discard(holder)
        if holders:
            return
        del _runners[key]
    runner.close()


def _one_blas_thread() -> Any:
    from threadpoolctl import threadpool_limits

    return threadpool_limits(limits=1, user_api="blas")
