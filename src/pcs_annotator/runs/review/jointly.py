"""A review of all variables of a codebook: one text at a time, and a verdict on each variable in its own log."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import reduce
from typing import Self

import numpy as np

from pcs_annotator.asking.annotators.together import NO, YES
from pcs_annotator.base.errors import ConfigError, LeaseExpired
from pcs_annotator.base.text import series
from pcs_annotator.core.arrays import Floats, Integers, Mask
from pcs_annotator.core.review import SEQUENCE, Queue, Verdict
from pcs_annotator.judging.promising.review_design import (
    AT_RANDOM,
    Drawn,
    draw_at_random,
    draw_for_audit,
    draw_learning,
    learning_distribution,
)
from pcs_annotator.runs.codebook import CodebookFolder
from pcs_annotator.runs.review.queues import UNDRAWN, Queues
from pcs_annotator.runs.review.session import Review, guidelines_of, named
from pcs_annotator.runs.review.values import (
    AcceptedRows,
    FitNews,
    FoundRows,
    Given,
    Progress,
    Query,
    QueueProgress,
    ReviewOptions,
    Shown,
)
from pcs_annotator.runs.settings import TaskSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownVariable:
    """One variable of a text for a person to decide."""

    name: str
    task: TaskSettings
    parts: Mapping[str, Shown]  # label → whether it applies, for a variable with any number of them; else "" → its row
    asked: bool  # whether a verdict on it is wanted

    def proposed(self) -> set[str]:
        """Return the labels that the models give; none if they are hidden."""
        if self.task.kind != "many":
            return {shown.outcome.label for shown in self.parts.values() if shown.outcome and shown.outcome.label}
        return {label for label, one in self.parts.items() if one.outcome and one.outcome.label == YES}

    def given_by(self, reviewer: str) -> set[str] | None:
        """Return the labels that a person gave earlier; None if they gave no verdict, or skipped it."""
        found = [shown.reviewed and shown.reviewed.by_reviewer.get(reviewer) for shown in self.parts.values()]
        labels = {label: one.label for label, one in zip(self.parts, found, strict=True) if one}
        if self.task.kind != "many":
            return {label for label in labels.values() if label} or None
        return {label for label, said in labels.items() if said == YES} if any(labels.values()) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownText:
    """A text with all variables of a codebook."""

    row: Shown  # what all variables have in common: ID, text, columns, queue
    variables: Sequence[ShownVariable]
    lease: str  # give both back with the verdicts
    version: str

    @property
    def id(self) -> str:
        """The ID of the text."""
        return self.row.id

    @property
    def queue(self) -> Queue:
        """The queue that shows it."""
        return self.row.queue


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenText:
    """A person's verdicts on a text: part of the codebook → label, None for a skipped one."""

    labels: Mapping[str, str | None]
    common: Given  # everything else; its label is not used
    lease: str
    version: str


