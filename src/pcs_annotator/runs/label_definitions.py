"""Sentences about labels, for the relation `definitions`: written once by a model, and kept in the settings of a run.

The gold rows that the model is shown are not learned from, because its answers are easier for them.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pcs_annotator.asking.engine.call import Rewriter
from pcs_annotator.asking.ledger.open_ledger import open_ledger
from pcs_annotator.base.concurrency import run_sync
from pcs_annotator.base.errors import BudgetReached, ConfigError, ModelError
from pcs_annotator.base.text import counted
from pcs_annotator.core.chat import ChatModel
from pcs_annotator.core.identity import text_hash
from pcs_annotator.core.task import Example
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.relations.definitions import definition_request, read_definitions, texts_to_show
from pcs_annotator.runs import ask, ledgers, resolve_config
from pcs_annotator.runs.gold_examples import gold_rows
from pcs_annotator.runs.run_request import RunRequest, earlier_run
from pcs_annotator.runs.settings import Config
from pcs_annotator.tables.chunks import Dataset

NAME = "definitions"
_RELATION = re.compile(rf"(?:^|\+)\s*{NAME}\b")
_EXPECTED = "A sentence of usual length says which texts get this label, and which ones get another one instead."


def uses_definitions(relations: Iterable[str]) -> bool:
    """Return whether a relation asks with definitions, by its name."""
    return any(map(_RELATION.search, relations))


def lacks_definitions(config: Config) -> bool:
    """Return whether definitions are to be written before anything is asked."""
    task = config.task
    undefined = not task.definitions and not task.meanings.keys() >= set(task.labels)
    return undefined and uses_definitions(config.relations.use)


def as_if_defined(config: Config) -> Config:
    """Return settings with sentences in place of those that are to be written: for checks and plans."""
    return _defined(config, dict.fromkeys(config.task.labels, _EXPECTED)) if lacks_definitions(config) else config


def about_definitions(config: Config) -> str:
    """Return what the relation `definitions` shows, in a sentence; empty if it is not used."""
    if not (task := config.task).definitions or not uses_definitions(config.relations.use):
        return ""
    listed = "; ".join(f"{label}: {sentence.rstrip('.')}" for label, sentence in task.definitions.items())
    shown = counted(len(task.defined_by), "gold row")
    rows = f"; the model was shown {shown} for it, and nothing is learned from them" if task.defined_by else ""
    return f"Labels under the relation {NAME} (yours to change in [task.definitions]): {listed}{rows}"


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
    request.say(f"{model} wrote no definitions of the labels, so the relation {NAME} is left out")
    use = tuple(name for name in config.relations.use if name != NAME)
    questions = {model: tuple(name for name in asked if name != NAME) for model, asked in config.ask.questions.items()}
    return replace(config, relations=replace(config.relations, use=use), ask=replace(config.ask, questions=questions))


def _defined(config: Config, sentences: Mapping[str, str], defined_by: tuple[str, ...] = ()) -> Config:
    return replace(config, task=replace(config.task, definitions=sentences, defined_by=defined_by))


def _written(request: RunRequest, config: Config, shown: Sequence[Example]) -> tuple[str, Mapping[str, str]]:
    """Return the model that was asked, the one that rewrites or else the first, and the sentences it wrote."""
    settings = replace(request.how_to_ask(config), questions={})
    task = resolve_config.task_of(config)
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
