"""A loaded model and its worker threads, shared by all models with the same weights, whatever their style."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import WeakSet

import numpy as np

from pcs_annotator.asking.models.embedded_engine import CONTEXT_TOKENS, Style, prompts
from pcs_annotator.asking.models.embedded_engine.engine import Engine, LabelQuestion, draw
from pcs_annotator.asking.models.logprobs import DECIMALS
from pcs_annotator.core.chat import Reply, Request, TokenPosition, Usage
from pcs_annotator.errors import BadRequest, Unanswerable

In = TypeVar("In")
Out = TypeVar("Out")
# The questions of a run arrive almost at once; waiting this long makes the first batch a full one.
GATHERING = 0.003
BATCH = 16
MOST_THREADS = 8


@dataclass(frozen=True, slots=True)
class BatchJob(Generic[In, Out]):
    """A question, and the future of its answer."""

    question: In
    answer: Future[Out] = field(default_factory=Future)


class Batcher(Generic[In, Out]):
    """Worker threads that answer waiting questions in batches.

    It is not tied to an event loop: questions may come from several, in turn or at once.

    Args:
        work: Answers a batch by setting the result or exception of each job; if it raises, that exception is set on
            all jobs without an answer.
        threads: How many batches are answered at once.
        size: Maximum number of questions in a batch.
    """

    def __init__(self, work: Callable[[Sequence[BatchJob[In, Out]]], None], *, threads: int, size: int) -> None:
        self._work = work
        self._size = size
        self._waiting: deque[BatchJob[In, Out]] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._threads = [threading.Thread(target=self._run, name="embedded", daemon=True) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    async def ask(self, question: In) -> Out:
        """Return the answer; a question whose caller is cancelled while waiting is dropped."""
        job: BatchJob[In, Out] = BatchJob(question)
        with self._changed:
            if self._closing:
                raise RuntimeError("the batcher is closed")
            self._waiting.append(job)
            self._changed.notify()
        return await asyncio.wrap_future(job.answer)

    def close(self) -> None:
        """Answer the waiting questions, then end the threads."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while self._has_work():
            self._answer([job for job in self._take() if job.answer.set_running_or_notify_cancel()])

    def _answer(self, jobs: Sequence[BatchJob[In, Out]]) -> None:
        if not jobs:
            return
        problem: BaseException = RuntimeError("the question was left unanswered")
        try:
            self._work(jobs)
        except BaseException as error:  # passed on to the waiting callers
            problem = error
        for job in jobs:
            if not job.answer.done():
                job.answer.set_exception(problem)

    def _has_work(self) -> bool:
        """Wait for questions; return False once the batcher is closed and none is left."""
        with self._changed:
            while not self._waiting:
                if self._closing:
                    return False
                self._changed.wait()
            if len(self._waiting) < self._size and not self._closing:
                self._changed.wait(GATHERING)
            return True

    def _take(self) -> list[BatchJob[In, Out]]:
        """Return this thread's share of the waiting questions; none if other threads took them all."""
        with self._changed:
            share = -(-len(self._waiting) // len(self._threads))
            return [self._waiting.popleft() for _ in range(min(self._size, share))]


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
                job.answer.set_result(label_reply(job.question.request, question, logs))
        for job in texts:
            job.answer.set_result(_text_reply(engine, job.question.request))


def label_question(engine: Engine, ask: Ask) -> LabelQuestion:
    """Return a request for a label, as tokens."""
    request, vocabulary = ask.request, engine.vocabulary
    constraint = request.constraint
    assert constraint is not None
    labels = tuple(constraint.choices)
    if not labels:
        raise BadRequest("the embedded model can be restricted to a list of answers, but not to a JSON schema")
    asked = prompts.parse_question(request.messages)
    prompt = prompts.label_prompt(vocabulary, ask.style, asked, labels)
    sequences = tuple(tuple(label) for label in prompts.label_sequences(vocabulary, ask.style, labels))
    _check_length(prompt, max(len(sequence) for sequence in sequences))
    empty = prompts.EMPTY_TEXTS if ask.prior else ()
    priors = tuple(prompts.label_prompt(vocabulary, ask.style, asked._replace(text=text), labels) for text in empty)
    return LabelQuestion(prompt, sequences, priors)


def label_reply(request: Request, question: LabelQuestion, logs: Any) -> Reply:
    """Return the likeliest label, or a random one if there is a temperature."""
    assert request.constraint is not None
    labels = request.constraint.choices
    chosen = draw(logs, request.sampling, np.random.default_rng(request.sampling.seed))
    return Reply(
        text=labels[chosen],
        usage=Usage(input_tokens=question.prompt.length, output_tokens=len(question.labels[chosen])),
        logprobs=(_as_position(labels, logs.tolist(), chosen),) if request.logprobs else None,
    )


def _as_position(labels: Sequence[str], logs: Sequence[float], chosen: int) -> TokenPosition:
    # a choice is scored with its end, so none is the start of another
    ended = [f"{label}\n" for label in labels]
    return TokenPosition(
        ended[chosen], tuple((label, round(log, DECIMALS)) for label, log in zip(ended, logs, strict=True))
    )


def _text_reply(engine: Engine, request: Request) -> Reply:
    prompt = prompts.chat_prompt(engine.vocabulary, request.messages)
    _check_length(prompt, 1)
    written = engine.write(prompt, request.sampling)
    return Reply(
        text=written.text.strip(),
        finish="stop" if written.ended else "length",
        usage=Usage(input_tokens=prompt.length, output_tokens=written.tokens),
    )


def _check_length(prompt: prompts.Prompt, answer: int) -> None:
    if prompt.length + answer > CONTEXT_TOKENS:
        raise Unanswerable(
            f"the text is too long for the embedded model: {prompt.length} tokens, the limit is {CONTEXT_TOKENS}"
        )


def processors() -> int:
    """Return how many processors this process may use, at most eight."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(usable, MOST_THREADS))


_lock = threading.Lock()
_runners: dict[object, tuple[Runner, WeakSet[Any]]] = {}


def lease(key: object, holder: object, fetch: Callable[[], Path], threads: int | None = None) -> Runner:
    """Return the runner of these weights; it stays loaded until the holder calls `release`."""
    with _lock:
        if key not in _runners:
            _runners[key] = (Runner(fetch, threads), WeakSet())
        runner, holders = _runners[key]
        holders.add(holder)
        return runner


def release(key: object, holder: object) -> None:
    """Release a holder's runner; the last holder closes it."""
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
