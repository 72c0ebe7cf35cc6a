"""A causal model of `transformers`: loading it, free text, and one forward pass that grades the labels of many prompts.

Prompts are read longest first, in batches of similar length. The start that prompts share is read once and kept. Where
labels need more than one token, those between their forks are appended to the prompt, each seeing only the tokens that
lead to it. Whether a model can be read in this way is tested when it is loaded; if not, prompts are read whole.
"""

from __future__ import annotations

import inspect
import logging
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig
from transformers.utils.logging import disable_progress_bar, enable_progress_bar, is_progress_bar_enabled

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.base.text import first_line
from pcs_annotator.core.chat import Reply, Usage
from pcs_annotator.models.local import label_tree
from pcs_annotator.models.local.label_tree import Floats, Kept, LabelQuestion, LabelTree, Prompt
from pcs_annotator.models.local.prompts import PromptWriter
from pcs_annotator.models.local.runner import Encoded, MemoryFull, TextQuestion, WaitingQuestion

MOST_ROWS = 256
# Tokens of a batch, with padding and the shared start: larger batches are not faster.
GPU_TOKENS, CPU_TOKENS = 2**16, 2**12
# The mask has a number for each pair of tokens: longer prompts are read without one.
LONGEST_MASKED = 4096
KEPT_TOKENS = 2**13
# The two ways to read differ by rounding: in bfloat16 by 1 or 2 %. A model that is read wrongly differs by far more.
TOLERANCE = 0.1


Head = list[tuple[torch.Tensor, torch.Tensor]]  # keys and values of the tokens of a prompt's start, for each layer


