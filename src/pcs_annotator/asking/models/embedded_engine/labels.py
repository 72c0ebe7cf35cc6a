"""Labels as a tree of tokens: one reading of the prompt gives the log-probability of every label.

Where labels part, the model chooses among the tokens that go on to some label, and among those only; so the answer is
always a label, and the probabilities sum to one. Tokens between the first parting and a later one are appended to the
prompt, each seeing only what leads to it: however many tokens a label has, the prompt is read once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pcs_annotator.asking.models.embedded_engine.forward import KVCache, Network, Piece
from pcs_annotator.asking.models.embedded_engine.gguf import Floats


@dataclass(slots=True)
class _Node:
    depth: int
    labels: list[int] = field(default_factory=list)
    children: dict[int, _Node] = field(default_factory=dict)

    def parts(self) -> bool:
        """Return whether labels part here or further on."""
        return len(self.children) > 1 or any(child.parts() for child in self.children.values())


@dataclass(frozen=True, slots=True)
class Parting:
    """A place where labels part.

    Attributes:
        row: The row after which the model chooses: 0 for the prompt's end, or that of an appended token.
        tokens: What it chooses from.
        labels: For each token the labels that it leads to.
    """

    row: int
    tokens: tuple[int, ...]
    labels: tuple[tuple[int, ...], ...]


class LabelTree:
    """The labels of a task as tokens.

    Attributes:
        appended: Tokens to put after the prompt.
        parents: For each of them the row that it follows; 0 is the prompt's end, the first appended token is row 1.
        depths: For each of them how many tokens after the prompt it stands.
        partings: The choices to make.
    """

    def __init__(self, sequences: Sequence[Sequence[int]]) -> None:
        """Build the tree; a sequence must end in a token that ends an answer, so that none begins another."""
        self.size = len(sequences)
        self.appended: list[int] = []
        self.parents: list[int] = []
        self.depths: list[int] = []
        self.partings: list[Parting] = []
        root = _Node(0)
        for label, sequence in enumerate(sequences):
            node = root
            node.labels.append(label)
            for token in sequence:
                node = node.children.setdefault(token, _Node(node.depth + 1))
                node.labels.append(label)
        self._add(root, 0)

    def _add(self, node: _Node, row: int) -> None:
        if len(node.children) > 1:
            tokens, children = tuple(node.children), node.children.values()
            self.partings.append(Parting(row, tokens, tuple(tuple(child.labels) for child in children)))
        for token, child in node.children.items():
            if child.parts():
                self.appended.append(token)
                self.parents.append(row)
                self.depths.append(child.depth)
                self._add(child, len(self.appended))

    def piece(self, tokens: Sequence[int], memory: KVCache) -> Piece:
        """Return the end of a prompt, with what must be appended to read all labels."""
        count, extra = len(tokens), len(self.appended)
        visible = np.tri(count + extra, dtype=bool)
        visible[count:, count:] = False
        for number, parent in enumerate(self.parents, start=count):
            if parent:
                visible[number, count:] = visible[count + parent - 1, count:]
            visible[number, number] = True
        last = memory.length + count - 1
        positions = [*range(memory.length, last + 1), *(last + depth for depth in self.depths)]
        return Piece(
            tokens=np.array([*tokens, *self.appended], np.int64),
            positions=np.array(positions, np.int64),
            visible=visible,
            read=np.arange(count - 1, count + extra),
            memory=memory,
        )

    def log_probabilities(self, network: Network, states: Floats) -> Floats:
        """Return the log-probability of each label from the states of the piece's rows."""
        found = np.zeros(self.size, np.float32)
        for parting in self.partings:
            logits = network.logits(states[parting.row : parting.row + 1], parting.tokens)[0]
            logits -= logits.max()
            logits -= np.log(np.exp(logits).sum())
            for value, labels in zip(logits, parting.labels, strict=True):
                found[list(labels)] += value
        return found
