"""What has happened so far in a run: the numbers behind progress and summary."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Tally:
    """Counters of a run; the engine writes them, everybody else reads.

    Attributes:
        rows: Items finished.
        rows_expected: Items to come in all; None when unknown.
        calls: Calls answered, and so paid for, in this run.
        from_ledger: Answers that had been paid for before.
        questions: Questions to annotators that were needed, whether answered by a call, by the ledger or not at all.
        spared: Questions to annotators that nobody had to be asked because the label was settled before.
        retries: Attempts that had to be repeated, by what went wrong.
        silences: Votes without a label, by reason.
        failed: Questions without an answer, by reason; the next run asks them again.
        cut: Votes on a text that was too long and had to be cut.
    """

    rows: int = 0
    rows_expected: int | None = None
    calls: int = 0
    from_ledger: int = 0
    questions: int = 0
    spared: int = 0
    retries: Counter[str] = field(default_factory=Counter)
    silences: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    cut: int = 0
