"""One forward pass over many prompts gives the log-probability of every label of each.

Prompts are read longest first, in batches of similar length. The start that prompts share is read once and kept. Where
labels need more than one token, those between their forks are appended to the prompt, each seeing only the tokens that
lead to it. Whether a model can be read in this way is tested when it is loaded; if not, prompts are read whole.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from pcs_annotator.models.local import label_tree
from pcs_annotator.models.local.label_tree import Floats, Kept, LabelQuestion, LabelTree, Prompt

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
    """Reads prompts with a causal model of `transformers`.

    Attributes:
        shares: Whether the start that prompts share is read once, and labels are appended; else each is read whole.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._device = model.device
        self._room = CPU_TOKENS if self._device.type == "cpu" else GPU_TOKENS
        self._heads: Kept[Head] = Kept(KEPT_TOKENS, cost=len)
        self._picks_logits = "logits_to_keep" in inspect.signature(model.forward).parameters
        config = getattr(model.config, "text_config", None) or model.config
        self._longest_shared = min(LONGEST_MASKED, getattr(config, "sliding_window", None) or LONGEST_MASKED)
        self.shares = self._agrees(config.vocab_size)

    def read(self, questions: Sequence[LabelQuestion]) -> Iterator[tuple[int, Floats | None]]:
        """Yield the number of each question and the log-probabilities of its labels; None if memory is too small."""
        waiting = deque(sorted(range(len(questions)), key=lambda number: -questions[number].length))
        while waiting:
            longest = questions[waiting[0]].length
            rows = min(len(waiting), MOST_ROWS, max(1, self._room // longest))
            batch = [waiting.popleft() for _ in range(rows)]
            try:
                found = self._log_probabilities([questions[number] for number in batch])
            except torch.OutOfMemoryError:
                self._heads.clear()
                torch.cuda.empty_cache()
                if rows > 1:
                    self._room = rows // 2 * longest
                    waiting.extendleft(reversed(batch))
                else:
                    yield batch[0], None
                continue
            yield from zip(batch, found, strict=True)

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
        if self._picks_logits:
            found: torch.Tensor = self._model(tokens, logits_to_keep=tokens.shape[1] - first, **more).logits
            return found
        logits: torch.Tensor = self._model(tokens, **more).logits
        return logits[:, first:]

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
        for number in range(len(example)):
            both = []
            for part in (0, 1):
                like = example[number][part]
                stacked = like.new_zeros(len(kept), like.shape[1], width, like.shape[3])
                for place, head in enumerate(kept):
                    if head:
                        stacked[place, :, width - head[number][part].shape[2] :] = head[number][part][0]
                both.append(stacked[rows])
            cache.update(both[0], both[1], number)
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
    found: list[Floats] = [np.zeros(tree.size, np.float32) for tree in trees]
    for tree in dict.fromkeys(trees):
        rows = [number for number, other in enumerate(trees) if other is tree]
        own = logits[torch.tensor(rows, device=logits.device)]
        total = torch.zeros(len(rows), tree.size, device=logits.device)
        for fork in tree.forks:
            tokens = torch.tensor(fork.tokens, device=logits.device)
            chosen = own[:, fork.row].index_select(1, tokens).float().log_softmax(-1)
            for place, labels in enumerate(fork.labels):
                total[:, list(labels)] += chosen[:, place, None]
        for number, logs in zip(rows, total.cpu().numpy(), strict=True):
            found[number] = logs
    return found
