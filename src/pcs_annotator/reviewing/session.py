"""`Review`: what a page for reviewing calls. All of it is synchronous and quick, and called from one thread."""

import statistics
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
from pcs_annotator.core.review import Queue, Reviewed, Undo, Verdict, reviewer_name
from pcs_annotator.core.task import label_code
from pcs_annotator.core.variant import Variant
from pcs_annotator.judging.metrics.coefficients import Scale, cohens_kappa, krippendorffs_alpha
from pcs_annotator.reviewing.draws import Draws
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
from pcs_annotator.runs.review_state import ReviewState, now

NOT_FITTED = "this run was not fitted yet: all models count the same, and labels have no confidence, until a fit"
LONGEST_PAUSE = 600.0  # seconds; a person who took longer for a row was away
LATEST = 50  # how many verdicts pace is computed from


class Review:
    """A review of one run: rows to see, verdicts to store, and how far it is."""

    def __init__(self, rows: Rows, state: ReviewState, options: ReviewOptions) -> None:
        self._options, self._lock = options, ExitStack()
        self._use(rows, state)
        self.reviews: Mapping[str, Review] = {"": self}  # as a codebook has one for each of its parts
        self._trails: dict[str, dict[str, Queue]] = {}
        self.labels: Sequence[str] = rows.labels
        self.folder = rows.run.folder.path
        self.guidelines = guidelines_of(
            {rows.task.instruction: rows.task}, options.guidelines
        )  # for the people who review, in Markdown
        # what a person should know at the start, in sentences
        self.notes: Sequence[str] = state.notes if rows.judgement.fitted else [NOT_FITTED, *state.notes]
        for reviewer, given in state.given_by.items():
            self._trails[reviewer] = {one.id: one.queue for one in given.values()}

    def _use(self, rows: Rows, state: ReviewState) -> None:
        self.rows, self.state, self._stream_size = rows, state, _size_of(rows.run.folder.stream)
        self.queues = Queues(rows, state, self._options)
        self._draws = Draws([self.queues], seed=self._options.seed)
        self.refits = Refits(rows, self._options.refit_every, state.since)

    @classmethod
    def open(cls, path: Path, options: ReviewOptions | None = None, *, stream: bool = True) -> Self:
        """Open a run folder for review, with the texts of its stream or without; nobody else can until `close`.

        Raises:
            ConfigError: There is no run folder, or somebody else reviews it.
            TableError: A file of it cannot be read.
        """
        if not path.is_dir():
            raise ConfigError(f"there is no run folder {path}: check the name, or make one with pcs run")
        with ExitStack() as stack:
            stack.enter_context(lock_review(path))
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", PcsWarning)
                rows = Rows.read(path, stream=stream)
            review = cls(rows, rows.run.review(), options or ReviewOptions())
            review.notes = [*(str(one.message) for one in caught), *review.notes]
            review._lock = stack.pop_all()
            return review

    @classmethod
    def for_people(cls, path: Path) -> tuple["Review", Integers]:
        """Return a review that stores nothing, and its rows for people without a verdict, the least certain first."""
        rows = Rows.read(path)
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

    def _take_new_texts(self) -> bool:
        """Read the folder again if its stream has changed; return whether rows have come after those of before.

        Rows keep their places, so what people have in hand stays theirs.
        """
        if self._stream_size == _size_of(self.rows.run.folder.stream) or self.refits.running:
            return False
        rows, leases = Rows.read(self.folder), self.queues.leases
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
        place = self._draws.next(reviewer, queue)
        if place is None and queue == "stream" and self._take_new_texts():
            place = self._draws.next(reviewer, queue)
        return None if place is None else self._shown(place, reviewer, queue)

    def why_empty(self, reviewer: str, queue: Queue) -> str:
        """Return why a queue has no row for a person now, in a sentence."""
        return self.queues.why_empty(named(reviewer), queue)

    def show(self, id: str, reviewer: str, queue: Queue = "chosen") -> Shown:
        """Return a row that a person searched for or goes back to.

        Raises:
            UnknownRow: The run has no such row.
        """
        return self._shown(self.rows.place(id), named(reviewer), queue)

    def trail(self, reviewer: str) -> Mapping[str, Queue]:
        """Return the rows that a person saw, in the order in which they first saw them → the queue that showed each."""
        return self._trails.get(named(reviewer), {})

    def _shown(self, place: int, reviewer: str, queue: Queue) -> Shown:
        rows = self.rows
        holders = self.queues.leases.others(place, reviewer)
        free = self.queues.free(place, reviewer)
        lease = self.queues.leases.take(place, reviewer) if free else ""
        trail = self._trails.setdefault(reviewer, {})
        trail[rows.ids[place]] = queue if queue != "chosen" else trail.get(rows.ids[place], queue)
        blind = self.queues.blind(place, reviewer, queue)
        variants, unread = list[Variant](), ""
        try:
            variants = [] if blind else rows.rewrites.of(place)
        except TableError as error:  # the row can be judged without them
            unread = str(error)
        return Shown(
            id=rows.ids[place],
            text=rows.task.shown_pair(rows.text(place)) if rows.task.pair else rows.text(place),
            outcome=None if blind else rows.outcome(place),
            probabilities={} if blind else rows.probabilities(place),
            variants=variants,
            unread=unread,
            question=rows.question,
            questions=rows.questions,
            votes=[] if blind else rows.votes_on(place),
            gold=None if blind else rows.gold_label(place),
            reviewed=None if blind else self._visible(place, reviewer),
            columns=rows.columns(place),
            queue=queue,
            lease=lease,
            held_by="" if free else holders[0],
            version=self.version(place, reviewer),
            draw=self.queues.draw_of(place, queue),
            steps=self.labels if rows.task.number else (),
        )

    def _visible(self, place: int, reviewer: str) -> Reviewed | None:
        coded_twice = self.state.coders[place] < self.queues.wanted[place] > 1  # then the second must not see the first
        return None if coded_twice and not self.state.by(reviewer)[place] else self.state.reviewed(place)

    def version(self, place: int, reviewer: str) -> int:
        """Return what changes when a row is judged; a verdict is refused if it has changed."""
        # whoever must not see what others said is not stopped by it either
        blind = self.queues.wanted[place] > 1
        return self.state.changes.get((place, reviewer) if blind else place, 0)

    # ── verdicts ──

    def submit(self, given: Given) -> Verdict:
        """Store a verdict, and return it as it is on disk now.

        Raises:
            UnknownRow: The run has no such row.
            LabelError: The label is not one of the task's.
            LeaseExpired: The row is in somebody else's hands.
            ChangedMeanwhile: The row was judged since it was shown.
        """
        given = replace(given, reviewer=named(given.reviewer))
        place = self.rows.place(given.id)
        self.check(place, given, self.version(place, given.reviewer))
        verdict = self.save(place, given)
        self.queues.leases.drop(place, given.reviewer)
        return verdict

    def check(self, place: int, given: Given, version: int) -> None:
        """Raise if a verdict has an unknown label, or its row was judged since it was shown, or is not in hand."""
        if given.label is not None:
            label_code(given.label, self.labels, "verdict")
        if version != given.version:
            raise ChangedMeanwhile(
                f"row {given.id!r} was judged since it was shown to you: look at it again, then decide"
            )
        if not self.queues.free(place, given.reviewer):
            holder = self.queues.leases.others(place, given.reviewer)[0]
            raise LeaseExpired(f"row {given.id!r} is in the hands of {holder} now: take the next one")
        if not self.queues.leases.has(place, given.reviewer, given.lease):
            raise LeaseExpired(f"row {given.id!r} was not in your hands when it was shown: open it again")

    def save(self, place: int, given: Given) -> Verdict:
        """Store a verdict that was checked."""
        label = None if given.label is None else self.labels[label_code(given.label, self.labels, "verdict")]
        verdict = self._verdict(place, label, given, self.state.last + 1)
        self.state.add([verdict])
        self.refits.start_if_due()
        return verdict

    def _verdict(self, place: int, label: str | None, given: Given, number: int) -> Verdict:
        proposed, confidence = self.rows.proposal(place)
        return Verdict(
            number=number,
            id=self.rows.ids[place],
            text_hash=self.rows.text_hash(place),
            label=label,
            reviewer=given.reviewer,
            at=now(),
            queue=self._queue_of(place, given),
            seconds=given.seconds,
            proposed=proposed,
            confidence=confidence,
            note=given.note,
            blind=self.queues.blind(place, given.reviewer, given.queue),
        )

    def _queue_of(self, place: int, given: Given) -> Queue:
        """Return the queue if it really showed the row: what a verdict may be used for depends on it."""
        reviewed = self.state.reviewed(place)
        earlier = reviewed and reviewed.by_reviewer.get(given.reviewer)
        if earlier and earlier.queue == "conflicts":  # who settled a conflict and corrects that still settles it
            return "conflicts"
        if given.queue == "conflicts":
            return given.queue if self.state.conflict[place] else "chosen"
        if given.queue in ("stream", "finish"):
            among = self.rows.streamed if given.queue == "stream" else self.rows.to_finish[0]
            return given.queue if place in among else "chosen"
        return given.queue if self.queues.draw_of(place, given.queue) else "chosen"

    def undo(self, reviewer: str) -> list[Verdict]:
        """Take back a person's last verdict, and return it; empty if there is none."""
        verdicts = self.state.latest_of(named(reviewer))
        if verdicts:
            numbers = tuple(one.number for one in verdicts)
            self.state.add([Undo(number=self.state.last + 1, verdicts=numbers, reviewer=named(reviewer), at=now())])
        return verdicts  # no fit starts now, because rows must not lose their labels

    # ── lists ──

    def conflicts(self, reviewer: str) -> list[ListedRow]:
        """Return the rows that reviewers differ about, as the person may see them who asks."""
        return [self.listed(place, reviewer) for place in np.flatnonzero(self.state.conflict).tolist()]

    def listed(self, place: int, reviewer: str = "") -> ListedRow:
        """Return a row as a list shows it."""
        rows = self.rows
        decision, seen = DECISIONS[rows.judgement.decision[place]], self._visible(place, reviewer)
        return ListedRow(
            rows.ids[place], rows.text(place), *rows.proposal(place), decision, rows.gold_label(place), seen
        )

    # ── how far ──

    def progress(self, reviewer: str) -> Progress:
        """Return how far the review is, and the pace of one person."""
        self.take_new_model()
        state = self.state
        own = [] if not reviewer else list(state.given_by.get(named(reviewer), {}).values())
        taken = [one.seconds for one in own if one.seconds is not None and one.seconds <= LONGEST_PAUSE][-LATEST:]
        return Progress(
            rows=len(self.rows),
            reviewed=int((state.coders > 0).sum()),
            verdicts=sum(one.label is not None for one in own),
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
    files = [one.stat() for one in (stream, stream.with_name(f"{stream.name}-wal")) if one.exists()]
    return [(one.st_size, one.st_mtime_ns) for one in files]


def named(reviewer: str) -> str:
    """Return a reviewer's name as it is stored."""
    found = reviewer_name(reviewer)
    if not found:
        raise UserError("who reviews? Give a name, so that verdicts of several people can be told apart")
    return found
