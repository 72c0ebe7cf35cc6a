"""`PCSClassifier`: language models as a scikit-learn text classifier; it reads X and y of many types."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from pcs_annotator.base.errors import ConfigError, GoldError, InputError, LabelError, MissingPackage, warn_user
from pcs_annotator.core.arrays import Array, Floats, values_of
from pcs_annotator.core.ledger_address import LedgerAddress
from pcs_annotator.core.outcome import Outcomes
from pcs_annotator.core.task import Task, check_labels, label_lookup, refuse_doubtful, unknown_label
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import to_simplex
from pcs_annotator.faces.outputs import Outputs, is_matrix
from pcs_annotator.runs.ask import CollectSettings
from pcs_annotator.runs.columns import probabilities
from pcs_annotator.runs.default_panel import panel_for
from pcs_annotator.runs.executors import Panel
from pcs_annotator.runs.labeller import annotators_of
from pcs_annotator.runs.learn import fit_for_classifier, needs_gold
from pcs_annotator.runs.ledgers import ledger_of
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.resolve_config import collect_settings_of, task_of

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils.validation import check_is_fitted
except ImportError as error:
    raise MissingPackage(
        "PCSClassifier needs the extra sklearn: pip install 'perceived-confidence[sklearn]'"
    ) from error

Value = str | int  # a bool is an int


class PCSClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A text classifier that asks language models, and learns from gold labels how much each answer is worth.

    X is a list, an array or a column of texts, or a table with a single column. y has a label for each text; `""`,
    None and nan mean that there is none. Every answer is kept in the ledger, so that cross-validation and a second
    `predict` never repeat a call, not even from several processes at once.

    y may be a matrix with a column for each label, 1 where it applies and 0 elsewhere; `predict` and `predict_proba`
    return the like. With one for each variable, `predict_proba` returns a list. Models are asked about all in one call,
    `outputs_.fitted` has a classifier for each, `label` returns outcomes by its name, and `score` counts whole rows.

    Args:
        task: What to decide. If it is only an instruction, the labels are those in y. For variables, name → `Task`.
        annotators: The models to ask: `provider:model`, a URL, a chat model, a function, or an `Annotator`.
        relations: The ways to ask about each text: names, or your own relations. None for those that suit the models:
            two graded questions where they give log-probabilities, several hard ones elsewhere.
        optimiser: How weights are learned: a name, or your own optimiser.
        max_error: The share of accepted labels that may be wrong; the method fails to keep to it in at most 10 % of
            fits. `label` then decides `accept` if that can be promised, else `review`. Without it, `decision` is None,
            or `review` if there are no votes.
        text: Whether to learn from the texts too, from 50 gold rows on.
        rewriter: The model that rewrites texts; None to rewrite by rule.
        draws: How many times each question is asked.
        ledger: The file that keeps all answers, or the address of a PostgreSQL server, `postgresql://…`. `from_run`
            takes that of a run, and everything else that its answers depend on.
        seed: Random seed for learning.
        settings: How to ask: budget, prices, retries, progress. Its `rewriter` and `draws` apply if the arguments above
            have their default values. Its `environment` is not pickled, because it may contain keys.

    Attributes:
        classes_: All labels of the task, even those without gold: sorted, and of the type of y.
        labels_: The label of each class.
        task_: The task that the models were asked about.
        panel_: The questions that suit the models; None if `relations` names them.
        weights_: The weight of each annotator and each relation.
        model_: The weights, and the calibrator if there were at least 10 gold rows of two classes. `model_.margin` is
            how far the mean confidence may be off when there were fewer than 50.
        certificate_: What is promised about accepted labels, or why nothing is; None without `max_error`.
        calibrated_: Whether `predict_proba` gives calibrated probabilities, which takes 50 gold rows. From 10 on it
            gives rough ones, shrunk towards chance, with fewer raw scores.
        shares_: The share of each class among gold rows, which `predict_proba` returns for a text without votes.
        fallback_: The class with most gold rows, the first if tied, which `predict` returns for such a text.
    """

    outputs_: Outputs | None

    def __init__(  # noqa: PLR0913  # the agreed signature
        self,
        task: Task | str | Mapping[str, Task],
        annotators: Sequence[object],
        relations: Sequence[Any] | None = None,
        optimiser: Any = "auto",
        max_error: float | None = None,
        *,
        text: bool = True,
        rewriter: object | None = None,
        draws: int = 1,
        ledger: LedgerAddress = "ledger.db",
        seed: int = 0,
        settings: CollectSettings | None = None,
    ) -> None:
        self.task = task
        self.annotators = annotators
        self.relations = relations
        self.optimiser = optimiser
        self.max_error = max_error
        self.text = text
        self.rewriter = rewriter
        self.draws = draws
        self.ledger = ledger
        self.seed = seed
        self.settings = settings

    @classmethod
    def from_run(cls, folder: str | Path, **parameters: Any) -> Self:
        """Return a classifier that asks as a run did, with the run's ledger: no answer of the run is paid for again.

        `parameters` are arguments of the constructor that take the place of the run's, such as `optimiser`.
        """
        recorded = Run.open(Path(folder))
        config = recorded.config
        arguments = {name: getattr(config.learn, name) for name in ("optimiser", "max_error", "seed", "text")}
        arguments |= {"annotators": annotators_of(recorded), "relations": list(config.relations.use)}
        arguments |= {"ledger": ledger_of(recorded.folder, config), "settings": collect_settings_of(config, None)}
        return cls(**{"task": task_of(config), **arguments, **parameters})

    def fit(self, X: object, y: object = None) -> Self:
        """Ask about the texts that have a label, and learn the weights.

        Texts without a label are not asked about, unless the optimiser learns from them too.
        """
        texts, how = texts_of(X), self.get_params(deep=False)
        if not isinstance(self.task, str) and is_matrix(self.task, y):
            self.outputs_ = Outputs(self.task, lambda task: type(self)(**{**how, "task": task})).fit(texts, y)
            self.classes_ = self.outputs_.classes
            return self
        classes, task, gold, rows = self._read(texts, y)
        self.panel_ = None
        if self.relations is None:
            self.panel_ = panel_for(task, _listed(self.annotators, "annotators"), self.ledger, self._settings())
        votes = self._ask(task, [texts[row] for row in rows])
        self.model_ = fit_for_classifier(
            votes, [gold[row] for row in rows], self.optimiser, self.seed, max_error=self.max_error, text=self.text
        )
        self.weights_, self.calibrated_ = self.model_.weights, self.model_.calibrated
        self.certificate_ = self.model_.certificate
        self.classes_, self.labels_, self.task_ = np.array(list(classes.names)), classes.labels, task
        self.shares_ = to_simplex(np.array([gold.count(label) for label in classes.labels]))
        self.fallback_, self.outputs_ = self.classes_[int(self.shares_.argmax())], None
        return self

    def _read(self, texts: Sequence[str], y: object) -> tuple["Classes", Task, list[str | None], list[int]]:
        values = gold_of(y, len(texts))
        if not isinstance(self.task, Task | str):
            raise ConfigError(f"task is a {type(self.task).__name__}: give a Task, or an instruction as a str")
        classes = classes_of(self.task, values)
        task = self.task if isinstance(self.task, Task) else Task(self.task, classes.labels)
        gold = [classes.name_of(value) for value in values]
        rows = [row for row, label in enumerate(gold) if label is not None or not needs_gold(self.optimiser)]
        if not rows:
            raise GoldError(
                "y has no labels: label some texts (30 are a start), or use an optimiser that needs none "
                "(uniform, majority)"
            )
        return classes, task, gold, rows

    def predict(self, X: object) -> Array:
        """Return the most probable class of each text; without votes, `fallback_`, with a warning."""
        if several := getattr(self, "outputs_", None):
            return several.predict(X)
        outcomes = self.label(X)
        silent = [row for row, outcome in enumerate(outcomes, 1) if outcome.label is None]
        if silent:
            warn_user(
                f"no model voted on {len(silent)} of {len(outcomes)} texts, the first in row {silent[0]}: predict "
                f"returns {self.fallback_!s}, the most common gold label; label() returns None for such texts"
            )
        by_name = dict(zip(self.labels_, self.classes_, strict=True))
        chosen = [self.fallback_ if judged.label is None else by_name[judged.label] for judged in outcomes]
        return np.array(chosen, dtype=self.classes_.dtype)

    def predict_proba(self, X: object) -> Floats:
        """Return an array `[text, class]` with columns as in `classes_`; rows without votes are `shares_`.

        Without `model_.calibrator`, the values are raw scores.
        """
        check_is_fitted(self)
        if self.outputs_:
            return self.outputs_.predict_proba(X)
        return probabilities(self.model_, self._ask(self.task_, texts_of(X)), self.labels_, self.shares_)

    def label(self, X: object) -> Outcomes:
        """Return label, scores, confidence, decision and reason for each text; ids are row numbers from 0."""
        check_is_fitted(self)
        if self.outputs_:
            return self.outputs_.label(X)
        return Outcomes(self.model_.judge(self._ask(self.task_, texts_of(X))))

    def score(self, X: object, y: object, sample_weight: object = None) -> float:
        """Return the accuracy on the texts that have a label; the others are left out."""
        check_is_fitted(self)
        texts, several = texts_of(X), self.outputs_
        parts = [(self, y)]
        if several is not None:
            parts = [(several.fitted[at], output) for at, output in several.columns(y).items()]
        gold = [gold_of(column, len(texts)) for _, column in parts]
        rows = [row for row, values in enumerate(zip(*gold, strict=True)) if None not in values]
        if not rows:
            raise GoldError("y has no labels, so there is no accuracy: give texts with labels")
        right = np.ones(len(rows), dtype=np.bool_)
        for (output, _), labels in zip(parts, gold, strict=True):
            classes = Classes(dict(zip(output.classes_.tolist(), output.labels_, strict=True)))
            predicted = zip(rows, output.predict([texts[row] for row in rows]).tolist(), strict=True)
            right &= [classes.name_of(labels[row]) == classes.name_of(value) for row, value in predicted]
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)[rows]
        return float(np.average(right, weights=weights))

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: the input is texts, in one dimension; there may be several outputs."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.target_tags.multi_output = tags.classifier_tags.multi_label = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle: everything but keys, which are read again from the environment when needed."""
        state: dict[str, Any] = dict(super().__getstate__())
        if self.settings is not None and self.settings.environment is not None:
            state["settings"] = replace(self.settings, environment=None)
        return state

    def _ask(self, task: Task, texts: Sequence[str]) -> Votes:
        """Return the votes on texts; a text that occurs twice is asked about once."""
        settings, usual = self._settings(), self.panel_
        panel = Panel(
            task=task,
            annotators=_listed(self.annotators, "annotators"),
            relations=_listed(self.relations, "relations") if usual is None else usual.relations,
            ledger=self.ledger,
            settings=settings if usual is None else replace(settings, questions=usual.questions),
        )
        return panel.ask_now(texts).plain()

    def _settings(self) -> CollectSettings:
        settings = self.settings or CollectSettings()
        return replace(
            settings,
            rewriter=settings.rewriter if self.rewriter is None else self.rewriter,
            draws=settings.draws if self.draws == 1 else self.draws,
        )


