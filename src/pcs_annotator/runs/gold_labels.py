"""Gold labels of a run: those of its data, those in files that people filled in, and those of a review."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from pcs_annotator.base.errors import GoldError, LabelError, TableError, warn_user
from pcs_annotator.base.text import counted, listed, row_number
from pcs_annotator.core.arrays import Mask
from pcs_annotator.core.events import FiledLabel, SampleKind
from pcs_annotator.core.gold_codes import Coders, as_known, refuse_contradictions
from pcs_annotator.core.identity import same_text, text_hash, text_key
from pcs_annotator.core.task import Item, in_order, label_code, refuse_doubtful
from pcs_annotator.runs.draw_registry import (
    append_events,
    events_of,
    label_copies,
    only_at_random,
    picked_by_row,
    reached_at_random,
)
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.review_state import ReviewVerdicts, read_verdicts
from pcs_annotator.runs.settings import TaskSettings
from pcs_annotator.runs.stream import Stream
from pcs_annotator.tables.chunks import Columns, Dataset, coder_labels
from pcs_annotator.tables.people import GivenGold, read_gold
from pcs_annotator.tables.source_files import AS_FOUND, Reading

MOST_LABELS_TO_GUESS = 50  # a gold column with more values is probably not a column of labels
FEW_TIMES, MANY_TIMES, ALIKE = 2, 10, 0.85  # a label so rare and like one so common may be a typo of it
NAMING = "name all labels with --labels, or each with --label"
ROWS_TO_LABEL = 30
GoldCheck = Callable[[str, str, str], None]  # is given a label, the text, and where the label stands
Groups = Sequence[str] | None  # of the texts, if a promise is made for each; else None
ENOUGH_AFTER_ALARM = 100  # random gold rows after an alarm, from which on a promise rests on them alone


@dataclass(frozen=True, slots=True, kw_only=True)
class FromPeople:
    """Files that people filled in, and how many rows to write for them next."""

    gold: Path | None = None  # a file with gold labels, such as `to_label.csv` filled in
    to_label: int = ROWS_TO_LABEL  # how many rows to write for a person to label
    gold_wins: bool = False  # whether to accept labels in `gold` that contradict the data or each other
    reading: Reading = AS_FOUND  # how these files are to be read


class Gold(NamedTuple):
    """Gold labels of a run, including those that people added; a text's label is that of all drawn rows with it."""

    labels: tuple[str | None, ...]  # for every item its label, or None
    random_sample: Mask  # which can support a promise: drawn at random or in the data, unless chosen otherwise
    assumed: Mask  # which of these came with the data, so that we only assume that they are a random sample
    undecided: Mask  # rows drawn at random that people judged without a decision: they differ, or nobody could tell
    verdicts: ReviewVerdicts = ReviewVerdicts()  # what people said in a review; labels include those to learn from
    since: Mapping[str, float] = MappingProxyType({})  # group, or `""` → when its alarm was that gold came after
    labels_with_shown: tuple[str | None, ...] = ()  # the same with those of `without_examples`; empty if there are none

    @property
    def all_labels(self) -> tuple[str | None, ...]:
        """The labels, also of rows that prompts show, which nothing is learned from."""
        return self.labels_with_shown or self.labels

    def taken_as(self, gold_sample: str) -> "Gold":
        """Return the gold without a random sample from the data if the user says that its rows were chosen."""
        return self.among(~self.assumed) if gold_sample == "chosen" else self

    def among(self, kept: Mask) -> "Gold":
        """Return the gold whose random sample is among these rows."""
        masks = {name: getattr(self, name) & kept for name in ("random_sample", "assumed", "undecided")}
        return self._replace(**masks)


