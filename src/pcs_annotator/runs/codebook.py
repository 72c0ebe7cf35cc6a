"""A codebook: several variables of the same texts, each a run of its own in a folder of its own.

A variable with one label per text is one run. One with any number of labels is a run for every label, which asks
whether it applies. All of them share a ledger, and models answer them in one call: the first run pays, the others read
the same replies. So everything that works for a run works for each variable: promises, review, estimates, the report.
"""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from pcs_annotator.asking.annotators.together import NO, YES
from pcs_annotator.base.errors import ConfigError, LabelError, TableError
from pcs_annotator.base.text import row_number
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.task import label_code, usual_instruction, whole_number
from pcs_annotator.relations.phrases import phrases_around
from pcs_annotator.runs.paths import RunFolder, variables_in
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.run_table import IN_MEMORY_ROWS, is_large
from pcs_annotator.runs.settings import Config, TaskSettings
from pcs_annotator.tables.arrow import pa, text_column

if TYPE_CHECKING:  # it loads what learns, which a plan does not need
    from pcs_annotator.judging.promise.sets import SetResult
    from pcs_annotator.runs.run_result import RunResult

__all__ = ["YES", "CodebookFolder"]
TRUE = ("1", "1.0", "true", "yes", "y", "x", "wahr", "ja", "vrai", "oui")
FALSE = ("0", "0.0", "false", "no", "n", "-", "falsch", "nein", "faux", "non")
T = TypeVar("T")


class CodebookFolder(NamedTuple):
    """The folder of a codebook that was run."""

    path: Path
    parts: Mapping[str, Path]  # name of a part → its run folder
    variables: Mapping[str, TaskSettings]

    @classmethod
    def find(cls, path: Path) -> CodebookFolder | None:
        """Return the codebook in a folder; None if it has none. One whose run was stopped is an error."""
        folder = RunFolder(path)
        if not (places := variables_in(folder)):
            return None
        for part in places.values():
            if not RunFolder(part).votes.exists():
                raise ConfigError(
                    f"{path} is half a codebook: {part} has no answers; pcs run, once more, asks for what is missing"
                )
        from pcs_annotator.runs.opened import Run  # loads what learns, which a plan does not need

        return cls(path, places, Run.open(next(iter(places.values()))).config.variables)

    def each(self, do: Callable[[Path], T]) -> dict[str, T]:
        """Do something in the folder of every part; an error says which one it is about."""
        return {name: do(path) for name, path in self.parts.items()}

    def parts_of(self, variable: str) -> list[str]:
        """Return the parts of a variable: itself, or one for each of its labels."""
        return _parts(variable, self.variables[variable])


def open_codebook(request: RunRequest) -> tuple[pa.Table, Mapping[str, RunRequest]]:
    """Return the user's table, and part → its run, whose data have its gold labels alone; a large table is an error.

    A part is a variable or, of one with any number of labels, also the label, as in `frames=economy`.
    """
    config, stream = request.config, request.open_data()
    if is_large(stream):
        remedy = f"run a sample of it (--limit), and label the rest in files of at most {IN_MEMORY_ROWS:,} rows"
        raise TableError(f"{stream.name} is too large for a run with several variables: {remedy}")
    table, requests = stream.read().table, {}
    columns = replace(config.data, text_column=stream.columns.text or "", id_column=stream.columns.id_setting)
    tables = dict(_split_gold(table, config, stream.name))
    for part, part_config in configs_of(config, request.folder).items():
        data = tables[part]
        named = replace(columns, gold_column="gold" if "gold" in data.column_names else "", coders=())
        path = request.folder / place_of(part)
        requests[part] = replace(request, data=data, folder=path, config=replace(part_config, data=named))
    return table, requests


def configs_of(config: Config, folder: Path) -> dict[str, Config]:
    """Return part → settings of its run; all parts share a ledger."""
    ledger = config.ask.ledger or str(RunFolder(folder).ledger.absolute())
    shared, configs, places = replace(config, ask=replace(config.ask, ledger=ledger)), dict[str, Config](), set[str]()
    for name, task in config.variables.items():
        tasks = [_applies(task, label) for label in task.labels] if task.kind == "many" else [task]
        for part, part_task in zip(_parts(name, task), tasks, strict=True):
            if place_of(part).casefold() in places:
                raise ConfigError(f"{part}: another label has the same letters and digits: rename one of them")
            places.add(place_of(part).casefold())
            configs[part] = replace(shared, task=part_task, part=part)
        if task.kind == "number":  # nothing is listed that could be in another order
            use = tuple(relation for relation in shared.relations.use if "order" not in relation)
            configs[name] = replace(configs[name], relations=replace(shared.relations, use=use))
    return configs


