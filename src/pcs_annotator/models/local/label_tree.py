"""Labels as a tree of tokens, prompts as rows of tokens, and the reply that follows from log-probabilities."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from pcs_annotator.core.chat import Reply, Request, TokenPosition, Usage
from pcs_annotator.models.logprobs import DECIMALS

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
T = TypeVar("T")
# GPUs read masks of such a width as they are; others are copied in every layer.
ALIGNED = 8


class Prompt(NamedTuple):
    """Tokens to read: those that are the same for every text of a task, then the text and what follows it."""

    head: tuple[int, ...]
    tail: tuple[int, ...]

    @property
    def length(self) -> int:
        """Number of tokens."""
        return len(self.head) + len(self.tail)


class Fork(NamedTuple):
    """A point where labels diverge."""

    row: int  # the row after which the model chooses: 0 for the end of the prompt, or that of an appended token
    tokens: tuple[int, ...]  # the tokens to choose from
    labels: tuple[tuple[int, ...], ...]  # for each token, the labels that it leads to


class LabelTree:
    """The labels of a task as a tree of tokens: one reading of the prompt gives the log-probability of every label.

    Where labels diverge, the model chooses among the tokens that lead to some label and no others; so the answer is
    always a label, and the probabilities sum to one. Tokens between the first fork and a later one are appended to the
    prompt, and each sees only the tokens that lead to it: however many tokens a label has, the prompt is read once.
    """

    def __init__(self, sequences: Sequence[Sequence[int]]) -> None:
        """Build the tree; each sequence must end with a token that ends an answer: none may be a prefix of another."""
        self.size, self.lengths = len(sequences), [len(sequence) for sequence in sequences]  # labels, and their tokens
        following: dict[tuple[int, ...], dict[int, list[int]]] = {}  # start of a label → next token → labels
        for label, sequence in enumerate(sequences):
            for depth, token in enumerate(sequence):
                following.setdefault(tuple(sequence[:depth]), {}).setdefault(token, []).append(label)
        forks = {start: tokens for start, tokens in following.items() if len(tokens) > 1}
        needed = {fork[:length] for fork in forks for length in range(1, len(fork) + 1)}
        starts = [start for start in following if start in needed]
        rows = {start: row for row, start in enumerate([(), *starts])}
        self.appended = [start[-1] for start in starts]  # tokens to append to the prompt
        # for each of them, the row that it follows: 0 is the end of the prompt, the first appended token is 1
        self.parents = [rows[start[:-1]] for start in starts]
        self.depths = [len(start) for start in starts]  # for each of them, its distance from the end of the prompt
        self.forks = [
            Fork(rows[start], tuple(tokens), tuple(map(tuple, tokens.values()))) for start, tokens in forks.items()
        ]
        # whether an appended token (row) sees another one (column); all see the whole prompt
        self.visible = np.eye(len(starts), dtype=bool)
        for number, parent in enumerate(self.parents):
            if parent:
                self.visible[number] |= self.visible[parent - 1]

    def path(self, row: int) -> list[int]:
        """Return the rows of the appended tokens that lead to a row, with the row itself; none for the prompt's end."""
        return [*self.path(self.parents[row - 1]), row] if row else []


class Kept(Generic[T]):
    """The most recently used values by key, each made once; keys together cost at most `most`, by default 1 each."""

    def __init__(self, most: int, cost: Callable[[Any], int] = lambda key: 1) -> None:
        self._most = most
        self._cost = cost
        self._values: OrderedDict[Hashable, T] = OrderedDict()
        self._lock = threading.RLock()
        self.clear = self._values.clear

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


class LabelQuestion(NamedTuple):
    """Which label follows a prompt?"""

    prompt: Prompt
    tree: LabelTree
    empty: tuple[Prompt, ...] = ()  # the same without content; if given, the model's bias on it is subtracted

    @property
    def length(self) -> int:
        """Number of tokens to read, with those that are appended."""
        return self.prompt.length + len(self.tree.appended)


def normalised(logs: Floats) -> Floats:
    """Return log-probabilities that sum to one."""
    shifted = logs - logs.max()
    return shifted - np.log(np.exp(shifted).sum())


