"""A review of all variables of a run: one text at a time, and a verdict on each of its variables."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Self

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.base.text import series
from pcs_annotator.core.events import Queue, Verdict
from pcs_annotator.core.passages import NO, YES
from pcs_annotator.reviewing.draws import Draws
from pcs_annotator.reviewing.review_queues import lock_review
from pcs_annotator.reviewing.session import Review, named
from pcs_annotator.reviewing.values import (
    FitNews,
    Given,
    Progress,
    QueueProgress,
    ReviewOptions,
    Shown,
    ShownVariable,
    guidelines_of,
)
from pcs_annotator.runs.book import Book
from pcs_annotator.runs.certificate_text import WORST_FIRST
from pcs_annotator.runs.folder_votes import Evidence
from pcs_annotator.runs.settings import TaskSettings

ANOTHER, TYPED = "another value", "typed"  # what is chosen if a value is written down, and the field that has it


class BookReview:
    """A review of all variables of a run, which the page shows; most runs have one."""

    def __init__(self, book: Book, reviews: Mapping[str, Review], options: ReviewOptions) -> None:
        self.folder, self.variables, self.reviews = book.path, book.variables, reviews
        self._parts = {name: book.parts_of(name) for name in book.variables}
        self._first = next(iter(reviews.values()))
        self._seed = options.seed
        self._use_queues()
        tasks = {f"**{name}**. {task.instruction}": task for name, task in book.variables.items()}
        self.guidelines = guidelines_of(tasks, options.guidelines) if book.named else self._first.guidelines
        notes = [f"{name}: {note}" if name else note for name, review in reviews.items() for note in review.notes]
        self.notes = list(dict.fromkeys(notes))

    @property
    def labels(self) -> Sequence[str]:
        """The labels to choose from by a single key: those of the only variable, unless it is a number."""
        only = self.reviews.get("")
        return () if only is None or only.rows.task.number else only.labels

    @classmethod
    @contextmanager
    def open(cls, book: Book, options: ReviewOptions | None = None) -> Iterator[Self]:
        """Open a run for review; nobody else can review it meanwhile. Texts of a stream have one variable."""
        with ExitStack() as stack:
            stack.enter_context(lock_review(next(iter(book.parts.values())).path))
            how = {"stream": not book.named, "locked": True}
            opened = book.each(lambda path: stack.enter_context(Review.open(path, options, **how)))
            if len({tuple(review.rows.ids) for review in opened.values()}) > 1:
                raise ConfigError(f"the variables of {book.path} have different rows: repeat pcs run for all")
            turn = threading.Lock()
            leases = next(iter(opened.values())).queues.leases
            for review in opened.values():
                review.refits.turn, review.queues.leases = (
                    turn,
                    leases,
                )  # one fit at a time; a text is in hand as a whole
            yield cls(book, opened, options or ReviewOptions())

    def _use_queues(self) -> None:
        places = {part: at for at, part in enumerate(self.reviews)}
        groups = [[places[part] for part in parts] for parts in self._parts.values()]
        self._draws = Draws([review.queues for review in self.reviews.values()], groups, self._seed)

    # ── texts ──

    def next_row(self, reviewer: str, queue: Queue) -> Shown | None:
        """Return the next text of a queue for a person, in their hands from now on; None if there is none."""
        for review in self.reviews.values():
            review.take_new_model()
        row = self._draws.next(named(reviewer), queue)
        if row is None and queue == "stream" and self._first.take_new_texts():
            self._use_queues()
            row = self._draws.next(named(reviewer), queue)
        return None if row is None else self.show(self._first.rows.ids[row], reviewer, queue)

    def why_empty(self, reviewer: str, queue: Queue) -> str:
        """Return why a queue has no text for a person now, in a sentence."""
        return self._first.why_empty(reviewer, queue)

    def trail(self, reviewer: str) -> Mapping[str, Queue]:
        """Return the texts that a person saw → the queue that showed each."""
        return {id: queue for review in self.reviews.values() for id, queue in review.trail(reviewer).items()}

    def show(self, id: str, reviewer: str, queue: Queue = "chosen") -> Shown:
        """Return a text that a person searched for or goes back to."""
        shown = {part: review.show(id, reviewer, queue) for part, review in self.reviews.items()}
        if "" in shown:
            return shown[""]
        wanted = self._wanted(self._first.rows.place(id), named(reviewer), queue)
        variables = [
            _variable(name, task, {part: shown[part] for part in self._parts[name]}, wanted)
            for name, task in self.variables.items()
        ]
        held = next((row for row in shown.values() if row.held_by), next(iter(shown.values())))
        return replace(held, variables=variables, version=sum(row.version for row in shown.values()))

    def _wanted(self, row: int, reviewer: str, queue: Queue) -> set[str]:
        """Return the parts of a text that a person may judge: somebody has to, or they did before, or chose it."""
        return {
            part
            for part, review in self.reviews.items()
            if queue == "chosen"
            or review.state.by(reviewer)[row]
            or review.queues.needed(reviewer, queue)[row]
            or (queue == "conflicts" and review.state.conflict[row])
        }

    def evidence(self, id: str, reviewer: str) -> Evidence:
        """Return what models were asked about a text and replied, unless a person must judge some variable first."""
        parts = [review.evidence(id, reviewer) for review in self.reviews.values()]
        missing = next((part.missing for part in parts if part.missing), "")
        exchanges = dict.fromkeys(exchange for part in parts for some in part.exchanges for exchange in some)
        return Evidence((), missing) if missing else Evidence([[*exchanges]])

    # ── verdicts ──

    def submit(self, answer: Given, labels: Mapping[str, str | None]) -> dict[str, Verdict]:
        """Store a verdict on every part in `labels` that was asked about; none if one cannot be stored."""
        row, who = self._first.rows.place(answer.id), named(answer.reviewer)
        wanted = {*self.reviews} if "" in self.reviews else self._wanted(row, who, answer.queue)
        verdicts = {part: replace(answer, reviewer=who, label=labels[part]) for part in labels if part in wanted}
        version = sum(review.version(row, who) for review in self.reviews.values())
        for part, verdict in verdicts.items():
            self.reviews[part].check(row, verdict, version)
        saved = {part: self.reviews[part].save(row, verdict) for part, verdict in verdicts.items()}
        self._first.queues.leases.drop(row, who)
        return saved

    def undo(self, reviewer: str) -> list[Verdict]:
        """Take back a person's verdicts on their last text, and return them."""
        latest = {part: review.state.latest_of(named(reviewer)) for part, review in self.reviews.items()}
        last = max((mine[-1] for mine in latest.values() if mine), key=lambda verdict: verdict.at, default=None)
        if last is None:
            return []
        same = [part for part, mine in latest.items() if mine and mine[-1].id == last.id]
        return [verdict for part in same for verdict in self.reviews[part].undo(reviewer)]

    # ── how far ──

    def progress(self, reviewer: str) -> Progress:
        """Return how far the review is: of every queue, how far the variable is that has most texts left."""
        by_part = {name: review.progress(reviewer) for name, review in self.reviews.items()}
        if "" in by_part:
            return by_part[""]
        each = list(by_part.values())
        queues = {
            name: QueueProgress(
                max(part.queues[name].done for part in each), max(part.queues[name].left for part in each)
            )
            for name in each[0].queues
        }
        most = max(each, key=lambda part: part.verdicts)
        return replace(most, queues=queues, fit=self._news({name: part.fit for name, part in by_part.items()}))

    def _news(self, each: Mapping[str, FitNews]) -> FitNews:
        holds = [name for name, news in each.items() if news.standing not in ("none", "revoked")]
        others = [name for name in each if name not in holds]
        promise = f"the promise holds for {series(holds)}" if holds else "no promise for any variable"
        to_go = [news.rows_to_go for news in each.values() if news.rows_to_go]
        return FitNews(
            running=any(news.running for news in each.values()),
            fits=sum(news.fits for news in each.values()),
            waiting=max(news.waiting for news in each.values()),
            changed=[f"{name}: {change}" for name, news in each.items() for change in news.changed],
            failed=next((news.failed for news in each.values() if news.failed), ""),
            standing=min((news.standing for news in each.values()), key=WORST_FIRST.index),
            promise=f"{promise}; not for {series(others)}" if holds and others else promise,
            rows_to_go=max(to_go, key=lambda ends: ends[1]) if to_go else None,
        )


