"""Rows of a run for people who work in Label Studio, and their answers back as verdicts."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace as replaced
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pcs_annotator.base.errors import ConfigError, LabelError, TableError
from pcs_annotator.core.arrays import Integers
from pcs_annotator.core.events import BLIND, SEQUENCE, Queue, Verdict
from pcs_annotator.core.gold_codes import settled
from pcs_annotator.core.identity import same_texts, text_hash
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.passages import YES, Passage, written
from pcs_annotator.core.task import label_code
from pcs_annotator.reviewing.draws import Draws
from pcs_annotator.reviewing.passage_rows import PassageRows, read_rows
from pcs_annotator.reviewing.review_queues import Queues, lock_review
from pcs_annotator.reviewing.run_rows import DECISIONS, Rows
from pcs_annotator.reviewing.values import ReviewOptions
from pcs_annotator.runs.book import Book
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.passage_run import PassageResult
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.resolve_config import task_of
from pcs_annotator.runs.review_state import ReviewState, now
from pcs_annotator.tables import label_studio
from pcs_annotator.tables.conll import conll_page
from pcs_annotator.tables.label_studio import QUESTION, Control, RowToAnswer, StudioAnswer
from pcs_annotator.tables.passage_files import ANY_TYPE, gold_passages
from pcs_annotator.tables.write import STRICT, OutputPolicy
from pcs_annotator.verbs.fit import open_run
from pcs_annotator.version import __version__

ROWS_DRAWN, PASSAGES = 100, "passages"
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
    policy: OutputPolicy = STRICT,
) -> Exported:
    """Write rows of a run as tasks of Label Studio, and beside them the labelling interface of a project for them.

    They have this decision and neither a gold label nor a verdict, or are `all` rows, or drawn from a queue, which the
    review notes. At most `count` are written; those that were drawn before and have no verdict yet come first.
    """
    places_of, controls = _controls(path)
    settings = out.with_suffix(".xml")
    policy.check(out, [".json"])
    policy.check(settings, [".xml"])
    rows, places = _chosen(places_of, decision, count) if queue is None else _drawn(places_of, controls, queue, count)
    to_answer = list(_to_answer(rows, controls, places, queue or "chosen"))
    policy.write_page(settings, label_studio.labelling_interface(_shown(controls)))
    policy.write_page(out, label_studio.tasks_page(to_answer, VERSION))
    return Exported(len(to_answer), out, settings)


def _controls(path: Path) -> tuple[list[Path], list[Control]]:
    book = Book.open(path)
    places = [folder.home for folder in book.parts.values()]
    if not book.named:
        task, kind = task_of(config := Run.open(path).config), config.task.kind
        return places, [Control(QUESTION, kind, task.labels, task.meanings, task.instruction)]
    if values := [name for name, task in book.variables.items() if task.kind == "value"]:
        raise ConfigError(
            f"{values[0]} is a value, and Label Studio has no field for it: review {path} with pcs review"
        )
    return places, [
        Control(name, task.kind, task.labels, task.meanings, task.instruction or name, part)
        for name, task in book.variables.items()
        for part in book.parts_of(name)
    ]


def _shown(controls: Sequence[Control]) -> list[Control]:
    return list({control.name: control for control in controls}.values())


def _chosen(paths: Sequence[Path], decision: str, count: int | None) -> tuple[list[Rows], Integers]:
    every = [read_rows(path) for path in paths]
    wanted = np.full(len(every[0]), decision == "all")
    for rows in every if decision != "all" else ():
        open_rows = ~settled(same_texts(rows.run.texts), rows.gold) & (rows.run.review().coders == 0)
        wanted |= open_rows & (rows.judgement.decision == DECISIONS.index(decision))
    places: Integers = np.flatnonzero(wanted)[:count]
    if not len(places):
        which = f"with the decision {decision!r} and neither a gold label nor a verdict"
        raise TableError(f"{paths[0]} has no rows {which}: choose others with --decision")
    return every, places


def _drawn(
    paths: Sequence[Path], controls: Sequence[Control], queue: Queue, count: int | None
) -> tuple[list[Rows], Integers]:
    names = [each.name for each in controls]
    groups = [[position for position, name in enumerate(names) if name == each] for each in dict.fromkeys(names)]
    with lock_review(RunFolder.find(paths[0]).path):
        every = [read_rows(path) for path in paths]
        queues = [Queues(rows, rows.run.review(), ReviewOptions()) for rows in every]
        places = Draws(queues, groups).batch(queue, count or ROWS_DRAWN)
    if not places:
        raise TableError(f"{paths[0]} has no rows left in the queue {queue!r}: choose another queue")
    return every, np.array(places, dtype=np.intp)


def _to_answer(
    every: Sequence[Rows], controls: Sequence[Control], places: Integers, queue: Queue
) -> Iterator[RowToAnswer]:
    rows, several = every[0], bool(controls[0].part)
    columns = rows.own.take(places).to_pylist() if rows.own_columns else [{}] * len(places)
    judged = zip(*(_outcomes(each, places) for each in every), strict=True)
    for row, values, judgements in zip(places.tolist(), columns, judged, strict=True):
        outcomes = [each.for_people for each in judgements]
        about_labels = zip(controls, outcomes, strict=True)
        labels = [(control, each.label) for control, each in about_labels if each.label and control.kind != PASSAGES]
        applying = [(each.name, each.applies or label) for each, label in labels if not each.applies or label == YES]
        answers = [(each, [label for name, label in applying if name == each.name]) for each in _shown(controls)]
        proposed = {control.part: label for control, label in labels} if several else {}
        quoting = [(control, each) for control, each in zip(controls, every, strict=True) if control.kind == PASSAGES]
        about: dict[str, Any] = {"columns": values, "queue": queue, "answers": answers, "proposed": proposed}
        about["passages"] = [(control, _passages(each, row)) for control, each in quoting]
        yield RowToAnswer(text=rows.text(row), outcome=outcomes[0], **about)


def _outcomes(rows: Rows, places: Integers) -> Iterator[Outcome]:
    if isinstance(rows, PassageRows):
        return (rows.outcome(row) for row in places.tolist())
    return rows.judgement.model.judge(rows.run.votes.take(places))


def _passages(rows: Rows, row: int) -> Mapping[Passage, float | None]:
    label, _ = rows.proposal(row)
    sure = {candidate.passage: candidate.confidence for candidate in rows.candidates(row, blind=False)}
    passages = gold_passages(label, rows.text(row), ANY_TYPE, f"row {rows.ids[row]!r}") or ()
    return {passage: sure.get(passage) for passage in passages}


def export_conll(path: Path, out: Path, policy: OutputPolicy = STRICT) -> tuple[int, int]:
    """Write the passages as CoNLL with BIO tags; return how many texts, and how many passages did not fit."""
    policy.check(out, [".conll", ".bio", ".iob2"])
    result = open_run(path if not Book.open(path).named else _only_passages(path))
    if not isinstance(result, PassageResult) or result.run.extraction.is_value:
        raise ConfigError(f'{path} has no passages to write as CoNLL: name a variable with kind = "passages"')
    items = result.run.of_texts.dataset.items
    page = conll_page((item.id, item.text, result.final(row)) for row, item in enumerate(items))
    policy.write_page(out, page.text)
    return len(items), page.left_out


def _only_passages(path: Path) -> Path:
    book = Book.open(path)
    named = [book.parts[name].home for name, task in book.variables.items() if task.kind == PASSAGES]
    if len(named) != 1:
        which = f"name one of {', '.join(map(str, named))}" if named else 'it needs a variable with kind = "passages"'
        raise ConfigError(f"{path} has {len(named)} variables with passages: {which}")
    return named[0]


def import_answers(path: Path, file: Path) -> Imported:
    """Add the new answers in a Label Studio export to the verdicts of a run: all, or none if one cannot be used."""
    verdicts, seen_before, changes = list[Verdict](), 0, list[tuple[ReviewState, list[Verdict]]]()
    places, controls = _controls(path)
    with lock_review(RunFolder.find(places[0]).path):
        for run_path, control in zip(places, controls, strict=True):
            run, answers = Run.open(run_path), label_studio.read_answers(file, control)
            state = run.review()
            new = list(_new_verdicts([_checked(each, run, state) for each in answers], state))
            changes.append((state, new))
            verdicts, seen_before = [*verdicts, *new], seen_before + len(answers) - len(new)
        for state, new in changes:
            if new:
                state.add(new)
    skipped = sum(each.label is None for each in verdicts)
    return Imported(len(verdicts), skipped, seen_before, dict(Counter(each.reviewer for each in verdicts)))


def _checked(answer: StudioAnswer, run: Run, state: ReviewState) -> StudioAnswer:
    """Return an answer about a row of the run, with the label as the run spells it."""
    if answer.id not in state.places:
        raise TableError(f"{answer.where}: the run has no row {answer.id!r}: {OTHER}? {NOTHING}")
    if text_hash(answer.text) != text_hash(state.items[state.places[answer.id]].text):
        raise TableError(f"{answer.where}: row {answer.id!r} has another text in the run: {OTHER}? {NOTHING}")
    if answer.label is None:
        return answer
    if extraction := run.config.task.extraction:
        passages = gold_passages(answer.label, answer.text, extraction, answer.where)
        return replaced(answer, label=written(passages or (), extraction))
    labels = run.config.task.labels
    try:
        return replaced(answer, label=labels[label_code(answer.label, labels, answer.where)])
    except LabelError as error:
        raise LabelError(f"{error}: rename it there, or remove the answer; {NOTHING}") from None


def _new_verdicts(answers: Sequence[StudioAnswer], state: ReviewState) -> Iterator[Verdict]:
    draws = {(answer.id, answer.queue, answer.text_hash) for answer in state.draws}
    latest, number = dict(state.latest), state.last
    for answer in answers:
        before = latest.get((answer.id, answer.reviewer))
        if before is not None and not _is_news(answer, before, state):
            continue
        number += 1
        names = ("id", "label", "reviewer", "seconds", "proposed", "confidence")
        values: dict[str, Any] = {name: getattr(answer, name) for name in names} | {"blind": answer.queue in BLIND}
        queue: Queue = answer.queue if _was_drawn(answer, draws) else "chosen"
        verdict = Verdict(number=number, text_hash=text_hash(answer.text), at=answer.at or now(), queue=queue, **values)
        latest[answer.id, answer.reviewer] = verdict
        yield verdict


def _was_drawn(answer: StudioAnswer, draws: Collection[tuple[str, Queue, str]]) -> bool:
    """Return whether the queue that a file names really drew the row; queues that draw in turn count as one."""
    queues = SEQUENCE if answer.queue in SEQUENCE else [answer.queue]
    return any((answer.id, name, text_hash(answer.text)) in draws for name in queues)


def _is_news(answer: StudioAnswer, before: Verdict, state: ReviewState) -> bool:
    """Return whether a person says something else than before, or says it again after it was taken back."""
    if answer.at is not None and answer.at <= before.at:
        return False
    taken_back = before.number <= state.last and before.number not in state.standing
    other = (answer.label, text_hash(answer.text)) != (before.label, before.text_hash)
    return other or (taken_back and answer.at is not None)
