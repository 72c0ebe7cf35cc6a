"""Gold of several variables in one table: in a column called like the variable, or in one per label."""

import re
from ast import literal_eval
from collections.abc import Iterator, Mapping, Sequence

from pcs_annotator.base.errors import LabelError, TableError
from pcs_annotator.base.text import row_number
from pcs_annotator.core.passages import NO, YES
from pcs_annotator.core.task import label_code, whole_number
from pcs_annotator.runs.settings import Config, TaskSettings
from pcs_annotator.tables.arrow import pa, text_column

TRUE = ("1", "1.0", "true", "yes", "y", "x", "wahr", "ja", "vrai", "oui")
FALSE = ("0", "0.0", "false", "no", "n", "-", "falsch", "nein", "faux", "non")


def parts_of_variable(variable: str, task: TaskSettings) -> list[str]:
    """Return the parts of a variable: itself, or one for each of any number of labels."""
    return [f"{variable}={label}" for label in task.labels] if task.kind == "many" else [variable]


def part_table(table: pa.Table, config: Config, name: str) -> pa.Table:
    """Return the table of a run as one of its parts knows it: with the gold of this part alone."""
    return dict(split_gold(table, config.variables, name))[config.part]


def split_gold(table: pa.Table, variables: Mapping[str, TaskSettings], name: str) -> Iterator[tuple[str, pa.Table]]:
    """Yield for every part its name and the table with its gold labels in a column `gold`.

    The column is called like the variable, perhaps after `gold_`, or `gold` if it is the only one. Any number of labels
    are in one cell (`a;b` or a JSON list), or each has a column of its own (`variable_label`: 1, 0, x).
    """
    usual = ("gold",) if len(variables) == 1 else ()
    gold = {name: _gold_columns(table, name, task, usual) for name, task in variables.items()}
    others = table.drop_columns([column for columns in gold.values() for column in columns.values()])
    if "gold" in others.column_names:
        raise TableError(f"{name} has a column 'gold', but there are several variables: name it like its variable")
    for variable, task in variables.items():
        cells: dict[str, list[str | None]]
        if not gold[variable]:
            cells = {part: [None] * len(table) for part in parts_of_variable(variable, task)}
        elif task.kind == "many":
            cells = _many(table, gold[variable], variable, task, name)
        else:
            cells = {variable: _texts(table, gold[variable][""])}
        for part, values in cells.items():
            yield (part, others.append_column("gold", pa.array(values, pa.string())) if any(values) else others)


def _gold_columns(table: pa.Table, variable: str, task: TaskSettings, usual: Sequence[str] = ()) -> dict[str, str]:
    """Return the columns with the gold of a variable: one, with the key "", or one per label; or none."""
    names = {column.strip().casefold(): column for column in table.column_names}
    for name in (variable.casefold(), f"gold_{variable.casefold()}", *usual):
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
    cells = text_column(column, table[column], objects=True).to_pylist()
    return [whole_number((value or "").strip()) or None for value in cells]


def _many(
    table: pa.Table, columns: Mapping[str, str], variable: str, task: TaskSettings, name: str
) -> dict[str, list[str | None]]:
    """Return for every label of a variable whether it applies to each row; None where that is not known."""

    def cells_of(column: str) -> list[tuple[str | None, str]]:
        cells = enumerate(_texts(table, column), row_number(name, 1))
        return [(cell, f"{name}, row {row}, column {column}") for row, cell in cells]

    if "" not in columns:
        return {f"{variable}={label}": [_truth(*cell) for cell in cells_of(at)] for label, at in columns.items()}
    chosen = [_listed(cell, task.labels, where) for cell, where in cells_of(columns[""])]
    answers = {label: [None if labels is None else label in labels for labels in chosen] for label in task.labels}
    says = {None: None, True: YES, False: NO}
    return {f"{variable}={label}": [says[applies] for applies in rows] for label, rows in answers.items()}


def _listed(cell: str | None, labels: Sequence[str], where: str) -> set[str] | None:
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
    if len(parts) == 1 and "," in cell and cell.strip().casefold() not in map(str.casefold, labels):
        joined = "; ".join(part.strip() for part in cell.split(","))
        raise LabelError(f"{where}: {cell!r} has commas: put ; or | between several labels, such as {joined!r}")
    return {labels[label_code(str(part).strip(), labels, where)] for part in parts if str(part).strip()}


def _truth(cell: str | None, where: str) -> str | None:
    if cell is None:
        return None
    if (folded := cell.casefold()) not in (*TRUE, *FALSE):
        raise LabelError(f"{where}: {cell!r} says neither yes nor no: write 1 or 0")
    return YES if folded in TRUE else NO
