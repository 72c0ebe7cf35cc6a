"""What the paper's class `PCS` asks and learns, with its datasets and answers in the files of its library.

A dataset has the columns `label` and `text`. The answers about it are in `dataset_annotations.csv`: the rewrites in
`text_mr1`, …, the answers in `<model>_text`, `<model>_text_mr1`, ….
"""

import asyncio
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.base.errors import ConfigError, GoldError, LabelError, TableError, warn_user
from pcs_annotator.base.text import row_number
from pcs_annotator.core.arrays import CODE
from pcs_annotator.core.ledger_address import without_password
from pcs_annotator.core.task import Item, check_labels, label_lookup
from pcs_annotator.core.variant import Expectation, Variant
from pcs_annotator.core.votes import ABSTAINED, NOT_ASKED, Votes
from pcs_annotator.core.weights import Weights
from pcs_annotator.judging.fit_weights import fit_weights, optimisers
from pcs_annotator.judging.score import score
from pcs_annotator.models.provider import read_environment
from pcs_annotator.relations.base import Relation
from pcs_annotator.relations.combine import InTurn, choose_relations
from pcs_annotator.relations.function import FunctionRelation
from pcs_annotator.relations.prompted import PromptedRelation
from pcs_annotator.runs.executors import Panel
from pcs_annotator.runs.gold_labels import labels_seen, refuse_other_gold
from pcs_annotator.runs.learn import needs_gold
from pcs_annotator.runs.own_objects import RelationLike, as_relations, is_relation, name_annotators
from pcs_annotator.tables.arrow import pa, text_column
from pcs_annotator.tables.chunks import Columns, Dataset, TableStream
from pcs_annotator.tables.find import as_arrow, table_stem
from pcs_annotator.tables.write import write_table

TEXT, LABEL = "text", "label"
GENERATE = "pass generate_annotations=True to ask the models"
NAMING = "name all labels in the prompt as <label>…</label>"
# Of each provider, the variable for its key that is read last.
LAST_VARIABLES = {
    "GROQ": "GROQ_API_KEY",
    "OPENAI": "OPENAI_API_KEY",
    "ANTHROPIC": "ANTHROPIC_API_KEY",
    "HUGGINGFACE": "HUGGINGFACEHUB_API_TOKEN",
}
# A user's prompt may shorten, expand and reorder texts more than the built-in ones.
OWN_PROMPT = Expectation(shortest=0.3, longest=3.0)
_TAG = re.compile(r"<\s*label\s*>([^<>]*)<\s*/\s*label\s*>", re.IGNORECASE)
_VARIANT = re.compile(r"text_mr(\d+)")


def beside(dataset: Path, ending: str) -> Path:
    """Return the path of a file that belongs to a dataset."""
    return dataset.with_name(f"{table_stem(dataset)}_{ending}")


def read_classic_dataset(path: Path, prompt: str) -> tuple[Dataset, tuple[str, ...]]:
    """Return a dataset and its labels; a row with another label, or that swallows the next ones, is an error."""
    dataset = _read(path, TEXT, LABEL)
    labels = labels_of(prompt, dataset)
    refuse_other_gold(dataset, labels)
    names = "|".join(map(re.escape, labels))
    # in prose, a comma is followed by a space
    row_like = re.compile(rf'"?(?:{names})"?[,;\t]\S.*|.*\S[,;\t]"?(?:{names})"?', re.IGNORECASE)
    for row, item in enumerate(dataset.items, 1):
        further = [line.strip() for line in item.text.splitlines()[1:] if line.strip()]
        if sum(row_like.fullmatch(line) is not None for line in further) > len(further) / 2:
            raise TableError(
                f"{path.name}, row {row_number(path.name, row)}: the text continues into the following rows: close the "
                "quote that is open there"
            )
    return dataset, labels


def _read(path: Path, *needed: str) -> Dataset:
    table = as_arrow(path)
    names = {name.strip().casefold(): name for name in reversed(table.column_names)}
    if missing := [column for column in needed if column not in names]:
        listed = ", ".join(map(repr, table.column_names))
        raise TableError(f"{path.name} has no column {missing[0]!r}, only {listed}: rename the column that holds it")
    columns = Columns(text=names[TEXT], gold=names.get(LABEL), numbered=True)
    return TableStream.of(table, path.name, columns).read()


def labels_of(prompt: str, dataset: Dataset | None = None) -> tuple[str, ...]:
    """Return the labels in the `<label>` tags of a prompt or, if it has fewer than two, those of a dataset."""
    tagged: dict[str, str] = {}
    for label in (" ".join(tag.split()) for tag in _TAG.findall(prompt)):
        if re.search(r"\w", label):  # an ellipsis is a placeholder, not a label
            tagged.setdefault(label.casefold(), label)
    labels = list(tagged.values())
    if len(labels) < 2 and dataset is not None:
        labels = [tagged.get(label.casefold(), label) for label in labels_seen(dataset, NAMING)]
    if len(labels) < 2:
        raise LabelError(
            f"at least two labels are needed, and there is {', '.join(map(repr, labels)) or 'none'}: {NAMING}"
        )
    return check_labels(labels)


