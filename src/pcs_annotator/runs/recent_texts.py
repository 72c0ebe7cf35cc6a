"""Texts of a stream: judged together if they come together; the last few hundred are compared with those of the run."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from pcs_annotator.asking.ledger.sqlite import set_all
from pcs_annotator.base.plain import from_plain, to_plain
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.task import Item
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.model import Model, Predictions
from pcs_annotator.judging.promise.drift import Drift, Profile, drift_together, gathered, level_of_look, profiles
from pcs_annotator.runs.stream import StreamMemory

_LOG = logging.getLogger(__name__)
RECENT_TEXTS, COMPARED_EVERY = 500, 100
Profiles = Mapping[str, Profile]
GATHER_SECONDS = 0.05  # texts that are complete within this time are judged together: alone, each takes 1 ms
Keep = Callable[[Sequence[Item], Votes, Model, Predictions], None]  # puts the texts that people should see aside
NOTHING = Drift(1.0, False, "too few texts have come to compare all of them")


class RecentTexts:
    """Compares the last few hundred different texts with those of the run (`before`, see `Model.references`).

    The comparisons of a stream are all together wrong with a probability of 5 %, also if they go on after a restart:
    `memory` keeps the counts. From an alarm on, nothing is accepted until a fit has learned from texts that came later.
    If a promise is made for groups, there are comparisons of each, which share half of that probability, and of all
    texts, which tell the groups that a difference is due to; then nothing of these groups is accepted.
    """

    def __init__(self, before: Profiles, on_drift: str = "review", memory: StreamMemory | None = None) -> None:
        self._before, self._on_drift, self._memory = before, on_drift, memory
        self._texts: dict[int, None] = {}
        kept, groups = {} if memory is None else memory.recall(), [name for name in before if name]
        # that of all texts is the last one: it leaves out groups with an alarm
        shares = {**{name: 0.5 / len(groups) for name in groups}, "": 0.5 if groups else 1.0}
        self._tests = {name: _Test(share, kept.get(name)) for name, share in shares.items()}

    @property
    def found(self) -> Drift | None:
        """Whether they differ; None before the first comparison, or if the run kept nothing to compare with."""
        drift = self._tests[""].found
        groups = {name: test.found for name, test in self._tests.items() if name and test.found}
        return gathered(drift or NOTHING, groups) if groups and not (drift and drift.found) else drift

    def judged(self, model: Model, texts: Sequence[str], votes: Votes) -> tuple[Model, Predictions]:
        """Return which model judges these texts, and how."""
        judged = model.judged(votes)
        self._add(replace(votes, texts=list(texts)), judged, model)
        now = model.facing(self.found, self._on_drift)
        return now, judged if now is model else now.judged(votes)

    def _add(self, votes: Votes, judged: Predictions, model: Model) -> None:
        """Count texts, copies of recent ones excepted; compare when enough have come."""
        new = []
        for row, text in enumerate(map(hash, votes.texts or ())):
            if text not in self._texts:
                new.append(row)
                self._texts[text] = None
                if len(self._texts) > RECENT_TEXTS:
                    del self._texts[next(iter(self._texts))]
        if not self._before or not new:
            return
        fresh = votes.take(np.array(new))
        come = profiles(fresh, judged.scores[new], judged.best[new], self._before, model.familiar(fresh))
        calm = [(name, profile) for name, profile in come.items() if not self._tests[name].alarm]
        due = [test for name, test in self._tests.items() if test.add({k: v for k, v in calm if name in ("", k)})]
        for test in due:
            self._look(test)
        if due and self._memory is not None:
            self._memory.keep({name: test.to_dict() for name, test in self._tests.items()})

    def _look(self, test: "_Test") -> None:
        test.looks += 1
        now = reduce(_sum, test.blocks)
        calm = {name: profile for name, profile in self._before.items() if name in now and not self._tests[name].alarm}
        together = drift_together(calm, now, test.share * level_of_look(test.looks))
        if not test.alarm:
            test.found = together._replace(found=False)
        for name in calm if together.found else ():
            self._tests[name].found, self._tests[name].alarm = together, time.time()
            about = {"group": name or "all texts", "p_value": together.p_value}
            _LOG.warning("drift alarm for %(group)s (p = %(p_value).2g)", about)


class _Test:
    """The comparisons of a group, or of all texts, until there is an alarm."""

    def __init__(self, share: float, kept: Mapping[str, Any] | None) -> None:
        self.share = share  # of the false alarms that a stream may have
        kept = kept or {"looks": 0, "alarm": 0.0, "found": None, "blocks": []}
        self.looks, self.alarm = int(kept["looks"]), float(kept["alarm"])
        self.found: Drift | None = from_plain(Drift, kept["found"])
        self.blocks = deque(from_plain(list[Profiles], kept["blocks"]), RECENT_TEXTS // COMPARED_EVERY)
        self._block: Profiles = {}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        kept = {"looks": self.looks, "alarm": self.alarm, "found": self.found, "blocks": [*self.blocks]}
        return {name: to_plain(part) for name, part in kept.items()}

    def add(self, come: Profiles) -> bool:
        """Count texts; return whether enough have come to compare them."""
        self._block = _sum(self._block, come)
        if sum(profile.items for profile in self._block.values()) < COMPARED_EVERY:
            return False
        self.blocks.append(self._block)
        self._block = {}
        return True


def _sum(first: Profiles, other: Profiles) -> Profiles:
    return {**first, **{name: first[name].plus(part) if name in first else part for name, part in other.items()}}


class JudgeTogether:
    """Judges votes on single texts, those together that are complete at about the same time.

    What it judged is given to `keep` before anybody is told. `in_progress` returns how many texts are asked about or
    wait to be judged: if all of them wait, they are judged.
    """

    def __init__(self, model: Model, recent: RecentTexts, keep: Keep, in_progress: Callable[[], int]) -> None:
        self._model, self._recent, self._keep, self._in_progress = model, recent, keep, in_progress
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: list[tuple[Item, Votes, asyncio.Future[tuple[Outcome, tuple[float, ...]]]]] = []

    async def judge(self, item: Item, votes: Votes) -> tuple[Outcome, tuple[float, ...]]:
        """Return the outcome of one text, and the probability of every label."""
        loop = asyncio.get_running_loop()
        judged: asyncio.Future[tuple[Outcome, tuple[float, ...]]] = loop.create_future()
        self._waiting.append((item, votes, judged))
        if len(self._waiting) >= self._in_progress():  # no other will come soon
            self._judge_all()
        elif self._timer is None:
            self._timer = loop.call_later(GATHER_SECONDS, self._judge_all)
        return await judged

    def _judge_all(self) -> None:
        waiting, self._waiting = self._waiting, []
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        results: Sequence[object]
        try:
            # a text may have come twice, and would then have the same ID
            votes = Votes.joined([replace(votes, ids=[str(row)]) for row, (_, votes, _) in enumerate(waiting)])
            items = [item for item, _, _ in waiting]
            model, judged = self._recent.judged(self._model, [item.text for item in items], votes)
            self._keep(items, votes, model, judged)
            outcomes = [replace(each, id=item.id) for each, item in zip(model.judge(votes, judged), items, strict=True)]
            results = list(zip(outcomes, map(tuple, judged.deciding.tolist()), strict=True))
        except Exception as error:
            results = [error] * len(waiting)
        set_all(zip((future for _, _, future in waiting), results, strict=True))
