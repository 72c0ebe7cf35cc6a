"""Examples from the gold rows, also those that candidate labels are found by: taken when a run starts, and kept by it.

Each prompt shows those most like its text, and never the text itself. So what a model says about a gold row does not
depend on that row's label, and gold rows are asked about as new ones are.
"""

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pcs_annotator.base.errors import GoldError
from pcs_annotator.core.ngrams import text_key
from pcs_annotator.core.task import is_empty
from pcs_annotator.runs.gold_labels import gold_of
from pcs_annotator.runs.paths import read_start
from pcs_annotator.runs.resolve_config import asked_alone, nearest_of_gold, task_of
from pcs_annotator.runs.run_request import RunRequest, earlier_run
from pcs_annotator.runs.settings import Config, TaskSettings
from pcs_annotator.tables.chunks import Dataset

MOST_ROWS = 1_000  # more gold rows are sampled: they cost time with every text, and the nearest are hardly nearer
USUAL = 8
_RELATION = re.compile(r"(?:^|[+|])\s*examples\b")


def uses_examples(relations: Iterable[str]) -> bool:
    """Return whether a relation asks with examples, by its name."""
    return any(map(_RELATION.search, relations))


def about_examples(config: Config) -> str:
    """Return which examples prompts show, in a sentence; empty if they show none."""
    task = config.task
    if not task.examples or task_of(config).together is not None:  # a call about several variables shows none
        return ""
    nearest = f"the {task.nearest} of {len(task.examples)} that are most like its text, never the text itself"
    where = "under the relation examples" if uses_examples(config.relations.use) else "in each prompt"
    return f"Examples {where}: {nearest if task.nearest else len(task.examples)}."


def with_known_texts(request: RunRequest, config: Config, dataset: Dataset) -> Config:
    """Return settings with the gold rows by which candidates are found; those of the run in the folder stay."""
    task = config.task
    if task.known or task.extraction or not asked_alone(task):
        return config
    before = _earlier_task(request, config, dataset)
    rows = gold_rows(request, dataset) if before is None else before.known
    return replace(config, task=replace(task, known=tuple(rows)))


def _earlier_task(request: RunRequest, config: Config, dataset: Dataset) -> TaskSettings | None:
    """Return the task of the run in the folder; None if it has other labels, or data that are to be replaced."""
    before = None if request.fresh else earlier_run(request.run_folder)
    if before is None or before.config.task.labels != config.task.labels:
        return None
    users_examples = len(config.task.examples)
    texts = {item.text for item in dataset.items}
    rows = (*before.config.task.examples[users_examples:], *before.config.task.known)
    return before.config.task if all(row["text"] in texts for row in rows) else None


def with_gold_examples(request: RunRequest, config: Config, dataset: Dataset) -> Config:
    """Return settings with gold rows as examples, if they want them; those of the run in the folder stay.

    A relation that asks with examples takes gold rows where no others are given.
    """
    task = config.task
    by_relation = uses_examples(config.relations.use) and not task.examples
    wanted = task.examples_from or ("gold" if by_relation else "")
    if not wanted:
        return config
    nearest, users_examples = nearest_of_gold(wanted) or task.nearest or USUAL, task.examples
    before = _earlier_task(request, config, dataset)
    rows = () if before is None else before.examples
    if before is None or before.examples_from != wanted or rows[: len(users_examples)] != users_examples:
        shown = gold_rows(request, dataset)
        _refuse_few(shown, dataset.name, "relation 'examples'" if by_relation else f"--examples {wanted}")
        rows = (*users_examples, *shown)
    return replace(config, task=replace(task, examples=rows, nearest=nearest, examples_from=wanted))


def gold_rows(request: RunRequest, dataset: Dataset) -> list[dict[str, str]]:
    """Return the gold rows as examples, each text once; of very many a sample."""
    folder = request.run_folder
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # learning reads gold again, and warns then
        gold = gold_of(folder if read_start(folder) else None, dataset).labels
    rows = [(item.text, label) for item, label in zip(dataset.items, gold, strict=True) if label]
    by_text = {text_key(text): {"text": text, "label": label} for text, label in rows if not is_empty(text)}
    return [by_text[key] for key in sorted(by_text)[:MOST_ROWS]]  # by hash, so as good as random


def _refuse_few(rows: Sequence[Mapping[str, str]], name: str, wanted: str) -> None:
    """Raise if there are no gold rows to show, or they have a single label."""
    if not rows:
        remedy = "label some in a column gold, or give a table of texts and labels with --examples FILE"
        raise GoldError(f"{wanted}: {name} has no gold rows: {remedy}")
    first, *others = {row["label"].casefold(): row["label"] for row in rows}.values()
    if not others:
        remedy = "label rows with other labels too, or leave it out"
        raise GoldError(f"{wanted}: all {len(rows)} gold rows are {first!r}, which models would repeat: {remedy}")