def place_of(part: str) -> str:
    """Return the folder of a part within that of the codebook."""
    variable, several, label = part.partition("=")
    name = re.sub(r"\W+", "-", label).strip("-") or "label"
    return f"{variable}/{name}" if several else variable


def _applies(task: TaskSettings, label: str) -> TaskSettings:
    """Return the question whether one of several labels applies."""
    asked = task.instruction or usual_instruction(task.labels)
    means = f" ({task.meanings[label]})" if label in task.meanings else ""
    applies = phrases_around(asked, task.labels).applies.format(label=f"“{label}”{means}")
    question = f"{asked} {applies}"
    return replace(task, instruction=question, labels=(YES, NO), meanings={}, wordings=(), examples=(), kind="one")


def _split_gold(table: pa.Table, config: Config, name: str) -> Iterator[tuple[str, pa.Table]]:
    """Yield for every part of a codebook its name and the table with its gold labels in a column `gold`.

    The gold column of a variable is called like the variable, or has `gold_` in front. Of a variable with any number of
    labels, they are in one cell (`a;b` or a JSON list), or each has a column of its own (`variable_label`: 1, 0, x).
    """
    gold = {name: _gold_columns(table, name, task) for name, task in config.variables.items()}
    others = table.drop_columns([column for columns in gold.values() for column in columns.values()])
    if "gold" in others.column_names:
        raise TableError(
            f"{name} has a column 'gold', but there are several variables: call it like the variable it is about"
        )
    for variable, task in config.variables.items():
        cells: dict[str, list[str | None]]
        if not gold[variable]:
            cells = {part: [None] * len(table) for part in _parts(variable, task)}
        elif task.kind == "many":
            cells = _many(table, gold[variable], variable, task, name)
        else:
            cells = {variable: _texts(table, gold[variable][""])}
        for part, values in cells.items():
            yield (part, others.append_column("gold", pa.array(values, pa.string())) if any(values) else others)


def _parts(variable: str, task: TaskSettings) -> list[str]:
    return [f"{variable}={label}" for label in task.labels] if task.kind == "many" else [variable]


def _gold_columns(table: pa.Table, variable: str, task: TaskSettings) -> dict[str, str]:
    """Return the columns with the gold of a variable: one, with the key "", or one per label; or none."""
    names = {column.strip().casefold(): column for column in table.column_names}
    for name in (variable.casefold(), f"gold_{variable.casefold()}"):
        if name in names:
            return {"": names[name]}
    ways = {label: [f"{variable}{sign}{label}".casefold() for sign in ("_", "=", ": ")] for label in task.labels}
    columns = {label: names[way] for label, some in ways.items() for way in some if way in names}
    if columns and task.kind == "many" and len(columns) < len(task.labels):
        missing = next(label for label in task.labels if label not in columns)
        raise TableError(
            f"there are columns for labels of {variable}, but none for {missing!r}: add {variable}_{missing}"
        )
    return columns if task.kind == "many" else {}


def _texts(table: pa.Table, column: str) -> list[str | None]:
    return [whole_number((value or "").strip()) or None for value in text_column(column, table[column]).to_pylist()]


def _many(
    table: pa.Table, columns: Mapping[str, str], variable: str, task: TaskSettings, name: str
) -> dict[str, list[str | None]]:
    """Return for every label of a variable whether it applies to each row; None where that is not known."""
    if "" not in columns:
        return {
            f"{variable}={label}": [
                _truth(cell, f"{name}, row {row}, column {column}")
                for row, cell in enumerate(_texts(table, column), row_number(name, 1))
            ]
            for label, column in columns.items()
        }
    where = f"column {columns['']}"
    cells = enumerate(_texts(table, columns[""]), row_number(name, 1))
    chosen = [_listed(cell, task.labels, f"{name}, row {row}, {where}") for row, cell in cells]
    answers = {
        label: [None if labels is None else YES if label in labels else NO for labels in chosen]
        for label in task.labels
    }
    return {f"{variable}={label}": truths for label, truths in answers.items()}


