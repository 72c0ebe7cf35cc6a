"""Where votes are gathered as they come in, in any order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.elicitations import kind_of
from pcs_annotator.core.task import label_lookup
from pcs_annotator.core.vote import ABSTAINED, NOT_ASKED, Vote
from pcs_annotator.core.votes import Votes
from pcs_annotator.errors import TableError

FIRST_ROWS = 1024


class VoteBuffer:
    """Codes of all votes so far: one byte each, and the items' names; probabilities only where somebody states them."""

    def __init__(self, annotators: Sequence[str], relations: Sequence[str], labels: Sequence[str], draws: int) -> None:
        self._annotators, self._relations, self._labels = annotators, relations, labels
        self._lookup = label_lookup(labels)
        self._ids: dict[str, int] = {}
        self._shape = (len(annotators), len(relations), draws)
        self._codes = np.full((FIRST_ROWS, *self._shape), NOT_ASKED, dtype=np.int8)
        self._stated: Floats | None = None
        if any(map(kind_of, annotators)):
            self._stated = np.full((FIRST_ROWS, *self._shape, len(labels)), np.nan)

    def add_row(self, name: str) -> int:
        """Return the row of a new item."""
        row = len(self._ids)
        if self._ids.setdefault(name, row) != row:
            raise TableError(
                f"two items are called {name!r}, the {self._ids[name] + 1}th and the {row + 1}th: rename one"
            )
        if row == len(self._codes):
            self._codes = np.concatenate([self._codes, np.full_like(self._codes, NOT_ASKED)])
            if self._stated is not None:
                self._stated = np.concatenate([self._stated, np.full_like(self._stated, np.nan)])
        return row

    def put(self, row: int, annotator: int, relation: int, draw: int, vote: Vote) -> None:
        """Note a vote."""
        code = NOT_ASKED
        if vote.label is not None:
            code = self._lookup[vote.label.casefold()]
        elif vote.asked:
            code = ABSTAINED
        self._codes[row, annotator, relation, draw] = code
        if self._stated is not None and vote.stated is not None:
            self._stated[row, annotator, relation, draw] = vote.stated

    def row(self, row: int) -> Codes:
        """Return what is noted about one item so far, `[annotator, relation, draw]`."""
        return self._codes[row]

    def votes(self) -> Votes:
        """Return everything noted."""
        return Votes(
            codes=self._codes[: len(self._ids)],
            ids=list(self._ids),
            annotators=self._annotators,
            relations=self._relations,
            labels=self._labels,
            stated=None if self._stated is None else self._stated[: len(self._ids)],
        )
