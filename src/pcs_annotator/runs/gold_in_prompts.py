"""Gold rows that models see: as examples, to find candidate labels, and to write definitions; a run keeps them.

Each prompt shows the examples most like its text, and never the text itself. So what a model says about a gold row does
not depend on that row's label. Gold rows shown to the model that writes definitions are not learned from.
"""

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pcs_annotator.asking.engine.call import Rewriter
from pcs_annotator.asking.ledger.open_ledger import open_ledger
from pcs_annotator.base.concurrency import run_sync
from pcs_annotator.base.errors import BudgetReached, ConfigError, GoldError, ModelError
from pcs_annotator.base.text import counted
from pcs_annotator.core.chat import ChatModel
from pcs_annotator.core.identity import text_hash
from pcs_annotator.core.ngrams import text_key
from pcs_annotator.core.task import Example, is_empty
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.relations.definitions import definition_request, read_definitions, texts_to_show
from pcs_annotator.runs import ask, ledgers
from pcs_annotator.runs.gold_labels import gold_of
from pcs_annotator.runs.paths import read_start
from pcs_annotator.runs.resolve_config import asked_alone, nearest_of_gold, task_of
from pcs_annotator.runs.run_request import RunRequest, earlier_run
from pcs_annotator.runs.settings import Config, TaskSettings
from pcs_annotator.tables.chunks import Dataset

EXAMPLES, DEFINITIONS = "examples", "definitions"  # relations
MOST_ROWS = 1_000  # more gold rows are sampled: they cost time with every text, and the nearest are hardly nearer
USUAL = 8
_EXPECTED = "A sentence of usual length says which texts get this label, and which ones get another one instead."


def asks_with(name: str, relations: Iterable[str]) -> bool:
    """Return whether a relation asks with examples, or with definitions."""
    return any(re.search(rf"(?:^|\+)\s*{name}\b", relation) for relation in relations)


def about_examples(config: Config) -> str:
    """Return which examples prompts show, in a sentence; empty if they show none."""
    task = config.task
    if not task.examples or task_of(config).together is not None:  # a call about several variables shows none
        return ""
    nearest = f"the {task.nearest} of {len(task.examples)} that are most like its text, never the text itself"
    where = "under the relation examples" if asks_with(EXAMPLES, config.relations.use) else "in each prompt"
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
    """Return settings with gold rows as examples, if they or a relation want some; those of an earlier run stay."""
    task = config.task
    by_relation = asks_with(EXAMPLES, config.relations.use) and not task.examples
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
    if not rows:
        remedy = "label some in a column gold, or give a table of texts and labels with --examples FILE"
        raise GoldError(f"{wanted}: {name} has no gold rows: {remedy}")
    first, *others = {row["label"].casefold(): row["label"] for row in rows}.values()
    if not others:
        remedy = "label rows with other labels too, or leave it out"
        raise GoldError(f"{wanted}: all {len(rows)} gold rows are {first!r}, which models would repeat: {remedy}")


def lacks_definitions(config: Config) -> bool:
    """Return whether definitions are to be written before anything is asked."""
    task = config.task
    undefined = not task.definitions and not task.meanings.keys() >= set(task.labels)
    return undefined and asks_with(DEFINITIONS, config.relations.use)


def as_if_defined(config: Config) -> Config:
    """Return settings with sentences in place of those that are to be written: for checks and plans."""
    return _defined(config, dict.fromkeys(config.task.labels, _EXPECTED)) if lacks_definitions(config) else config


def about_definitions(config: Config) -> str:
    """Return what the relation `definitions` shows, in a sentence; empty if it is not used."""
    if not (task := config.task).definitions or not asks_with(DEFINITIONS, config.relations.use):
        return ""
    listed = "; ".join(f"{label}: {sentence.rstrip('.')}" for label, sentence in task.definitions.items())
    shown = counted(len(task.defined_by), "gold row")
    rows = f"; the model was shown {shown} for it, and nothing is learned from them" if task.defined_by else ""
    return f"Labels under the relation {DEFINITIONS} (yours to change in [task.definitions]): {listed}{rows}"


def with_definitions(request: RunRequest, config: Config, dataset: Dataset, *, named: bool) -> Config:
    """Return settings with definitions of labels, if a relation shows them: those of the run in the folder stay.

    If the model writes none, that is an error where the user has `named` the relation; else it is left out.
    """
    if not lacks_definitions(config):
        return config
    before = None if request.fresh else earlier_run(request.run_folder)
    if before is not None and before.config.task.labels == config.task.labels and before.config.task.definitions:
        task = before.config.task
        return _defined(config, task.definitions, task.defined_by)
    gold = [] if config.task.extraction else gold_rows(request, dataset)  # whose texts have no label as a whole
    rows = [Example(row["text"], row["label"]) for row in gold]
    for shown in dict.fromkeys([tuple(texts_to_show(rows, config.task.labels)), ()]):  # small models repeat the texts
        model, sentences = _written(request, config, shown)
        if sentences:
            return _defined(config, sentences, tuple(text_hash(row.text) for row in shown))
    if named:
        raise ConfigError(f"{model} wrote no sentence about each label: write them into [task.definitions] of pcs.toml")
    request.say(f"{model} wrote no definitions of the labels, so the relation {DEFINITIONS} is left out")
    use = tuple(name for name in config.relations.use if name != DEFINITIONS)
    questions = {
        model: tuple(name for name in asked if name != DEFINITIONS) for model, asked in config.ask.questions.items()
    }
    return replace(config, relations=replace(config.relations, use=use), ask=replace(config.ask, questions=questions))


def _defined(config: Config, sentences: Mapping[str, str], defined_by: tuple[str, ...] = ()) -> Config:
    return replace(config, task=replace(config.task, definitions=sentences, defined_by=defined_by))


def _written(request: RunRequest, config: Config, shown: Sequence[Example]) -> tuple[str, Mapping[str, str]]:
    """Return the model that was asked, the one that rewrites or else the first, and the sentences it wrote."""
    settings = replace(request.how_to_ask(config), questions={})
    task = task_of(config)
    job = ask.open_job(task, config.ask.models, (ORIGINAL,), settings)
    model: ChatModel = job.rewriter or job.annotators[0][1]

    async def write() -> Mapping[str, str]:
        with open_ledger(ledgers.ledger_of(request.run_folder, config)) as opened:
            writer = Rewriter(model, ask.open_asker(opened, settings))
            try:
                reply = await writer(definition_request(task, shown))
            except (ModelError, BudgetReached):  # if nothing can be asked at all, the next call says so
                return {}
            finally:
                await ask.close_models(job)
        return read_definitions(reply.text, task.labels, shown)

    sentences = run_sync(write)
    request.paid.add(settings.tally)
    return model.name, sentences
