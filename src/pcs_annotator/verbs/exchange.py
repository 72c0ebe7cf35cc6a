"""Rows of a run for people who work in Label Studio, and their answers back as verdicts."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace as replaced
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pcs_annotator.base.errors import LabelError, TableError
from pcs_annotator.core.arrays import Integers
from pcs_annotator.core.gold import UNLABELLED, text_hash
from pcs_annotator.core.review import BLIND, SEQUENCE, Queue, Verdict
from pcs_annotator.core.task import label_code
from pcs_annotator.runs.resolve_config import task_of
from pcs_annotator.runs.review.draws import Draws
from pcs_annotator.runs.review.queues import Queues, lock_review
from pcs_annotator.runs.review.rows import DECISIONS, Rows
from pcs_annotator.runs.review.values import ReviewOptions
from pcs_annotator.runs.review_state import ReviewState, now
from pcs_annotator.runs.run import Run
from pcs_annotator.tables import label_studio
from pcs_annotator.tables.files import check_ending, make_way, refuse_existing, write_page
from pcs_annotator.tables.label_studio import RowToAnswer, StudioAnswer
from pcs_annotator.version import __version__

ROWS_DRAWN = 100
VERSION = f"pcs {__version__}"  # who makes the proposals, for people in the other tool
NOTHING = "nothing was imported"
OTHER = "is this the export of another project, or of another run"


class Exported(NamedTuple):
    """How many rows were written to which file, and the file with the settings that a project needs for them."""

    rows: int
    file: Path
    settings: Path


class Imported(NamedTuple):
    """What a file brought."""

    verdicts: int  # new verdicts, those of skipped rows included
    skipped: int  # how many of them are of skipped rows
    known: int  # answers that were known already, or are older than what the same person has said since
    reviewers: Mapping[str, int]  # who gave the new verdicts, and how many each


def export_rows(
    path: Path,
    out: Path,
    *,
    decision: str = "review",
    queue: Queue | None = None,
    count: int | None = None,
    replace: bool = False,
) -> Exported:
    """Write rows of a run as tasks of Label Studio, and beside them the labelling interface of a project for them.

    They have this decision and neither a gold label nor a verdict, or are `all` rows, or drawn from a queue, so that it
    is known what verdicts are good for. At most `count` are written, from a queue `ROWS_DRAWN` by default. Rows of a
    queue are noted in the review; those that were drawn before and have no verdict yet come first.
    """
    beside, settings = label_studio.labelling_interface(task_of(Run.open(path).config)), out.with_suffix(".xml")
    check_ending(out, [".json"])
    for file in (out, settings):
        refuse_existing(file, replace=replace)
    rows, places = _chosen(path, decision, count) if queue is None else _drawn(path, queue, count)
    to_answer = list(_to_answer(rows, places, queue or "chosen"))
    for file in (out, settings):
        make_way(file)
    write_page(settings, beside)
    label_studio.write_tasks(out, to_answer, VERSION)
    return Exported(len(to_answer), out, settings)


def _chosen(path: Path, decision: str, count: int | None) -> tuple[Rows, Integers]:
    rows = Rows.read(path)
    if decision == "all":
        wanted = np.ones(len(rows), dtype=np.bool_)
    else:
        open_rows = (rows.gold == UNLABELLED) & (rows.run.review().coders == 0)
        wanted = open_rows & (rows.judgement.decision == DECISIONS.index(decision))
    places: Integers = np.flatnonzero(wanted)[:count]
    if not len(places):
        which = f"with the decision {decision!r} and neither a gold label nor a verdict"
        raise TableError(f"{path} has no rows {which}: choose others with --decision")
    return rows, places


def _drawn(path: Path, queue: Queue, count: int | None) -> tuple[Rows, Integers]:
    with lock_review(path):
        rows = Rows.read(path)
        places = Draws([Queues(rows, rows.run.review(), ReviewOptions())]).batch(queue, count or ROWS_DRAWN)
    if not places:
        raise TableError(f"{path} has no rows left in the queue {queue!r}: choose another queue")
    return rows, np.array(places, dtype=np.intp)


def _to_answer(rows: Rows, places: Integers, queue: Queue) -> Iterator[RowToAnswer]:
    columns = rows.own.take(places).to_pylist() if rows.own_columns else [{}] * len(places)
    outcomes = rows.judgement.model.judge(rows.run.votes.take(places))
    for place, values, outcome in zip(places.tolist(), columns, outcomes, strict=True):
        yield RowToAnswer(text=rows.text(place), outcome=outcome.for_people, columns=values, queue=queue)


def import_answers(path: Path, file: Path) -> Imported:
    """Add the answers in a Label Studio export to the verdicts of a run: all, or none if one of them cannot be used.

    Answers that are known already add nothing, so that the same file can be imported again.
    """
    run = Run.open(path)
    answers = label_studio.read_answers(file)
    with lock_review(path):
        state = run.review()
        verdicts = list(_new_verdicts([_checked(one, run, state) for one in answers], state))
        if verdicts:
            state.add(verdicts)
    skipped = sum(one.label is None for one in verdicts)
    reviewers = dict(Counter(one.reviewer for one in verdicts))
    return Imported(len(verdicts), skipped, len(answers) - len(verdicts), reviewers)


def _checked(answer: StudioAnswer, run: Run, state: ReviewState) -> StudioAnswer:
    """Return an answer about a row of the run, with the label as the run spells it."""
    if answer.id not in state.places:
        raise TableError(f"{answer.where}: the run has no row {answer.id!r}: {OTHER}? {NOTHING}")
    if text_hash(answer.text) != text_hash(state.items[state.places[answer.id]].text):
        raise TableError(f"{answer.where}: row {answer.id!r} has another text in the run: {OTHER}? {NOTHING}")
    if answer.label is None:
        return answer
    labels = run.config.task.labels
    try:
        return replaced(answer, label=labels[label_code(answer.label, labels, answer.where)])
    except LabelError as error:
        raise LabelError(f"{error}: rename it there, or remove the answer; {NOTHING}") from None


def _new_verdicts(answers: Sequence[StudioAnswer], state: ReviewState) -> Iterator[Verdict]:
    draws = {(one.id, one.queue, one.text_hash) for one in state.draws}
    latest, number = dict(state.latest), state.last
    for one in answers:
        before = latest.get((one.id, one.reviewer))
        if before is not None and not _is_news(one, before, state):
            continue
        number += 1
        names = ("id", "label", "reviewer", "seconds", "proposed", "confidence")
        given: dict[str, Any] = {name: getattr(one, name) for name in names} | {"blind": one.queue in BLIND}
        queue: Queue = one.queue if _was_drawn(one, draws) else "chosen"
        verdict = Verdict(number=number, text_hash=text_hash(one.text), at=one.at or now(), queue=queue, **given)
        latest[one.id, one.reviewer] = verdict
        yield verdict


def _was_drawn(one: StudioAnswer, draws: Collection[tuple[str, Queue, str]]) -> bool:
    """Return whether the queue that a file names really drew the row; queues that draw in turn count as one."""
    queues = SEQUENCE if one.queue in SEQUENCE else [one.queue]
    return any((one.id, name, text_hash(one.text)) in draws for name in queues)


def _is_news(one: StudioAnswer, before: Verdict, state: ReviewState) -> bool:
    """Return whether a person says something else than before, or says it again after it was taken back."""
    if one.at is not None and one.at <= before.at:
        return False
    taken_back = before.number <= state.last and before.number not in state.standing
    other = (one.label, text_hash(one.text)) != (before.label, before.text_hash)
    return other or (taken_back and one.at is not None)
