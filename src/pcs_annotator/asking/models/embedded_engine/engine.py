"""The embedded model's answers: labels for many questions at once, and plain text for one."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from pcs_annotator.asking.models.embedded_engine.forward import KVCache, Network, Piece
from pcs_annotator.asking.models.embedded_engine.gguf import Floats, read_gguf
from pcs_annotator.asking.models.embedded_engine.labels import LabelTree
from pcs_annotator.asking.models.embedded_engine.prompts import Prompt
from pcs_annotator.asking.models.embedded_engine.vocabulary import TokenVocabulary
from pcs_annotator.core.chat import Sampling

# The table of who sees whom grows with the square of what is read at once: longer prompts are read in parts.
LONGEST_READ = 512
KEPT_HEADS = 16
KEPT_PRIORS = 256
SHOWN_TOKENS = 20
DEFAULT_ANSWER_TOKENS = 256
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LabelQuestion:
    """Which label follows a prompt?

    Attributes:
        prompt: What to read.
        labels: The tokens of each label.
        empty: The same prompt around texts without content; if given, what the model prefers there is taken off.
    """

    prompt: Prompt
    labels: tuple[tuple[int, ...], ...]
    empty: tuple[Prompt, ...] = ()


class Written(NamedTuple):
    """Text that the model wrote.

    Attributes:
        text: The text.
        tokens: How many tokens it took.
        ended: Whether the model ended it, rather than the limit.
        first: The likeliest first tokens and their log-probabilities.
    """

    text: str
    tokens: int
    ended: bool
    first: dict[str, float]


class Engine:
    """A loaded model; may be used from several threads."""

    def __init__(self, path: Path) -> None:
        file = read_gguf(path)
        self.vocabulary = TokenVocabulary(file)
        self.network = Network(file)
        self._heads: _Recent[KVCache] = _Recent(KEPT_HEADS)
        self._priors: _Recent[Floats] = _Recent(KEPT_PRIORS)
        self._trees: _Recent[LabelTree] = _Recent(KEPT_PRIORS)

    def label(self, questions: Sequence[LabelQuestion]) -> list[Floats]:
        """Return for each question the log-probabilities of its labels."""
        priors = [self._prior(question) for question in questions]
        found = self._read([(question.prompt, question.labels) for question in questions])
        return [raw if prior is None else _normalised(raw - prior) for raw, prior in zip(found, priors, strict=True)]

    def write(self, prompt: Prompt, sampling: Sampling) -> Written:
        """Return the text that goes on after a prompt."""
        network, vocabulary = self.network, self.vocabulary
        limit = DEFAULT_ANSWER_TOKENS if sampling.max_tokens is None else sampling.max_tokens
        rng = np.random.default_rng(sampling.seed)
        memory, tokens = self._memory(prompt)
        written: list[int] = []
        first: dict[str, float] = {}
        while len(written) < limit:
            (answer,) = network.read([Piece.sequence(tokens, memory)], tile=1)
            logits = network.logits(answer.states)[0]
            first = first or self._likeliest(logits)
            token = draw(logits, sampling, rng)
            if token in vocabulary.control:
                return Written(vocabulary.decode(written), len(written), True, first)
            written.append(token)
            memory, tokens = answer.memory, [token]
        return Written(vocabulary.decode(written), len(written), False, first)

    def _read(self, asked: Sequence[tuple[Prompt, tuple[tuple[int, ...], ...]]]) -> list[Floats]:
        trees = [self._trees.get(labels, partial(LabelTree, labels)) for _, labels in asked]
        pieces = []
        for (prompt, _), tree in zip(asked, trees, strict=True):
            memory, tokens = self._memory(prompt)
            pieces.append(tree.piece(tokens, memory))
        answers = self.network.read(pieces)
        return [
            tree.log_probabilities(self.network, answer.states) for tree, answer in zip(trees, answers, strict=True)
        ]

    def _prior(self, question: LabelQuestion) -> Floats | None:
        if not question.empty:
            return None

        def ask() -> Floats:
            found = self._read([(prompt, question.labels) for prompt in question.empty])
            return np.log(np.exp(np.stack(found)).mean(axis=0))

        return self._priors.get((question.empty, question.labels), ask)

    def _memory(self, prompt: Prompt) -> tuple[KVCache, Sequence[int]]:
        """Return the memory of the prompt's head, and the tokens still to be read."""
        memory, tail = self._heads.get(prompt.head, lambda: self._read_head(prompt.head)), prompt.tail
        return self._shorten(memory, tail)

    def _read_head(self, head: tuple[int, ...]) -> KVCache:
        memory, rest = self._shorten(self.network.nothing(), head)
        return self.network.read([Piece.sequence(rest, memory)])[0].memory if rest else memory

    def _shorten(self, memory: KVCache, tokens: tuple[int, ...]) -> tuple[KVCache, tuple[int, ...]]:
        while len(tokens) > LONGEST_READ:
            memory = self.network.read([Piece.sequence(tokens[:LONGEST_READ], memory)])[0].memory
            tokens = tokens[LONGEST_READ:]
        return memory, tokens

    def _likeliest(self, logits: Floats) -> dict[str, float]:
        likely = np.argsort(-logits, kind="stable")[:SHOWN_TOKENS]
        logs = _normalised(logits)
        found: dict[str, float] = {}
        for token in likely.tolist():  # halves of a character are written alike: the likelier one stays
            found.setdefault(self.vocabulary.decode([token]), float(logs[token]))
        return found


def draw(logits: Floats, sampling: Sampling, rng: np.random.Generator) -> int:
    """Return a choice: the likeliest without a temperature, else drawn from the likeliest that make up `top_p`."""
    if not sampling.temperature:
        return int(logits.argmax())
    order = np.argsort(-logits, kind="stable")
    shares = np.exp(_normalised(logits[order] / np.float32(sampling.temperature))).astype(np.float64)
    shares /= shares.sum()  # to the precision that the drawing asks for
    if sampling.top_p is not None:
        shares[1:][np.cumsum(shares)[:-1] >= sampling.top_p] = 0
        shares /= shares.sum()
    return int(rng.choice(order, p=shares))


def _normalised(logs: Floats) -> Floats:
    shifted = logs - logs.max()
    return shifted - np.log(np.exp(shifted).sum())


class _Recent(Generic[T]):
    """The last few things that were made, by what they were made for; each is made once."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._things: OrderedDict[Hashable, T] = OrderedDict()
        self._lock = threading.RLock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        # The lock is held while making: the other thread wants the same thing, as a rule.
        with self._lock:
            if key not in self._things:
                self._things[key] = make()
                if len(self._things) > self._size:
                    self._things.popitem(last=False)
            self._things.move_to_end(key)
            return self._things[key]
