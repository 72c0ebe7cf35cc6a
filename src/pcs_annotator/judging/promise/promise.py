"""The promise about accepted labels: what it says, and how much error probability each of its tests may use."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pcs_annotator.base.errors import ConfigError

PromiseKind = Literal["error-among-accepted", "false-discoveries", "off-by-more-than-one"]
ERRORS_FOR_HALF = 7.5
USED_UP = (
    "earlier looks at the gold labels have used up all errors that promises may have: label other rows at random in a "
    "new folder, or ask for less certainty"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """The promise about accepted labels."""

    # α: the share of accepted labels that may be wrong, or off by more than one step of a scale
    max_error: float
    # 1 − δ: how often such promises hold, over draws of the gold rows, however often somebody looks; those that hold on
    # average have none
    certainty: float = 0.9
    kind: PromiseKind = "error-among-accepted"  # which of the promises
    per_label: bool = False  # whether it must hold for each label separately
    tolerance: str = ""  # of numbers, by how much an accepted one may be off; empty for one step of a scale
    of: str = "labels"  # what is accepted: labels, passages or values
    by: str = ""  # what groups of texts it must hold for separately, such as `language`; empty for all texts together

    def __post_init__(self) -> None:
        for name, value in (("max_error", self.max_error), ("certainty", self.certainty)):
            if not 0 < value < 1:
                raise ConfigError(f"{name} is {value!r}: {_REMEDIES[name]}")

    @property
    def tested(self) -> bool:
        """Whether it is tested at a level, so that it holds with a certainty."""
        return self.kind != "false-discoveries"

    @property
    def near(self) -> bool:
        """Whether a label that is a step off, or a number within the tolerance, counts as right."""
        return self.kind == "off-by-more-than-one"

    @property
    def far(self) -> str:
        """What labels must not be, in words."""
        return f"off by more than {self.tolerance or 'one step'}" if self.near else "wrong"

    @property
    def divided(self) -> bool:
        """Whether it must hold for parts of the rows separately: those with a label, or groups of texts."""
        return self.per_label or bool(self.by)

    def division(self, rows: Collection[int], level: float) -> tuple[int, int]:
        """Return into how many parts a level is divided for groups of gold rows, and how many of these can pass.

        A group that is too small to pass at a part of the level, even without a single error, needs none. That follows
        from the numbers of rows alone, whatever their labels. So there are at most as many tests as parts.
        """
        tried = range(1, len(rows) + 1)
        divisions = ((parts, sum(count >= self.rows_at(level / parts) for count in rows)) for parts in tried)
        return next((parts, can_pass) for parts, can_pass in divisions if can_pass <= parts)

    @property
    def delta(self) -> float:
        """How often such promises are broken at most."""
        return round(1 - self.certainty, 12)

    def level(self, rows: int, spent: float = 0.0) -> float:
        """Return how much of δ a look at this many gold rows may use, when earlier looks have spent some of it.

        Promises from few rows are rarely possible, and then mostly luck, so such a look gets a tenth of what is left at
        most; with 7.5 or more errors allowed among the rows, see `next_level`.
        """
        level = next_level(self.delta, spent)
        return level if rows >= self._rows_for_half else min(level, (self.delta - spent) / 10)

    @property
    def _rows_for_half(self) -> int:
        return int(np.ceil(ERRORS_FOR_HALF / self.max_error - 1e-9))

    def least_rows(self, spent: float = 0.0) -> int:
        """Return the minimum number of rows, all of them right, that the promise needs."""
        if not self.tested:
            return int(np.ceil(round(1 / self.max_error - 1, 9)))
        enough = self._rows_for_half
        few, many = (self.rows_at(self.level(rows, spent)) for rows in (0, enough))
        return few if few < enough else max(many, enough)

    def rows_at(self, level: float) -> int:
        """Return the minimum number of rows, all of them right, with which a test at this level passes."""
        return int(np.ceil(np.log(level) / np.log1p(-self.max_error)))


def next_level(delta: float, spent: float) -> float:
    r"""Return how much of δ the next test may use: half of it, then a sixth, a twelfth, … $\delta / (k (k + 1))$.

    That is what follows from what is spent, so that a level that came back is used again. All tests together never use
    more than δ, and the hundredth is still possible, as it would not be with half of what is left for each.
    """
    left = delta - spent
    return left * left / (delta + left)


_REMEDIES = {
    "max_error": "give a share between 0 and 1, such as 0.05; no number of gold rows shows that all labels are right",
    "certainty": "give a share between 0 and 1, such as 0.9; full certainty would need infinitely many gold rows",
}
