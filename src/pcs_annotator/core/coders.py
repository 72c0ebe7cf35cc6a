"""Labels that several people gave independently of each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pcs_annotator.core.arrays import Codes, Integers
from pcs_annotator.core.gold import UNLABELLED


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coders:
    """What people said about the same rows.

    Attributes:
        names: The people.
        codes: `[coder, row]`, positions in the label set; `UNLABELLED` where somebody gave a row no label.
    """

    names: tuple[str, ...]
    codes: Codes

    def __post_init__(self) -> None:
        if self.codes.ndim != 2 or len(self.codes) != len(self.names):
            raise ValueError(f"{len(self.names)} coders with codes of shape {self.codes.shape}")

    @property
    def majority(self) -> Codes:
        """The label that more of them gave than any other; `UNLABELLED` for a tie, and where nobody gave one."""
        return most_common(self.codes).astype(np.int8)


def most_common(codes: Integers | Codes) -> Integers:
    """Return the most common code of every column, ignoring negative ones; `UNLABELLED` for a tie, and without any."""
    found = np.full(codes.shape[1], UNLABELLED, dtype=np.intp)
    best = np.zeros(codes.shape[1], dtype=np.intp)
    for code in np.unique(codes[codes >= 0]):
        times = (codes == code).sum(axis=0)
        found[times == best] = UNLABELLED
        found[times > best] = code
        best = np.maximum(best, times)
    return found
