"""Files for and from people: rows to label, accepted rows to check, gold labels and verdicts."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pcs_annotator.base.errors import GoldError, PcsWarning, TableError
from pcs_annotator.base.text import listed
from pcs_annotator.core.arrays import Integers, Mask
from pcs_annotator.core.copies import same_texts
from pcs_annotator.core.gold import (
    UNLABELLED,
    as_known,
    cell_key,
    gold_codes,
    refuse_contradictions,
    same_text,
    text_hash,
)
from pcs_annotator.core.task import Item, label_lookup, unknown_label
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promising.certificate import draw_rows
from pcs_annotator.judging.promising.informative import review_order, rows_to_label
from pcs_annotator.runs.files import human_files
from pcs_annotator.runs.files.runs import RunFolder
from pcs_annotator.runs.verdicts import Verdicts, read_verdicts
from pcs_annotator.tables.files import set_aside
from pcs_annotator.tables.table_files import AS_FOUND, Reading
from pcs_annotator.tables.tables import Columns, Dataset

ROWS_TO_LABEL = 30
MOST_ROWS_TO_LABEL = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class FromPeople:
    """Files that people filled in, and how many rows to write for them next.

    Attributes:
        gold: A file with gold labels, such as `to_label.csv` filled in.
        verdicts: A file with verdicts on accepted rows, `audit.csv` filled in.
        audit: How many accepted rows to draw for a person to check.
        to_label: How many rows to write for a person to label.
        gold_wins: Whether to accept labels in `gold` that contradict the data or each other.
        reading: How these files are to be read.
    """

    gold: Path | None = None
    verdicts: Path | None = None
    audit: int = 0
    to_label: int = ROWS_TO_LABEL
    gold_wins: bool = False
    reading: Reading = AS_FOUND


class Gold(NamedTuple):
    """Gold labels of a run, including those that people added after the run.

    Attributes:
        labels: For every item its label, or None.
        random_sample: Which labels can support a promise: those of rows that we drew at random, and those that came
            with the data, unless we know that the row was chosen otherwise.
        assumed: Which of these came with the data, so that we only assume that they are a random sample.
        verdicts: What people said in a review; labels include those to learn from.
    """

    labels: tuple[str | None, ...]
    random_sample: Mask
    assumed: Mask
    verdicts: Verdicts = Verdicts()


def gold_of(folder: RunFolder | None, dataset: Dataset, until: int | None = None) -> Gold:
    """Return the gold labels of a run: those of its data, overridden by those that people gave for the same texts.

    Verdicts of a review override both, or those until one of its events. Without a folder, those of the data.
    """
    items = dataset.items
    labels: list[str | None] = list(dataset.gold) if dataset.gold else [None] * len(items)
    random_sample, assumed = np.zeros((2, len(items)), dtype=np.bool_)
    drawn = kinds_by_row(folder)
    for place, label in enumerate(labels):
        if label is not None:
            kinds = drawn.get((items[place].id, text_hash(items[place].text)), set()) if drawn else set()
            random_sample[place] = kinds <= {"at random"}
            assumed[place] = not kinds
    for place, one in labels_by_people(folder, items).items():
        if labels[place] is None or one.kind != "by a person":
            random_sample[place] = one.kind == "at random"
            assumed[place] = False
        labels[place] = one.label
    verdicts = read_verdicts(folder, dataset, until)
    for place, label in verdicts.gold.items():
        if place in verdicts.at_random:
            random_sample[place], assumed[place] = True, False
        labels[place] = label
    return Gold(tuple(labels), random_sample, assumed, verdicts)


def kinds_by_row(folder: RunFolder | None) -> dict[tuple[str, str], set[str]]:
    """Return id and text hash → how the row was chosen, of all rows that were ever written out for people."""
    found: dict[tuple[str, str], set[str]] = {}
    for one in drawn_before(folder) if folder else ():
        found.setdefault((one.id, one.text_hash), set()).add(one.kind)
    return found


def labels_by_people(folder: RunFolder | None, items: Sequence[Item]) -> dict[int, human_files.GivenGold]:
    """Return row → the label that a person gave; labels of texts that have changed are left out, with a warning."""
    if folder is None or not folder.gold.exists():
        return {}
    given = human_files.read_gold(folder.gold)
    found = _of_these_texts(given, items)
    known = {item.id for item in items}
    _warn_of_other_texts(folder.gold.name, sorted({one.id for one in given} & known - {items[row].id for row in found}))
    return found


def _of_these_texts(given: Iterable[human_files.GivenGold], items: Sequence[Item]) -> dict[int, human_files.GivenGold]:
    """Return row → label, for rows whose text is still the one that was labelled; with the hash of that text."""
    places = {item.id: place for place, item in enumerate(items)}
    found = {}
    for one in given:
        if one.id in places:
            hashed = text_hash(items[places[one.id]].text)
            if one.text_hash in ("", hashed):  # an earlier version stored none
                found[places[one.id]] = one._replace(text_hash=hashed)
    return found


def _warn_of_other_texts(file: str, ids: Sequence[str]) -> None:
    if ids:
        names = listed(map(repr, ids), len(ids))
        warnings.warn(
            f"{file}: labels given for other texts are not used: {len(ids)} ({names})", PcsWarning, stacklevel=4
        )


def check_gold(folder: RunFolder | None, dataset: Dataset) -> None:
    """Raise if gold labels contradict each other: of people and data for one row, or of rows with the same text."""
    _check_gold(dataset, labels_by_people(folder, dataset.items), None, folder.gold.name if folder else "")


def _check_gold(
    dataset: Dataset, people: Mapping[int, human_files.GivenGold], new: Collection[str] | None, file: str
) -> None:
    """Raise if labels contradict each other; if some rows are `new`, what others said was accepted when it came."""
    items = dataset.items
    labels: list[str | None] = list(dataset.gold) if dataset.gold else [None] * len(items)
    given = {one.id: one.label for one in people.values() if new is None or one.id in new}
    refuse_other_labels([item.id for item in items], labels, given, (file, dataset.name))
    for place, one in people.items():
        labels[place] = one.label
    if new is not None:
        texts = {item.text.strip() for item in items if item.id in new}
        labels = [label if item.text.strip() in texts else None for item, label in zip(items, labels, strict=True)]
    refuse_contradictions([item.text for item in items], labels, dataset.name)


def refuse_other_labels(
    ids: Sequence[str], labels: Sequence[str | None], given: Mapping[str, str], files: tuple[str, str]
) -> None:
    """Raise if a person gave rows another label than the data has for them."""
    pairs = [(name, given[name], label) for name, label in zip(ids, labels, strict=True) if label and name in given]
    other = [f"{name!r} ({ours!r}, {theirs!r})" for name, ours, theirs in pairs if ours.casefold() != theirs.casefold()]
    if other:
        raise GoldError(
            f"{files[0]} and {files[1]} give different gold labels to {len(other)} rows: {listed(other, len(other))}: "
            f"correct one of the two, or let {files[0]} win with --gold-wins"
        )


def take_gold(people: FromPeople, folder: RunFolder, dataset: Dataset, labels: Sequence[str]) -> None:
    """Add the labels of a person's file to those of a run; later files win over earlier ones.

    A row counts as drawn at random only if the file says so and we drew it. Labels of other texts are left out, with a
    warning.

    Args:
        people: The file, and how to read it.
        folder: The run.
        dataset: The texts and gold labels of the run.
        labels: The label set.
    """
    assert people.gold is not None
    path, wins = people.gold, people.gold_wins
    texts = {item.id: item.text for item in dataset.items}
    lookup = label_lookup(labels)
    given = read_labels(people, texts, labels, "run", dataset.columns)
    for one in given:
        if one.label.casefold() not in lookup:
            raise unknown_label(one.label, labels, f"{path.name}, row {one.row}, column gold")
    before = human_files.read_gold(folder.gold) if folder.gold.exists() else []
    drawn = kinds_by_row(folder) if folder.drawn.exists() else None
    merged = {one.id: one for one in before}
    for one in given:
        hashed = text_hash(texts[one.id])
        # a folder made by an earlier version does not know what was drawn
        ours = drawn is None or one.kind in drawn.get((one.id, hashed), ())
        merged[one.id] = one._replace(text_hash=hashed, kind=one.kind if ours else "by a person")
    current = _of_these_texts(merged.values(), dataset.items)
    if not wins:
        _check_gold(dataset, current, {one.id for one in given}, path.name)
    merged.update((one.id, one) for one in current.values())
    human_files.write_gold(folder.gold, merged.values())


def read_labels(
    people: FromPeople, texts: Mapping[str, str], labels: Sequence[str], source: str, used: Columns | None = None
) -> list[human_files.GivenGold]:
    """Return the labels of a person's file without those for other texts; the last of several for one row wins.

    Ids and labels that a spreadsheet changed, such as `1.0` for `1`, are those of the data.

    Args:
        people: The file, and how to read it.
        texts: Item id → text; empty where the text is unknown.
        labels: The label set.
        source: What has no such id, for messages.
        used: The columns of the data, which the file may have too.
    """
    assert people.gold is not None
    path, wins = people.gold, people.gold_wins
    found: dict[str, human_files.GivenGold] = {}
    other = []
    known_id, known_label = as_known(texts), as_known(labels)
    for cells in human_files.read_gold(path, used, people.reading):
        one = cells._replace(id=known_id(cells.id), label=known_label(cells.label))
        if one.id not in texts:
            raise TableError(f"{path.name}, row {one.row}: the {source} has no text with the id {one.id!r}")
        if one.text and texts[one.id] and not same_text(one.text, texts[one.id]):
            other.append(one.id)
            continue
        first = found.get(one.id, one)
        if first.label.casefold() != one.label.casefold() and not wins:
            raise GoldError(
                f"{path.name}, rows {first.row} and {one.row} give {one.id!r} the gold labels {first.label!r} and "
                f"{one.label!r}: remove one of them, or let the last one win with --gold-wins"
            )
        found[one.id] = one
    if not found:
        raise GoldError(
            f"{path.name}: all {len(other)} labels are for other texts than those of the {source}: use the file of "
            "this run, or remove its column of texts if these labels are right"
        )
    _warn_of_other_texts(path.name, other)
    return list(found.values())


class HandedOut(NamedTuple):
    """The number of rows written for a person to label, and how they were chosen."""

    rows: int
    kind: human_files.SampleKind


def hand_out(folder: RunFolder, items: Sequence[Item], votes: Votes, model: Model, gold: Gold, rows: int) -> HandedOut:
    """Write the rows that a person should label next, each text once, and none whose text has gold.

    Without a confidence, these are the most informative rows. With a confidence but no promise, they are drawn at
    random, because only random rows can support a promise. With a promise, they are all rows left for review, the
    least certain first.
    """
    codes = gold_codes(votes, gold.labels)
    labelled = codes != UNLABELLED
    unlabelled = _first_of_texts(items, labelled)
    # The seed changes when rows get labels, so that other rows are drawn; rows left empty may be drawn again.
    seed = int(labelled.sum())
    certificate = model.certificate
    kind: human_files.SampleKind
    if model.calibrator is None:
        among = np.flatnonzero(labelled | unlabelled)
        chosen = among[rows_to_label(votes.take(among), rows, gold=codes[among], seed=seed)]
        kind = "informative"
    elif certificate is None or not certificate.holds:
        needed = certificate and certificate.rows_needed
        missing = needed.likely - certificate.gold_rows if certificate and needed else 0
        wanted = min(max(rows, missing), MOST_ROWS_TO_LABEL)
        kind, chosen = "at random", draw_rows(unlabelled, wanted, seed)
    else:
        kind, chosen = "for review", _review_queue(votes, model, unlabelled)
    write_to_label(folder, items, gold, [drawn_row(items[row], kind) for row in chosen])
    return HandedOut(len(chosen), kind)


def _first_of_texts(items: Sequence[Item], labelled: Mask) -> Mask:
    """Return one row for every text that has no gold label in any row."""
    same = same_texts([item.text for item in items])
    found = np.zeros(len(items), dtype=np.bool_)
    found[np.unique(same, return_index=True)[1]] = True
    return found & ~np.isin(same, same[labelled])


def write_to_label(folder: RunFolder, items: Sequence[Item], gold: Gold, rows: Sequence[human_files.Drawn]) -> int:
    """Note how rows were drawn, and write those for a person to label, each text once, and none whose text has gold.

    Returns how many were written; without any, there is no such file.
    """
    known = {(item.id, label) for item, label in zip(items, gold.labels, strict=True)}
    keep_filled(folder.to_label, "gold", known)
    remember_drawn(folder, rows)
    texts = {item.id: item.text for item in items}
    same = dict(zip(texts, same_texts(list(texts.values())).tolist(), strict=True))
    seen = {same[item.id] for item, label in zip(items, gold.labels, strict=True) if label}
    first = {same[one.id]: one for one in reversed(rows) if same[one.id] not in seen}
    shown = [one for one in rows if first.get(same[one.id]) is one]
    if shown:
        human_files.write_to_label(folder.to_label, ((one.id, texts[one.id], one.kind) for one in shown))
    else:
        folder.to_label.unlink(missing_ok=True)
    return len(shown)


def drawn_row(item: Item, kind: human_files.SampleKind) -> human_files.Drawn:
    """Return the note that a row is written out for people."""
    return human_files.Drawn(item.id, kind, text_hash(item.text))


def keep_filled(path: Path, column: str, known: Collection[tuple[str, str | None]] = ()) -> None:
    """Set aside a table in which a person filled in something that is not known yet, instead of overwriting it."""
    try:
        keys = {(cell_key(name), cell_key(value)) for name, value in known if value}
        rows = human_files.filled_rows(path, column)
        filled = [row for row in rows if (cell_key(row[0]), cell_key(row[1])) not in keys]
    except TableError:  # then a person changed it
        filled = [("", "")]
    if filled:
        kept = set_aside(path)
        warnings.warn(
            f"{path.name} was filled in but not read: it is kept as {kept.name}; pass it to pcs fit",
            PcsWarning,
            stacklevel=4,
        )


def drawn_before(folder: RunFolder) -> list[human_files.Drawn]:
    """Return all rows that were ever written out for people."""
    return human_files.read_drawn(folder.drawn) if folder.drawn.exists() else []


def remember_drawn(folder: RunFolder, rows: Sequence[human_files.Drawn]) -> None:
    """Note which rows are written out for people; without any, too, so that the folder is known to have such a note."""
    before = drawn_before(folder)
    merged = dict.fromkeys([*before, *rows])
    if len(merged) > len(before) or not folder.drawn.exists():
        human_files.write_drawn(folder.drawn, merged)


def _review_queue(votes: Votes, model: Model, unlabelled: Mask) -> Integers:
    verdicts = model.judged(votes)
    assert verdicts.probabilities is not None
    assert verdicts.accepted is not None
    confidence = verdicts.probabilities[np.arange(len(votes)), verdicts.best]
    order = review_order(votes, confidence)
    return order[(unlabelled & ~verdicts.accepted)[order]]
