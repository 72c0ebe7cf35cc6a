"""The labels listed in another order: models favour labels by their place in the list."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from math import factorial
from typing import Literal

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.task import Part, Phrasing, enumerated
from pcs_annotator.relations.base import Unchanged, relations

Which = Literal["reversed", "rotated"] | int  # reversed, rotated by one, or the permutation of a number from 2 on
LABELS_WITH_MANY_ORDERS = 5


@dataclass(frozen=True, slots=True)
class LabelOrder(Unchanged):
    """The labels in another order."""

    name: str = "order"
    which: Which = "reversed"  # which order

    def rephrase(self, question: Phrasing) -> Phrasing:
        """Return the question with its labels in the other order, also in its instruction, or the texts of its pair."""
        task = question.task
        if task.number:
            raise ConfigError(f"relation {self.name!r}: a number is not chosen from a list: leave it out")
        if task.pair:
            if self.which != "reversed":
                raise ConfigError(f"relation {self.name!r}: a pair has one other order, which is 'order': leave it out")
            return replace(question, task=replace(task, pair=task.pair[::-1]))
        labels = [task.labels[place] for place in self.permutation(len(task.labels))]
        listed = rf"(?<!\w){re.escape(enumerated(task.labels))}(?!\w)"
        instruction = re.sub(listed, lambda _: enumerated(labels), task.instruction)
        together = task.together and task.together._replace(parts=self._reordered(task.together.parts))
        return replace(question, task=replace(task, labels=labels, instruction=instruction, together=together))

    def _reordered(self, parts: Sequence[Part]) -> tuple[Part, ...]:
        """Return questions that are asked in one call in another order, each with its labels in another order."""
        found = []
        for part in parts[::-1]:
            few = isinstance(self.which, int) and len(part.labels) < LABELS_WITH_MANY_ORDERS
            order = LabelOrder() if few else self
            found.append(part._replace(labels=tuple(part.labels[one] for one in order.permutation(len(part.labels)))))
        return tuple(found)

    def permutation(self, size: int) -> tuple[int, ...]:
        """Return the place of each listed label in the task's list; that few labels have no such order is an error."""
        same = tuple(range(size))
        if self.which == "reversed":
            return same[::-1]
        rotated = (*same[1:], 0)
        if self.which == "rotated":
            return rotated
        taken = {same, same[::-1], rotated}
        if self.which - 1 > factorial(size) - len(taken):
            raise ConfigError(f"relation {self.name!r}: {_orders_of(size)}: leave {self.name!r} out")
        attempt = 0
        for _ in range(self.which - 1):
            while (drawn := _shuffled(size, attempt)) in taken:
                attempt += 1
            taken.add(drawn)
        return drawn


def _shuffled(size: int, attempt: int) -> tuple[int, ...]:
    # By hashes, because another version of Python may shuffle differently, and answers in ledgers would be lost.
    def place(number: int) -> bytes:
        return blake2b(f"{size} {attempt} {number}".encode(), digest_size=8).digest()

    return tuple(sorted(range(size), key=place))


def _orders_of(size: int) -> str:
    if size == 2:
        return "two labels have only one other order, which is 'order'"
    numbers = factorial(size) - 3
    last = "" if numbers < 2 else f" to 'order:{numbers + 1}'"
    return f"{size} labels have no more orders than 'order', 'order:rotated' and 'order:2'{last}"


relations.register("order")(LabelOrder)
relations.register("order:rotated")(lambda: LabelOrder("order:rotated", "rotated"))
