"""Which row a person sees next: draws with known probabilities from the queues of one variable, or of several."""

from collections.abc import Sequence
from functools import reduce
from itertools import islice

import numpy as np

from pcs_annotator.base.errors import TableError
from pcs_annotator.core.arrays import Floats, Integers, Mask
from pcs_annotator.core.events import SEQUENCE, Queue
from pcs_annotator.judging.promise.draw import Drawn, draw_at_random, draw_for_audit, draw_learning
from pcs_annotator.reviewing.review_queues import UNDRAWN, Queues


class Draws:
    """Draws rows once for all variables, which have the same rows.

    A draw of the sequence (*Random* and *Learn*) is one draw from the rows that some variable has not drawn yet. For
    one of them, it is a draw given that it fell on a row which that variable could draw, so its probability is divided
    by that of all such rows. Audits of all variables walk the same fixed random order.

    `groups` has the positions of queues that are about the same variable.
    """

    def __init__(
        self, queues: Sequence[Queues], groups: Sequence[Sequence[int]] = ((0,),), seed: int | None = None
    ) -> None:
        self._queues, self._groups = queues, groups
        self._rng = np.random.default_rng(seed)

    def next(self, reviewer: str, queue: Queue) -> int | None:
        """Return the next row for a person, drawn and stored if needed; None if the queue has none for them."""
        started = (row for queues in self._queues for row in queues.started(reviewer, queue))
        free_row = next((row for row in started if self._free(row, reviewer)), None)
        return free_row if free_row is not None or queue in UNDRAWN else self._new(reviewer, queue)

    def batch(self, queue: Queue, rows: int) -> list[int]:
        """Return several rows at once, for people who work elsewhere: open ones, then new draws."""
        started = dict.fromkeys(row for queues in self._queues for row in queues.started("", queue))
        batch = list(islice(started, rows))
        while len(batch) < rows and (row := self._new("", queue)) is not None:
            batch.append(row)
        return batch

    def _free(self, row: int, reviewer: str) -> bool:
        return all(queues.free(row, reviewer) for queues in self._queues)

    def _new(self, reviewer: str, queue: Queue) -> int | None:
        row = self._until_needed(reviewer, queue)
        try:
            for queues in self._queues:
                queues.store_draws()
        except TableError:
            for queues in self._queues:
                queues.forget_draws()
            raise
        return row

    def _until_needed(self, reviewer: str, queue: Queue) -> int | None:
        """Draw until a person can have the row; one that has a label already counts as drawn from now on."""
        needed = reduce(np.logical_or, [queues.needed(reviewer, queue) for queues in self._queues])
        while True:
            masks = [queues.drawable(queue) for queues in self._queues]
            drawable = reduce(np.logical_or, masks)
            if not (drawable & needed).any():  # all others would be drawn in vain
                return None
            row = self._draw(queue, masks, drawable)
            if needed[row] and self._free(row, reviewer):
                return row

    def _draw(self, queue: Queue, masks: Sequence[Mask], drawable: Mask) -> int:
        """Draw a row for all variables that could draw it."""
        order, reached = self._order()
        if queue == "audit":
            drawn = draw_for_audit(self._queues[0].order[::-1], drawable)
        elif queue == "random":
            drawn = draw_at_random(order, reached, ~drawable, self._rng)
        elif queue == "learn":
            ranked = self._most_needed(masks, [queues.teaching for queues in self._queues])
            drawn = draw_learning(order, reached, ~drawable, ranked, self._rng)
        else:
            ranked = self._most_needed(masks, [queues.doubtful for queues in self._queues])
            drawn = Drawn(int(ranked[drawable[ranked]][0]), 1.0, 0, 0, drawable.astype(float))
        for queues, mask in zip(self._queues, masks, strict=True):
            if mask[drawn.row]:
                chance = float(drawn.chances[drawn.row] / drawn.chances[mask].sum())
                walked = int((~queues.sequence.outside[order[: drawn.reached]]).sum())
                inside = max(queues.sequence.reached, walked) if queue in SEQUENCE else 0
                queues.take_draw(queue, Drawn(drawn.row, min(chance, 1.0), int(mask.sum()), inside))
        return drawn.row

    def _order(self) -> tuple[Integers, int]:
        """Return the fixed random order of all rows that some variable draws from, and how far all have reached."""
        outside = reduce(np.logical_and, [queues.sequence.outside for queues in self._queues])
        order = self._queues[0].order
        order = order[~outside[order]]
        waiting = np.zeros(len(outside), dtype=np.bool_)
        for queues in self._queues:
            waiting[queues.sequence.order[queues.sequence.reached :]] = True
        ahead = np.flatnonzero(waiting[order])
        return order, int(ahead[0]) if len(ahead) else len(order)

    def _most_needed(self, masks: Sequence[Mask], ranked: Sequence[Integers]) -> Integers:
        """Return all rows: those on which most variables need a person first, then the least certain ones."""
        if len(ranked) == 1:
            return ranked[0]
        accepted = [queues.rows.judgement.accepted for queues in self._queues]
        open_for = [mask & ~sure for mask, sure in zip(masks, accepted, strict=True)]
        need = sum(reduce(np.logical_or, [open_for[part] for part in parts]).astype(int) for parts in self._groups)
        places: Floats = np.zeros(len(masks[0]))
        for order in ranked:
            places[order] += np.arange(len(order))
        return np.lexsort((places, -np.asarray(need)))