def _variable(name: str, task: TaskSettings, by_part: Mapping[str, Shown], wanted: set[str]) -> ShownVariable:
    """Return a variable of a text as its parts have it: one for each label, or one."""
    parts = [*by_part.values()]

    def labels(answers: Sequence[str | None]) -> list[str] | None:
        if task.kind == "many" and any(answers):
            return [label for label, answer in zip(task.labels, answers, strict=True) if answer == YES]
        return [answer for answer in answers if answer] or None

    verdicts = [part.reviewed.by_reviewer if part.reviewed else {} for part in parts]
    people = dict.fromkeys(who for by_who in verdicts for who in by_who)
    answers = {who: labels([by_who[who].label if who in by_who else None for by_who in verdicts]) for who in people}
    probabilities = parts[0].probabilities
    if task.kind == "many":
        shown = zip(task.labels, parts, strict=True)
        probabilities = {label: part.probabilities[YES] for label, part in shown if part.probabilities}
    outcomes = [part.outcome for part in parts if part.outcome]
    decisions = {outcome.decision for outcome in outcomes}
    return ShownVariable(
        name=name,
        task=task,
        asked=not wanted.isdisjoint(by_part),
        proposed=labels([part.outcome.label if part.outcome else None for part in parts]),
        decision="review" if "review" in decisions else next(iter(decisions - {None}), None),
        probabilities=probabilities,
        said={who: chosen for who, chosen in answers.items() if chosen is not None},
        reason=next((each.reason for each in outcomes if each.decision == "review"), ""),
        parts=by_part,
    )


def answers_of(name: str, task: TaskSettings, form: Mapping[str, str]) -> Iterator[tuple[str, str | None]]:
    """Yield part and label of a variable's answer in a form; one without an answer is an error.

    A field is called like the variable; of a variable with any number of labels, fields like its parts say that a label
    applies. `""` is for a variable that the person cannot tell.
    """
    if task.kind != "many":
        if name not in form:
            raise ConfigError(f"{name} has no answer: choose one, or “can’t tell”")
        typed = task.kind == "value" and form[name] == ANOTHER
        label = form.get(f"{name}={TYPED}", "").strip() if typed else form[name]
        if typed and not label:
            raise ConfigError(f"{name} has no value: write it down, or choose one")
        yield name, label or None
        return
    chosen = [label for label in task.labels if f"{name}={label}" in form]
    if not chosen and name not in form:
        raise ConfigError(f"{name} has no answer: choose labels, “none”, or “can’t tell”")
    for label in task.labels:
        skipped = not chosen and not form[name]
        yield f"{name}={label}", None if skipped else YES if label in chosen else NO