def vote_column(annotator: str, number: int) -> str:
    """Return the column with an annotator's answers on the original text (0) or on its rewrite `mr<number>`."""
    return f"{annotator}_{TEXT}" + (f"_mr{number}" if number else "")


def with_keys(environment: Mapping[str, str] | None, keys: Mapping[str, str]) -> dict[str, str]:
    """Return an environment, by default the process's and `.env`, with keys; a redirected provider needs none."""
    variables = read_environment(Path.cwd()) if environment is None else environment
    none = {key: "none" for name, key in LAST_VARIABLES.items() if variables.get(f"{name}_BASE_URL", "").strip()}
    return {**none, **variables, **keys}


def own_relation(name: str, source: RelationLike) -> Relation:
    """Return a relation made from a prompt, whose rewrites are checked, or a function, whose rewrites are not."""
    if isinstance(source, str):
        if not source.strip():
            raise ConfigError(f"relation {name!r}: the prompt is empty: say how to rewrite a text")
        return PromptedRelation(name, source, expects=OWN_PROMPT)
    if is_relation(source):
        if source.name != name:
            raise ConfigError(f"the relation is named {source.name!r}: register it under that name")
        return source
    if not callable(source):
        raise ConfigError(f"relation {name!r}: give a function that takes a text, or a prompt, not {source!r}")
    # a combined relation is not checked, even if it has only one part
    return InTurn(name, (FunctionRelation(name, source, expects=OWN_PROMPT),))


def no_votes(panel: Panel) -> Votes:
    """Return the votes of a panel on no texts."""
    options = replace(panel.settings.choosing, rewriter=panel.settings.rewriter is not None)
    annotators = [annotator.name for annotator in name_annotators(panel.annotators)]
    relations = [relation.name for relation in choose_relations(as_relations(panel.relations), options)]
    codes = np.empty((0, len(annotators), len(relations)), dtype=CODE)
    return Votes(codes=codes, ids=[], annotators=annotators, relations=relations, labels=panel.task.labels)


async def score_texts(panel: Panel, texts: Sequence[str], weights: Weights) -> list[dict[str, float]]:
    """Return label → score for each text; say for which there is no answer."""
    votes = await _ask(panel, texts)
    if silent := int(votes.silent.sum()):
        warn_user(f"no model gave a usable label for {silent} of {len(votes)} texts: their scores are equal")
    return [dict(zip(votes.labels, row, strict=True)) for row in score(votes, weights).tolist()]


async def learn_weights(
    panel: Panel, dataset: Dataset, path: Path, optimiser: str, seed: int, generate: bool
) -> Weights:
    """Return the weights, learned from new answers, which are written to a file, or from those in it."""
    name = optimiser.strip().lower() if optimisers.has(optimiser.strip().lower()) else optimiser
    labelled_only = needs_gold(name)
    rows = [row for row, label in enumerate(dataset.gold) if label is not None or not labelled_only]
    if not rows:
        raise GoldError(f"{dataset.name}: the column 'label' is empty: label some rows (30 are a start)")
    if generate:
        votes = await ask_about(panel, dataset, rows, path)
    else:
        votes, rows = read_answers(path, dataset, rows, no_votes(panel))
    return await asyncio.to_thread(fit_weights, votes, [dataset.gold[row] for row in rows], name, seed=seed)


async def _ask(panel: Panel, texts: Sequence[str]) -> Votes:
    """Return the votes on texts; say which questions have no answer."""
    tally = Tally(rows_expected=len(set(texts)))
    votes = await replace(panel, settings=replace(panel.settings, tally=tally)).ask(texts)
    if tally.failed:
        causes = ", ".join(f"{cause}: {count}" for cause, count in tally.failed.most_common())
        warn_user(f"{tally.failed.total()} questions unanswered ({causes}); repeat the call to ask only those again")
    return votes