class Reader:
    """Reads prompts with a causal model of `transformers`."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._device = model.device
        self._room = CPU_TOKENS if self._device.type == "cpu" else GPU_TOKENS
        self._heads: Kept[Head] = Kept(KEPT_TOKENS, cost=len)
        self._picks_logits = "logits_to_keep" in inspect.signature(model.forward).parameters
        config = getattr(model.config, "text_config", None) or model.config
        self._longest_shared = min(LONGEST_MASKED, getattr(config, "sliding_window", None) or LONGEST_MASKED)
        # whether the start that prompts share is read once, and labels are appended; else each is read whole
        self.shares = self._agrees(config.vocab_size)

    def read(self, questions: Sequence[LabelQuestion]) -> Iterator[tuple[int, Floats | None]]:
        """Yield the number of each question and the log-probabilities of its labels; None if memory is too small."""
        waiting = deque(sorted(range(len(questions)), key=lambda number: -questions[number].length))
        while waiting:
            longest = questions[waiting[0]].length
            rows = min(len(waiting), MOST_ROWS, max(1, self._room // longest))
            batch = [waiting.popleft() for _ in range(rows)]
            try:
                logs = self._log_probabilities([questions[number] for number in batch])
            except torch.OutOfMemoryError:
                self._heads.clear()
                torch.cuda.empty_cache()
                if rows > 1:
                    self._room = rows // 2 * longest
                    waiting.extendleft(reversed(batch))
                else:
                    yield batch[0], None
                continue
            yield from zip(batch, logs, strict=True)

    def _log_probabilities(self, batch: Sequence[LabelQuestion]) -> list[Floats]:
        shared = self.shares and max(question.length for question in batch) <= self._longest_shared
        with torch.inference_mode():
            logits = self._logits(batch) if shared else self._logits_of_whole(batch)
            return _log_probabilities(logits, [question.tree for question in batch])

    def _logits(self, batch: Sequence[LabelQuestion]) -> torch.Tensor:
        """Return the logits after each prompt and each appended token: (question, row of its tree, token)."""
        layout = label_tree.lay_out(batch)
        hidden = torch.from_numpy(~layout.visible).to(self._device)
        mask = torch.zeros(hidden.shape, dtype=self._model.dtype, device=self._device)
        mask.masked_fill_(hidden, torch.finfo(mask.dtype).min)
        return self._call(
            torch.from_numpy(layout.tokens).to(self._device),
            layout.tokens.shape[1] - 1 - layout.extra,
            attention_mask=mask.unsqueeze(1),
            position_ids=torch.from_numpy(layout.places).to(self._device),
            past_key_values=self._cache(layout),
            use_cache=True,
        )

    def _logits_of_whole(self, batch: Sequence[LabelQuestion]) -> torch.Tensor:
        """Return the same without a cache or a mask of our own, which works with every causal model."""
        layout = label_tree.lay_out_whole(batch)
        first = int(layout.column.min())
        # Padding comes last: no token that is read sees it.
        logits = self._call(torch.from_numpy(layout.tokens).to(self._device), first, use_cache=False)
        return logits[torch.from_numpy(layout.row), torch.from_numpy(layout.column - first)]

    def _call(self, tokens: torch.Tensor, first: int, **more: Any) -> torch.Tensor:
        """Return the logits of the columns from `first` on."""
        wanted = tokens.shape[1] - first
        logits: torch.Tensor = self._model(
            tokens, **more, **({"logits_to_keep": wanted} if self._picks_logits else {})
        ).logits
        return logits[:, -wanted:]

    def _cache(self, layout: label_tree.TokenLayout) -> Any:
        """Return what the model keeps of the shared starts, for each row of a batch its own."""
        from transformers import DynamicCache

        cache = DynamicCache()
        width = layout.before
        if not width:
            return cache
        kept = [self._heads.get(head, partial(self._read_head, head)) for head in layout.heads]
        rows = torch.tensor(layout.head_of_row, device=self._device)
        example = next(head for head in kept if head)
        for layer, parts in enumerate(example):
            stacks = [part.new_zeros(len(kept), part.shape[1], width, part.shape[3]) for part in parts]
            for row, head in enumerate(kept):
                for stack, part in zip(stacks, head[layer] if head else (), strict=False):
                    stack[row, :, width - part.shape[2] :] = part[0]
            cache.update(stacks[0][rows], stacks[1][rows], layer)
        return cache

    def _read_head(self, head: tuple[int, ...]) -> Head:
        from transformers import DynamicCache

        if not head:
            return []
        cache = DynamicCache()
        self._call(torch.tensor([head], device=self._device), len(head) - 1, past_key_values=cache, use_cache=True)
        return [(layer.keys, layer.values) for layer in cache.layers]

    def _agrees(self, tokens: int) -> bool:
        """Return whether reading with shared starts gives the same logits as reading prompts whole."""
        some = [3 + 7 * number % max(tokens - 3, 1) for number in range(24)]
        tree = LabelTree([(*some[1:3], some[0]), (some[1], some[5], some[0]), (some[6], some[0])])
        prompts = [
            Prompt(tuple(some[2:8]), tuple(some[8:12])),
            Prompt(tuple(some[4:6]), tuple(some[9:20])),
            Prompt((), tuple(some[:5])),
        ]
        batch = [LabelQuestion(prompt, tree) for prompt in prompts]
        try:
            with torch.inference_mode():
                shared, whole = self._logits(batch).float(), self._logits_of_whole(batch).float()
        except torch.OutOfMemoryError:
            raise
        except Exception:  # a model that cannot be read in this way says so in its own way
            return False
        finally:
            self._heads.clear()
        spread = (whole - whole.mean(-1, keepdim=True)).norm()
        return bool((shared - whole).norm() <= TOLERANCE * spread)


def _log_probabilities(logits: torch.Tensor, trees: Sequence[LabelTree]) -> list[Floats]:
    """Return the log-probabilities of the labels of each question."""
    by_row: dict[int, Floats] = {}
    for tree in dict.fromkeys(trees):
        rows = [number for number, other in enumerate(trees) if other is tree]
        tree_logits = logits[torch.tensor(rows, device=logits.device)]
        total = torch.zeros(len(rows), tree.size, device=logits.device)
        for fork in tree.forks:
            tokens = torch.tensor(fork.tokens, device=logits.device)
            chosen = tree_logits[:, fork.row].index_select(1, tokens).float().log_softmax(-1)
            for column, labels in enumerate(fork.labels):
                total[:, list(labels)] += chosen[:, column, None]
        by_row.update(zip(rows, total.cpu().numpy(), strict=True))
    return [by_row[row] for row in range(len(trees))]


class TorchEngine:
    """A loaded causal model of `transformers`, and its tokenizer."""

    most_texts = 16

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model = model
        self.prompts = PromptWriter(tokenizer)
        self.reader = Reader(model)
        ends = getattr(model.generation_config, "eos_token_id", None)
        ends = {*(ends if isinstance(ends, list) else [ends]), tokenizer.eos_token_id}
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
        """Return continuations of prompts."""
        width = max(question.prompt.length for question in questions)
        tokens = torch.zeros(len(questions), width, dtype=torch.long)
        seen = torch.zeros_like(tokens)
        for row, (prompt, _) in enumerate(questions):
            tokens[row, width - prompt.length :] = torch.tensor(prompt.head + prompt.tail)
            seen[row, width - prompt.length :] = 1
        settings = GenerationConfig(
            max_new_tokens=max(question.limit for question in questions),
            eos_token_id=self.ends or None,
            pad_token_id=self.ends[0] if self.ends else 0,
        )
        device = self.model.device
        try:
            with torch.inference_mode():
                written = self.model.generate(
                    tokens.to(device), attention_mask=seen.to(device), generation_config=settings
                )
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
            raise MemoryFull from None
        return list(map(self._reply, questions, written[:, width:].tolist()))

    def _reply(self, question: TextQuestion, answer: list[int]) -> Reply:
        answer = answer[: question.limit]
        end = next((number for number, token in enumerate(answer) if token in self.ends), None)
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
            model, loading = AutoModelForCausalLM.from_pretrained(
                folder, dtype=dtype, local_files_only=True, output_loading_info=True
            )
        if loading["missing_keys"]:
            missing = ", ".join(sorted(loading["missing_keys"])[:3])
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