def gold_of(folder: RunFolder | None, dataset: Dataset, until: int | None = None, groups: Groups = None) -> Gold:
    """Return the gold of a run: of the data, overridden by people's, and both by verdicts, perhaps until an event."""
    items, labels, rows = dataset.items, _labels_in_data(dataset), range(len(dataset.items))
    picked, in_data = picked_by_row(folder, items), _coded_in_data(dataset) | _named(labels)
    drawn = np.array([only_at_random(picked.get(row, ())) for row in rows], dtype=np.bool_)
    assumed = in_data & ~np.isin(rows, [*picked])
    sampled = assumed | (in_data & drawn)
    for row, entry in labels_by_people(folder, items).items():
        if labels[row] is None or entry.chosen != "by a person":
            sampled[row], assumed[row] = entry.chosen == "at random", False
        labels[row] = entry.label
    verdicts = read_verdicts(folder, dataset, until)
    for row, label in verdicts.gold.items():
        labels[row] = label
    in_review = np.isin(rows, [*verdicts.at_random])
    to_label = {**picked, **dict.fromkeys((*verdicts.sequence, *verdicts.at_random))}
    copies = label_copies(labels, [item.text for item in items], to_label)
    named = _named(labels)
    judged = named | in_data | np.isin(rows, [row for row in verdicts.by_row if row not in verdicts.audited])
    sampled |= in_review | reached_at_random(items, picked, judged, sampled)
    for row in copies:
        if drawn[row] and not sampled[row]:  # beyond the rows that people have reached
            labels[row], named[row], judged[row] = None, False, False
    gold = Gold(tuple(labels), sampled & named, assumed & sampled & ~in_review, sampled & judged & ~named, verdicts)
    return _after_alarm(gold, folder, dataset, groups) if folder and dataset.streamed else gold


def _coded_in_data(dataset: Dataset) -> Mask:
    columns = [[bool(label) for label in column] for column in coder_labels(dataset).values()]
    return np.any(columns, axis=0) if columns else np.zeros(len(dataset.items), dtype=np.bool_)


def _named(labels: Sequence[str | None]) -> Mask:
    return np.array([label is not None for label in labels], dtype=np.bool_)


def _after_alarm(gold: Gold, folder: RunFolder, dataset: Dataset, groups: Groups) -> Gold:
    """Return gold whose random sample is from after an alarm, perhaps about a group of texts, if it has enough rows."""
    with Stream(folder.stream) as stream:
        alarms: Mapping[str, float] = stream.note("alarm") or {}
    first, group = len(dataset.items) - len(dataset.streamed), np.array(groups or [""] * len(dataset.items))
    came = np.array([0.0] * first + [at for _, at in dataset.streamed])
    usable = gold.random_sample & _named(gold.labels)
    kept, since = np.ones(len(came), dtype=np.bool_), dict[str, float]()
    for name, alarm in alarms.items():
        of_group, later = (group == name) | (not name), came > alarm
        if int((usable & of_group & later).sum()) >= ENOUGH_AFTER_ALARM:
            kept, since[name] = kept & (later | ~of_group), alarm
    return gold.among(kept)._replace(since=since)


def without_examples(gold: Gold, texts: Sequence[str], task: TaskSettings) -> Gold:
    """Return gold without rows whose text is in every prompt, or defined the labels: others are not as easy."""
    examples = () if task.nearest else task.examples
    if not (examples or task.defined_by):
        return gold
    shown = {text_hash(example.get("text", "")) for example in examples} | {*task.defined_by}
    kept = np.array([text_hash(text) not in shown for text in texts], dtype=np.bool_)
    labels = tuple(label if keep else None for label, keep in zip(gold.labels, kept.tolist(), strict=True))
    return gold.among(kept)._replace(labels=labels, labels_with_shown=gold.labels)


def _labels_in_data(dataset: Dataset) -> list[str | None]:
    return list(dataset.gold) if dataset.gold else [None] * len(dataset.items)


def labels_by_people(folder: RunFolder | None, items: Sequence[Item]) -> dict[int, FiledLabel]:
    """Return row → the label that a person filed; labels of texts that have changed are left out, with a warning."""
    filed = {event.id: event for event in events_of(folder, FiledLabel)}
    kept = _of_these_texts(filed.values(), items)
    if folder is not None:
        ids = {item.id for item in items}
        _warn_of_other_texts(folder.draws.name, sorted(filed.keys() & ids - {items[row].id for row in kept}))
    return kept


def _of_these_texts(entries: Iterable[FiledLabel], items: Sequence[Item]) -> dict[int, FiledLabel]:
    """Return row → label, for rows whose text is still the one that was labelled."""
    rows = {(item.id, text_hash(item.text)): row for row, item in enumerate(items)}
    return {rows[key]: entry for entry in entries if (key := (entry.id, entry.text_hash)) in rows}


def _warn_of_other_texts(file: str, ids: Sequence[str]) -> None:
    if ids:
        warn_user(f"{file}: labels given for other texts are not used: {len(ids)} ({listed(map(repr, ids), len(ids))})")


