"""A person who reviews, for tests."""

from collections.abc import Callable

from pcs_annotator.core.events import Queue
from pcs_annotator.reviewing.session import Review
from pcs_annotator.reviewing.values import Given, Shown


def verdict(shown: Shown, label: str | None, reviewer: str = "ann") -> Given:
    """Return a verdict on a row as the page sends it."""
    return Given(
        id=shown.id,
        label=label,
        reviewer=reviewer,
        queue=shown.queue,
        lease=shown.lease,
        version=shown.version,
        seconds=2.0,
    )


def judge(
    review: Review, queue: Queue, decide: Callable[[Shown], str | None] | str | None, reviewer: str = "ann"
) -> Shown:
    """Judge the next row of a queue, and return it as it was shown."""
    shown = review.next_row(reviewer, queue)
    assert shown is not None
    label = decide(shown) if callable(decide) else decide
    review.submit(verdict(shown, label, reviewer))
    return shown
