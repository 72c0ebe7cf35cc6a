"""A book: the variables of a run, in their order, each with its question; most runs have one.

One with any number of labels has a part for every label, which asks whether it applies. All parts share texts, ledger
and log of draws, and models answer them in one call: the first part pays, the others read the same replies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from pcs_annotator.base.errors import ConfigError, TableError
from pcs_annotator.core.passages import NO, YES
from pcs_annotator.core.task import usual_instruction
from pcs_annotator.relations.phrases import phrases_around
from pcs_annotator.runs.paths import RunFolder, parts_in, place_of, read_start
from pcs_annotator.runs.run_table import IN_MEMORY_ROWS, is_large
from pcs_annotator.runs.settings import Config, TaskSettings
from pcs_annotator.runs.toml import config_from_dict
from pcs_annotator.runs.variable_gold import parts_of_variable, split_gold
from pcs_annotator.tables.files import expecting

if TYPE_CHECKING:
    from pcs_annotator.runs.run_request import RunRequest

T = TypeVar("T")


class Book(NamedTuple):
    """The variables of a run; the only one of most runs, or one that was named alone, has the name `""`."""

    path: Path
    parts: Mapping[str, RunFolder]  # name of a part → its files
    variables: Mapping[str, TaskSettings]

    @classmethod
    def open(cls, path: Path) -> Book:
        """Return the book in a run folder, or in the folder of one variable; a run that was stopped is an error."""
        parts = parts_in(path)
        if not parts or "" in parts:
            folder = RunFolder.find(path)
            return cls(path, {"": folder}, {"": _config_of(folder).task})
        variables = _config_of(RunFolder(path, parts[0])).variables
        folders = {part: RunFolder(path, part) for part in parts_of(variables)}
        for folder in folders.values():
            if not folder.votes.exists():
                raise ConfigError(
                    f"{path} is half a run: {folder.home} has no answers; repeat pcs run, which asks for what is "
                    "missing"
                )
        return cls(path, folders, variables)

    @property
    def named(self) -> bool:
        """Whether variables have names, which their columns then have too."""
        return "" not in self.parts

    def each(self, do: Callable[[Path], T]) -> dict[str, T]:
        """Do something in the folder of every part."""
        return {name: do(folder.home) for name, folder in self.parts.items()}

    def parts_of(self, variable: str) -> list[str]:
        """Return the parts of a variable: itself, or one for each of its labels."""
        return parts_of_variable(variable, self.variables[variable])


def _config_of(folder: RunFolder) -> Config:
    with expecting(folder.book, "rename it and run again; the ledger keeps all answers"):
        return config_from_dict(read_start(folder)["config"])


def parts_of(variables: Mapping[str, TaskSettings]) -> list[str]:
    """Return the parts of all variables; of a run without names of variables, the one with the name `""`."""
    return [part for name, task in variables.items() for part in parts_of_variable(name, task)] or [""]


def open_parts(request: RunRequest) -> dict[str, RunRequest]:
    """Return part, as in `topic` or `frames=economy` → what it is to run, with its gold labels alone."""
    config = request.config
    if not config.variables:
        return {"": request}
    stream = request.open_data()
    if is_large(stream):
        remedy = f"run a sample of it (--limit), and label the rest in files of at most {IN_MEMORY_ROWS:,} rows"
        raise TableError(f"{stream.name} is too large for a run with several variables: {remedy}")
    table = stream.read().table
    columns = replace(config.data, text_column=stream.columns.text or "", id_column=stream.columns.id_setting)
    tables, requests = dict(split_gold(table, config.variables, stream.name)), {}
    for part, part_config in configs_of(config, request.folder).items():
        data = tables[part]
        named = replace(columns, gold_column="gold" if "gold" in data.column_names else "", coders=())
        whole = {"whole_table": table, "data_source": request.data_name}
        requests[part] = replace(request, data=data, **whole, config=replace(part_config, data=named))
    return requests


def configs_of(config: Config, folder: Path) -> dict[str, Config]:
    """Return part → settings of its run; all parts share a ledger."""
    ledger = config.ask.ledger or str(RunFolder(folder).ledger.absolute())
    shared, configs, places = replace(config, ask=replace(config.ask, ledger=ledger)), dict[str, Config](), set[str]()
    for name, task in config.variables.items():
        tasks = [_applies(task, label) for label in task.labels] if task.kind == "many" else [task]
        for part, part_task in zip(parts_of_variable(name, task), tasks, strict=True):
            if place_of(part).casefold() in places:
                raise ConfigError(f"{part}: another label has the same letters and digits: rename one of them")
            places.add(place_of(part).casefold())
            configs[part] = replace(shared, task=part_task, part=part)
        if task.kind in ("number", "value"):  # nothing is listed that could be in another order
            use = tuple(relation for relation in shared.relations.use if "order" not in relation)
            configs[name] = replace(configs[name], relations=replace(shared.relations, use=use))
    return configs


def _applies(task: TaskSettings, label: str) -> TaskSettings:
    asked = task.instruction or usual_instruction(task.labels)
    means = f" ({task.meanings[label]})" if label in task.meanings else ""
    applies = phrases_around(asked, task.labels).applies.format(label=f"“{label}”{means}")
    question = f"{asked} {applies}"
    return replace(task, instruction=question, labels=(YES, NO), meanings={}, wordings=(), examples=(), kind="one")