def check_gold(folder: RunFolder | None, dataset: Dataset) -> None:
    """Raise if gold labels contradict each other: of people and data for one row, or of rows with the same text."""
    _check_gold(dataset, labels_by_people(folder, dataset.items), None, folder.draws.name if folder else "")


def _check_gold(dataset: Dataset, people: Mapping[int, FiledLabel], new: Collection[str] | None, file: str) -> None:
    """Raise if labels contradict each other; if some rows are `new`, labels of other rows were accepted before."""
    items, labels = dataset.items, _labels_in_data(dataset)
    new_labels = {entry.id: entry.label for entry in people.values() if new is None or entry.id in new}
    refuse_other_labels([item.id for item in items], labels, new_labels, (file, dataset.name))
    for row, entry in people.items():
        labels[row] = entry.label
    if new is not None:
        texts = {text_key(item.text) for item in items if item.id in new}
        labels = [label if text_key(item.text) in texts else None for item, label in zip(items, labels, strict=True)]
    refuse_contradictions([item.text for item in items], labels, dataset.name)


def refuse_other_labels(
    ids: Sequence[str], labels: Sequence[str | None], new: Mapping[str, str], files: tuple[str, str]
) -> None:
    """Raise if a person gave rows another label than the data has for them."""
    pairs = [(name, new[name], label) for name, label in zip(ids, labels, strict=True) if label and name in new]
    other = [f"{name!r} ({ours!r}, {theirs!r})" for name, ours, theirs in pairs if ours.casefold() != theirs.casefold()]
    if other:
        raise GoldError(
            f"{files[0]} and {files[1]} give different gold labels to {len(other)} rows: {listed(other, len(other))}: "
            f"correct one of the two, or let {files[0]} win with --gold-wins"
        )


def take_gold(
    people: FromPeople, folder: RunFolder, dataset: Dataset, labels: Sequence[str], check: GoldCheck | None = None
) -> None:
    """Add the labels of a person's file to those of a run; later files win over earlier ones.

    `check` raises for a label that cannot be used on a text; by default, one that is not among the labels. A row counts
    as drawn at random only if we drew it so, and the file says so or has only such rows.
    """
    assert people.gold is not None
    path = people.gold
    texts = {item.id: item.text for item in dataset.items}
    entries = read_labels(people, texts, labels, "run", dataset.columns)
    for entry in entries:
        where = f"{path.name}, row {entry.row}, column gold"
        if check is None:
            label_code(entry.label, labels, where)  # raises for an unknown one
        else:
            check(entry.label, texts[entry.id], where)
    picked = {dataset.items[row].id: events for row, events in picked_by_row(folder, dataset.items).items()}
    # without the column `drawn`, these are the rows that we drew at random if none of them is another
    ours = all(entry.kind == "by a person" and only_at_random(picked.get(entry.id, ())) for entry in entries)
    usual: SampleKind = "at random" if ours else "by a person"
    filed = {event.id: event for event in events_of(folder, FiledLabel)}
    new = list[FiledLabel]()
    for entry in entries:
        chosen = entry.kind if entry.kind in {event.chosen for event in picked.get(entry.id, ())} else usual
        hashed = text_hash(texts[entry.id])
        label = FiledLabel(id=entry.id, text_hash=hashed, label=entry.label, chosen=chosen)
        new += [label] if filed.get(entry.id) != label else []
    if not people.gold_wins:
        current = _of_these_texts([*filed.values(), *new], dataset.items)
        _check_gold(dataset, current, {entry.id for entry in entries}, path.name)
    if new:
        append_events(folder.draws, new, folder.part)