def _listed(values: object, name: str) -> list[Any]:
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise ConfigError(f"{name} is the single value {values!r:.60}: give a list, even for one")
    return list(values)


def texts_of(X: object) -> list[str]:
    """Return the texts of X: a list, an array, a column, or a table with a single column."""
    values = values_of(X, "X")
    if not values:
        raise InputError("X is empty, with 0 sample(s): give at least one text")
    for row, value in enumerate(values, 1):
        if not isinstance(value, str):
            raise InputError(
                f"X, row {row}: {value!r:.60} is a {type(value).__name__}, not a text: fix the row or leave it out"
            )
    return [str(value) for value in values]  # numpy has its own str type


def gold_of(y: object, rows: int) -> list[Value | None]:
    """Return the labels of y, None where there is none; anything that is not a label is an error with its row."""
    if y is None:
        raise InputError("requires y to be passed, but the target y is None: give one label per text, '' if unknown")
    values = [_plain(value, row) for row, value in enumerate(values_of(y, "y"), 1)]
    if len(values) != rows:
        raise InputError(f"X has {rows} texts and y {len(values)} labels: give one label per text, '' if unknown")
    return values


def _plain(value: object, row: int) -> Value | None:
    """Return a label as a plain Python value; None for any missing value."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or str(value) in ("", "<NA>") or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)  # data frames store whole numbers with gaps as floats
    if isinstance(value, str | int):
        return str(value) if isinstance(value, str) else value
    raise InputError(f"y, row {row}: {value!r:.60} is a {type(value).__name__}, not a label. Unknown label type")


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """The labels of a task in scikit-learn's form: value of y → its label, sorted by value."""

    names: Mapping[Value, str]

    @property
    def labels(self) -> tuple[str, ...]:
        """The label of each class."""
        return tuple(self.names.values())

    def name_of(self, value: Value | None) -> str | None:
        """Return the label for a value of y; None if it is not one of them."""
        if value is None or value in self.names:
            return None if value is None else self.names[value]
        position = label_lookup(self.labels).get(str(value).casefold())
        return None if position is None else self.labels[position]


