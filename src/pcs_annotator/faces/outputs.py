"""Several outputs of `PCSClassifier`: the columns of a matrix y, asked in one call like the variables of a codebook."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from pcs_annotator.base.errors import ConfigError, InputError, UserError
from pcs_annotator.core.arrays import Array
from pcs_annotator.core.passages import NO, YES
from pcs_annotator.core.task import Task
from pcs_annotator.runs.book import configs_of
from pcs_annotator.runs.resolve_config import task_of
from pcs_annotator.runs.settings import Config, TaskSettings
from pcs_annotator.runs.toml import variable_problem

LABELS = "labels"  # what a reply calls the labels that apply


def is_matrix(task: object, y: Any) -> bool:
    """Return whether y has several outputs."""
    shape = np.shape(y[0]) if isinstance(y, list | tuple) and len(y) else getattr(y, "shape", ())[1:]
    return isinstance(task, Mapping) or (isinstance(task, Task) and shape not in ((), (1,)))


class Outputs:
    """Labels of which any number may apply, or several variables, and a fitted classifier for each of them."""

    def __init__(self, task: Task | Mapping[str, Task], classifier: Callable[[Task], Any]) -> None:
        self._variables = isinstance(task, Mapping)
        tasks = task if isinstance(task, Mapping) else {LABELS: task}
        settings: dict[str, Any] = {}
        for name, output in tasks.items():
            if problem := variable_problem(name, getattr(output, "labels", ())):
                raise ConfigError(f"task: {name!r} {problem}")
            values = {key: getattr(output, key) for key in ("instruction", "labels", "meanings", "wordings")}
            values["examples"] = tuple(example._asdict() for example in output.examples)
            settings[name] = TaskSettings(**values, kind="one" if self._variables else "many")
        self.names = [*tasks] if isinstance(task, Mapping) else list(task.labels)
        configs = configs_of(Config(variables=settings), Path())
        self.fitted = {part: classifier(task_of(config)) for part, config in configs.items()}

    def fit(self, texts: Sequence[str], y: Any) -> Self:
        """Learn from the columns of y; each of them is checked before any model is asked."""
        columns = self.columns(y)
        for name, classifier in self.fitted.items():
            try:
                classifier._read(texts, columns[name])
            except UserError as error:
                raise type(error)(f"{name}: {error}") from error
        for name, classifier in self.fitted.items():
            classifier.fit(texts, columns[name])
        return self

    def columns(self, y: Any) -> dict[str, list[Any]]:
        """Return name → gold of every output: columns in the order of the task, or those of a table by their names."""
        titles = [*map(str, getattr(y, "columns", ()))]
        matrix = np.array(getattr(y, "toarray", lambda: y)(), dtype=object)
        if matrix.ndim != 2 or matrix.shape[1] != len(self.names):
            raise InputError(f"y has the shape {matrix.shape}: give a column for each of {', '.join(self.names)}")
        named = {*titles} == {*self.names}
        cells = [matrix[:, titles.index(name) if named else at].tolist() for at, name in enumerate(self.names)]
        if not self._variables:
            cells = [[_applies(cell, row) for row, cell in enumerate(column, 1)] for column in cells]
        return dict(zip(self.fitted, cells, strict=True))

    @property
    def classes(self) -> Any:
        """The labels that may apply; or the classes of every variable."""
        return [classifier.classes_ for classifier in self.fitted.values()] if self._variables else np.array(self.names)

    def predict(self, X: object) -> Array:
        """Return an array `[text, output]`: 1 for a label that applies and 0 for others, or the class of a variable."""
        columns = [output.predict(X) for output in self.fitted.values()]
        if not self._variables:
            return np.asarray(np.column_stack(columns) == YES, dtype=np.intp)
        mixed = len({output.dtype.kind for output in columns}) > 1
        return np.column_stack([output.astype(object) for output in columns] if mixed else columns)

    def predict_proba(self, X: object) -> Any:
        """Return an array `[text, label]`; or of variables, an array `[text, class]` each."""
        shares = {name: part.predict_proba(X) for name, part in self.fitted.items()}
        if self._variables:
            return [*shares.values()]
        return np.column_stack([shares[name][:, part.labels_.index(YES)] for name, part in self.fitted.items()])

    def label(self, X: object) -> Any:
        """Return name → outcomes of every output."""
        return {name: classifier.label(X) for name, classifier in self.fitted.items()}


def _applies(value: Any, row: int) -> str | None:
    if str(value) in ("", "None", "nan", "<NA>"):
        return None
    if value not in (0, 1):
        raise InputError(f"y, row {row}: {value!r:.60} is neither 1, if the label applies, nor 0")
    return YES if value else NO
