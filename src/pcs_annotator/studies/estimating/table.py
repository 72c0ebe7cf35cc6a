"""Machine labels from anywhere: a table with a column of them, and with gold labels in some of its rows."""

from collections.abc import Sequence
from itertools import chain

import numpy as np
from scipy.special import bdtr, bdtrc

from pcs_annotator.base.errors import ConfigError, GoldError, TableError
from pcs_annotator.core.arrays import CODE, Codes, Floats, Integers
from pcs_annotator.core.gold import UNLABELLED, as_known
from pcs_annotator.core.result_names import probability_name
from pcs_annotator.estimating.confusion import calibrated, levels
from pcs_annotator.estimating.sampling import Sample
from pcs_annotator.studies.estimating import evidence as known
from pcs_annotator.studies.estimating.answers import EstimateQuestion
from pcs_annotator.tables.arrow import pa
from pcs_annotator.tables.sources import name_in_memory
from pcs_annotator.tables.table_files import gathered
from pcs_annotator.tables.table_parts import open_parts, source_name
from pcs_annotator.tables.tabular import place_or_table

MOST_LABELS = 200
CHANCE = 1e-4  # gold rows that a random sample has more seldom than this were not drawn at random
ROUNDING = 0.02
_PREFIX = probability_name("")


def table_evidence(source: object, question: EstimateQuestion) -> tuple[known.LabelEvidence, str]:
    """Return what is known about the labels in a table, a file or a data frame, and how messages call it."""
    if not question.label or not question.gold or question.label == question.gold:
        raise ConfigError("a table needs --label COLUMN, machine labels, and --gold COLUMN, true labels of some rows")
    table, columns, name = _read(source, question)
    said, gold = (known.encoded_column(table, one, "", columns) for one in (question.label, question.gold))
    machine = {*said.texts.tolist()} - {""}
    spelled = [as_known(machine)(text) for text in gold.texts.tolist()]
    given = {one.removeprefix(_PREFIX) for one in columns if one.startswith(_PREFIX)}
    if question.confidence or not machine <= given:
        given = set()
    labels = tuple(sorted({*machine, *spelled, *given} - {""}))
    if len(labels) > MOST_LABELS:
        raise ConfigError(f"{name}: {question.label!r} and {question.gold!r} have {len(labels):,} labels: name others")
    places = {label: place for place, label in enumerate(labels)}
    labelled, truth = (
        np.array([places.get(text, UNLABELLED) for text in texts], dtype=CODE)[column.codes]
        for texts, column in ((said.texts.tolist(), said), (spelled, gold))
    )
    known.refuse_one_label(truth, labels)
    kinds = [np.where(labelled < 0, len(labels), labelled).astype(np.intp)]
    if question.confidence:
        kinds.append(levels(_numbers(table, question.confidence, "confidences, higher where the machine is surer")))
    sample, notes = _sample(table, truth, kinds, question)
    if given:
        expected = _probabilities(table, labels)
        held_out = expected[sample.rows]
        notes.append(f"probabilities are those of columns {_PREFIX}…: they must not be learned from these gold rows")
    else:
        nested = [kinds[0], *((len(labels) + 1) * level + kinds[0] for level in kinds[1:])]
        expected, held_out = calibrated(nested, sample.rows, sample.truth, len(labels))
    if never := sorted({*spelled} - machine - {""}):
        notes.append(f"the machine never says {', '.join(map(repr, never))}, and gold rows do")
    if silent := int((labelled < 0).sum()):
        notes.append(f"{silent:,} rows have no machine label")
    found = known.LabelEvidence(
        labels=labels,
        table=table,
        columns=columns,
        expected=expected,
        held_out=held_out,
        sample=sample,
        notes=notes,
        said=np.where(labelled < 0, expected.argmax(axis=1), labelled).astype(np.intp),
    )
    return found, name


def _read(source: object, question: EstimateQuestion) -> tuple[pa.Table, Sequence[str], str]:
    """Return the columns of a table that are needed, the names of all, and its own."""
    place = place_or_table(source)
    if isinstance(place, pa.Table):
        return place, place.column_names, name_in_memory(place)
    files, contents = open_parts(place)
    wanted = {*question.columns, question.probability}
    schema = pa.schema([one for one in contents.schema if one.name in wanted or one.name.startswith(_PREFIX)])
    batches = chain.from_iterable(file.batches(schema) for file in files)
    name, packed = source_name(place), any(file.packed for file in files)
    return gathered(batches, schema, name, packed=packed), contents.schema.names, name


def _numbers(table: pa.Table, name: str, what: str) -> Floats:
    known.encoded_column(table, name)
    found = known.numbers_of(table, name)
    if found is None:
        raise TableError(f"column {name!r} must have numbers, {what}: correct it, or name another")
    return found


def _probabilities(table: pa.Table, labels: Sequence[str]) -> Floats:
    """Return the user's probabilities; rows without any have the mean of the others."""
    names = [probability_name(label) for label in labels]
    none = np.zeros(len(table))
    found = [_numbers(table, name, "probabilities") if name in table.column_names else none for name in names]
    expected = np.stack(found, axis=1)
    total, silent = expected.sum(axis=1), np.isnan(expected).any(axis=1)
    odd = ~silent & ((np.abs(total - 1) > ROUNDING) | (expected < 0).any(axis=1))
    if odd.any() or silent.all():
        row = int(odd.argmax())
        raise TableError(
            f"row {row + 1}: the probabilities in {', '.join(names)} add up to {total[row]:.3g}, or one is negative: "
            "correct them, or rename the columns, so that --label alone counts"
        )
    expected[silent] = expected[~silent].mean(axis=0)
    return expected


def _sample(
    table: pa.Table, truth: Codes, kinds: Sequence[Integers], question: EstimateQuestion
) -> tuple[Sample, list[str]]:
    """Return the gold rows and how they were drawn: as a column says, or assumed to be a simple random sample."""
    if question.probability:
        return known.designed(table, truth, question.probability)
    rows = np.flatnonzero(truth != UNLABELLED)
    known.refuse_few(len(rows), 0)
    for kind, where in zip(kinds, ("with some machine label", "of some confidence"), strict=False):
        _refuse_chosen(kind, rows, where)
    assumed = f"{len(rows):,} gold rows are assumed to be a simple random sample of the rows; if not: --probability"
    return Sample.simple(rows, truth[rows], len(truth)), [assumed]


def _refuse_chosen(kind: Integers, rows: Integers, where: str) -> None:
    """Raise if some kind of rows has far more or far fewer gold rows than a random sample would."""
    drawn, share = np.bincount(kind[rows], minlength=kind.max() + 1), np.bincount(kind) / len(kind)
    tail = np.minimum(bdtr(drawn, len(rows), share), bdtrc(drawn - 1, len(rows), share))
    if (tail * len(share) < CHANCE).any():
        worst = int(tail.argmin())
        raise GoldError(
            f"the gold rows are not a random sample: they are too often or too seldom rows {where} "
            f"({drawn[worst]:,} where {len(rows) * share[worst]:,.0f} were to be expected). Give --probability COLUMN, "
            "how probable it was that each got gold, or label rows drawn at random"
        )
