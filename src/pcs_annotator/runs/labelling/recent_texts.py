"""Drift of a stream: the last few hundred texts are compared with those of the run, as they come."""

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.model import Model, Verdicts
from pcs_annotator.judging.promising.drift import Drift, Profile, drift, level_of_look, profile
from pcs_annotator.runs.stream import StreamMemory

RECENT_TEXTS, COMPARED_EVERY = 500, 100


class RecentTexts:
    """Compares the last few hundred different texts with those of the run.

    The comparisons of a stream are all together wrong with a probability of 5 %, also if they go on after a restart:
    `memory` keeps the counts. From an alarm on, nothing is accepted until a fit has learned from texts that came later.
    """

    def __init__(self, before: Profile | None, on_drift: str = "review", memory: StreamMemory | None = None) -> None:
        # whether they differ; None before the first comparison, or if the run kept nothing to compare with
        self.found: Drift | None = None
        self._before, self._on_drift, self._memory = before, on_drift, memory
        self._texts: dict[int, None] = {}
        self._block: Profile | None = None
        self._blocks: deque[Profile] = deque(maxlen=RECENT_TEXTS // COMPARED_EVERY)
        self._looks, self._alarm = 0, 0.0
        if memory is not None and (kept := memory.recall()):
            self._looks, self._alarm = kept["looks"], kept["alarm"]
            self._blocks.extend(map(Profile.from_dict, kept["blocks"]))
            self.found = kept["found"] and Drift(**kept["found"])

    def judged(self, model: Model, texts: Sequence[str], votes: Votes) -> tuple[Model, Verdicts]:
        """Return which model judges these texts, and how."""
        judged = model.judged(votes)
        self._add(texts, votes, judged.scores, judged.best)
        now = model.facing(self.found, self._on_drift)
        return now, judged if now is model else now.judged(votes)

    def _add(self, texts: Sequence[str], votes: Votes, scores: Floats, best: Codes) -> None:
        """Count texts, copies of recent ones excepted; compare when enough have come."""
        new = [row for row, text in enumerate(texts) if self._is_new(hash(text))]
        if self._before is None or not new:
            return
        part = profile(votes.take(np.array(new)), scores[new], best[new])
        self._block = part if self._block is None else _sum(self._block, part)
        if self._block.items >= COMPARED_EVERY:
            self._blocks.append(self._block)
            self._block = None
            self._look(self._before)

    def _look(self, before: Profile) -> None:
        self._looks += 1
        if self.found is None or not self.found.found:
            self.found = drift(before, reduce(_sum, self._blocks), level=level_of_look(self._looks))
            self._alarm = time.time() if self.found.found else 0.0
        if self._memory is not None:
            blocks = [one.to_dict() for one in self._blocks]
            self._memory.keep(looks=self._looks, alarm=self._alarm, found=self.found._asdict(), blocks=blocks)

    def _is_new(self, text: int) -> bool:
        if text in self._texts:
            return False
        self._texts[text] = None
        if len(self._texts) > RECENT_TEXTS:
            del self._texts[next(iter(self._texts))]
        return True


def _sum(one: Profile, other: Profile) -> Profile:
    counted = ("items", "cells", "chosen", "highest")
    return replace(one, **{name: getattr(one, name) + getattr(other, name) for name in counted})
