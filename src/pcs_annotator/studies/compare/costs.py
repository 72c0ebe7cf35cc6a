"""What each side costs: the questions that its votes are answers to, at the mean price of a call in its run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from pcs_annotator.core.bill import Bill
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.vote import NOT_ASKED
from pcs_annotator.core.votes import Votes
from pcs_annotator.runs.run_result import RunResult

PER_ROWS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SideCost:
    """What one side costs per 1,000 rows if every question is paid for, whoever has paid for it."""

    bills: tuple[Bill, ...]  # per model and purpose; models of which no call is recorded are not among them
    complete: bool  # whether all models are among them

    @property
    def calls(self) -> int:
        """All calls."""
        return sum(bill.calls for bill in self.bills)

    @property
    def tokens(self) -> tuple[int, int]:
        """All tokens, in and out."""
        return sum(bill.input_tokens for bill in self.bills), sum(bill.output_tokens for bill in self.bills)

    @property
    def usd(self) -> float | None:
        """Dollars; None when a price is unknown."""
        prices = [bill.usd for bill in self.bills]
        return None if None in prices or not self.complete else sum(price or 0.0 for price in prices)


def cost_of(run: RunResult, votes: Votes) -> SideCost:
    """Return what votes cost per 1,000 rows; they are those of a run, or of a part of it, on some of its rows."""
    recorded = {(bill.model, bill.purpose): bill for bill in run.used or run.bills if bill.calls}
    asked = (votes.codes != NOT_ASKED).sum(axis=(0, 2, 3)) / max(len(votes), 1)
    labels = [
        (recorded.get((name, "label")), float(calls)) for name, calls in zip(votes.annotators, asked, strict=True)
    ]
    rewrites = list(_rewrites(run, votes, recorded.values()))
    bills = tuple(_per_rows(bill, calls) for bill, calls in [*labels, *rewrites] if bill is not None and calls)
    return SideCost(bills=bills, complete=all(bill is not None for bill, calls in labels if calls))


def _rewrites(run: RunResult, votes: Votes, bills: Iterable[Bill]) -> Iterator[tuple[Bill, float]]:
    """Yield what a model was paid for rewriting, and its calls per row; a part needs its share of the relations."""
    of_the_question = {ORIGINAL, *(one.relation for one in run.rewrites if one.status == "original")}
    rewritten = [name for name in run.votes.relations if name not in of_the_question]
    share = len({*rewritten} & {*votes.relations}) / max(len(rewritten), 1)
    for bill in bills:
        if bill.purpose == "rewrite":
            yield bill, share * bill.calls / max(run.counts.rows, 1)


def _per_rows(bill: Bill, calls_per_row: float) -> Bill:
    """Return a bill for 1,000 rows with so many calls each."""
    calls = PER_ROWS * calls_per_row
    part = calls / bill.calls
    return replace(
        bill,
        calls=round(calls),
        input_tokens=round(part * bill.input_tokens),
        output_tokens=round(part * bill.output_tokens),
        usd=None if bill.usd is None else part * bill.usd,
    )
