"""A loaded embedded model and its worker threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pcs_annotator.base.errors import BadRequest, Unanswerable
from pcs_annotator.core.chat import Reply, Request, Usage
from pcs_annotator.models.batching import Batcher, BatchJob
from pcs_annotator.models.embedded_engine import CONTEXT_TOKENS, Style, prompts
from pcs_annotator.models.embedded_engine.engine import Engine, LabelQuestion
from pcs_annotator.models.label_tree import Prompt, label_reply

BATCH = 16
MOST_THREADS = 8


class Ask(NamedTuple):
    """A request, and how to ask it."""

    request: Request
    style: Style
    prior: bool


class Runner:
    """Loads the model at the first question and answers in batches.

    Args:
        fetch: Returns the path of the weights, after downloading them if needed.
        threads: Batches at once; None for one per processor.
    """

    def __init__(self, fetch: Callable[[], Path], threads: int | None = None) -> None:
        self._fetch = fetch
        self._engine: Engine | None = None
        self._loading = threading.Lock()
        # One BLAS thread per batch: BLAS threads wait for each other by spinning, which costs more than they gain on
        # matrices this small, and much more when other programs use the processor too.
        self._limits = _one_blas_thread()
        self._batcher: Batcher[Ask, Reply] = Batcher(self._work, threads=threads or processors(), size=BATCH)

    async def ask(self, ask: Ask) -> Reply:
        """Return the answer."""
        return await self._batcher.ask(ask)

    def close(self) -> None:
        """End the threads and free the weights."""
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
                job.answer.set_result(label_reply(job.question.request, logs, question.prompt.length, question.labels))
        for job in texts:
            if job.abandoned:  # each text takes seconds, which a stopped run would wait for
                continue
            try:
                job.answer.set_result(_text_reply(engine, job.question.request))
            except Unanswerable as error:
                job.answer.set_exception(error)


def label_question(engine: Engine, ask: Ask) -> LabelQuestion:
    """Return a request for a label, as tokens."""
    request, vocabulary = ask.request, engine.vocabulary
    constraint = request.constraint
    assert constraint is not None
    labels = tuple(constraint.choices)
    if not labels:
        raise BadRequest("the embedded model can be restricted to a list of answers, but not to a JSON schema")
    asked = prompts.parts_of(request)
    prompt = prompts.label_prompt(vocabulary, ask.style, asked, labels)
    sequences = tuple(tuple(label) for label in prompts.label_sequences(vocabulary, ask.style, labels))
    _check_length(prompt, max(len(sequence) for sequence in sequences))
    empty = prompts.EMPTY_TEXTS if ask.prior else ()
    priors = tuple(prompts.label_prompt(vocabulary, ask.style, asked._replace(text=text), labels) for text in empty)
    return LabelQuestion(prompt, sequences, priors)


def _text_reply(engine: Engine, request: Request) -> Reply:
    prompt = prompts.chat_prompt(engine.vocabulary, request.messages)
    _check_length(prompt, 1)
    written = engine.write(prompt, request.sampling)
    return Reply(
        text=written.text.strip(),
        finish="stop" if written.ended else "length",
        usage=Usage(input_tokens=prompt.length, output_tokens=written.tokens),
    )


def _check_length(prompt: Prompt, answer: int) -> None:
    if prompt.length + answer > CONTEXT_TOKENS:
        raise Unanswerable(
            f"the text is too long for the embedded model: {prompt.length} tokens, the limit is {CONTEXT_TOKENS}"
        )


def processors() -> int:
    """Return how many processors this process may use, at most eight."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(usable, MOST_THREADS))


def _one_blas_thread() -> Any:
    from threadpoolctl import threadpool_limits

    return threadpool_limits(limits=1, user_api="blas")
