"""What labels are beside names: steps of a scale, or paths of a tree; and what that changes about a row's label."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np

from pcs_annotator.base.errors import LabelError
from pcs_annotator.core.arrays import CODE, Codes, Floats, Integers, Mask
from pcs_annotator.core.gold_codes import UNLABELLED
from pcs_annotator.core.votes import Votes, positions_of
from pcs_annotator.core.weights import Weights
from pcs_annotator.judging.calibrate import slopes_of
from pcs_annotator.judging.score import choose, score

Kind = Literal["one", "many", "scale", "tree", "pair", "number", "passages", "value"]
STEP = "/"
# In steps. With 1, the prior of the calibrator let the mean place say too little; see benchmarks/results/scales.md.
PLACE_SD = 0.4
# Far above the rounding of sums of probabilities, so that a half is a half on every machine.
ROUNDING = 1e-9


class LabelShape(NamedTuple):
    """The kind of a task, with its labels: those of a scale rising, those of a pair's two texts first."""

    kind: Kind = "one"
    labels: tuple[str, ...] = ()
    # on a scale, how much what the texts say and the mean place of the answers count, the larger one 1
    mix: tuple[float, float] = (1.0, 1.0)
    within: int = 1  # how many steps off a label may be and still count as near

    @classmethod
    def of(cls, kind: Kind, labels: Sequence[str]) -> "LabelShape":
        """Return the shape of some labels; that of plain ones does not name them."""
        return cls(kind, tuple(labels)) if kind not in ("one", "many") else ONE

    @property
    def extracted(self) -> bool:
        """Whether rows are candidates for what is quoted from texts: each has the first label, with a confidence."""
        return self.kind in ("passages", "value")

    def eligible(self, confidence: Floats, units: Integers | None) -> Mask:
        """Return which rows may be accepted: of several values for one text, only the surest."""
        if self.kind != "value" or units is None:
            return np.ones(len(confidence), dtype=np.bool_)
        order = np.lexsort((-confidence, units))
        surest = np.zeros(len(confidence), dtype=np.bool_)
        surest[order[np.unique(units[order], return_index=True)[1]]] = True
        return surest

    @property
    def ordered(self) -> bool:
        """Whether labels are steps of a scale, or of the range of a number."""
        return self.kind in ("scale", "number")

    @property
    def levels(self) -> int:
        """How many levels labels have: those of the longest path of a tree, else one."""
        return max(len(label.split(STEP)) for label in self.labels) if self.kind == "tree" else 1

    @property
    def parents(self) -> tuple[str, ...]:
        """The paths above the labels of a tree."""
        paths = [self.at(level, self.labels)[0] for level in range(1, self.levels)]
        return tuple(dict.fromkeys(name for names in paths for name in names if name not in self.labels))

    def choose(self, values: Floats, labels: Sequence[str]) -> Codes:
        """Return the label of every row: the most probable one; on a scale the median, which has the least error.

        Of a pair whose two texts are equally good, it is the third label, if there is one.
        """
        if self.extracted:
            return np.full(len(values), labels.index(self.labels[0]), dtype=CODE)
        if self.kind == "pair" and len(labels) > 2:
            first, second, third = self._order(labels)
            even = (np.abs(values[:, first] - values[:, second]) < ROUNDING) & (values[:, third] <= values[:, first])
            return np.where(even, third, choose(values, labels)).astype(CODE)
        if not self.ordered:
            return choose(values, labels)
        order = self._order(labels)
        whole = values.sum(axis=1, keepdims=True)
        half = np.cumsum(values[:, order], axis=1) >= whole / 2 - ROUNDING
        return order[half.argmax(axis=1)].astype(CODE)

    def right(self, best: Codes, gold: Codes, labels: Sequence[str], *, near: bool, level: int = 0) -> Mask:
        """Return which labels are right: on a scale, if `near`, within a step; in a tree, down to a level."""
        if near:
            return np.asarray(self.apart(labels)[best, gold] <= self.within)
        if not level:
            return np.asarray(best == gold)
        group = self.at(level, labels)[1]
        return np.asarray(group[best] == group[gold])

    def confidence(
        self, probabilities: Floats, best: Codes, labels: Sequence[str], *, near: bool, level: int = 0
    ) -> Floats:
        """Return the probability that labels are right, with the same notion of it."""
        if level:
            group = self.at(level, labels)[1]
            return np.asarray((probabilities * (group == group[best][:, np.newaxis])).sum(axis=1))
        if not near:
            return probabilities[np.arange(len(best)), best]
        return np.asarray((probabilities * (self.apart(labels) <= self.within)[best]).sum(axis=1))

    def apart(self, labels: Sequence[str]) -> Integers:
        """Return how many steps of a scale every two labels are apart."""
        rank = np.argsort(self._order(labels))
        return np.abs(rank[:, np.newaxis] - rank)

    def at(self, level: int, labels: Sequence[str]) -> tuple[tuple[str, ...], Codes]:
        """Return the paths of a tree down to a level, and the position among them of every label."""
        paths = [STEP.join(label.split(STEP)[:level]) for label in labels]
        names = tuple(dict.fromkeys(paths))
        return names, np.array(positions_of(paths, names, "path"), dtype=CODE)

    def depths(self, labels: Sequence[str]) -> Integers:
        """Return the number of levels of every label of a tree."""
        return np.array([len(label.split(STEP)) for label in labels], dtype=np.intp)

    def tails(self, probabilities: Floats, labels: Sequence[str]) -> Floats:
        """Return the smaller of the probabilities of at most, and at least, each label of a scale.

        It falls on both sides of the median, so that the labels from some value on are an interval around it.
        """
        order = self._order(labels)
        inner, slopes = probabilities[:, order], np.empty_like(probabilities)
        up_to = np.cumsum(inner, axis=1)
        slopes[:, order] = np.minimum(up_to, up_to[:, -1:] - up_to + inner)
        return slopes

    def ends(self, plausible: Mask, labels: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the lowest and the highest of the labels of a scale that are plausible for each row."""
        in_order = plausible[:, self._order(labels)]
        low, high = in_order.argmax(axis=1), in_order.shape[1] - 1 - in_order[:, ::-1].argmax(axis=1)
        return [self.labels[position] for position in low.tolist()], [
            self.labels[position] for position in high.tolist()
        ]

    def mixing(self, votes: Votes, gold: Codes) -> "LabelShape":
        """Return the shape that knows from gold how much texts and the mean place of answers count."""
        if self.kind != "scale" or votes.text_log_probs is None:
            return self
        rows = gold != UNLABELLED
        some = votes.take(rows)
        inputs = [values[rows] for values in (votes.text_log_probs, self._near(votes))]
        slopes = np.maximum(slopes_of(score(some, Weights.uniform(some)), inputs, gold[rows]), 0.0)
        text, position = (slopes / max(slopes.max(), ROUNDING)).tolist()
        return self._replace(mix=(text, position))

    def placed(self, votes: Votes) -> Votes:
        """Return the votes with what their mean place on a scale says about each label, beside what the texts say.

        Weights learn nothing from how far apart two labels are; this does.
        """
        if self.kind != "scale":
            return votes
        near, (text, position) = self._near(votes), self.mix
        return replace(
            votes,
            text_log_probs=near if votes.text_log_probs is None else text * votes.text_log_probs + position * near,
        )

    def _near(self, votes: Votes) -> Floats:
        """Return the logarithm of a normal density around the mean place, `[item, label]`."""
        rank = np.argsort(self._order(votes.labels)).astype(np.float64)
        position = score(votes, Weights.uniform(votes)) @ rank
        return np.asarray(-((rank - position[:, np.newaxis]) ** 2) / (2 * PLACE_SD**2))

    def _order(self, labels: Sequence[str]) -> Integers:
        return np.array(positions_of(self.labels, labels, "label"), dtype=np.intp)


ONE = LabelShape()  # plain labels


def check_kind(kind: Kind, labels: Sequence[str]) -> None:
    """Raise for labels that cannot be of this kind."""
    if kind == "tree":
        _check_paths(labels)


def _check_paths(labels: Sequence[str]) -> None:
    seen: dict[str, str] = {}
    for label in labels:
        parts = [part.strip() for part in label.split(STEP)]
        if not all(parts) or len(parts) < 2:
            remedy = f"write the parent before it, such as parent{STEP}{parts[-1] or 'label'}"
            raise LabelError(f"label {label!r} is not a path of a tree: {remedy}, or use kind one")
        path = STEP.join(parts).casefold()
        if path in seen:
            raise LabelError(f"labels {seen[path]!r} and {label!r} are the same path: keep one of them")
        seen[path] = label
    for path, label in seen.items():
        if below := next((other for key, other in seen.items() if key.startswith(path + STEP)), None):
            raise LabelError(f"label {label!r} is also the parent of {below!r}: name it {label + STEP + 'other'!r}")
    if len({path.split(STEP)[0] for path in seen}) < 2:
        raise LabelError("all labels of the tree have the same parent: leave it out and use kind one, or add a parent")
