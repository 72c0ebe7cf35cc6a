"""What a job costs and how long it takes: live, in a batch, and in waves of batches; no model is called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from pcs_annotator.asking.engine.job import Job, models_of
from pcs_annotator.core.bill import Plan
from pcs_annotator.core.elicitations import calls_of, kind_of
from pcs_annotator.models.batch_apis import HOURS, PRICE_SHARE, batch_api
from pcs_annotator.runs.batch.waves import is_small

SECONDS_PER_CALL = 1.0
"""What a call is assumed to take live; a rate limit may allow fewer calls than that."""


class WayToAsk(NamedTuple):
    """One way to make the calls of a job.

    Attributes:
        name: What it is called.
        calls: Number of calls.
        usd: The most that they can cost; None if a price is unknown.
        waves: Number of waves of batches; 0 for live calls.
        hours: How long it takes: about, if live; at most, in batches.
    """

    name: str
    calls: int
    usd: float | None
    waves: int
    hours: float


def ways_to_run(job: Job, plan: Plan, in_flight: int) -> list[WayToAsk]:
    """Return the ways to ask everything; none but live calls if no model has a batch API."""
    live = _live("live", plan, in_flight)
    return [live, _batches("--executor batch", job, plan, _steps(job))] if _has_batches(job) else [live]


def ways_to_label(
    job: Job, everything: Plan, frugal: Plan | None, rounds: Sequence[float], in_flight: int
) -> list[WayToAsk]:
    """Return the ways to label new texts, with all questions and with those that their labels need.

    Args:
        job: The questions.
        everything: The plan of asking all of them.
        frugal: The plan of stopping early; None if it cannot be known when to stop.
        rounds: Questions that stopping early asks in each round, as a share of all.
        in_flight: Calls in flight per model.
    """
    ways = [_live("live, all questions", everything, in_flight)]
    if frugal is not None:
        ways.append(_live("live, stopping early", frugal, in_flight))
    if _has_batches(job):
        ways.append(_batches("--executor batch --ask-all", job, everything, _steps(job)))
        if frugal is not None:
            asked = [share * everything.calls for share in rounds]
            waves = _waves_of(asked)
            left = sum(asked[waves:]) / max(sum(asked), 1e-9)
            ways.append(_batches("--executor batch", job, frugal, _steps(job) - 1 + waves, left))
    return ways


def _has_batches(job: Job) -> bool:
    return any(batch_api(model) is not None for model in models_of(job))


def _steps(job: Job) -> int:
    """Return how many calls one after the other a vote takes: rewriting, checking the rewrite, asking, asking back."""
    rewritten = any("rewriter" in relation.needs for relation in job.relations)
    judged = rewritten and any(getattr(relation, "judged", False) for relation in job.relations)
    return 1 + rewritten + judged + any(calls_of(kind_of(one.name)) > 1 for one, _ in job.annotators)


def _waves_of(asked: Sequence[float]) -> int:
    """Return how many rounds are asked in batches before the rest is small."""
    waves = 0
    while waves < len(asked) and not is_small(asked[waves], waves, sum(asked[:waves])):
        waves += 1
    return waves


def _live(name: str, plan: Plan, in_flight: int) -> WayToAsk:
    calls: Counter[str] = Counter()
    for bill in plan.models:
        calls[bill.model] += bill.calls
    slowest = max(calls.values(), default=0)  # models are asked at the same time
    return WayToAsk(name, plan.calls, plan.usd, 0, slowest * SECONDS_PER_CALL / in_flight / 3600)


def _batches(name: str, job: Job, plan: Plan, waves: int, live_share: float = 0.0) -> WayToAsk:
    able = {model.name for model in models_of(job) if batch_api(model) is not None}
    share = live_share + (1 - live_share) * PRICE_SHARE
    prices = [bill.usd and bill.usd * (share if bill.model in able else 1.0) for bill in plan.models]
    usd = None if plan.usd is None else sum(price or 0.0 for price in prices)
    return WayToAsk(name, plan.calls, usd, waves, float(HOURS * waves))