def read_labels(
    people: FromPeople, texts: Mapping[str, str], labels: Sequence[str], source: str, used: Columns | None = None
) -> list[GivenGold]:
    """Return the labels of a person's file without those for other texts; the last of several for one row wins.

    Ids and labels that a spreadsheet changed, such as `1.0` for `1`, are those of the data. `texts` are by id.
    """
    assert people.gold is not None
    path, by_id, other = people.gold, dict[str, GivenGold](), list[str]()
    known_id, known_label = as_known(texts), as_known(labels)
    for cells in read_gold(path, used, people.reading):
        entry = cells._replace(id=known_id(cells.id), label=known_label(cells.label))
        if entry.id not in texts:
            raise TableError(f"{path.name}, row {entry.row}: the {source} has no text with the id {entry.id!r}")
        if entry.text and texts[entry.id] and not same_text(entry.text, texts[entry.id]):
            other.append(entry.id)
            continue
        first = by_id.get(entry.id, entry)
        if first.label.casefold() != entry.label.casefold() and not people.gold_wins:
            raise GoldError(
                f"{path.name}, rows {first.row} and {entry.row} give {entry.id!r} the gold labels {first.label!r} and "
                f"{entry.label!r}: remove one of them, or let the last one win with --gold-wins"
            )
        by_id[entry.id] = entry
    if not by_id:
        raise GoldError(
            f"{path.name}: all {len(other)} labels are for other texts than those of the {source}: use the file of "
            "this run, or remove its column of texts if these labels are right"
        )
    _warn_of_other_texts(path.name, other)
    return list(by_id.values())


def coders_of(dataset: Dataset, labels: Sequence[str], verdicts: ReviewVerdicts) -> Coders | None:
    """Return what several people said: in columns of the data, and in a review of those who had not seen a label."""
    columns, ids = coder_labels(dataset), [item.id for item in dataset.items]
    in_data, names = Coders.of(columns, labels, ids, dataset.name), {name.casefold(): name for name in columns}
    columns = {name: [*column] for name, column in columns.items()}
    for row, reviewed in verdicts.by_row.items():
        for verdict in reviewed.by_reviewer.values():
            if verdict.blind and verdict.queue != "conflicts" and verdict.label:
                name = names.setdefault(verdict.reviewer.casefold(), verdict.reviewer)
                columns.setdefault(name, [None] * len(ids))[row] = verdict.label
    coders = Coders.of(columns, labels, ids, dataset.name)
    return coders if coders and len(coders.names) > 1 else in_data


def labels_seen(dataset: Dataset, naming: str = NAMING) -> tuple[str, ...]:
    """Return the labels of the gold column, sorted; of spellings that differ in case only, the most common one."""
    spellings = usual_spellings(dataset.gold)
    if not spellings:
        raise LabelError(f"no labels: {naming}, or fill a column gold in {dataset.name}")
    if len(spellings) > MOST_LABELS_TO_GUESS:
        raise LabelError(
            f"{dataset.name}: the column {dataset.columns.gold_source!r} has {len(spellings)} different values, too "
            f"many for labels: choose another gold column, or {naming}"
        )
    rows = [f"{dataset.name}, id {item.id!r}, column {dataset.columns.gold_source}" for item in dataset.items]
    refuse_doubtful(dataset.gold, rows, naming)
    _warn_of_typos(dataset, [*spellings.values()], naming)
    return in_order(spellings.values())


def _warn_of_typos(dataset: Dataset, labels: Sequence[str], naming: str) -> None:
    times = Counter(filter(None, (label and label.casefold() for label in dataset.gold)))
    usual = [name for name in labels if times[name.casefold()] >= MANY_TIMES]
    for rare in (name for name in labels if times[name.casefold()] <= FEW_TIMES):
        if alike := get_close_matches(rare.casefold(), map(str.casefold, usual), 1, ALIKE):
            same = next(name for name in usual if name.casefold() == alike[0])
            rows = counted(times[rare.casefold()], "row has", "rows have")
            warn_user(
                f"{dataset.name}: {rows} the gold label {rare!r}, which is almost {same!r} ({times[alike[0]]:,} rows): "
                f"correct it if it is a typo, or {naming}"
            )


def usual_spellings(values: Iterable[str | None]) -> dict[str, str]:
    """Return label in lower case → its most common spelling."""
    spellings: dict[str, Counter[str]] = {}
    for value in filter(None, values):
        spellings.setdefault(value.casefold(), Counter())[value] += 1
    return {key: max(counts, key=lambda name: (counts[name], name)) for key, counts in spellings.items()}


def refuse_other_gold(dataset: Dataset, labels: Sequence[str]) -> None:
    """Raise for a gold label that is not in the label set, before anything is paid for."""
    for row, value in enumerate(dataset.gold, row_number(dataset.name, 1)):
        if value is not None:
            label_code(value, labels, f"{dataset.name}, row {row}, column {dataset.columns.gold_source}")
    # a label that only one of several people gave is not a gold label
    Coders.of(coder_labels(dataset), labels, [item.id for item in dataset.items], dataset.name)
