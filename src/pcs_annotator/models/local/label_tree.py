"""Labels as a tree of tokens, and the reply that follows from their log-probabilities, for models in this process."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from pcs_annotator.core.chat import Reply, Request, Sampling, TokenPosition, Usage
from pcs_annotator.models.logprobs import DECIMALS

Floats = npt.NDArray[np.float32]
T = TypeVar("T")


class Prompt(NamedTuple):
    """Tokens to read: those that are the same for every text of a task, then the text and what follows it."""

    head: tuple[int, ...]
    tail: tuple[int, ...]

    @property
    def length(self) -> int:
        """Number of tokens."""
        return len(self.head) + len(self.tail)


@dataclass(slots=True)
class _Node:
    depth: int
    labels: list[int] = field(default_factory=list)
    children: dict[int, _Node] = field(default_factory=dict)

    def diverges(self) -> bool:
        """Return whether labels diverge here or further on."""
        return len(self.children) > 1 or any(child.diverges() for child in self.children.values())


@dataclass(frozen=True, slots=True)
class Fork:
    """A point where labels diverge."""

    row: int  # the row after which the model chooses: 0 for the end of the prompt, or that of an appended token
    tokens: tuple[int, ...]  # the tokens to choose from
    labels: tuple[tuple[int, ...], ...]  # for each token, the labels that it leads to


class LabelTree:
    """The labels of a task as a tree of tokens: one reading of the prompt gives the log-probability of every label.

    Where labels diverge, the model chooses among the tokens that lead to some label and no others; so the answer is
    always a label, and the probabilities sum to one. Tokens between the first fork and a later one are appended to the
    prompt, and each sees only the tokens that lead to it: however many tokens a label has, the prompt is read once.

    Attributes:
        lengths: The number of tokens of each label.
        appended: Tokens to append to the prompt.
        parents: For each of them, the row that it follows; 0 is the end of the prompt, the first appended token is 1.
        depths: For each of them, its distance from the end of the prompt in tokens.
        visible: Whether an appended token (row) sees another one (column); all see the whole prompt.
        forks: The choices to make.
    """

    def __init__(self, sequences: Sequence[Sequence[int]]) -> None:
        """Build the tree; each sequence must end with a token that ends an answer: none may be a prefix of another."""
        self.size = len(sequences)
        self.lengths = [len(sequence) for sequence in sequences]
        self.appended: list[int] = []
        self.parents: list[int] = []
        self.depths: list[int] = []
        self.forks: list[Fork] = []
        root = _Node(0)
        for label, sequence in enumerate(sequences):
            node = root
            node.labels.append(label)
            for token in sequence:
                node = node.children.setdefault(token, _Node(node.depth + 1))
                node.labels.append(label)
        self._add(root, 0)
        self.visible = np.eye(len(self.appended), dtype=bool)
        for number, parent in enumerate(self.parents):
            if parent:
                self.visible[number] |= self.visible[parent - 1]

    def path(self, row: int) -> list[int]:
        """Return the rows of the appended tokens that lead to a row, with the row itself; none for the prompt's end."""
        rows: list[int] = []
        while row:
            rows.append(row)
            row = self.parents[row - 1]
        return rows[::-1]

    def _add(self, node: _Node, row: int) -> None:
        if len(node.children) > 1:
            tokens, children = tuple(node.children), node.children.values()
            self.forks.append(Fork(row, tokens, tuple(tuple(child.labels) for child in children)))
        for token, child in node.children.items():
            if child.diverges():
                self.appended.append(token)
                self.parents.append(row)
                self.depths.append(child.depth)
                self._add(child, len(self.appended))


class Kept(Generic[T]):
    """The most recently used values by key, such as what a model read of the start of prompts; each is made once.

    Keys together cost at most `most`; by default, each costs 1.
    """

    def __init__(self, most: int, cost: Callable[[Any], int] = lambda key: 1) -> None:
        self._most = most
        self._cost = cost
        self._values: OrderedDict[Hashable, T] = OrderedDict()
        self._lock = threading.RLock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value of a key, made if it is not kept."""
        # The lock is held while making it, because the other threads usually want the same value.
        with self._lock:
            if key not in self._values:
                self._values[key] = make()
                while len(self._values) > 1 and sum(map(self._cost, self._values)) > self._most:
                    self._values.popitem(last=False)
            self._values.move_to_end(key)
            return self._values[key]

    def clear(self) -> None:
        """Keep nothing."""
        self._values.clear()


class LabelQuestion(NamedTuple):
    """Which label follows a prompt?"""

    prompt: Prompt  # the prompt
    tree: LabelTree  # the labels
    # the same prompt with texts without content; if given, the model's bias on them is subtracted
    empty: tuple[Prompt, ...] = ()

    @property
    def length(self) -> int:
        """Number of tokens to read, with those that are appended."""
        return self.prompt.length + len(self.tree.appended)


def draw(logits: Floats, sampling: Sampling, rng: np.random.Generator) -> int:
    """Return a choice: the likeliest without a temperature, else a random one of the likeliest that make up `top_p`."""
    if not sampling.temperature:
        return int(logits.argmax())
    order = np.argsort(-logits, kind="stable")
    shares = np.exp(normalised(logits[order] / np.float32(sampling.temperature))).astype(np.float64)
    shares /= shares.sum()  # to the precision that `rng.choice` requires
    if sampling.top_p is not None:
        shares[1:][np.cumsum(shares)[:-1] >= sampling.top_p] = 0
        shares /= shares.sum()
    return int(rng.choice(order, p=shares))


def normalised(logs: Floats) -> Floats:
    """Return log-probabilities that sum to one."""
    shifted = logs - logs.max()
    return shifted - np.log(np.exp(shifted).sum())


def label_reply(request: Request, logs: Floats, question: LabelQuestion) -> Reply:
    """Return the likeliest choice of a request, or a random one if there is a temperature, from log-probabilities."""
    assert request.constraint is not None
    labels = request.constraint.choices
    chosen = draw(logs, request.sampling, np.random.default_rng(request.sampling.seed))
    # a choice is scored with its end, so none is the start of another
    ended = [f"{label}\n" for label in labels]
    graded = tuple((label, round(log, DECIMALS)) for label, log in zip(ended, logs.tolist(), strict=True))
    return Reply(
        text=labels[chosen],
        usage=Usage(input_tokens=question.prompt.length, output_tokens=question.tree.lengths[chosen]),
        logprobs=(TokenPosition(ended[chosen], graded),) if request.logprobs else None,
    )