def classes_of(task: Task | str, gold: Sequence[Value | None]) -> Classes:
    """Return the classes of a task, or of y if the task is only an instruction."""
    present = [value for value in gold if value is not None]
    if not isinstance(task, str):
        labels = check_labels(task.labels)
    elif any(type(value) is int for value in present):
        raise LabelError(
            "y has numbers, which mean nothing to a language model: give Task(instruction, labels=[…]) as task; "
            "cross_val_predict turns labels into numbers when asked for probabilities"
        )
    elif not present:
        raise LabelError("y is empty, so there are no labels: give Task(instruction, labels=[…]) as task")
    else:
        rows = [f"y, row {row}" for row in range(1, len(gold) + 1)]
        named = [value if isinstance(value, str) else None for value in gold]
        refuse_doubtful(named, rows, "give Task(instruction, labels=[…]) as task")
        labels = check_labels(dict.fromkeys(map(str, present)), seen=True)
    numbers = [value for value in gold if not isinstance(value, str)]
    if present and len(numbers) == len(gold):
        return _numbered(labels, numbers)
    classes = Classes({label: label for label in sorted(labels)})
    for row, value in enumerate(gold, 1):
        if value is not None and classes.name_of(value) is None:
            raise unknown_label(str(value), classes.labels, f"y, row {row}")
    return classes