def _listed(cell: str | None, labels: Sequence[str], where: str) -> set[str] | None:
    """Return the labels in a cell; None for an empty cell, which says nothing."""
    if cell is None:
        return None
    parts: object = re.split("[;|]", cell)
    if cell.startswith("["):
        try:
            parts = literal_eval(cell)  # reads lists of JSON, and those that Python prints
        except (ValueError, SyntaxError):
            raise LabelError(f"{where}: {cell!r} is not a list of labels: write them as a;b") from None
    elif cell.casefold() in ("none", "-"):
        return set()
    assert isinstance(parts, list)
    return {labels[label_code(str(part).strip(), labels, where)] for part in parts if str(part).strip()}


def _truth(cell: str | None, where: str) -> str | None:
    if cell is None:
        return None
    if (folded := cell.casefold()) not in (*TRUE, *FALSE):
        raise LabelError(f"{where}: {cell!r} says neither yes nor no: write 1 or 0")
    return YES if folded in TRUE else NO


def final_labels(result: RunResult) -> list[str | None]:
    """Return the label of every row of a part: what people said in a review, else gold, else what the models found."""
    people, gold = result.verdicts.by_row, result.dataset.gold or [None] * len(result.outcomes)
    verdicts = [people[row].label if row in people else None for row in range(len(result.outcomes))]
    return [a or b or outcome.label for a, b, outcome in zip(verdicts, gold, result.outcomes, strict=True)]


def labels_of(
    variables: Mapping[str, TaskSettings],
    by_part: Mapping[str, Sequence[Outcome]],
    sets: Mapping[str, SetResult],
    final: Mapping[str, Sequence[str | None]] | None = None,
) -> dict[str, pa.Array]:
    """Return the columns of results for all variables; `by_part` has the outcomes of every part.

    Of a variable with any number of labels there are those that apply, how probable it is that all of them are right,
    `accept` where every one is accepted, the same for the whole set, and the probability of each label. `final` has the
    labels of every part after a review.
    """
    columns: dict[str, list[object]] = {}
    for name, task in variables.items():
        if task.kind != "many":
            outcomes = by_part[name]
            columns[f"pcs_{name}"] = [outcome.label for outcome in outcomes]
            columns[f"pcs_{name}_confidence"] = [outcome.confidence for outcome in outcomes]
            columns[f"pcs_{name}_decision"] = [outcome.decision for outcome in outcomes]
            for more in dict.fromkeys(more for outcome in outcomes for more in outcome.details):
                columns[f"pcs_{name}_{more.removeprefix('pcs_')}"] = [outcome.details.get(more) for outcome in outcomes]
            if final is not None:
                columns[f"pcs_{name}_final"] = [*final[name]]
            continue
        rows = list(zip(*(by_part[f"{name}={label}"] for label in task.labels), strict=True))
        columns[f"pcs_{name}"] = [_set_of([outcome.label for outcome in row], task.labels) for row in rows]
        columns[f"pcs_{name}_confidence"] = [*sets[name].confidence]
        columns[f"pcs_{name}_decision"] = [_decided(row) for row in rows]
        columns[f"pcs_{name}_set_decision"] = [*sets[name].decisions]
        for at, label in enumerate(task.labels):
            columns[f"pcs_{name}={label}"] = [row[at].probabilities.get(YES) for row in rows]
        if final is not None:
            judged = zip(*(final[f"{name}={label}"] for label in task.labels), strict=True)
            columns[f"pcs_{name}_final"] = [_set_of(row, task.labels) for row in judged]
    text = pa.string()  # also of a column without any decision
    return {name: pa.array(values, text if name.endswith("_decision") else None) for name, values in columns.items()}


def _set_of(row: Sequence[str | None], labels: Sequence[str]) -> str | None:
    if None in row:
        return None
    return ";".join(label for label, answer in zip(labels, row, strict=True) if answer == YES) or "none"


def _decided(row: Sequence[Outcome]) -> str | None:
    decisions = {outcome.decision for outcome in row}
    return next((decision for decision in ("review", None) if decision in decisions), next(iter(decisions)))
