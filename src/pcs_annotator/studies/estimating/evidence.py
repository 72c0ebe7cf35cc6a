"""What is known about the labels of a run: probabilities for all rows, gold for some, and how those were drawn."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from pcs_annotator.base.errors import ConfigError, GoldError, TableError
from pcs_annotator.base.text import counted
from pcs_annotator.core.arrays import Array, Codes, Floats, Integers, Mask
from pcs_annotator.core.events import Picked
from pcs_annotator.core.gold_codes import UNLABELLED, gold_codes
from pcs_annotator.core.outcome import probability_name
from pcs_annotator.estimating.corrected import Study
from pcs_annotator.estimating.sampling import Round, Sample, counts_in_turn
from pcs_annotator.judging.promise.draw import AT_RANDOM
from pcs_annotator.runs.draw_registry import picked_by_row
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.paths import read_whole
from pcs_annotator.runs.sharing import expected_labels
from pcs_annotator.tables.arrow import columns_of, pa, pc, text_column
from pcs_annotator.tables.find import read_file

LEAST_GOLD = 30  # fewer gold rows give intervals that cannot be trusted
LEAST_CLUSTERS = 20  # the same for clusters of rows
_Draw = tuple[int, float, str]  # a row that was drawn, its probability, and its stratum


class CodedColumn(NamedTuple):
    """A column of texts: for every row the place of its text, and all texts. Missing ones are empty."""

    codes: Array
    texts: Array

    @property
    def cells(self) -> Array:
        """The text of every row; equal texts are one object, so that a million rows take little memory."""
        return self.texts[self.codes]


def encoded_column(table: pa.Table, name: str, of: str = "", among: Sequence[str] = ()) -> CodedColumn:
    """Return a column of a table; `of` says what it has, and `among` which columns there are, for messages."""
    columns = columns_of(table)
    if name not in columns:
        raise ConfigError(f"there is no column {name!r}{of}; there are {', '.join(among or columns)}")
    texts = pc.utf8_trim_whitespace(pc.fill_null(text_column(name, columns[name]), "")).dictionary_encode()
    return CodedColumn(texts.indices.to_numpy(), np.array(texts.dictionary.to_pylist(), dtype=object))


def cells_of(table: pa.Table, name: str, of: str = "") -> Array:
    """Return a column as texts, empty where nothing is known."""
    return encoded_column(table, name, of).cells


def weights_of(table: pa.Table, name: str) -> Floats:
    """Return a column of survey weights; one that is missing, negative or not a number is an error."""
    codes, texts = encoded_column(table, name, " of weights")
    values = np.array([_number(text) for text in texts.tolist()])
    if (odd := ~((values >= 0) & np.isfinite(values))).any():
        row = int(odd[codes].argmax())
        raise TableError(f"data row {row + 1}, column {name!r}: {texts[codes[row]]!r} is not a weight of 0 or more")
    return values[codes]


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return np.nan


def numbers_of(table: pa.Table, name: str) -> Floats | None:
    """Return a column as numbers, nan where empty; None if some cell is none."""
    texts = pc.utf8_trim_whitespace(text_column(name, columns_of(table)[name]))
    try:
        numbers = pc.if_else(pc.equal(texts, ""), None, texts).cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        return None
    return None if np.isnan(numbers).all() or np.isinf(numbers).any() else numbers


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelEvidence:
    """What is known about the labels of a run."""

    labels: tuple[str, ...]  # all labels
    table: pa.Table  # the user's rows; of a large table with those columns only that were asked for
    columns: Sequence[str]  # the names of all columns of the user's rows
    expected: Floats  # probability of every label, `[row, label]`
    held_out: Floats  # the same for the rows of the sample, from fits that did not see them
    sample: Sample  # gold rows whose design is known
    notes: Sequence[str] = ()  # what was left out or assumed, as sentences
    said: Integers | None = None  # for every row the machine's label, -1 for none; None for the most probable one

    def column(self, name: str) -> CodedColumn:
        """Return a column as texts, empty where nothing is known."""
        return encoded_column(self.table, name, among=self.columns)

    def numbers_or_texts(self, name: str) -> Array:
        """Return a column as numbers if all its cells are, nan where nothing is known; otherwise as texts."""
        numbers = numbers_of(self.table, name)
        return self.column(name).cells if numbers is None else numbers


def evidence_of(
    recorded: Run, probability_column: str | None = None, columns: Collection[str] | None = None
) -> LabelEvidence:
    """Return what is known about the labels of a run.

    The probability column has the probability with which the user drew a row for a gold label. `columns` are those of a
    large table that will be needed; None for all.
    """
    votes, folder = recorded.votes, recorded.folder
    gold = gold_codes(votes, recorded.gold.labels)
    refuse_one_label(gold, votes.labels)
    expected = expected_labels(votes, gold, recorded.settings, recorded.texts, recorded.shape)
    if expected is None:
        raise GoldError(
            f"{folder.home} has {int((gold != UNLABELLED).sum())} gold rows, too few to learn from: draw "
            f"{LEAST_GOLD} or more with pcs gold"
        )
    if recorded.sampled:
        whole = _whole_table(recorded, columns)
    else:
        table = recorded.dataset.table
        # probabilities of copies of gold texts are held out, too: a fit that saw their label is right more often
        whole = _Whole(table, table.column_names, expected.held_out, np.arange(len(votes)), expected.said)
    if probability_column is None:
        sample, notes = drawn_sample(recorded, gold, len(whole.expected))
    else:
        sample, notes = designed(recorded.dataset.table, gold, probability_column)
    return LabelEvidence(
        labels=tuple(votes.labels),
        table=whole.table,
        columns=whole.columns,
        expected=whole.expected,
        held_out=expected.held_out[sample.rows],
        sample=replace(sample, rows=whole.places[sample.rows]),
        said=whole.said,
        notes=[*notes, *without_label(whole.said)],
    )


def without_label(machine: Integers) -> list[str]:
    """Return what to know about rows without a machine label; raise if no row has one."""
    if not (none := int((machine < 0).sum())):
        return []
    if none == len(machine):
        raise GoldError("no row has a machine label: look at the models' answers, or ask other models")
    return [f"{none:,} of {len(machine):,} rows have no machine label: naive leaves them out"]


class _Whole(NamedTuple):
    """All rows of a large table: the table, the user's columns, probabilities, places of the sample, labels."""

    table: pa.Table
    columns: Sequence[str]
    expected: Floats
    places: Integers
    said: Integers


