"""`Review`: what a page for reviewing calls. All of it is synchronous and quick, and called from one thread."""

import statistics
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Self

import numpy as np

from pcs_annotator.base.errors import ChangedMeanwhile, ConfigError, LeaseExpired, PcsWarning, TableError, UserError
from pcs_annotator.core.arrays import Integers
from pcs_annotator.core.events import Queue, Reviewed, Undo, Verdict, reviewer_name
from pcs_annotator.core.variant import Variant
from pcs_annotator.judging.metrics.coefficients import Scale, cohens_kappa, krippendorffs_alpha
from pcs_annotator.reviewing.draws import Draws
from pcs_annotator.reviewing.passage_rows import read_rows
from pcs_annotator.reviewing.refit import Refits
from pcs_annotator.reviewing.review_queues import QUEUES, Queues, lock_review
from pcs_annotator.reviewing.run_rows import DECISIONS, Rows
from pcs_annotator.reviewing.values import (
    Given,
    ListedRow,
    Progress,
    ReviewerAgreement,
    ReviewerPair,
    ReviewOptions,
    Shown,
    guidelines_of,
)
from pcs_annotator.runs.folder_votes import Evidence, evidence_of
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.review_state import ReviewState, now

NOT_FITTED = "this run was not fitted yet: all models count the same, and labels have no confidence, until a fit"
LONGEST_PAUSE = 600.0  # seconds; a person who took longer for a row was away
LOOK_EVERY = 5.0  # seconds between looks for new texts of a stream while a backlog of it is left
LATEST = 50  # how many verdicts pace is computed from


