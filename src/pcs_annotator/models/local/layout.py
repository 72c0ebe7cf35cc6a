"""How the prompts of a batch are laid out as rows of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pcs_annotator.models.local.label_tree import LabelQuestion

Ints = npt.NDArray[np.int64]
# GPUs read masks of such a width as they are; others are copied in every layer.
ALIGNED = 8


class TokenLayout(NamedTuple):
    """Tails of prompts below each other, ending in the same column, then the appended tokens."""

    tokens: Ints  # the tokens: (question, column)
    places: Ints  # their positions in the prompts
    # whether a token sees those of the shared start and of its own row: (question, column, both)
    visible: npt.NDArray[np.bool_]
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
    tokens = np.zeros((len(batch), width), np.int64)
    places = np.zeros((len(batch), width), np.int64)
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
    own = [heads[question.prompt.head] for question in batch]
    return TokenLayout(tokens, places, visible, extra, most, list(heads), own)


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
    row = np.zeros((len(batch), 1 + extra), np.int64)
    column = np.zeros((len(batch), 1 + extra), np.int64)
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
    for place, sequence in enumerate(sequences):
        tokens[place, : len(sequence)] = sequence
    return WholeLayout(tokens, row, column)
