"""`PCSClassifier`: language models as a scikit-learn text classifier."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from pcs_annotator.core.arrays import Array, Floats
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.task import Task
from pcs_annotator.core.votes import Votes
from pcs_annotator.errors import ConfigError, GoldError, PcsWarning
from pcs_annotator.faces.columns import Classes, classes_of, gold_of, texts_of
from pcs_annotator.pipeline.ask import CollectSettings, Panel
from pcs_annotator.pipeline.learn import fit_for_classifier, needs_gold, probabilities


class PCSClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A text classifier that asks language models, and learns from gold labels how much each answer is worth.

    X is a list, an array or a column of texts, or a table with a single column. y has a label for each text; `""`,
    None and nan mean that there is none. Every answer is kept in the ledger, so that cross-validation and a second
    `predict` never repeat a call, not even from several processes at once.

    Args:
        task: What to decide. If it is only an instruction, the labels are those in y.
        annotators: The models to ask: `provider:model`, a URL, a chat model, a function, or an `Annotator`.
        relations: The versions of each text to ask about: names, or relations of your own.
        optimiser: How weights are learned: a name, or an optimiser of your own.
        max_error: The share of accepted labels that may be wrong, with 90 % certainty. `label` then decides `accept`
            if that can be promised, else `review`. Without it, `decision` is None, or `review` if there are no votes.
        rewriter: The model that rewrites texts; None to rewrite by rule.
        draws: How often each question is asked.
        ledger: The file that keeps all answers.
        seed: Random seed for learning.
        settings: How to ask: budget, prices, retries, progress. Its `rewriter` and `draws` apply if the arguments above
            have their default values. Its `environment` is not pickled, because it may contain keys.

    Attributes:
        classes_: All labels of the task, even those without gold: sorted, and of the type of y.
        labels_: The label of each class.
        task_: The task that the models were asked about.
        weights_: The weight of each annotator and each relation.
        model_: The weights, and the calibrator if there were at least 10 gold rows of two classes.
        certificate_: What is promised about accepted labels, or why nothing is; None without `max_error`.
        calibrated_: Whether `predict_proba` gives calibrated probabilities. If not, it gives raw scores.
        fallback_: What `predict` returns for a text without votes: the class with most gold rows, the first if tied.

    Examples:
        >>> PCSClassifier("Is it about sports?", ["scripted:hash"], relations=["original"])
        PCSClassifier(annotators=['scripted:hash'], relations=['original'],
                      task='Is it about sports?')
    """

    def __init__(  # noqa: PLR0913  # the agreed signature
        self,
        task: Task | str,
        annotators: Sequence[object],
        relations: Sequence[Any] = ("original", "voice", "double-negation", "synonym"),
        optimiser: Any = "lr",
        max_error: float | None = None,
        *,
        rewriter: object | None = None,
        draws: int = 1,
        ledger: Path | str = "ledger.db",
        seed: int = 0,
        settings: CollectSettings | None = None,
    ) -> None:
        self.task = task
        self.annotators = annotators
        self.relations = relations
        self.optimiser = optimiser
        self.max_error = max_error
        self.rewriter = rewriter
        self.draws = draws
        self.ledger = ledger
        self.seed = seed
        self.settings = settings

    def fit(self, X: object, y: object = None) -> Self:
        """Ask about the texts that have a label, and learn the weights.

        Texts without a label are not asked about, unless the optimiser learns from them too.
        """
        texts = texts_of(X)
        given = gold_of(y, len(texts))
        classes = classes_of(self._instruction(), given)
        task = self.task if isinstance(self.task, Task) else Task(self.task, classes.labels)
        gold = [classes.name_of(value) for value in given]
        rows = [row for row, label in enumerate(gold) if label is not None or not needs_gold(self.optimiser)]
        if not rows:
            raise GoldError(
                "y has no labels: label some texts (30 are a start), or use an optimiser that needs none "
                "(uniform, majority, dawid-skene)"
            )
        votes = self._ask(task, [texts[row] for row in rows])
        self.model_ = fit_for_classifier(
            votes, [gold[row] for row in rows], self.optimiser, self.seed, max_error=self.max_error
        )
        self.weights_, self.calibrated_ = self.model_.weights, self.model_.calibrator is not None
        self.certificate_ = self.model_.certificate
        self.classes_, self.labels_, self.task_ = classes.values, tuple(classes.labels), task
        self.fallback_ = classes.values[int(np.argmax([gold.count(label) for label in classes.labels]))]
        return self

    def predict(self, X: object) -> Array:
        """Return the class of each text: the one with the highest score, as in `label`.

        That is nearly always the most probable one too. Texts without votes get `fallback_`, with a warning.
        """
        outcomes = self.label(X)
        silent = [row for row, outcome in enumerate(outcomes, 1) if outcome.label is None]
        if silent:
            warnings.warn(
                f"no model voted on {len(silent)} of {len(outcomes)} texts, the first in row {silent[0]}: predict "
                f"returns {self.fallback_!s}, the most common gold label; label() returns None for such texts",
                PcsWarning,
                stacklevel=2,
            )
        by_name = dict(zip(self.labels_, self.classes_, strict=True))
        chosen = [self.fallback_ if one.label is None else by_name[one.label] for one in outcomes]
        return np.array(chosen, dtype=self.classes_.dtype)

    def predict_proba(self, X: object) -> Floats:
        """Return an array `[text, class]` with columns as in `classes_`; rows sum to 1.

        The values are calibrated probabilities if `calibrated_` is true, else raw scores. For a text without votes, all
        classes have the same value.
        """
        check_is_fitted(self)
        return probabilities(self.model_, self._votes(X), self.labels_)

    def label(self, X: object) -> list[Outcome]:
        """Return label, scores, confidence, decision and reason for each text; ids are row numbers from 0."""
        check_is_fitted(self)
        return list(self.model_.judge(self._votes(X)))

    def score(self, X: object, y: object, sample_weight: object = None) -> float:
        """Return the accuracy on the texts that have a label; the others are left out."""
        check_is_fitted(self)
        texts = texts_of(X)
        gold = gold_of(y, len(texts))
        rows = [row for row, value in enumerate(gold) if value is not None]
        if not rows:
            raise GoldError("y has no labels, so there is no accuracy: give texts with labels")
        classes = Classes(values=self.classes_, labels=self.labels_)
        predicted = self.predict([texts[row] for row in rows]).tolist()
        right = [classes.name_of(gold[row]) == classes.name_of(one) for row, one in zip(rows, predicted, strict=True)]
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)[rows]
        return float(np.average(right, weights=weights))

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: the input is texts, in one dimension."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle: everything but keys, which are read again from the environment when needed."""
        state: dict[str, Any] = dict(super().__getstate__())
        if self.settings is not None and self.settings.environment is not None:
            state["settings"] = replace(self.settings, environment=None)
        return state

    def _votes(self, given: object) -> Votes:
        return self._ask(self.task_, texts_of(given))

    def _ask(self, task: Task, texts: Sequence[str]) -> Votes:
        """Return the votes on texts; a text that occurs twice is asked about once."""
        settings = self.settings or CollectSettings()
        panel = Panel(
            task=task,
            annotators=_listed(self.annotators, "annotators"),
            relations=_listed(self.relations, "relations"),
            ledger=self.ledger,
            settings=replace(
                settings,
                rewriter=settings.rewriter if self.rewriter is None else self.rewriter,
                draws=settings.draws if self.draws == 1 else self.draws,
            ),
        )
        places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        votes = panel.ask_now(list(places)).plain()
        return votes.resampled(np.array([places[text] for text in texts], dtype=np.intp))

    def _instruction(self) -> Task | str:
        if not isinstance(self.task, Task | str):
            raise ConfigError(f"task is a {type(self.task).__name__}: give a Task, or an instruction as a str")
        return self.task


def _listed(given: object, name: str) -> list[Any]:
    """Return the argument as a list; a single value is an error."""
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise ConfigError(f"{name} is the single value {given!r:.60}: give a list, even for one")
    return list(given)
