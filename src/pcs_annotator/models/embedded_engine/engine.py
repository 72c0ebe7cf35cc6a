"""The embedded model's answers: labels for many questions at once, and free text for one."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from pcs_annotator.core.chat import Sampling
from pcs_annotator.models.embedded_engine.forward import KVCache, Network, Piece
from pcs_annotator.models.embedded_engine.gguf import Floats, read_gguf
from pcs_annotator.models.embedded_engine.prompts import TokenVocabulary
from pcs_annotator.models.label_tree import LabelTree, Prompt, draw, normalised

# The attention mask grows with the square of the tokens read at once, so longer prompts are read in parts.
LONGEST_READ = 512
KEPT_HEADS = 16
KEPT_PRIORS = 256
DEFAULT_ANSWER_TOKENS = 256
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LabelQuestion:
    """Which label follows a prompt?

    Attributes:
        prompt: The prompt.
        labels: The tokens of each label.
        empty: The same prompt with texts without content; if given, the model's bias on them is subtracted.
    """

    prompt: Prompt
    labels: tuple[tuple[int, ...], ...]
    empty: tuple[Prompt, ...] = ()


class Written(NamedTuple):
    """Text that the model generated.

    Attributes:
        text: The text.
        tokens: Its number of tokens.
        ended: Whether the model ended it, rather than the limit.
    """

    text: str
    tokens: int
    ended: bool


class Engine:
    """A loaded model; may be used from several threads."""

    def __init__(self, path: Path) -> None:
        file = read_gguf(path)
        self.vocabulary = TokenVocabulary(file)
        self.network = Network(file)
        self._heads: _LruCache[KVCache] = _LruCache(KEPT_HEADS)
        self._priors: _LruCache[Floats] = _LruCache(KEPT_PRIORS)
        self._trees: _LruCache[LabelTree] = _LruCache(KEPT_PRIORS)

    def label(self, questions: Sequence[LabelQuestion]) -> list[Floats]:
        """Return the log-probabilities of the labels of each question."""
        priors = [self._prior(question) for question in questions]
        found = self._read([(question.prompt, question.labels) for question in questions])
        return [raw if prior is None else normalised(raw - prior) for raw, prior in zip(found, priors, strict=True)]

    def write(self, prompt: Prompt, sampling: Sampling) -> Written:
        """Return a continuation of a prompt."""
        network, vocabulary = self.network, self.vocabulary
        limit = DEFAULT_ANSWER_TOKENS if sampling.max_tokens is None else sampling.max_tokens
        rng = np.random.default_rng(sampling.seed)
        cache, tokens = self._cached_head(prompt)
        written: list[int] = []
        while len(written) < limit:
            (answer,) = network.read([Piece.sequence(tokens, cache)], tile=1)
            token = draw(network.logits(answer.states)[0], sampling, rng)
            if token in vocabulary.control:
                return Written(vocabulary.decode(written), len(written), True)
            written.append(token)
            cache, tokens = answer.cache, [token]
        return Written(vocabulary.decode(written), len(written), False)

    def _read(self, asked: Sequence[tuple[Prompt, tuple[tuple[int, ...], ...]]]) -> list[Floats]:
        trees = [self._trees.get(labels, partial(LabelTree, labels)) for _, labels in asked]
        pieces = []
        for (prompt, _), tree in zip(asked, trees, strict=True):
            cache, tokens = self._cached_head(prompt)
            pieces.append(label_piece(tree, tokens, cache))
        answers = self.network.read(pieces)
        return [
            label_log_probabilities(tree, self.network, answer.states)
            for tree, answer in zip(trees, answers, strict=True)
        ]

    def _prior(self, question: LabelQuestion) -> Floats | None:
        if not question.empty:
            return None

        def ask() -> Floats:
            found = self._read([(prompt, question.labels) for prompt in question.empty])
            return np.log(np.exp(np.stack(found)).mean(axis=0))

        return self._priors.get((question.empty, question.labels), ask)

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


class _LruCache(Generic[T]):
    """The most recently used values by key; each is computed once."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[Hashable, T] = OrderedDict()
        self._lock = threading.RLock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        # The lock is held while computing, because the other threads usually want the same value.
        with self._lock:
            if key not in self._values:
                self._values[key] = make()
                if len(self._values) > self._size:
                    self._values.popitem(last=False)
            self._values.move_to_end(key)
            return self._values[key]
