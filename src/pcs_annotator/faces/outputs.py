"""Several outputs of `PCSClassifier`: the columns of a matrix y, asked in one call like the variables of a codebook."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pcs_annotator.base.errors import ConfigError, InputError, UserError
from pcs_annotator.core.arrays import Array
from pcs_annotator.core.task import Task
from pcs_annotator.runs.codebook import YES, configs_of
from pcs_annotator.runs.files.config import variable_problem
from pcs_annotator.runs.resolve_config import task_of
from pcs_annotator.runs.settings import Config, TaskSettings

LABELS = "labels"  # what a reply calls the labels that apply


def is_matrix(task: object, y: Any) -> bool:
    """Return whether y has several outputs."""
    first = y[0] if isinstance(y, list | tuple) and len(y) else ""
    shape = np.shape(first) or getattr(y, "shape", ())[1:]
    return isinstance(task, Mapping) or (isinstance(task, Task) and shape not in ((), (1,)))


class Outputs(NamedTuple):
    """What is asked about each output of several, and its fitted classifier."""

    task: Task | Mapping[str, Task]  # labels of which any number may apply, or variables
    fitted: Mapping[str, Any] = {}  # name → `PCSClassifier`

    def fit(self, texts: Sequence[str], y: object, classifier: Callable[[Task], Any]) -> "Outputs":
        """Return the same with classifiers that have learned from the columns of y, each of which is checked first."""
        columns = self.columns(y)
        fitted = {name: classifier(task_of(config)) for name, config in self._configs().items()}
        for name, one in fitted.items():
            try:
                one._read(texts, columns[name])
            except UserError as error:
                raise type(error)(f"{name}: {error}") from error
        return self._replace(fitted={name: one.fit(texts, columns[name]) for name, one in fitted.items()})

    def columns(self, y: Any) -> dict[str, list[Any]]:
        """Return name → gold of every output: columns in the order of the task, or those of a table by their names."""
        outputs = [*(self.task if isinstance(self.task, Mapping) else self.task.labels)]
        names, given = (
            [*map(str, getattr(y, "columns", ()))],
            np.array(getattr(y, "toarray", lambda: y)(), dtype=object),
        )
        if given.ndim != 2 or given.shape[1] != len(outputs):
            raise InputError(f"y has the shape {given.shape}: give a column for each of {', '.join(outputs)}")
        places = [*map(names.index, outputs)] if {*names} == {*outputs} else range(len(outputs))
        found = {name: given[:, place].tolist() for name, place in zip(self._configs(), places, strict=True)}
        if isinstance(self.task, Mapping):
            return found
        return {name: [_applies(one, row, name) for row, one in enumerate(cells, 1)] for name, cells in found.items()}

    @property
    def classes(self) -> Any:
        """The labels that may apply; or the classes of every variable."""
        if isinstance(self.task, Mapping):
            return [one.classes_ for one in self.fitted.values()]
        return np.array(self.task.labels)

    def predict(self, X: object) -> Array:
        """Return an array `[text, output]`: 1 for a label that applies and 0 for others, or the class of a variable."""
        found = [one.predict(X) for one in self.fitted.values()]
        if not isinstance(self.task, Mapping):
            return np.asarray(np.column_stack(found) == YES, dtype=np.intp)
        kinds = {one.dtype.kind for one in found}
        return np.column_stack(found if len(kinds) == 1 else [one.astype(object) for one in found])

    def label(self, X: object) -> Any:
        """Return name → outcomes of every output."""
        return {name: one.label(X) for name, one in self.fitted.items()}

    def predict_proba(self, X: object) -> Any:
        """Return an array `[text, label]`; or of variables, an array `[text, class]` each."""
        found = [one.predict_proba(X) for one in self.fitted.values()]
        if isinstance(self.task, Mapping):
            return found
        places = [[*one.labels_].index(YES) for one in self.fitted.values()]
        return np.column_stack([values[:, place] for values, place in zip(found, places, strict=True)])

    def _configs(self) -> dict[str, Config]:
        """Return name → settings of every output; those of labels ask whether they apply."""
        tasks, kind = (self.task, "one") if isinstance(self.task, Mapping) else ({LABELS: self.task}, "many")
        variables: dict[str, Any] = {}
        for name, task in tasks.items():
            if problem := variable_problem(name, getattr(task, "labels", ())):
                raise ConfigError(f"task: {name!r} {problem}")
            examples = tuple(one._asdict() for one in task.examples)
            how: Any = {"meanings": task.meanings, "wordings": task.wordings, "examples": examples, "kind": kind}
            variables[name] = TaskSettings(instruction=task.instruction, labels=tuple(task.labels), **how)
        return configs_of(Config(variables=variables), Path())


def _applies(value: Any, row: int, name: str) -> str | None:
    """Return what a cell of an indicator matrix says; None for any missing value."""
    if str(value) in ("", "None", "nan", "<NA>"):
        return None
    if value not in (0, 1):
        raise InputError(f"y, row {row}, {name}: {value!r:.60} is neither 1, if the label applies, nor 0")
    return YES if value else "no"