def _whole_table(recorded: Run, columns: Collection[str] | None) -> _Whole:
    """Return all rows of a large table, with some of the user's columns or all."""
    folder, labels, of_ids = recorded.folder, recorded.votes.labels, recorded.dataset.columns.id
    whole = read_whole(folder)
    if whole is None:
        raise TableError(f"{folder.home}: only a sample of the rows has been labelled; pcs run labels all of them")
    names = [probability_name(label) for label in labels]
    wanted = {*whole.columns} if columns is None else {*columns, of_ids}
    table = read_file(folder.labels, wanted={*wanted, *names})
    columns_by_name = {name: numbers_of(table, name) for name in names if name in table.column_names}
    if len(columns_by_name) < len(names):
        raise TableError(f"{folder.labels} has no probabilities of labels: fit the run again with pcs fit")
    expected = np.stack(
        [np.full(len(table), np.nan) if column is None else column for column in columns_by_name.values()], axis=1
    )
    silent = np.isnan(expected).any(axis=1)
    expected[silent] = expected[~silent].mean(axis=0)
    table = table.drop_columns(names)
    machine = np.where(silent, UNLABELLED, recorded.shape.choose(expected, labels))
    return _Whole(table, whole.columns, expected, _places(table, of_ids, recorded.votes.ids), machine)