def label_reply(request: Request, logs: Floats, question: LabelQuestion) -> Reply:
    """Return the likeliest choice of a request, from log-probabilities."""
    assert request.constraint is not None
    labels = request.constraint.choices
    chosen = int(logs.argmax())
    # a choice is scored with its end, so none is the start of another
    ended = [f"{label}\n" for label in labels]
    graded = tuple((label, round(log, DECIMALS)) for label, log in zip(ended, logs.tolist(), strict=True))
    return Reply(
        text=labels[chosen],
        usage=Usage(input_tokens=question.prompt.length, output_tokens=question.tree.lengths[chosen]),
        logprobs=(TokenPosition(ended[chosen], graded),) if request.logprobs else None,
    )


class TokenLayout(NamedTuple):
    """Tails of prompts below each other, ending in the same column, then the appended tokens."""

    tokens: Ints  # the tokens: (question, column)
    places: Ints  # their positions in the prompts
    visible: npt.NDArray[np.bool_]  # whether a token sees the shared start and its own row: (question, column, both)
    extra: int  # number of columns for appended tokens
    before: int  # number of columns for the starts of prompts, which end in the same column too
    heads: list[tuple[int, ...]]  # the different starts
    head_of_row: list[int]  # for each question, which of them is its own


def lay_out(batch: Sequence[LabelQuestion]) -> TokenLayout:
    """Return a batch for a model that has read the starts of its prompts."""
    heads = {head: number for number, head in enumerate(dict.fromkeys(question.prompt.head for question in batch))}
    extra = max(len(question.tree.appended) for question in batch)
    end = max(len(question.prompt.tail) for question in batch)
    width = end + extra
    most = max(map(len, heads))
    if most:
        most += -(most + width) % ALIGNED
    tokens, places = np.zeros((2, len(batch), width), np.int64)
    visible = np.zeros((len(batch), width, most + width), bool)
    visible[:, :, most:] = np.tri(width, dtype=bool)
    visible[:, end:, most + end :] = np.eye(extra, dtype=bool)
    for row, (prompt, tree, _) in enumerate(batch):
        before, start, stop = len(prompt.head), end - len(prompt.tail), end + len(tree.appended)
        tokens[row, start:stop] = (*prompt.tail, *tree.appended)
        last = prompt.length - 1
        places[row, start:stop] = (*range(before, last + 1), *(last + depth for depth in tree.depths))
        visible[row, :, most - before : most] = True
        visible[row, :, most : most + start] = False
        visible[row, end:stop, most + end : most + stop] = tree.visible
    # Padding is of no use, but looking at nothing at all would make it not a number.
    columns = np.arange(width)
    visible[:, columns, most + columns] = True
    head_of_row = [heads[question.prompt.head] for question in batch]
    return TokenLayout(tokens, places, visible, extra, most, list(heads), head_of_row)


class WholeLayout(NamedTuple):
    """Whole prompts below each other, one for each chain of appended tokens, starting in the same column.

    For each question and each row of its tree, `row` is the sequence that has it and `column` its place there.
    """

    tokens: Ints
    row: Ints
    column: Ints


def lay_out_whole(batch: Sequence[LabelQuestion]) -> WholeLayout:
    """Return a batch for any causal model."""
    sequences: list[tuple[int, ...]] = []
    extra = max(len(question.tree.appended) for question in batch)
    row, column = np.zeros((2, len(batch), 1 + extra), np.int64)
    for number, (prompt, tree, _) in enumerate(batch):
        whole = prompt.head + prompt.tail
        column[number] = len(whole) - 1
        row[number] = len(sequences)
        for last in sorted({*range(1 + len(tree.appended))} - set(tree.parents)) or [0]:
            chain = tree.path(last)
            row[number, chain] = len(sequences)
            column[number, chain] = len(whole) - 1 + np.arange(1, len(chain) + 1)
            sequences.append((*whole, *(tree.appended[passed - 1] for passed in chain)))
    tokens = np.zeros((len(sequences), max(map(len, sequences))), np.int64)
    for number, sequence in enumerate(sequences):
        tokens[number, : len(sequence)] = sequence
    return WholeLayout(tokens, row, column)
