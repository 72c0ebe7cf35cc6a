r"""What is known about the machine labels of a table from anywhere: gold for some rows, and probabilities for all.

Probabilities are the user's or, without any, learned: how often gold rows of the same kind have which label. Kinds of
rows are nested: all rows, those with the same machine label, those of them with similar confidence. With $n_{cy}$ gold
rows of kind $c$ and label $y$, the share is drawn towards that of the next coarser kind,

$$p_c(y) = \frac{n_{cy} + \kappa\,p_{\text{coarser}}(y)}{n_c + \kappa}.$$

Whatever these probabilities are, corrected estimates are unbiased; better ones make them more precise.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import bdtr, bdtrc

from pcs_annotator.base.errors import ConfigError, GoldError, TableError
from pcs_annotator.core.arrays import CODE, Codes, Floats, Integers
from pcs_annotator.core.gold_codes import UNLABELLED, as_known
from pcs_annotator.core.outcome import probability_name
from pcs_annotator.estimating.sampling import Sample
from pcs_annotator.studies.estimating import answers
from pcs_annotator.studies.estimating import evidence as known
from pcs_annotator.tables.arrow import pa
from pcs_annotator.tables.chunks import name_in_memory
from pcs_annotator.tables.find import open_parts, place_or_table, source_name
from pcs_annotator.tables.source_files import joined

MOST_LABELS = 200
CHANCE = 1e-4  # gold rows that a random sample has more seldom than this were not drawn at random
ROUNDING = 0.02
_PREFIX = probability_name("")
PRIOR = 2.0  # how many gold rows the coarser kind counts as, κ
FOLDS = 10
LEVELS = 5  # into so many parts of equal size rows are divided by confidence


def table_evidence(source: object, question: answers.EstimateQuestion) -> tuple[known.LabelEvidence, str]:
    """Return what is known about the labels in a table, a file or a data frame, and how messages call it."""
    if not question.label or not question.gold or question.label == question.gold:
        raise ConfigError("a table needs --label COLUMN, machine labels, and --gold COLUMN, true labels of some rows")
    table, columns, name = _read(source, question)
    labels_said, gold = (
        known.encoded_column(table, column_name, "", columns) for column_name in (question.label, question.gold)
    )
    machine = {*labels_said.texts.tolist()} - {""}
    spelled = [as_known(machine)(text) for text in gold.texts.tolist()]
    named = {column_name.removeprefix(_PREFIX) for column_name in columns if column_name.startswith(_PREFIX)}
    if question.confidence or not machine <= named:
        named = set()
    labels = tuple(sorted({*machine, *spelled, *named} - {""}))
    if len(labels) > MOST_LABELS:
        raise ConfigError(f"{name}: {question.label!r} and {question.gold!r} have {len(labels):,} labels: name others")
    places = {label: code for code, label in enumerate(labels)}
    labelled, truth = (
        np.array([places.get(text, UNLABELLED) for text in texts], dtype=CODE)[column.codes]
        for texts, column in ((labels_said.texts.tolist(), labels_said), (spelled, gold))
    )
    known.refuse_one_label(truth, labels)
    kinds = [np.where(labelled < 0, len(labels), labelled).astype(np.intp)]
    if question.confidence:
        kinds.append(levels(_numbers(table, question.confidence, "confidences, higher where the machine is surer")))
    sample, notes = _sample(table, truth, kinds, question)
    if named:
        expected = _probabilities(table, labels)
        held_out = expected[sample.rows]
        notes.append(f"probabilities are those of columns {_PREFIX}…: they must not be learned from these gold rows")
    else:
        nested = [kinds[0], *((len(labels) + 1) * level + kinds[0] for level in kinds[1:])]
        expected, held_out = calibrated(nested, sample.rows, sample.truth, len(labels))
    if never := sorted({*spelled} - machine - {""}):
        notes.append(f"the machine never says {', '.join(map(repr, never))}, and gold rows do")
    evidence = known.LabelEvidence(
        labels=labels,
        table=table,
        columns=columns,
        expected=expected,
        held_out=held_out,
        sample=sample,
        notes=[*notes, *known.without_label(labelled.astype(np.intp))],
        said=labelled.astype(np.intp),
    )
    return evidence, name


def _read(source: object, question: answers.EstimateQuestion) -> tuple[pa.Table, Sequence[str], str]:
    """Return the columns of a table that are needed, the names of all, and its own."""
    source_table = place_or_table(source)
    if isinstance(source_table, pa.Table):
        return source_table, source_table.column_names, name_in_memory(source_table)
    (parts, _), name = open_parts(source_table), source_name(source_table)
    wanted = {*question.columns, question.probability}
    schema = pa.schema([field for field in parts.schema if field.name in wanted or field.name.startswith(_PREFIX)])
    return joined(parts.batches(schema), schema, name, packed=parts.packed), parts.schema.names, name


def _numbers(table: pa.Table, name: str, what: str) -> Floats:
    known.encoded_column(table, name)
    numbers = known.numbers_of(table, name)
    if numbers is None:
        raise TableError(f"column {name!r} must have numbers, {what}: correct it, or name another")
    return numbers


def _probabilities(table: pa.Table, labels: Sequence[str]) -> Floats:
    """Return the user's probabilities; rows without any have the mean of the others."""
    names = [probability_name(label) for label in labels]
    none = np.zeros(len(table))
    columns_found = [_numbers(table, name, "probabilities") if name in table.column_names else none for name in names]
    expected = np.stack(columns_found, axis=1)
    total, silent = expected.sum(axis=1), np.isnan(expected).any(axis=1)
    odd = ~silent & ((np.abs(total - 1) > ROUNDING) | (expected < 0).any(axis=1))
    if odd.any() or silent.all():
        row = int(odd.argmax())
        raise TableError(
            f"data row {row + 1}: the probabilities in {', '.join(names)} add up to {total[row]:.3g}, or one is "
            "negative: correct them, or rename the columns, so that --label alone counts"
        )
    expected[silent] = expected[~silent].mean(axis=0)
    return expected