def _places(table: pa.Table, of_ids: str | None, ids: Sequence[str]) -> Integers:
    """Return where rows with these ids are in a table; without a column of ids, these are the numbers of rows."""
    if of_ids is None or of_ids not in table.column_names:
        return np.array(ids).astype(np.intp) - 1
    found = pc.index_in(text_column(of_ids, table[of_ids]), pa.array(ids, pa.string())).to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(~np.isnan(found))
    places = np.empty(len(ids), dtype=np.intp)
    places[found[rows].astype(np.intp)] = rows
    return places


def drawn_sample(recorded: Run, gold: Codes, population: int) -> tuple[Sample, list[str]]:
    """Return the gold rows whose probability is known: drawn by us, or assumed to be a random sample of the data."""
    with_gold = gold != UNLABELLED
    rounds, seen = list[Round](), set[int]()
    strata = dict[tuple[int, str], int]()
    for number, draws, weight in _parts(recorded, with_gold, population):
        if new := [draw for draw in draws if with_gold[draw[0]] and draw[0] not in seen]:
            rows, chances, names = (list(part) for part in zip(*new, strict=True))
            seen |= {*rows}
            stratum = [strata.setdefault((number, name), len(strata)) for name in names]
            rounds.append(Round(rows, gold[rows].tolist(), chances, stratum, weight * len(new)))
    notes = []
    if assumed := int((with_gold & recorded.gold.random_sample & recorded.gold.assumed).sum()):
        notes.append(f"{assumed:,} gold rows came with the data: they are assumed to be a random sample of its rows")
    if learned := len(seen & {*recorded.gold.verdicts.sequence}):
        notes.append(f"{learned:,} verdicts of a review count with the probabilities of their draws")
    if undecided := int(recorded.gold.undecided.sum()):
        share = undecided / (undecided + len(seen))
        notes.append(
            f"people could not decide on {undecided:,} rows that were drawn at random, which are left out: if all had "
            f"one label, its share would be off by up to {100 * share:.1f} percentage points"
        )
    if left_out := int(with_gold.sum()) - len(seen):
        rows_left = counted(left_out, "gold row is", "gold rows are")
        notes.append(f"{rows_left} left out, because the probability of drawing them is unknown")
    refuse_few(len(seen), left_out)
    return Sample.in_rounds(rounds), notes


def _parts(recorded: Run, with_gold: Mask, population: int) -> Iterator[tuple[int, list[_Draw], float]]:
    """Yield what was drawn, each from the rows not drawn before: with the data, in a review, and by `pcs gold`.

    Of each part, a number, the draws, and how much each of them counts; parts with one number vary about one mean.
    Rows of a file to label are counted with those of the data if there was no review, and after it if there was: they
    were drawn from rows without a label.
    """
    sequence = recorded.gold.verdicts.sequence
    simple = with_gold & recorded.gold.random_sample
    simple[[*sequence]] = False
    first = simple & recorded.gold.assumed if sequence else simple
    yield -1, _equally(first, population), 1.0
    learns = np.array([draw.queue == "learn" for draw in sequence.values()])
    counts = counts_in_turn(np.where(learns, AT_RANDOM, 1.0), population - int(first.sum()))
    for (row, draw), count in zip(sequence.items(), counts.tolist(), strict=True):
        # of a large table, only a random sample can be drawn from
        chance = (draw.probability or 0.0) * draw.pool / (draw.pool + population - len(with_gold))
        yield -2 - (draw.queue == "learn"), [(row, chance, "")], count
    yield -4, _equally(simple & ~first, population - int(first.sum()) - len(sequence)), 1.0
    draws = with_probability(recorded)
    for number in sorted({event.round for event in draws.values()}):
        yield number, _of_round({row: event for row, event in draws.items() if event.round == number}, with_gold), 1.0


def _equally(rows: Mask, among: int) -> list[_Draw]:
    return [(row, int(rows.sum()) / among, "") for row in np.flatnonzero(rows).tolist()]