async def ask_about(panel: Panel, dataset: Dataset, rows: Sequence[int], path: Path) -> Votes:
    """Return the votes on rows of a dataset, and write them and the rewrites to a file."""
    variants: dict[tuple[str, str], Variant] = {}

    def note(item: Item, variant: Variant) -> None:
        variants[item.text, variant.relation] = variant
        if panel.settings.on_variant is not None:
            panel.settings.on_variant(item, variant)

    texts = [dataset.items[row].text for row in rows]
    votes = await _ask(replace(panel, settings=replace(panel.settings, on_variant=note)), texts)
    columns: dict[str, Sequence[str | None]] = {}
    for number, relation in enumerate(votes.relations[1:], 1):
        made = [variants.get((text, relation)) for text in texts]
        rewrites = columns[f"{TEXT}_mr{number}"] = [None if rewrite is None else rewrite.text for rewrite in made]
        causes = Counter(rewrite.cause for rewrite in made if rewrite is not None)
        if causes and not any(rewrites):
            cause = causes.most_common(1)[0][0]
            warn_user(f"relation {relation!r} changed none of {len(texts)} texts ({cause}), so it has no votes")
    names = [*votes.labels, None, None]  # codes −2 and −1 index the last two
    for position, annotator in enumerate(votes.annotators):
        for number in range(len(votes.relations)):
            codes = votes.codes[:, position, number, 0].tolist()
            columns[vote_column(annotator, number)] = [names[code] for code in codes]
    try:
        _write(path, dataset.table, rows, columns)
    except (OSError, TableError) as error:
        warn_user(f"{path.name} was not written ({error}); the answers are kept in {without_password(panel.ledger)}")
    return votes


def _write(path: Path, table: pa.Table, rows: Sequence[int], columns: dict[str, Sequence[str | None]]) -> None:
    """Write a table with cells of some rows; an existing file with other contents is kept as `*.before`."""
    table = table.drop_columns([name for name in columns if name in table.column_names])
    for name, values in columns.items():
        cells = dict(zip(rows, values, strict=True))
        table = table.append_column(name, pa.array([cells.get(row) for row in range(len(table))], pa.string()))
    before = path.read_bytes() if path.is_file() else None
    write_table(path, table)
    if before is not None and path.read_bytes() != before:
        path.with_name(f"{path.stem}.before{path.suffix}").write_bytes(before)


def read_answers(path: Path, dataset: Dataset, rows: Sequence[int], axes: Votes) -> tuple[Votes, list[int]]:
    """Return earlier votes, from the file beside the dataset or else the dataset itself, and the rows they are about.

    `axes` has the annotators, relations and labels; the first relation is the original text. Rows are matched by text.
    """
    answers = dataset
    if path.exists():
        answers = _read(path, TEXT)
    elif not any(vote_column(annotator, 0) in dataset.table.column_names for annotator in axes.annotators):
        raise TableError(f"no answers to learn from, there is no file {path}: {GENERATE} about {dataset.name}")
    _check_columns(answers, axes)
    row_there = _places(answers, dataset)
    answered = [row for row in rows if row in row_there]
    if not answered:
        raise TableError(f"{answers.name} has none of the labelled texts of {dataset.name}: {GENERATE}")
    if missing := [row_number(dataset.name, row + 1) for row in rows if row not in row_there]:
        warn_user(
            f"{len(missing)} of {len(rows)} labelled rows of {dataset.name}, first row {missing[0]}, are not in "
            f"{answers.name} and are not used for learning: {GENERATE} about them"
        )
    return _votes(answers.table.take([row_there[row] for row in answered]), axes), answered


def _check_columns(answers: Dataset, axes: Votes) -> None:
    columns = answers.table.column_names
    for annotator, (number, relation) in product(axes.annotators, enumerate(axes.relations)):
        if (column := vote_column(annotator, number)) not in columns:
            raise TableError(
                f"{answers.name} has no column {column!r} with the answers of {annotator} to {relation!r}: "
                f"{GENERATE}, or write the model's name as in the column names"
            )
    numbers = sorted(int(match[1]) for match in map(_VARIANT.fullmatch, columns) if match)
    if more := ", ".join(f"mr{number}" for number in numbers if number >= len(axes.relations)):
        warn_user(f"{answers.name} also has {more}, which are not used: add the relation with register_mr to use them")


def _places(there: Dataset, wanted: Dataset) -> dict[int, int]:
    """Return position in the dataset → row of the annotations: the same row if its text matches, else the first."""
    keys, sought = ([" ".join(item.text.split()) for item in table.items] for table in (there, wanted))
    first = {key: row for row, key in reversed([*enumerate(keys)])}
    return {row: row if keys[row : row + 1] == [key] else first[key] for row, key in enumerate(sought) if key in first}


def _votes(table: pa.Table, axes: Votes) -> Votes:
    lookup = label_lookup(axes.labels)
    cells = {name: [value or "" for value in text_column(name, table[name]).to_pylist()] for name in table.column_names}
    codes = np.full((len(table), len(axes.annotators), len(axes.relations)), NOT_ASKED, dtype=CODE)
    for number in range(len(axes.relations)):
        rewrites = cells.get(f"{TEXT}_mr{number}", ["there"] * len(table))
        silences = [ABSTAINED if text.strip() else NOT_ASKED for text in rewrites]  # without a rewrite, nobody is asked
        for position, annotator in enumerate(axes.annotators):
            answers = zip(cells[vote_column(annotator, number)], silences, strict=True)
            codes[:, position, number] = [lookup.get(cell.strip().casefold(), silence) for cell, silence in answers]
    return replace(axes, codes=codes, ids=[str(row) for row in range(len(table))])
