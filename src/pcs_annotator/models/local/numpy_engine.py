"""The embedded model's answers: labels for many questions at once, and free text for one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from pcs_annotator.core.chat import Reply, Request, Usage
from pcs_annotator.models.local import short_prompts
from pcs_annotator.models.local.batching import Ask
from pcs_annotator.models.local.forward import KVCache, Network, Piece
from pcs_annotator.models.local.gguf import read_gguf
from pcs_annotator.models.local.label_tree import Floats, Kept, LabelQuestion, LabelTree, Prompt, draw, normalised
from pcs_annotator.models.local.runner import Encoded, TextQuestion

# The attention mask grows with the square of the tokens read at once, so longer prompts are read in parts.
LONGEST_READ = 512
KEPT_HEADS = 16
KEPT_PRIORS = 256
MOST_THREADS = 8


class NumpyEngine:
    """A loaded model; may be used from several threads."""

    most_texts = 1

    def __init__(self, path: Path) -> None:
        file = read_gguf(path)
        self.vocabulary = short_prompts.TokenVocabulary(file)
        self.network = Network(file)
        self._heads: Kept[KVCache] = Kept(KEPT_HEADS)
        self._priors: Kept[Floats] = Kept(KEPT_PRIORS)
        # One BLAS thread per batch: BLAS threads wait for each other by spinning, which costs more than they gain on
        # matrices this small, and much more when other programs use the processor too.
        self._limits = threadpool_limits(limits=1, user_api="blas")

    def close(self) -> None:
        """Let BLAS use all its threads again."""
        self._limits.restore_original_limits()

    def encode(self, asked: Sequence[Ask]) -> Iterable[Encoded]:
        """Return requests as tokens, in the words that suit this model."""
        return [short_prompts.encoded(self.vocabulary, *ask) for ask in asked]

    def label_logprobs(self, questions: Sequence[LabelQuestion]) -> Iterable[tuple[int, Floats]]:
        """Return the log-probabilities of the labels of each question."""
        priors = [self._prior(question) for question in questions]
        found = self._read([(question.prompt, question.tree) for question in questions])
        return enumerate(
            raw if prior is None else normalised(raw - prior) for raw, prior in zip(found, priors, strict=True)
        )

    def generate(self, questions: Sequence[TextQuestion]) -> list[Reply]:
        """Return continuations of prompts."""
        return [self._continued(*question) for question in questions]

    def _continued(self, prompt: Prompt, request: Request, limit: int) -> Reply:
        rng = np.random.default_rng(request.sampling.seed)
        cache, tokens = self._cached_head(prompt)
        written: list[int] = []
        ended = False
        while len(written) < limit and not ended:
            (answer,) = self.network.read([Piece.sequence(tokens, cache)], tile=1)
            token = draw(self.network.logits(answer.states)[0], request.sampling, rng)
            ended = token in self.vocabulary.control
            cache, tokens = answer.cache, [token]
            written += [] if ended else [token]
        return Reply(
            text=self.vocabulary.decode(written).strip(),
            finish="stop" if ended else "length",
            usage=Usage(input_tokens=prompt.length, output_tokens=len(written)),
        )

    def _read(self, asked: Sequence[tuple[Prompt, LabelTree]]) -> list[Floats]:
        pieces = []
        for prompt, tree in asked:
            cache, tokens = self._cached_head(prompt)
            pieces.append(label_piece(tree, tokens, cache))
        answers = self.network.read(pieces)
        return [
            label_log_probabilities(tree, self.network, answer.states)
            for (_, tree), answer in zip(asked, answers, strict=True)
        ]

    def _prior(self, question: LabelQuestion) -> Floats | None:
        if not question.empty:
            return None

        def ask() -> Floats:
            found = self._read([(prompt, question.tree) for prompt in question.empty])
            return np.log(np.exp(np.stack(found)).mean(axis=0))

        return self._priors.get((question.empty, question.tree), ask)

    def _cached_head(self, prompt: Prompt) -> tuple[KVCache, Sequence[int]]:
        """Return the KV cache after the prompt's head, and the tokens still to be read."""
        cache = self._heads.get(prompt.head, lambda: self._read_head(prompt.head))
        return self._read_start(cache, prompt.tail)

    def _read_head(self, head: tuple[int, ...]) -> KVCache:
        cache, rest = self._read_start(self.network.empty_cache(), head)
        return self.network.read([Piece.sequence(rest, cache)])[0].cache if rest else cache

    def _read_start(self, cache: KVCache, tokens: tuple[int, ...]) -> tuple[KVCache, tuple[int, ...]]:
        """Read tokens in parts until the rest is short enough to be read at once; return the cache and that rest."""
        while len(tokens) > LONGEST_READ:
            cache = self.network.read([Piece.sequence(tokens[:LONGEST_READ], cache)])[0].cache
            tokens = tokens[LONGEST_READ:]
        return cache, tokens


def label_piece(tree: LabelTree, tokens: Sequence[int], cache: KVCache) -> Piece:
    """Return the tail of a prompt, with the tokens appended that scoring all labels needs."""
    count, extra = len(tokens), len(tree.appended)
    visible = np.tri(count + extra, dtype=bool)
    visible[count:, count:] = tree.visible
    last = cache.length + count - 1
    positions = [*range(cache.length, last + 1), *(last + depth for depth in tree.depths)]
    return Piece(
        tokens=np.array([*tokens, *tree.appended], np.int64),
        positions=np.array(positions, np.int64),
        visible=visible,
        read=np.arange(count - 1, count + extra),
        cache=cache,
    )


def label_log_probabilities(tree: LabelTree, network: Network, states: Floats) -> Floats:
    """Return the log-probability of each label from the states of the piece's rows."""
    found = np.zeros(tree.size, np.float32)
    for fork in tree.forks:
        logits = normalised(network.logits(states[fork.row : fork.row + 1], fork.tokens)[0])
        for value, labels in zip(logits, fork.labels, strict=True):
            found[list(labels)] += value
    return found


def processors() -> int:
    """Return how many processors this process may use, at most eight."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(usable, MOST_THREADS))