def _of_round(draws: Mapping[int, Picked], with_gold: Mask) -> list[_Draw]:
    """Return the rows of a round; those that people left empty are taken for a random part of their stratum."""
    drawn = Counter(draw.stratum for draw in draws.values())
    labelled = Counter(draw.stratum for row, draw in draws.items() if with_gold[row])
    return [
        (row, (draw.probability or 0.0) * labelled[draw.stratum] / drawn[draw.stratum], draw.stratum)
        for row, draw in draws.items()
    ]


def with_probability(recorded: Run) -> dict[int, Picked]:
    """Return row → its draw, of rows drawn with a probability of their own."""
    draws = picked_by_row(recorded.folder, recorded.dataset.items)
    return {row: draw for row, drawn in draws.items() for draw in drawn if draw.probability is not None}


def designed(table: pa.Table, gold: Codes, column: str) -> tuple[Sample, list[str]]:
    """Return all gold rows, with the probabilities in a column of the user's."""
    rows = np.flatnonzero(gold != UNLABELLED)
    cells = cells_of(table, column, " of probabilities")
    probability = np.array([_number(cells[row]) for row in rows.tolist()])
    if (odd := ~((probability > 0) & (probability <= 1))).any():
        row = rows[odd][0]
        raise TableError(
            f"data row {row + 1}, column {column!r}: {cells[row]!r} is not a probability above 0 and up to 1: every "
            "gold row needs the probability with which it was drawn"
        )
    refuse_few(len(rows), 0)
    nothing = np.zeros(len(rows), dtype=np.intp)
    sample = Sample(rows=rows, truth=gold[rows], probability=probability, stratum=nothing, round=nothing)
    return sample, [f"the probability of gold rows is that in column {column!r}"]


def refuse_one_label(gold: Codes, labels: Sequence[str]) -> None:
    """Raise if all gold rows have the same label."""
    labelled = gold[gold != UNLABELLED]
    if len(labelled) and (labelled == labelled[0]).all():
        rows = "the only gold row is" if len(labelled) == 1 else f"all {len(labelled):,} gold rows are"
        more = "draw more with pcs gold RUN --n 30 --draw stratified"
        raise GoldError(f"{rows} {labels[labelled[0]]!r}, so that nothing is known about other labels: {more}")


def refuse_few(rows: int, left_out: int) -> None:
    """Raise if there are too few gold rows; `left_out` more cannot be used."""
    if rows < LEAST_GOLD:
        others = f" ({left_out:,} more were not drawn at random and cannot be used)" if left_out else ""
        raise GoldError(
            f"there are {rows} gold rows drawn at random{others}, and an estimate needs {LEAST_GOLD}: draw rows to "
            "label with pcs gold"
        )


def study_of(evidence: LabelEvidence, *, larger: bool, cluster: str, weight: str) -> Study:
    """Return what to estimate from; see `EstimateQuestion`."""
    clusters = None
    if cluster:
        clusters = evidence.column(cluster).codes.astype(np.intp)
        count = len({*clusters[evidence.sample.rows].tolist()})
        if count < LEAST_CLUSTERS:
            raise GoldError(
                f"the gold rows are from {count} groups of {cluster!r}, and errors that rows have in common need "
                f"{LEAST_CLUSTERS}: draw more with pcs gold, or put the column into a formula instead of --cluster"
            )
    return Study(
        expected=evidence.expected,
        held_out=evidence.held_out,
        sample=evidence.sample,
        whole=not larger,
        clusters=clusters,
        said=evidence.said,
        size=weights_of(evidence.table, weight) if weight else None,
    )


def restricted(study: Study, rows: Mask) -> Study:
    """Return what is known about some of the rows."""
    inside = rows[study.sample.rows]
    return replace(
        study,
        expected=study.expected[rows],
        held_out=study.held_out[inside],
        sample=study.sample.take(inside, rows.cumsum() - 1),
        clusters=None if study.clusters is None else study.clusters[rows],
        said=None if study.said is None else study.said[rows],
        size=None if study.size is None else study.size[rows],
    )
