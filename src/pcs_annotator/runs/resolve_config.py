"""Complete settings from the user's settings and data: every default is decided here, before the first call."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from pcs_annotator.asking.annotators.extraction import example_answer
from pcs_annotator.asking.engine.budget import Budget
from pcs_annotator.asking.engine.call import Patience
from pcs_annotator.asking.engine.pace import MAX_IN_FLIGHT
from pcs_annotator.base.errors import ConfigError, LabelError
from pcs_annotator.core.elicitations import base_annotator, kind_of
from pcs_annotator.core.ledger_address import absolute_address, on_server
from pcs_annotator.core.numbers import steps_of
from pcs_annotator.core.passages import Extraction
from pcs_annotator.core.task import (
    PAIR_LABELS,
    AskedTogether,
    Example,
    Part,
    Task,
    candidate_count,
    check_labels,
    label_code,
    refuse_line_breaks,
    usual_instruction,
)
from pcs_annotator.judging.label_shape import check_kind
from pcs_annotator.relations.base import Relation
from pcs_annotator.relations.combine import RelationOptions
from pcs_annotator.relations.prompted import PromptedRelation
from pcs_annotator.runs.ask import ClusterSettings, CollectSettings
from pcs_annotator.runs.gold_labels import labels_seen, refuse_other_gold
from pcs_annotator.runs.own_objects import OwnObjects
from pcs_annotator.runs.paths import RunFolder, parts_in, read_start
from pcs_annotator.runs.settings import (
    SPENDING,
    Config,
    DataSettings,
    LearnSettings,
    RelationSettings,
    Saving,
    TaskSettings,
    all_settings,
    sections,
)
from pcs_annotator.runs.toml import config_from_dict, known_settings, read_config, variable_problem
from pcs_annotator.tables import passage_files
from pcs_annotator.tables.chunks import PAIR_SIGN, Columns, Dataset
from pcs_annotator.tables.files import expecting, read_json
from pcs_annotator.tables.people import Codebook, read_codebook, read_examples
from pcs_annotator.tables.source_files import Reading

WITHOUT_REWRITER = ("case", "frame", "typo")  # the rules, which call no model
GOLD = "gold"


def read_settings(
    path: Path | None, folder: Path, named: Mapping[str, Any], learn: LearnSettings | None = None
) -> Config:
    """Return the settings of a `pcs.toml`, if there is one, overridden by those that are given by name.

    `path` can also be a run folder: the settings are then those of the run, for other data. `learn` has the defaults of
    the section `[learn]`. A ledger and tables that the file names are found from where it is.
    """
    if path is not None and path.is_dir():
        return _overridden(_settings_of_run(path), named)
    config = read_config(path, folder, learn)
    start = folder if path is None else path.parent
    if config.ask.ledger and not on_server(config.ask.ledger):
        config = replace(config, ask=replace(config.ask, ledger=str(start / config.ask.ledger)))
    files = {name: getattr(config.task, name) for name in ("codebook", "examples_from")}
    paths: dict[str, Any] = {name: str(start / file) for name, file in files.items() if file and not _is_gold(file)}
    return _overridden(replace(config, task=replace(config.task, **paths)), named)


def _settings_of_run(path: Path) -> Config:
    """Return the settings of an earlier run and of its last fit; which column has gold is about its own data."""
    if not parts_in(path) and not (path / "model.json").exists():
        raise ConfigError(f"{path} is neither a settings file nor a run folder (it has no {RunFolder(path).book.name})")
    folder = RunFolder.find(path)
    remedy = "name a settings file instead, such as pcs.toml"
    with expecting(folder.book, remedy):
        config = config_from_dict(read_start(folder, remedy)["config"])
    learned = read_json(folder.model, remedy).get("learn", {}) if folder.model.exists() else {}
    learn = replace(config.learn, **known_settings(LearnSettings, learned))
    task = replace(config.task, examples_from="")  # examples from its gold rows stay as they are
    return replace(config, task=task, data=replace(config.data, gold_column="", coders=()), learn=learn)


def settings_of(named: Mapping[str, Any], learn: LearnSettings | None = None) -> Config:
    """Return settings that are given by name, without any file; see `read_settings`."""
    return _overridden(Config(learn=learn or LearnSettings()), named)


def _overridden(config: Config, named: Mapping[str, Any]) -> Config:
    """Return settings with those that are given; None and empty values are not, and prices are added."""
    changes: dict[str, dict[str, Any]] = {section: {} for section in sections()}
    for name, value in named.items():
        section, option = all_settings()[name]
        if value is not None and value not in ((), [], {}):
            changes[section][option.key] = str(value) if isinstance(value, PathLike) else value
    asked = changes["ask"]
    asked["prices"] = {**config.ask.prices, **asked.get("prices", {})}
    if ledger := asked.get("ledger", config.ask.ledger):  # later commands find it from any folder
        asked["ledger"] = str(absolute_address(ledger))
    config = replace(config, **{name: replace(getattr(config, name), **values) for name, values in changes.items()})
    return _with_tables(config)


def _with_tables(config: Config) -> Config:
    """Return settings with what a codebook says and, as soon as labels are known, a table of examples."""
    task = config.task
    if task.codebook:
        books = read_codebook(Path(task.codebook))
        if "" not in books:
            return with_variables(replace(config, task=replace(task, codebook="")), books)
        book = books[""]
        if task.labels and {*map(str.casefold, task.labels)} != {*map(str.casefold, book.labels)}:
            raise ConfigError(
                f"{Path(task.codebook).name} has the labels {', '.join(book.labels)}, and the settings have "
                f"{', '.join(task.labels)}: give them in one place"
            )
        task = replace(task, meanings={**task.meanings, **book.meanings}, examples=(*task.examples, *book.examples))
        task = replace(task, labels=book.labels, instruction=task.instruction or book.instruction, codebook="")
    if task.labels and task.examples_from and not _is_gold(task.examples_from):
        rows = read_examples(Path(task.examples_from))
        for where, row in rows.items():
            label_code(row["label"], task.labels, f"{where}, column label")
        task = replace(task, examples=(*task.examples, *rows.values()), examples_from="")
    return replace(config, task=task)


def with_variables(config: Config, books: Mapping[str, Codebook]) -> Config:
    """Return settings with the variables of a codebook."""
    variables = {**config.variables}
    for name, book in books.items():
        twice = "is in pcs.toml too: leave it out there" if name in variables else ""
        if problem := twice or variable_problem(name, book.labels, book.kind):
            raise ConfigError(f"{name} {problem}")
        values: dict[str, Any] = {**book._asdict(), "kind": book.kind or "one"}
        variables[name] = TaskSettings(**values)
    return replace(config, variables=variables)


def _is_gold(examples: str) -> bool:
    return examples == GOLD or examples.startswith(f"{GOLD}:")


def nearest_of_gold(examples: str) -> int:
    """Return how many gold rows to show with each text, as in `gold:4`; 0 if it is not said."""
    number = examples.removeprefix(GOLD).removeprefix(":")
    if examples != GOLD and not (number.isdecimal() and 0 < int(number) < 100):
        raise ConfigError(f"examples {examples!r}: write gold, or gold:4 for the 4 most similar gold rows")
    return int(number or 0)


def with_saving(config: Config, saving: Saving) -> Config:
    """Return the settings of a run with what is said about new texts; its limits on one command are not theirs."""
    config = _overridden(config, {name: getattr(saving, name) for name in SPENDING})
    return replace(config, ask=replace(config.ask, max_calls=saving.max_calls, max_tokens=saving.max_tokens))


def columns_of(config: Config) -> Columns:
    """Return the columns that settings name."""
    data = config.data
    if data.pair and len(data.pair) != 2:
        raise ConfigError(f"pair is {', '.join(data.pair)}: name two columns of texts, as in --pair a,b")
    return Columns(
        text=PAIR_SIGN.join(data.pair) or data.text_column or None,
        id=data.id_column or None,
        gold=data.gold_column or None,
        coders=data.coders,
    )


def reading_of(config: Config) -> Reading:
    """Return how the data are to be read."""
    return Reading(encoding=config.data.encoding, sheet=config.data.sheet)


def resolve(config: Config, dataset: Dataset) -> Config:
    """Return settings with labels and columns; relations that are not named stay open."""
    if not config.ask.models:
        raise ConfigError("no model is named: add --model provider:model, for example --model embedded:smollm2")
    if all(kind_of(model) for model in config.ask.models):
        name = base_annotator(config.ask.models[0])
        raise ConfigError(f"every model is also asked for its confidence: add one that is not, such as {name}")
    if config.task.extraction:
        return _extracting(config, dataset)
    labels_named = [label.strip() for label in config.task.labels]
    pair, kind = config.data.pair, config.task.kind
    if (pair and (config.part or kind not in ("one", "pair"))) or (kind == "pair" and not pair):
        remedy = "name two columns with --pair, without `variables` and another `kind`"
        raise ConfigError(f"pairs of texts are compared by one label: {remedy}")
    if kind == "number":
        labels_named = list(steps_of(labels_named))  # without a range, an error
    labels = check_labels(labels_named or (PAIR_LABELS if pair else labels_seen(dataset)))
    if config.task.kind == "scale":
        labels = _from_low_to_high(labels, named=bool(labels_named))
    check_kind(config.task.kind, labels)
    refuse_line_breaks(labels)
    refuse_other_gold(dataset, labels)
    config = _with_candidates(config, labels)
    task = replace(config.task, labels=labels, kind="pair" if pair else kind)
    return replace(_with_tables(replace(config, task=task)), data=_columns_found(config, dataset))


def _extracting(config: Config, dataset: Dataset) -> Config:
    """Return complete settings of a variable that is quoted from texts; gold that cannot be read raises."""
    task = config.task
    if not config.part or config.data.pair:
        raise ConfigError(
            f'kind = "{task.kind}" needs a name, and one column of texts: write [variables.NAME] in pcs.toml'
        )
    if task.candidates:
        raise ConfigError("candidates are labels, and passages are quoted: leave it out")
    labels = check_labels([label.strip() for label in task.labels])
    refuse_line_breaks(labels)
    task = replace(task, labels=labels)
    assert task.extraction is not None
    passage_files.gold_of_texts(dataset.items, dataset.gold, task.extraction, (dataset.name, config.part))
    return replace(config, task=task, data=_columns_found(config, dataset), learn=replace(config.learn, sets=False))


def _columns_found(config: Config, dataset: Dataset) -> DataSettings:
    text, gold = dataset.columns.text or "", dataset.columns.gold or ""
    return replace(config.data, text_column=text, id_column=dataset.columns.id_setting, gold_column=gold)


def _with_candidates(config: Config, labels: Sequence[str]) -> Config:
    """Return settings with the number of labels that each text is asked about, if not all; answers are hard then."""
    task = config.task
    if task.kind in ("scale", "number"):
        if task.candidates:
            raise ConfigError("candidates cannot be chosen on a scale, where all steps are compared: leave it out")
        return config
    count = candidate_count(task.candidates, len(labels))
    if not count:
        return config
    if config.ask.answers == "graded":
        raise ConfigError(f"graded answers are not kept where {count} of {len(labels):,} labels are asked: use hard")
    return replace(config, task=replace(task, candidates=count), ask=replace(config.ask, answers="hard"))


def _from_low_to_high(labels: Sequence[str], *, named: bool) -> tuple[str, ...]:
    """Return the labels of a scale in order; those of a gold column have one only if they are numbers."""
    try:
        rising = tuple(sorted(labels, key=lambda label: float(label.replace(",", "."))))
    except ValueError:
        rising = tuple(labels) if named else ()
    if not rising or (named and rising != tuple(labels)):
        what = f"the labels are listed as {', '.join(labels)}" if named else "labels that are words have no order"
        raise LabelError(f"{what}: list those of a scale from the lowest to the highest, with --labels low,middle,high")
    return rising


def task_of(config: Config) -> Task:
    """Return the task of complete settings."""
    task = config.task
    return Task(
        task.instruction or usual_instruction(task.labels, task.kind),
        task.labels,
        task.meanings,
        task.wordings,
        [_example(number, row, task.extraction) for number, row in enumerate(task.examples, 1)],
        task.nearest,
        _together(config),
        candidates=_candidates(task),
        known=[Example.of(number, row) for number, row in enumerate(task.known, 1)],
        pair=(0, 1) if config.data.pair else (),
        number=task.kind == "number",
        definitions=task.definitions,
        extraction=task.extraction,
    )


def _example(number: int, row: Mapping[str, str], extraction: Extraction | None) -> Example:
    example = Example.of(number, row)
    if extraction is None:
        return example
    passages = passage_files.gold_passages(example.label, example.text, extraction, f"example {number}")
    return example._replace(label=example_answer(example.text, passages or (), extraction))


def _candidates(task: TaskSettings) -> int:
    return len(task.labels) if task.extraction or task.kind in ("scale", "many", "number") else task.candidates


def asked_alone(task: TaskSettings) -> bool:
    """Return whether a variable of a codebook is asked in a call of its own, because its labels depend on the text."""
    if task.extraction:
        return True
    return task.kind == "number" or candidate_count(_candidates(task), len(task.labels)) > 0


def _together(config: Config) -> AskedTogether | None:
    """Return what is asked in the same call as this variable of a codebook; None if that is its question alone."""
    name, _, label = config.part.partition("=")
    asked = {other: task for other, task in config.variables.items() if other == name or not asked_alone(task)}
    if name and (not config.ask.together or asked_alone(config.variables[name])):
        asked = {name: config.variables[name]}
    if not name or (len(asked) == 1 and not label):
        return None
    parts = list[Part]()
    for variable, task in asked.items():
        instruction = task.instruction or usual_instruction(task.labels)
        meanings = tuple(task.meanings.items())
        parts.append(Part(variable, instruction, tuple(task.labels), meanings, task.kind == "many"))
    return AskedTogether(tuple(parts), name, label)


def collect_settings_of(
    config: Config, environment: Mapping[str, str] | None, own_objects: OwnObjects | None = None
) -> CollectSettings:
    """Return how to ask with these settings; `own_objects` has the objects that some of their names stand for."""
    asked, rewriter = config.ask, config.relations.rewriter or None
    cluster = ClusterSettings(address=asked.ray_address, workers=asked.workers) if asked.executor == "ray" else None
    return CollectSettings(
        draws=asked.draws,
        rewriter=rewriter,
        in_flight=asked.concurrency or MAX_IN_FLIGHT,
        patience=Patience(deadline=asked.timeout, max_wait=asked.max_wait),
        budget=Budget(
            usd=asked.budget_usd, usd_per_day=asked.budget_per_day_usd, calls=asked.max_calls, tokens=asked.max_tokens
        ),
        prices=asked.prices,
        questions=asked.questions,
        answers=asked.answers,
        environment=environment,
        choosing=relation_options_of(config.relations, rewriter=rewriter is not None),
        max_per_second=asked.max_per_second,
        cluster=cluster,
        own=replace(own_objects or OwnObjects(), recorded=frozenset(asked.objects)),
    )


DEFAULT = ("voice", "double-negation", "synonym")  # the paper's relations


def relation_options_of(settings: RelationSettings, *, rewriter: bool) -> RelationOptions:
    """Return how these settings turn names into relations."""
    return RelationOptions(rewriter=rewriter, own=own_relations(settings))


def own_relations(settings: RelationSettings) -> dict[str, Relation]:
    """Return the relations that the user defines in `pcs.toml`, by name."""
    return {
        name: PromptedRelation(name, relation.prompt, relation.version, relation.expects)
        for name, relation in settings.own.items()
    }
