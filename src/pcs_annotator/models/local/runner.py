"""Models in this process: loaded at the first question, and asked in batches by worker threads."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, NamedTuple, Protocol

from pcs_annotator.base.errors import BadRequest, Unanswerable
from pcs_annotator.core.chat import Reply, Request
from pcs_annotator.models.local.label_tree import Floats, LabelQuestion, LabelTree, Prompt, label_reply

Style = Literal["chat", "plain"]
GATHERING = 0.003  # the questions of a run arrive almost at once: waiting this many seconds makes the first batch full
MOST_WAITING = 1024  # as many as may wait: the more there are to sort by length, the less padding
DEFAULT_ANSWER_TOKENS = 256
KEPT_TREES = 256


@dataclass(slots=True)
class WaitingQuestion:
    """A question, the future of its answer, and whether nobody waits for it any more: it may then stay unanswered."""

    request: Request
    style: Style  # for an engine that knows several
    answer: Future[Reply] = field(default_factory=Future)
    abandoned: bool = False


class Encoded(NamedTuple):
    """A request as tokens."""

    prompt: Prompt  # the question
    labels: tuple[tuple[int, ...], ...] = ()  # tokens of each choice, and the one that ends it; none for text
    empty: tuple[Prompt, ...] = ()  # the same without content; if given, the model's bias on it is subtracted


class TextQuestion(NamedTuple):
    """A prompt to continue by at most `limit` tokens."""

    prompt: Prompt
    limit: int


class MemoryFull(Exception):
    """The device's memory does not hold a batch."""


class Engine(Protocol):
    """A loaded model."""

    @property
    def most_texts(self) -> int:
        """Most prompts that are continued at once."""

    def encode(self, asked: Sequence[WaitingQuestion]) -> Iterable[Encoded]:
        """Return requests as tokens."""

    def label_logprobs(self, questions: Sequence[LabelQuestion]) -> Iterable[tuple[int, Floats | None]]:
        """Yield the number of each question and the log-probabilities of its labels; None if memory is too small."""

    def generate(self, questions: Sequence[TextQuestion]) -> list[Reply]:
        """Return continuations; raises `MemoryFull`."""

    def close(self) -> None:
        """Free the memory."""


class Runner:
    """Loads a model at the first question; worker threads answer waiting questions, at most `size` of them at a time.

    Questions may come from several event loops. A question and its answer have `context_tokens` together.
    """

    def __init__(
        self,
        name: str,
        load: Callable[[], Engine],
        *,
        context_tokens: int | None,
        threads: int = 1,
        size: int = MOST_WAITING,
    ) -> None:
        self._name, self._load, self._context, self._size = name, load, context_tokens, size
        self._tree = lru_cache(KEPT_TREES)(LabelTree)
        self._engine: Engine | None = None
        self._loading = threading.Lock()
        self._waiting: deque[WaitingQuestion] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._threads = [threading.Thread(target=self._run, name="local model", daemon=True) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    async def ask(self, request: Request, style: Style) -> Reply:
        """Return the answer; a question whose caller is cancelled is dropped, or marked if it is being worked on."""
        job = WaitingQuestion(request, style)
        with self._changed:
            if self._closing:
                raise RuntimeError("the runner is closed")
            self._waiting.append(job)
            self._changed.notify()
        try:
            return await asyncio.wrap_future(job.answer)
        except asyncio.CancelledError:
            job.abandoned = True
            raise

    def close(self) -> None:
        """Answer the waiting questions, then end the threads and free the memory."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    def engine(self) -> Engine:
        """Return the loaded model."""
        with self._loading:
            self._engine = self._engine or self._load()
            return self._engine

    def _run(self) -> None:
        while self._has_work():
            # in a function of its own: a thread that waits must not keep what was answered
            self._answer([job for job in self._take() if job.answer.set_running_or_notify_cancel()])

    def _answer(self, jobs: Sequence[WaitingQuestion]) -> None:
        problem: BaseException = RuntimeError("the question was left unanswered")
        try:
            if jobs:
                self._work(jobs)
        except BaseException as error:  # passed on to the waiting callers
            problem = error
        for job in jobs:
            if not job.answer.done():
                job.answer.set_exception(problem)

    def _has_work(self) -> bool:
        """Wait for questions; return False once the runner is closed and none is left."""
        with self._changed:
            while not self._waiting:
                if self._closing:
                    return False
                self._changed.wait()
            if len(self._waiting) < self._size and not self._closing:
                self._changed.wait(GATHERING)
            return True

    def _take(self) -> list[WaitingQuestion]:
        """Return this thread's share of the waiting questions; none if other threads took them all."""
        with self._changed:
            share = -(-len(self._waiting) // len(self._threads))
            return [self._waiting.popleft() for _ in range(min(self._size, share))]

    def _work(self, jobs: Sequence[WaitingQuestion]) -> None:
        """Answer a batch by setting the result or exception of each job; what it raises is set on all the others."""
        engine = self.engine()
        labels: list[tuple[WaitingQuestion, LabelQuestion]] = []
        texts: list[tuple[WaitingQuestion, TextQuestion]] = []
        usable = []
        for job in jobs:
            constraint = job.request.constraint
            if constraint is None or constraint.choices or constraint.json_schema is None:
                usable.append(job)
            else:
                problem = f"{self._name} can be restricted to a list of answers, but not to a JSON schema"
                job.answer.set_exception(BadRequest(problem))
        for job, (prompt, sequences, empty) in zip(usable, engine.encode(usable), strict=True):
            longest = max(map(len, sequences), default=1)
            if self._context is not None and prompt.length + longest > self._context:
                problem = f"{prompt.length} tokens, the limit is {self._context}"
                job.answer.set_exception(Unanswerable(f"the text is too long for {self._name}: {problem}"))
            elif sequences:
                labels.append((job, LabelQuestion(prompt, self._tree(sequences), empty)))
            else:
                limit = DEFAULT_ANSWER_TOKENS if job.request.max_tokens is None else job.request.max_tokens
                limit = limit if self._context is None else min(limit, self._context - prompt.length)
                texts.append((job, TextQuestion(prompt, limit)))
        self._label(engine, labels)
        self._write(engine, texts)

    def _label(self, engine: Engine, asked: Sequence[tuple[WaitingQuestion, LabelQuestion]]) -> None:
        for number, logs in engine.label_logprobs([question for _, question in asked]) if asked else ():
            job, question = asked[number]
            if logs is None:
                job.answer.set_exception(self._too_large(question.length))
            else:
                job.answer.set_result(label_reply(job.request, logs, question))

    def _write(self, engine: Engine, asked: Sequence[tuple[WaitingQuestion, TextQuestion]]) -> None:
        asked = sorted(asked, key=lambda pair: -pair[1].prompt.length)  # similar lengths need little padding
        for start in range(0, len(asked), engine.most_texts):
            # a text takes seconds, which a stopped run would wait for
            batch = [pair for pair in asked[start : start + engine.most_texts] if not pair[0].abandoned]
            try:
                replies = engine.generate([question for _, question in batch]) if batch else []
            except MemoryFull:
                for job, question in batch:
                    job.answer.set_exception(self._too_large(question.prompt.length))
                continue
            for (job, _), reply in zip(batch, replies, strict=True):
                job.answer.set_result(reply)

    def _too_large(self, tokens: int) -> Unanswerable:
        return Unanswerable(
            f"{self._name}: the device's memory does not hold a question of {tokens} tokens; use a smaller model or "
            "another device"
        )
