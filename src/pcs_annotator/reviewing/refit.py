"""Fits in the background while people review: one process at a time, then the new model replaces the old one."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from pcs_annotator.base.text import counted
from pcs_annotator.judging.promise.certificate import Certificate
from pcs_annotator.reviewing.run_rows import DECISIONS, Judgement, Rows
from pcs_annotator.reviewing.values import FitNews
from pcs_annotator.runs.certificate_text import promised, standing
from pcs_annotator.runs.fits import FitProcess, left_unused

SECONDS_TO_STOP = 5.0


class Refits:
    """Learns from verdicts in the background.

    `every` is the number of judged rows between two fits, 0 for no fits. `since` tells about how many rows people say
    something else than they did at an event of the review.
    """

    def __init__(self, rows: Rows, every: int, since: Callable[[int], int]) -> None:
        self.every, self._since = every, since
        self.fit = FitProcess(rows.run.folder.home)
        self._rows = rows
        self._thread: threading.Thread | None = None
        self._ended: Rows | str | None = None  # the rows with a new model, or why a fit failed
        self._tried = 0  # how many of those waiting the last fit learns from
        self.turn: AbstractContextManager[object] = nullcontext()  # a lock, where several reviews learn in turn
        self._news = FitNews()

    @property
    def running(self) -> bool:
        """Whether a fit is under way, or has ended and was not taken yet."""
        return self._thread is not None

    @property
    def waiting(self) -> int:
        """Rows whose verdicts the model in force has not learned from."""
        return self._since(self._rows.judgement.learned_until)

    def take(self) -> Rows | None:
        """Return the rows with a new model, if a fit has ended well since the last call."""
        if self._thread is None or self._ended is None:
            return None
        self._thread.join()
        ended, self._thread, self._ended = self._ended, None, None
        fits = self._news.fits + 1
        if isinstance(ended, str):
            # verdicts wait for the next fit, which starts when as many have come again: it may fail likewise
            self._news = replace(self._news, fits=fits, failed=ended, changed=())
            return None
        if unused := left_unused(ended.run.folder):
            changed: tuple[str, ...] = (unused,)  # the next fit waits for as many verdicts again
        else:
            self._tried, changed = 0, tuple(changes_between(self._rows.judgement, ended.judgement))
        self._rows = ended
        self._news = FitNews(fits=fits, changed=changed)
        self.start_if_due()
        return ended

    def news(self) -> FitNews:
        """Return what the last fit found, and what is promised now."""
        certificate = self._rows.judgement.model.certificate
        news = replace(self._news, running=self.running, waiting=self.waiting)
        if certificate is None:
            return news
        return replace(
            news,
            standing=standing(certificate),
            promise=promised(certificate).headline,
            rows_to_go=rows_to_go(certificate),
        )

    def wait(self, seconds: float = 60.0) -> None:
        """Wait until the fit under way has ended, for tests and for people who leave."""
        if self._thread is not None:
            self._thread.join(seconds)

    def close(self) -> None:
        """Stop the fit under way."""
        self.fit.stop()
        self.wait(SECONDS_TO_STOP)

    def start_if_due(self) -> None:
        """Start a fit if people have judged enough rows since the last one."""
        if not self.every or self.fit.stopped or self.running or self.waiting - self._tried < self.every:
            return
        self._tried = self.waiting
        self._thread = threading.Thread(target=self._fit, args=(self._rows,), name="fit", daemon=True)
        self._thread.start()

    def _fit(self, rows: Rows) -> None:
        try:
            with self.turn:
                self._ended = "the page was closed" if self.fit.stopped else self.fit.run() or rows.refitted()
        except Exception as error:  # else a thread would end in silence, and the page would wait for it
            self._ended = f"the fit in the background failed: {error}"


def changes_between(before: Judgement, after: Judgement) -> Iterator[str]:
    """Yield what a fit changed, in sentences."""
    was, now = before.model.certificate, after.model.certificate
    if before.model.calibrator is None and after.model.calibrator is not None:
        yield "labels have a confidence now"
    if now is not None and now.holds and not (was is not None and was.holds):
        yield "promise reached"
    if was is not None and was.holds and not (now is not None and now.holds):
        yield "the promise does not hold any more"
    review = DECISIONS.index("review")
    fewer = int((before.decision == review).sum() - (after.decision == review).sum())
    if fewer:
        yield f"{_rows(abs(fewer), 'fewer' if fewer > 0 else 'more')} to review"
    other = int((before.label != after.label).sum())
    if other:
        yield f"{_rows(other)} {'has' if other == 1 else 'have'} another label"
    if now is not None and (to_go := rows_to_go(now)) is not None:
        low, high = to_go
        yield f"about {low if low == high else f'{low}–{high}'} more random rows to go until a promise"


def rows_to_go(certificate: Certificate) -> tuple[int, int] | None:
    """Return how many more random gold rows make the promise as likely as not, and likely; None if that is unknown."""
    needed = certificate.rows_needed
    if certificate.holds or needed is None:
        return None
    return max(needed.even_odds - certificate.gold_rows, 1), max(needed.likely - certificate.gold_rows, 1)


def _rows(count: int, more: str = "") -> str:
    return counted(count, f"{more} row" if more else "row")
