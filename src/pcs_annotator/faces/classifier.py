"""`PCSClassifier`: language models as a scikit-learn classifier of texts."""

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
    """A classifier of texts that asks language models, and learns from gold how much each answer is worth.

    X is a list, an array or a column of texts, or a table with a single column. y has a label for every text; `""`,
    None and nan mean that there is none. Every answer is kept in the ledger, so that cross-validation and a second
    `predict` ask nobody twice, also from several processes at once.

    Args:
        task: What to decide. An instruction alone takes its labels from y.
        annotators: Who decides: `provider:model`, a URL, a chat model, a function, or an `Annotator`.
        relations: How texts are shown to them: names, or relations of your own.
        optimiser: How weights are learned: a name, or an optimiser of your own.
        max_error: The share of accepted labels that may be wrong, with 90 % certainty. `label` then decides: `accept`
            where that can be promised, else `review`. Without it, `decision` is None where anybody voted.
        rewriter: The model that rewrites texts; None to rewrite by rule.
        draws: How often the same question is repeated.
        ledger: Where paid calls are kept.
        seed: Fixes whatever is random in learning.
        settings: How to ask: budget, prices, patience, progress. Its `rewriter` and `draws` count where the arguments
            above are left as they are. Its `environment` is not pickled, for it may hold keys.

    Attributes:
        classes_: All labels of the task, also those without gold: sorted, and of the type that y had.
        labels_: The name of the label behind each class.
        task_: The task that models were asked.
        weights_: What every annotator and every relation is worth.
        model_: The weights, and the calibrator where there were at least 10 gold rows of two classes.
        certificate_: What is promised about accepted labels, or why nothing is; None without `max_error`.
        calibrated_: Whether `predict_proba` gives calibrated probabilities. If not, it gives raw scores.
        fallback_: What `predict` says where nobody voted: the class with most gold rows, the first of those that tie.

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
        """Ask about the texts that have a label, and learn what the answers are worth.

        Texts without a label teach nothing and are not asked about, unless the optimiser learns from them too.
        """
        texts = texts_of(X)
        given = gold_of(y, len(texts))
        classes = classes_of(self._instruction(), given)
        task = self.task if isinstance(self.task, Task) else Task(self.task, classes.labels)
        gold = [classes.name_of(value) for value in given]
        rows = [row for row, label in enumerate(gold) if label is not None or not needs_gold(self.optimiser)]
        if not rows:
            raise GoldError(
                "y has no label at all: label some texts (30 are a start), or use an optimiser that needs none "
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
        """Return the class of every text: the one with the highest score, as `label` says.

        That is nearly always the most probable one, too. Where nobody voted, it is `fallback_`, with a warning.
        """
        outcomes = self.label(X)
        silent = [row for row, outcome in enumerate(outcomes, 1) if outcome.label is None]
        if silent:
            warnings.warn(
                f"nobody voted on {len(silent)} of {len(outcomes)} texts, the first of them in row {silent[0]}: "
                f"predict says {self.fallback_!s}, the commonest gold label; label() tells such texts apart",
                PcsWarning,
                stacklevel=2,
            )
        by_name = dict(zip(self.labels_, self.classes_, strict=True))
        chosen = [self.fallback_ if one.label is None else by_name[one.label] for one in outcomes]
        return np.array(chosen, dtype=self.classes_.dtype)

    def predict_proba(self, X: object) -> Floats:
        """Return a number for every class, `[text, class]`, columns as `classes_`; rows sum to 1.

        They are calibrated probabilities where `calibrated_` is true, else raw scores. Where nobody voted, all classes
        have the same.
        """
        check_is_fitted(self)
        return probabilities(self.model_, self._votes(X), self.labels_)

    def label(self, X: object) -> list[Outcome]:
        """Return label, scores, confidence, decision and reason of every text; ids are row numbers from 0."""
        check_is_fitted(self)
        return list(self.model_.judge(self._votes(X)))

    def score(self, X: object, y: object, sample_weight: object = None) -> float:
        """Return the accuracy on the texts that have a label; the others are left out."""
        check_is_fitted(self)
        texts = texts_of(X)
        gold = gold_of(y, len(texts))
        rows = [row for row, value in enumerate(gold) if value is not None]
        if not rows:
            raise GoldError("y has no label at all, so there is no accuracy: give texts with labels")
        classes = Classes(values=self.classes_, labels=self.labels_)
        said = self.predict([texts[row] for row in rows]).tolist()
        right = [classes.name_of(gold[row]) == classes.name_of(one) for row, one in zip(rows, said, strict=True)]
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)[rows]
        return float(np.average(right, weights=weights))

    def __sklearn_tags__(self) -> Any:
        """Return what scikit-learn should know: the input is texts, in one dimension."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: everything but keys, which are read again from the environment when asking."""
        state: dict[str, Any] = dict(super().__getstate__())
        if self.settings is not None and self.settings.environment is not None:
            state["settings"] = replace(self.settings, environment=None)
        return state

    def _votes(self, given: object) -> Votes:
        return self._ask(self.task_, texts_of(given))

    def _ask(self, task: Task, texts: Sequence[str]) -> Votes:
        """Return the votes on texts; one that occurs twice is asked about once."""
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
            raise ConfigError(f"task is a {type(self.task).__name__}: give a Task, or an instruction as a text")
        return self.task


def _listed(given: object, name: str) -> list[Any]:
    """Return a list of what was given, after making sure that it is not a single thing."""
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise ConfigError(f"{name} is the single value {given!r:.60}: give a list, even of one")
    return list(given)
