"""scikit-learn's own estimator checks, on `PCSClassifier`.

Checks that feed no data, or only look at the unfitted estimator, run on it directly. The others feed numbers, which it
rightly refuses: they run on a wrapper that writes numbers as texts and leaves the rest to the classifier.
"""

import re
import warnings
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import estimator_checks as checks
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from pcs_annotator import PCSClassifier, PcsWarning, Task
from pcs_annotator.models.objects import FunctionModel

pytestmark = pytest.mark.system

ROW = re.compile(r"^[-+.e0-9]+(?: [-+.e0-9]+)*$", re.MULTILINE)
TASK = Task("Which is it?", ["one", "two"])

WITHOUT_NUMBERS = [
    checks.check_estimator_cloneable,
    checks.check_estimator_tags_renamed,
    checks.check_valid_tag_types,
    checks.check_estimator_repr,
    checks.check_no_attributes_set_in_init,
    checks.check_do_not_raise_errors_in_init_or_set_params,
    checks.check_parameters_default_constructible,
    checks.check_mixin_order,
    checks.check_get_params_invariance,
    checks.check_set_params,
    checks.check_estimators_unfitted,
    checks.check_n_features_in_after_fitting,  # does nothing, because there are no features
    checks.check_non_transformer_estimators_n_iter,
    checks.check_decision_proba_consistency,
]


class Nearest:
    """A model that finds the numbers in the question and answers with the class that has the nearest mean."""

    def __init__(self, means: dict[str, Any]) -> None:
        self.means = means
        # the ledger identifies models by name, so different means need different names
        self.name = blake2b(repr([(label, mean.tolist()) for label, mean in means.items()]).encode()).hexdigest()

    def __call__(self, question: str) -> str:
        numbers = np.array(ROW.findall(question)[-1].split(), dtype=float)
        nearest = min(self.means, key=lambda label: float(np.sum((self.means[label] - numbers) ** 2)))
        return f"<label>{nearest}</label>"


class NumbersAsTexts(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier of numbers that writes each row as a text; its labels are those of y."""

    def __init__(self, ledger: Path | str = "ledger.db") -> None:
        self.ledger = ledger

    def fit(self, X: object, y: object) -> Self:
        rows, gold = validate_data(self, X, y)
        check_classification_targets(gold)
        means = {_name(value): rows[gold == value].mean(axis=0) for value in np.unique(gold).tolist()}
        nearest = Nearest(means)
        task = Task("Which is it?", list(means) if len(means) > 1 else [*means, "100", "200"])
        model = FunctionModel(nearest, name=nearest.name)
        behind = PCSClassifier(task, [model], relations=("original",), optimiser="uniform", ledger=self.ledger)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PcsWarning)
            self.behind_ = behind.fit(_texts(rows), gold)
        self.classes_ = self.behind_.classes_
        return self

    def predict(self, X: object) -> Any:
        check_is_fitted(self)
        return self.behind_.predict(_texts(validate_data(self, X, reset=False)))

    def predict_proba(self, X: object) -> Any:
        check_is_fitted(self)
        return self.behind_.predict_proba(_texts(validate_data(self, X, reset=False)))


def _name(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _texts(rows: Any) -> list[str]:
    return [" ".join(f"{value:.6g}" for value in row) for row in rows]


@pytest.mark.parametrize("check", WITHOUT_NUMBERS, ids=lambda check: check.__name__)
def test_the_classifier_passes_the_check(check: Callable[..., None]) -> None:
    check("PCSClassifier", PCSClassifier(TASK, ["scripted:hash"], relations=("original",)))


@checks.parametrize_with_checks([NumbersAsTexts()])  # type: ignore[untyped-decorator]  # scikit-learn has no types
def test_wrapped_for_numbers_it_passes_the_check(estimator: Any, check: Any) -> None:
    check(estimator)
