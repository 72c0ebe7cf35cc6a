"""A causal model of `transformers`: loading it, graded labels in batches, and free text."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig
from transformers.utils.logging import disable_progress_bar, enable_progress_bar, is_progress_bar_enabled

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.base.text import first_line
from pcs_annotator.core.chat import Reply, Usage
from pcs_annotator.models.local.chat_prompts import PromptWriter
from pcs_annotator.models.local.label_tree import Floats, LabelQuestion
from pcs_annotator.models.local.runner import Encoded, MemoryFull, TextQuestion, WaitingQuestion
from pcs_annotator.models.local.torch_reading import Reader


class TorchEngine:
    """A loaded causal model of `transformers`, and its tokenizer."""

    most_texts = 16

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model = model
        self.prompts = PromptWriter(tokenizer)
        self.reader = Reader(model)
        given = getattr(model.generation_config, "eos_token_id", None)
        ends = {*(given if isinstance(given, list) else [given]), tokenizer.eos_token_id}
        self.ends = sorted(ends - {None})

    def close(self) -> None:
        """Free the memory of a GPU."""
        del self.model, self.reader
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def encode(self, asked: Sequence[WaitingQuestion]) -> Iterable[Encoded]:
        """Return requests as tokens."""
        prompts = self.prompts.prompts([ask.request.messages for ask in asked])
        for ask, prompt in zip(asked, prompts, strict=True):
            constraint = ask.request.constraint
            yield Encoded(prompt, self.prompts.label_tokens(tuple(constraint.choices)) if constraint else ())

    def label_logprobs(self, questions: Sequence[LabelQuestion]) -> Iterable[tuple[int, Floats | None]]:
        """Yield the number of each question and the log-probabilities of its labels, batch after batch."""
        return self.reader.read(questions)

    def generate(self, questions: Sequence[TextQuestion]) -> list[Reply]:
        """Return continuations of prompts, all with the same settings."""
        sampling = questions[0].request.sampling
        try:
            if not sampling.temperature or sampling.seed is None:
                return self._generate(questions)
            with torch.random.fork_rng(devices=[self.model.device] if self.model.device.type == "cuda" else []):
                torch.manual_seed(sampling.seed)
                return self._generate(questions)
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
            raise MemoryFull from None

    def _generate(self, questions: Sequence[TextQuestion]) -> list[Reply]:
        width = max(question.prompt.length for question in questions)
        tokens = torch.zeros(len(questions), width, dtype=torch.long)
        seen = torch.zeros_like(tokens)
        for row, (prompt, _, _) in enumerate(questions):
            tokens[row, width - prompt.length :] = torch.tensor(prompt.head + prompt.tail)
            seen[row, width - prompt.length :] = 1
        with torch.inference_mode():
            found = self.model.generate(
                tokens.to(self.model.device),
                attention_mask=seen.to(self.model.device),
                generation_config=self._settings(questions),
            )
        return list(map(self._reply, questions, found[:, width:].tolist()))

    def _settings(self, questions: Sequence[TextQuestion]) -> Any:
        sampling = questions[0].request.sampling
        random = {}
        if sampling.temperature:
            top_p = 1.0 if sampling.top_p is None else sampling.top_p
            random = {"do_sample": True, "temperature": sampling.temperature, "top_p": top_p, "top_k": 0}
        return GenerationConfig(
            max_new_tokens=max(question.limit for question in questions),
            eos_token_id=self.ends or None,
            pad_token_id=self.ends[0] if self.ends else 0,
            **random,
        )

    def _reply(self, question: TextQuestion, answer: list[int]) -> Reply:
        answer = answer[: question.limit]
        end = next((place for place, token in enumerate(answer) if token in self.ends), None)
        paid = answer if end is None else answer[: end + 1]
        return Reply(
            text=self.prompts.decode(answer[:end]).strip(),
            finish="length" if end is None else "stop",
            usage=Usage(input_tokens=question.prompt.length, output_tokens=len(paid)),
        )


def load_engine(folder: Path, device_name: str | None = None, dtype_name: str | None = None) -> TorchEngine:
    """Return the model in a folder; None for the usual device and type of numbers."""
    device = pick_device(device_name)
    dtype = pick_dtype(dtype_name, device)
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        with _quiet():
            model, found = AutoModelForCausalLM.from_pretrained(
                folder, dtype=dtype, local_files_only=True, output_loading_info=True
            )
        if found["missing_keys"]:
            missing = ", ".join(sorted(found["missing_keys"])[:3])
            raise ConfigError(f"the weights in {folder} are not complete: {missing} … are missing; download them again")
        return TorchEngine(model.to(device).eval(), tokenizer)
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