def _sample(
    table: pa.Table, truth: Codes, kinds: Sequence[Integers], question: answers.EstimateQuestion
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


def levels(confidence: Floats) -> Integers:
    """Return for every row which part it is in by confidence; rows without one are a part of their own."""
    rated = ~np.isnan(confidence)
    ends = np.quantile(confidence[rated], np.arange(1, LEVELS) / LEVELS)
    return np.where(rated, np.searchsorted(ends, confidence), LEVELS)


def calibrated(kinds: Sequence[Integers], rows: Integers, truth: Codes, labels: int) -> tuple[Floats, Floats]:
    """Return the probability of every label, `[row, label]`, and the same for gold rows from folds without them.

    `kinds` are numbers for all rows, coarse kinds first; `rows` are the gold rows, with `truth` as their labels.
    """
    fold = np.random.default_rng(0).permutation(len(rows)) % FOLDS
    held_out = np.empty((len(rows), labels))
    for number in range(FOLDS):
        other = fold != number
        held_out[~other] = _shares(kinds, rows[other], truth[other], labels)[kinds[-1][rows[~other]]]
    return _shares(kinds, rows, truth, labels)[kinds[-1]], held_out


def _shares(kinds: Sequence[Integers], rows: Integers, truth: Codes, labels: int) -> Floats:
    """Return the share of every label in each of the finest kinds, `[kind, label]`."""
    shares, coarse = np.full((1, labels), 1 / labels), np.zeros_like(kinds[0])
    for kind in (coarse, *kinds):
        counts = np.zeros((int(kind.max()) + 1, labels))
        np.add.at(counts, (kind[rows], truth), 1.0)
        prior = np.zeros_like(counts)
        prior[kind] = shares[coarse]
        shares = (counts + PRIOR * prior) / (counts.sum(axis=1, keepdims=True) + PRIOR)
        coarse = kind
    return shares