class Review:
    """A review of one run: rows to see, verdicts to store, and how far it is."""

    def __init__(self, rows: Rows, state: ReviewState, options: ReviewOptions) -> None:
        self._options, self._lock = options, ExitStack()
        self._use(rows, state)
        self._trails: dict[str, dict[str, Queue]] = {}
        self.labels: Sequence[str] = rows.labels
        self.folder = rows.run.folder.home
        self.guidelines = guidelines_of(
            {rows.task.instruction: rows.task}, options.guidelines
        )  # for the people who review, in Markdown
        # what a person should know at the start, in sentences
        self.notes: Sequence[str] = state.notes if rows.judgement.fitted else [NOT_FITTED, *state.notes]
        for reviewer, verdicts in state.given_by.items():
            self._trails[reviewer] = {verdict.id: verdict.queue for verdict in verdicts.values()}

    def _use(self, rows: Rows, state: ReviewState) -> None:
        self.rows, self.state, self._stream_size = rows, state, _size_of(rows.run.folder.stream)
        self._looked_at = time.monotonic()
        self.queues = Queues(rows, state, self._options)
        self._draws = Draws([self.queues], seed=self._options.seed)
        self.refits = Refits(rows, self._options.refit_every, state.since)

    @classmethod
    def open(
        cls, path: Path, options: ReviewOptions | None = None, *, stream: bool = True, locked: bool = False
    ) -> Self:
        """Open a run folder for review, with the texts of its stream or without; nobody else can until `close`.

        Raises:
            ConfigError: There is no run folder, or somebody else reviews it.
            TableError: A file of it cannot be read.
        """
        if not path.is_dir():
            raise ConfigError(f"there is no run folder {path}: check the name, or make one with pcs run")
        with ExitStack() as stack:
            if not locked:
                stack.enter_context(lock_review(RunFolder.find(path).path))
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", PcsWarning)
                rows = read_rows(path, stream=stream)
            review = cls(rows, rows.run.review(), options or ReviewOptions())
            review.notes = [*(str(warning.message) for warning in caught), *review.notes]
            review._lock = stack.pop_all()
            return review

    @classmethod
    def for_people(cls, path: Path) -> tuple["Review", Integers]:
        """Return a review that stores nothing, and its rows for people without a verdict, the least certain first."""
        rows = read_rows(path)
        review = cls(rows, rows.run.review(), ReviewOptions(refit_every=0))
        waiting = np.flatnonzero((rows.judgement.decision == DECISIONS.index("review")) & (review.state.coders == 0))
        return review, waiting[np.argsort(rows.judgement.certainty[waiting], kind="stable")]

    def close(self) -> None:
        """Stop a fit in the background, and let others open the folder."""
        self.refits.close()
        self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def take_new_model(self) -> None:
        """Go on with a new model if a fit in the background has ended."""
        fitted = self.refits.take()
        if fitted is not None:
            self.rows = fitted
            self.queues.take_rows(fitted)

    def take_new_texts(self) -> bool:
        """Read the folder again if its stream has changed; return whether rows have come after those of before.

        Rows keep their places, so what people have in hand stays theirs.
        """
        if self._stream_size == _size_of(self.rows.run.folder.stream) or self.refits.running:
            return False
        rows, leases = read_rows(self.folder), self.queues.leases
        come = len(rows) > len(self.rows) and list(rows.ids[: len(self.rows)]) == list(self.rows.ids)
        if come:
            self._use(rows, rows.run.review())
            self.queues.leases = leases
        return come

    # ── rows ──

    def next_row(self, reviewer: str, queue: Queue) -> Shown | None:
        """Return the next row of a queue for a person, in their hands from now on; None if there is none."""
        reviewer = named(reviewer)
        if queue not in QUEUES:
            raise ConfigError(f"no queue is called {queue!r}: there are {', '.join(QUEUES)}")
        self.take_new_model()
        if queue == "stream" and time.monotonic() >= self._looked_at + LOOK_EVERY:
            self._looked_at = time.monotonic()
            self.take_new_texts()
        row = self._draws.next(reviewer, queue)
        if row is None and queue == "stream" and self.take_new_texts():
            row = self._draws.next(reviewer, queue)
        return None if row is None else self._shown(row, reviewer, queue)

    def why_empty(self, reviewer: str, queue: Queue) -> str:
        """Return why a queue has no row for a person now, in a sentence."""
        return self.queues.why_empty(named(reviewer), queue)

    def show(self, id: str, reviewer: str, queue: Queue = "chosen") -> Shown:
        """Return a row that a person searched for or goes back to.

        Raises:
            UnknownRow: The run has no such row.
        """
        return self._shown(self.rows.place(id), named(reviewer), queue)

    def evidence(self, id: str, reviewer: str) -> Evidence:
        """Return what models were asked about a row and replied, unless it was shown to be judged first."""
        row, run = self.rows.place(id), self.rows.run
        if self.queues.blind(row, named(reviewer), self.trail(reviewer).get(id, "chosen")):
            return Evidence((), "you judge this row first")
        return evidence_of(run.folder, run.config, [run.dataset.items[row]])

    def trail(self, reviewer: str) -> Mapping[str, Queue]:
        """Return the rows that a person saw, in the order in which they first saw them → the queue that showed each."""
        return self._trails.get(named(reviewer), {})

    def _shown(self, row: int, reviewer: str, queue: Queue) -> Shown:
        rows = self.rows
        holders = self.queues.leases.others(row, reviewer)
        free = self.queues.free(row, reviewer)
        lease = self.queues.leases.take(row, reviewer) if free else ""
        trail = self._trails.setdefault(reviewer, {})
        trail[rows.ids[row]] = queue if queue != "chosen" else trail.get(rows.ids[row], queue)
        blind = self.queues.blind(row, reviewer, queue)
        variants, unread = list[Variant](), ""
        try:
            variants = [] if blind else rows.rewrites.of(row)
        except TableError as error:  # the row can be judged without them
            unread = str(error)
        text = rows.task.shown_pair(rows.text(row)) if rows.task.pair else rows.text(row)
        return Shown(
            id=rows.ids[row],
            text=text,
            outcome=None if blind else rows.outcome(row),
            probabilities={} if blind else rows.probabilities(row),
            variants=variants,
            unread=unread,
            question=rows.question,
            questions=rows.questions,
            votes=[] if blind else rows.votes_on(row),
            gold=None if blind else rows.gold_label(row),
            reviewed=None if blind else self._visible(row, reviewer),
            columns=rows.columns(row),
            queue=queue,
            lease=lease,
            held_by="" if free else holders[0],
            version=self.version(row, reviewer),
            draw=self.queues.draw_of(row, queue),
            steps=self.labels if rows.task.number else (),
            candidates=rows.candidates(row, blind=blind),
            words=[] if blind else rows.telling_words(row, text),
        )

    def _visible(self, row: int, reviewer: str) -> Reviewed | None:
        coded_twice = self.state.coders[row] < self.queues.wanted[row] > 1  # then the second must not see the first
        return None if coded_twice and not self.state.by(reviewer)[row] else self.state.reviewed(row)

    def version(self, row: int, reviewer: str) -> int:
        """Return what changes when a row is judged; a verdict is refused if it has changed."""
        # whoever must not see what others said is not stopped by it either
        blind = self.queues.wanted[row] > 1
        return self.state.changes.get((row, reviewer) if blind else row, 0)

    # ── verdicts ──

    def submit(self, answer: Given) -> Verdict:
        """Store a verdict, and return it as it is on disk now.

        Raises:
            UnknownRow: The run has no such row.
            LabelError: The label is not one of the task's.
            LeaseExpired: The row is in somebody else's hands.
            ChangedMeanwhile: The row was judged since it was shown.
        """
        answer = replace(answer, reviewer=named(answer.reviewer))
        row = self.rows.place(answer.id)
        self.check(row, answer, self.version(row, answer.reviewer))
        verdict = self.save(row, answer)
        self.queues.leases.drop(row, answer.reviewer)
        return verdict

    def check(self, row: int, answer: Given, version: int) -> None:
        """Raise if a verdict has an unknown label, or its row was judged since it was shown, or is not in hand."""
        if answer.label is not None:
            self.rows.canonical(row, answer.label)
        if version != answer.version:
            raise ChangedMeanwhile(
                f"row {answer.id!r} was judged since it was shown to you: look at it again, then decide"
            )
        if not self.queues.free(row, answer.reviewer):
            holder = self.queues.leases.others(row, answer.reviewer)[0]
            raise LeaseExpired(f"row {answer.id!r} is in the hands of {holder} now: take the next one")
        if not self.queues.leases.has(row, answer.reviewer, answer.lease):
            raise LeaseExpired(f"row {answer.id!r} was not in your hands when it was shown: open it again")

    def save(self, row: int, answer: Given) -> Verdict:
        """Store a verdict that was checked."""
        label = None if answer.label is None else self.rows.canonical(row, answer.label)
        verdict = self._verdict(row, label, answer, self.state.last + 1)
        self.state.add([verdict])
        self.refits.start_if_due()
        return verdict

    def _verdict(self, row: int, label: str | None, answer: Given, number: int) -> Verdict:
        proposed, confidence = self.rows.proposal(row)
        return Verdict(
            number=number,
            id=self.rows.ids[row],
            text_hash=self.rows.text_hash(row),
            label=label,
            reviewer=answer.reviewer,
            at=now(),
            queue=self._queue_of(row, answer),
            seconds=answer.seconds,
            proposed=proposed,
            confidence=confidence,
            note=answer.note,
            blind=self.queues.blind(row, answer.reviewer, answer.queue),
        )

    def _queue_of(self, row: int, answer: Given) -> Queue:
        """Return the queue if it really showed the row: what a verdict may be used for depends on it."""
        reviewed = self.state.reviewed(row)
        earlier = reviewed and reviewed.by_reviewer.get(answer.reviewer)
        if earlier and earlier.queue == "conflicts":  # who settled a conflict and corrects that still settles it
            return "conflicts"
        if answer.queue == "conflicts":
            return answer.queue if self.state.conflict[row] else "chosen"
        if answer.queue in ("stream", "finish"):
            among = self.rows.streamed if answer.queue == "stream" else self.rows.to_finish[0]
            return answer.queue if row in among else "chosen"
        return answer.queue if self.queues.draw_of(row, answer.queue) else "chosen"

    def undo(self, reviewer: str) -> list[Verdict]:
        """Take back a person's last verdict, and return it; empty if there is none."""
        verdicts = self.state.latest_of(named(reviewer))
        if verdicts:
            numbers = tuple(verdict.number for verdict in verdicts)
            self.state.add([Undo(number=self.state.last + 1, verdicts=numbers, reviewer=named(reviewer), at=now())])
        return verdicts  # no fit starts now, because rows must not lose their labels

    # ── lists ──

    def conflicts(self, reviewer: str) -> list[ListedRow]:
        """Return the rows that reviewers differ about, as the person may see them who asks."""
        return [self.listed(row, reviewer) for row in np.flatnonzero(self.state.conflict).tolist()]

    def listed(self, row: int, reviewer: str = "") -> ListedRow:
        """Return a row as a list shows it."""
        rows = self.rows
        decision, seen = DECISIONS[rows.judgement.decision[row]], self._visible(row, reviewer)
        return ListedRow(rows.ids[row], rows.text(row), *rows.proposal(row), decision, rows.gold_label(row), seen)

    # ── how far ──

    def progress(self, reviewer: str) -> Progress:
        """Return how far the review is, and the pace of one person."""
        self.take_new_model()
        state = self.state
        verdicts = [] if not reviewer else list(state.given_by.get(named(reviewer), {}).values())
        taken = [
            verdict.seconds for verdict in verdicts if verdict.seconds is not None and verdict.seconds <= LONGEST_PAUSE
        ][-LATEST:]
        return Progress(
            rows=len(self.rows),
            reviewed=int((state.coders > 0).sum()),
            verdicts=sum(verdict.label is not None for verdict in verdicts),
            seconds=statistics.median(taken) if taken else None,
            per_hour=3600 * len(taken) / sum(taken) if sum(taken) else None,
            queues=self.queues.progress(),
            reviewers={name: int(mask.sum()) for name, mask in state.judged_by.items() if mask.any()},
            fit=self.refits.news(),
            goal=self.rows.to_finish[1],
        )

    def agreement(self) -> ReviewerAgreement:
        """Return how well reviewers agree on the rows that several have judged by themselves."""
        places = np.flatnonzero(self.state.coders > 1)
        labels = self.state.labels_of(places)
        pairs = []
        for (first, ours), (second, theirs) in combinations(labels.items(), 2):
            kappa = cohens_kappa(ours, theirs)
            alike = int(((ours == theirs) & (ours >= 0)).sum())
            if kappa.rows:
                pairs.append(ReviewerPair(first, second, kappa.rows, alike, kappa.value))
        scale: Scale = "ordinal" if self.rows.run.shape.ordered else "nominal"
        alpha = krippendorffs_alpha(np.array(list(labels.values())), scale) if pairs else None
        return ReviewerAgreement(pairs=pairs, alpha=alpha and alpha.value, rows=alpha.rows if alpha else 0)


def _size_of(stream: Path) -> list[tuple[int, int]]:
    """Return what changes when texts come: sizes and times of the database's file and its log."""
    files = [path.stat() for path in (stream, stream.with_name(f"{stream.name}-wal")) if path.exists()]
    return [(state.st_size, state.st_mtime_ns) for state in files]


def named(reviewer: str) -> str:
    """Return a reviewer's name as it is stored."""
    name = reviewer_name(reviewer)
    if not name:
        raise UserError("who reviews? Give a name, so that verdicts of several people can be told apart")
    return name
