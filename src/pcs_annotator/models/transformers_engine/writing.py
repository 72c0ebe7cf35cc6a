"""Free text from a causal model: rewrites, and answers to questions that are not restricted to the labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from pcs_annotator.core.chat import Reply, Request, Sampling, Usage
from pcs_annotator.models.logprobs import read_logprobs
from pcs_annotator.models.transformers_engine.prompts import PromptWriter

DEFAULT_ANSWER_TOKENS = 256
MOST_ROWS = 16


class TextQuestion(NamedTuple):
    """A prompt to continue.

    Attributes:
        tokens: The prompt.
        request: The request that it was made from.
        limit: Most tokens of the answer.
    """

    tokens: tuple[int, ...]
    request: Request
    limit: int


class TextWriter:
    """Continues prompts with a causal model of `transformers`."""

    def __init__(self, model: Any, prompts: PromptWriter, eos: int | None) -> None:
        self._model = model
        self._prompts = prompts
        given = getattr(model.generation_config, "eos_token_id", None)
        self._ends = sorted({*(given if isinstance(given, list) else [given]), eos} - {None})

    def write(self, questions: Sequence[TextQuestion]) -> list[Reply]:
        """Return the answers to questions that `together` puts into one batch."""
        sampling = questions[0].request.sampling
        if not sampling.temperature or sampling.seed is None:
            return self._write(questions)
        with torch.random.fork_rng(devices=[self._model.device] if self._model.device.type == "cuda" else []):
            torch.manual_seed(sampling.seed)
            return self._write(questions)

    def _write(self, questions: Sequence[TextQuestion]) -> list[Reply]:
        width = max(len(question.tokens) for question in questions)
        tokens = torch.zeros(len(questions), width, dtype=torch.long)
        seen = torch.zeros_like(tokens)
        for row, question in enumerate(questions):
            tokens[row, width - len(question.tokens) :] = torch.tensor(question.tokens)
            seen[row, width - len(question.tokens) :] = 1
        wanted = max(question.request.logprobs for question in questions)
        recorded = _Recorder(wanted)
        with torch.inference_mode():
            found = self._model.generate(
                tokens.to(self._model.device),
                attention_mask=seen.to(self._model.device),
                generation_config=self._settings(questions),
                logits_processor=[recorded] if wanted else [],
            )
        recorded.chosen(found)
        return [
            self._reply(question, answer, recorded.steps(row))
            for row, (question, answer) in enumerate(zip(questions, found[:, width:].tolist(), strict=True))
        ]

    def _settings(self, questions: Sequence[TextQuestion]) -> Any:
        from transformers import GenerationConfig

        sampling = questions[0].request.sampling
        random = {}
        if sampling.temperature:
            top_p = 1.0 if sampling.top_p is None else sampling.top_p
            random = {"do_sample": True, "temperature": sampling.temperature, "top_p": top_p, "top_k": 0}
        return GenerationConfig(
            max_new_tokens=max(question.limit for question in questions),
            eos_token_id=self._ends or None,
            pad_token_id=self._ends[0] if self._ends else 0,
            **random,
        )

    def _reply(self, question: TextQuestion, answer: list[int], steps: Sequence[_Step]) -> Reply:
        answer = answer[: question.limit]
        end = next((place for place, token in enumerate(answer) if token in self._ends), None)
        paid = answer if end is None else answer[: end + 1]
        text = self._prompts.decode(answer[:end]).strip()
        logprobs = None
        if question.request.logprobs:
            logprobs = read_logprobs({"logprobs": {"content": self._entries(paid, steps, question)}}, text)
        return Reply(
            text=text,
            finish="length" if end is None else "stop",
            usage=Usage(input_tokens=len(question.tokens), output_tokens=len(paid)),
            logprobs=logprobs,
        )

    def _entries(self, answer: Sequence[int], steps: Sequence[_Step], question: TextQuestion) -> list[dict[str, Any]]:
        """Return the tokens of an answer as a server would list them."""
        entries, before = [], ""
        for place, (token, step) in enumerate(zip(answer, steps, strict=False)):
            whole = self._prompts.decode(answer[: place + 1])
            tops = dict(list(step.tops.items())[: question.request.logprobs])
            shown = {other: self._prompts.decode([other]) for other in tops} | {token: whole[len(before) :]}
            listed = [{"token": shown[other], "logprob": log} for other, log in tops.items()]
            entries.append({"token": shown[token], "logprob": step.own, "top_logprobs": listed})
            before = whole
        return entries


class _Step(NamedTuple):
    own: float
    tops: dict[int, float]


class _Recorder:
    """Keeps the likeliest tokens of each step of a generation, and the log-probability of the one that was chosen."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._last: torch.Tensor | None = None
        self._tops: list[tuple[list[list[int]], list[list[float]]]] = []
        self._own: list[list[float]] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        self.chosen(input_ids)
        self._last = scores.float().log_softmax(-1)
        logs, tokens = self._last.topk(min(self._count, scores.shape[-1]))
        self._tops.append((tokens.tolist(), logs.tolist()))
        return scores

    def chosen(self, tokens: torch.Tensor) -> None:
        """Take the last column of tokens as the choice of the last step."""
        if self._last is not None:
            self._own.append(self._last.gather(1, tokens[:, -1:])[:, 0].tolist())

    def steps(self, row: int) -> list[_Step]:
        """Return the steps of one row."""
        return [
            _Step(own[row], dict(zip(tokens[row], logs[row], strict=True)))
            for own, (tokens, logs) in zip(self._own, self._tops, strict=True)
        ]


def together(questions: Sequence[TextQuestion]) -> list[list[int]]:
    """Return the numbers of the questions that can be answered in one batch, longest first.

    Answers drawn with a seed are written alone: what others draw must not change them.
    """
    groups: dict[object, list[int]] = {}
    for number in sorted(range(len(questions)), key=lambda number: -len(questions[number].tokens)):
        sampling = questions[number].request.sampling
        groups.setdefault(_batch_key(sampling, number), []).append(number)
    return [group[start : start + MOST_ROWS] for group in groups.values() for start in range(0, len(group), MOST_ROWS)]


def _batch_key(sampling: Sampling, number: int) -> object:
    if not sampling.temperature:
        return "greedy"
    return ("alone", number) if sampling.seed is not None else (sampling.temperature, sampling.top_p)