def _numbered(labels: Sequence[str], gold: Sequence[int | None]) -> Classes:
    """Return the classes that numbers stand for: labels such as `"1"`, or positions among the sorted labels.

    scikit-learn replaces labels by positions in `cross_val_predict` with probabilities. That can be undone only if the
    last position occurs: otherwise a label may be missing from y, which shifts all positions after it.
    """
    present = {value for value in gold if value is not None}
    names, places = _by_name(labels), dict(enumerate(sorted(labels)))
    named = present <= names.keys()
    # a bool is not a position: which label stands for True cannot be guessed
    placed = max(present) == len(labels) - 1 and present <= places.keys() and bool not in map(type, present)
    if named and placed and any(names[value] != places[value] for value in present):
        raise LabelError(f"the numbers in y may be names or positions of the labels {list(labels)}: write y as texts")
    if not named and not placed:
        raise _no_such_number(labels, gold)
    if not named:
        meaning = ", ".join(f"{position} is {label!r}" for position, label in places.items())
        warn_user(f"the numbers in y are read as positions among the sorted labels: {meaning}")
    return Classes(dict(sorted((names if named else places).items())))


def _no_such_number(labels: Sequence[str], gold: Sequence[int | None]) -> LabelError:
    spelt = {None, *_by_name(labels)}
    row, value = next((row, value) for row, value in enumerate(gold, 1) if value not in spelt)
    return LabelError(
        f"{unknown_label(str(value), labels, f'y, row {row}')}; numbers made from labels by scikit-learn, as in "
        "cross_val_predict with probabilities, work only if every label of the task occurs in y"
    )


def _by_name(labels: Sequence[str]) -> dict[int, str]:
    """Return number or bool → the label that spells it; empty unless all labels spell one."""
    truth = {"true": True, "false": False}
    if {label.casefold() for label in labels} == truth.keys():
        return {truth[label.casefold()]: label for label in labels}
    try:
        numbers = {int(label): label for label in labels}
    except ValueError:
        return {}
    return numbers if all(str(number) == label for number, label in numbers.items()) else {}