class JointQueues:
    """Draws texts once for all variables.

    A draw of the sequence (*Random* and *Learn*) is one draw from the texts that some variable has not drawn yet. For
    one of them, it is a draw given that it fell on a text which that variable could draw, so its probability is divided
    by that of all such texts. Audits of all variables walk the same fixed random order.
    """

    def __init__(self, queues: Sequence[Queues], variables: Sequence[Sequence[int]], seed: int | None) -> None:
        self._queues, self._variables = queues, variables
        self._rng = np.random.default_rng(seed)

    def next(self, reviewer: str, queue: Queue) -> int | None:
        """Return the next text for a person, drawn and stored if needed; None if the queue has none for them."""
        open_texts = (place for one in self._queues for place in one.started(reviewer, queue))
        found = next((place for place in open_texts if self._free(place, reviewer)), None)
        if found is not None or queue in UNDRAWN:
            return found
        needed = reduce(np.logical_or, [one.needed(reviewer, queue) for one in self._queues])
        while True:
            masks = [one.drawable(queue) for one in self._queues]
            drawable = reduce(np.logical_or, masks)
            if not (drawable & needed).any():  # all others would be drawn in vain
                return None
            place = self._draw(queue, masks, drawable)
            if needed[place] and self._free(place, reviewer):
                return place

    def _free(self, place: int, reviewer: str) -> bool:
        return all(one.free(place, reviewer) for one in self._queues)

    def _draw(self, queue: Queue, masks: Sequence[Mask], drawable: Mask) -> int:
        """Draw a text, and store that in the log of every variable that could draw it."""
        backwards = self._queues[0].order[::-1]
        if queue in SEQUENCE:
            place, draws = self._in_sequence(queue, masks, drawable)
        elif queue == "audit":
            place = draw_for_audit(backwards, drawable).row
            draws = [draw_for_audit(backwards, mask) if mask[place] else None for mask in masks]
        else:
            ranked = self._most_needed(masks, [one.doubtful for one in self._queues])
            place = int(ranked[drawable[ranked]][0])
            draws = [Drawn(place, 1.0, int(mask.sum()), 0) if mask[place] else None for mask in masks]
        for one, drawn in zip(self._queues, draws, strict=True):
            if drawn is not None:
                one.take_draw(queue, drawn)
        return place

    def _in_sequence(self, queue: Queue, masks: Sequence[Mask], drawable: Mask) -> tuple[int, list[Drawn | None]]:
        order, reached = self._order()
        ranked = self._most_needed(masks, [one.teaching for one in self._queues])
        if queue == "random":
            at_random, preferred = 1.0, drawable / drawable.sum()
            drawn = draw_at_random(order, reached, ~drawable, self._rng)
        else:
            at_random, preferred = AT_RANDOM, learning_distribution(ranked, ~drawable)
            drawn = draw_learning(order, reached, ~drawable, ranked, self._rng)
        advance = at_random / (len(order) - reached)
        chances = np.where(drawable, advance + (1 - advance * drawn.pool) * preferred, 0)
        walked = order[: drawn.reached]
        draws: list[Drawn | None] = []
        for one, mask in zip(self._queues, masks, strict=True):
            inside = int((~one.sequence.outside[walked]).sum())
            probability = float(chances[drawn.row] / chances[mask].sum()) if mask[drawn.row] else 0.0
            found = Drawn(drawn.row, min(probability, 1.0), int(mask.sum()), max(inside, one.sequence.reached))
            draws.append(found if mask[drawn.row] else None)
        return drawn.row, draws

    def _order(self) -> tuple[Integers, int]:
        """Return the fixed random order of all texts that some variable draws from, and how far all have reached."""
        outside = reduce(np.logical_and, [one.sequence.outside for one in self._queues])
        order = self._queues[0].order
        order = order[~outside[order]]
        waiting = np.zeros(len(outside), dtype=np.bool_)
        for one in self._queues:
            waiting[one.sequence.order[one.sequence.reached :]] = True
        ahead = np.flatnonzero(waiting[order])
        return order, int(ahead[0]) if len(ahead) else len(order)

    def _most_needed(self, masks: Sequence[Mask], ranked: Sequence[Integers]) -> Integers:
        """Return all texts: those on which most variables need a person first, then the least certain ones."""
        accepted = [one.rows.judgement.accepted for one in self._queues]
        open_for = [mask & ~sure for mask, sure in zip(masks, accepted, strict=True)]
        need = sum(reduce(np.logical_or, [open_for[part] for part in parts]).astype(int) for parts in self._variables)
        places: Floats = np.zeros(len(masks[0]))
        for one in ranked:
            places[one] += np.arange(len(one))
        return np.lexsort((places, -np.asarray(need)))


class CodebookReview:
    """A review of all variables of a codebook, for the same page as `Review`."""

    def __init__(self, book: CodebookFolder, reviews: Mapping[str, Review], options: ReviewOptions) -> None:
        self.folder, self.variables, self.reviews = book.path, book.variables, reviews
        self._parts = {name: book.parts_of(name) for name in book.variables}
        self._first = next(iter(reviews.values()))
        self.columns = self._first.columns
        places = {part: at for at, part in enumerate(reviews)}
        groups = [[places[part] for part in parts] for parts in self._parts.values()]
        self._queues = JointQueues([one.queues for one in reviews.values()], groups, options.seed)
        self.guidelines = guidelines_of(
            {f"**{name}**. {task.instruction}": task for name, task in book.variables.items()}, options.guidelines
        )
        self.notes = list(dict.fromkeys(f"{name}: {note}" for name, one in reviews.items() for note in one.notes))
        self._stack = ExitStack()

    @classmethod
    def open(cls, book: CodebookFolder, options: ReviewOptions | None = None) -> Self:
        """Open a codebook for review; nobody else can review one of its variables until `close`."""
        with ExitStack() as stack:
            opened = book.each(lambda place: stack.enter_context(Review.open(place, options, stream=False)))
            if len({tuple(one.rows.ids) for one in opened.values()}) > 1:
                raise ConfigError(f"the variables of {book.path} have different rows: pcs run, once more, for all")
            turn = threading.Lock()
            for one in opened.values():
                one.refits.turn = turn  # one fit at a time
            review = cls(book, opened, options or ReviewOptions())
            review._stack = stack.pop_all()
            return review

    def close(self) -> None:
        """Stop a fit in the background, and let others open the folders."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ── texts ──

    def next_row(self, reviewer: str, queue: Queue) -> ShownText | None:
        """Return the next text of a queue for a person, in their hands from now on; None if there is none."""
        for one in self.reviews.values():
            one.take_new_model()
        place = self._queues.next(named(reviewer), queue)
        return None if place is None else self.show(self._first.rows.ids[place], reviewer, queue)

    def why_empty(self, reviewer: str, queue: Queue) -> str:
        """Return why a queue has no text for a person now, in a sentence."""
        return self._first.why_empty(reviewer, queue)

    def trail(self, reviewer: str) -> Mapping[str, Queue]:
        """Return the texts that a person saw → the queue that showed each."""
        return {id: queue for one in self.reviews.values() for id, queue in one.trail(reviewer).items()}

    def show(self, id: str, reviewer: str, queue: Queue = "chosen") -> ShownText:
        """Return a text that a person searched for or goes back to."""
        shown = {part: one.show(id, reviewer, queue) for part, one in self.reviews.items()}
        place = self._first.rows.place(id)
        wanted = {part: self._wanted(part, place, named(reviewer), queue) for part in shown}
        variables = []
        for name, parts in self._parts.items():
            task = self.variables[name]
            labels = task.labels if task.kind == "many" else ("",)
            rows = {label: shown[part] for label, part in zip(labels, parts, strict=True)}
            asked = any(wanted[part] for part in parts)
            variables.append(ShownVariable(name=name, task=task, parts=rows, asked=asked))
        return ShownText(
            row=next(iter(shown.values())),
            variables=variables,
            lease=" ".join(one.lease for one in shown.values()),
            version=" ".join(str(one.version) for one in shown.values()),
        )

    def _wanted(self, part: str, place: int, reviewer: str, queue: Queue) -> bool:
        """Return whether a person may judge a part of a text: nobody has to, or they did before, or they chose it."""
        one = self.reviews[part]
        own, needed = one.state.by(reviewer)[place], one.queues.needed(reviewer, queue)[place]
        return bool(own or needed or queue == "chosen" or (queue == "conflicts" and one.state.conflict[place]))

    # ── verdicts ──

    def submit(self, given: GivenText) -> dict[str, Verdict]:
        """Store a verdict on every variable that was asked about, and return them; none if one cannot be stored."""
        leases, versions = given.lease.split(" "), given.version.split(" ")
        if not len(leases) == len(versions) == len(self.reviews):
            raise LeaseExpired("the form is of another review: take the next text")
        place = self._first.rows.place(given.common.id)
        who, queue = named(given.common.reviewer), given.common.queue
        verdicts = {}
        for (part, one), lease, version in zip(self.reviews.items(), leases, versions, strict=True):
            if part in given.labels and self._wanted(part, place, who, queue):
                label = given.labels[part]
                verdicts[part] = replace(given.common, reviewer=who, label=label, lease=lease, version=int(version))
                one.check_lease(place, verdicts[part])
                if label is not None and label not in one.labels:
                    raise ConfigError(f"{label!r} is not a label of {part}: reload the page")
        saved = {part: self.reviews[part].submit(one) for part, one in verdicts.items()}
        for one in self.reviews.values():
            one.queues.leases.drop(place, who)
        return saved

    def undo(self, reviewer: str) -> list[Verdict]:
        """Take back a person's verdicts on their last text, or those that they gave together, and return them."""
        latest = {part: one.state.latest_of(named(reviewer)) for part, one in self.reviews.items()}
        last = max((given[-1] for given in latest.values() if given), key=lambda one: one.at, default=None)
        if last is None:
            return []
        same = [
            part for part, given in latest.items() if given and (given[-1].id, given[-1].group) == (last.id, last.group)
        ]
        return [one for part in same for one in self.reviews[part].undo(reviewer)]

    # ── lists of one variable ──

    def review_of(self, query: Query) -> Review:
        """Return the review of the variable that a query is about."""
        if query.variable and query.variable not in self.reviews:
            raise ConfigError(f"variable={query.variable!r} is not one of {', '.join(self.reviews)}")
        return self.reviews[query.variable] if query.variable else self._first

    def find(self, query: Query, reviewer: str = "") -> FoundRows:
        """Return the rows of a query."""
        return self.review_of(query).find(query, reviewer)

    def accept_all(self, query: Query, reviewer: str, expected: int, fits: int | None = None) -> AcceptedRows:
        """Accept the models' labels of one variable; see `Review.accept_all`."""
        return self.review_of(query).accept_all(query, reviewer, expected, fits)

    # ── how far ──

    def progress(self, reviewer: str) -> Progress:
        """Return how far the review is: of every queue, how far the variable is that has most texts left."""
        each = [one.progress(reviewer) for one in self.reviews.values()]
        queues = {
            name: QueueProgress(max(one.queues[name].done for one in each), max(one.queues[name].left for one in each))
            for name in each[0].queues
        }
        most = max(each, key=lambda one: one.verdicts)
        return replace(
            most, queues=queues, fit=self._news(dict(zip(self.reviews, (one.fit for one in each), strict=True)))
        )

    def _news(self, each: Mapping[str, FitNews]) -> FitNews:
        holds = [name for name, one in each.items() if one.holds]
        others = [name for name in each if name not in holds]
        said = f"the promise holds for {series(holds)}" if holds else "no promise for any variable"
        to_go = [one.rows_to_go for one in each.values() if one.rows_to_go]
        return FitNews(
            running=any(one.running for one in each.values()),
            fits=sum(one.fits for one in each.values()),
            waiting=max(one.waiting for one in each.values()),
            changed=[f"{name}: {change}" for name, one in each.items() for change in one.changed],
            failed=next((one.failed for one in each.values() if one.failed), ""),
            holds=not others,
            promise=f"{said}; not for {series(others)}" if holds and others else said,
            rows_to_go=max(to_go, key=lambda ends: ends[1]) if to_go else None,
        )


def answers_of(name: str, task: TaskSettings, form: Mapping[str, str]) -> Iterator[tuple[str, str | None]]:
    """Yield part and label of a variable's answer in a form; one without an answer is an error.

    A field is called like the variable; of a variable with any number of labels, fields like its parts say that a label
    applies. `""` is for a variable that the person cannot tell.
    """
    if task.kind != "many":
        if name not in form:
            raise ConfigError(f"{name} has no answer: choose one, or “can’t tell”")
        yield name, form[name] or None
        return
    chosen = [label for label in task.labels if f"{name}={label}" in form]
    if not chosen and name not in form:
        raise ConfigError(f"{name} has no answer: choose labels, “none”, or “can’t tell”")
    for label in task.labels:
        skipped = not chosen and not form[name]
        yield f"{name}={label}", None if skipped else YES if label in chosen else NO
