"""Several outputs of the classifier, in the shapes that scikit-learn expects."""

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import cross_val_predict, cross_val_score
from sklearn.utils.multiclass import type_of_target

from pcs_annotator import PCSClassifier, Task
from pcs_annotator.base.errors import ConfigError, GoldError, InputError, LabelError
from tests.stub.behaviour import pick

TOPICS, TONES, SIDES = ("law", "trade", "war"), ("cold", "warm"), ("left", "right")
TOPIC_TASK = Task("Which topics?", TOPICS)
BOTH = {"tone": Task("Which tone?", TONES), "side": Task("Which side?", SIDES)}
TEXTS = [f"Text {row} of many." for row in range(60)]
APPLY = np.array([[int(pick(2, topic, str(row)) == 0) for topic in TOPICS] for row in range(60)])
CODED = np.array([[TONES[pick(2, "tone", str(row))], SIDES[pick(2, "side", str(row))]] for row in range(60)])


class Reader:
    """Answers all questions of a call, wrong about one in ten, and counts its calls."""

    __name__ = "reader"

    calls = 0  # of all copies: scikit-learn clones what it is given

    def __call__(self, question: str) -> str:
        Reader.calls += 1
        row = int(re.findall(r"Text (\d+)", question)[-1])
        wrong = [pick(10, "wrong", name, str(row)) == 0 for name in (*TOPICS, "tone", "side")]
        topics = [topic for at, topic in enumerate(TOPICS) if APPLY[row, at] != wrong[at]]
        tone, side = (known[1 - known.index(said)] if off else said for known, said, off in
                      zip((TONES, SIDES), CODED[row], wrong[3:], strict=True))  # fmt: skip
        return f"<labels>{'; '.join(topics) or 'none'}</labels><tone>{tone}</tone><side>{side}</side>"


@pytest.fixture(autouse=True)
def without_calls() -> None:
    Reader.calls = 0


def classifier(task: Any, reader: object = None, **settings: Any) -> PCSClassifier:
    how = {"relations": ["original"], "optimiser": "uniform", "text": False, **settings}
    return PCSClassifier(task, [reader or Reader()], **how)


def test_an_indicator_matrix_is_predicted_with_a_probability_for_each_label() -> None:
    fitted = classifier(TOPIC_TASK).fit(TEXTS, APPLY)
    assert Reader.calls == len(TEXTS), "three labels, one call"
    found, sure = fitted.predict(TEXTS), fitted.predict_proba(TEXTS)
    assert found.shape == sure.shape == APPLY.shape
    assert type_of_target(found) == "multilabel-indicator"
    assert (found == APPLY).mean() > 0.8
    assert ((sure > 0.5) == found).all()
    assert fitted.classes_.tolist() == list(TOPICS)
    assert fitted.score(TEXTS, APPLY) == pytest.approx(accuracy_score(APPLY, found))
    outcomes: Any = fitted.label(TEXTS[:2])
    assert [one.label for one in outcomes["labels=law"]] == [["no", "yes"][one] for one in found[:2, 0]]
    assert Reader.calls == len(TEXTS)


@pytest.mark.system
def test_it_is_cross_validated_by_scikit_learn() -> None:
    found = cross_val_predict(classifier(TOPIC_TASK), TEXTS, APPLY, cv=3)
    sure = cross_val_predict(classifier(TOPIC_TASK), TEXTS, APPLY, cv=3, method="predict_proba")
    assert f1_score(APPLY, found, average="macro") > 0.8
    assert sure.shape == APPLY.shape
    scores = cross_val_score(classifier(TOPIC_TASK), TEXTS, APPLY, cv=3, scoring="f1_macro")
    assert scores.mean() > 0.8
    assert Reader.calls == len(TEXTS), "answers are kept"


@pytest.mark.system
def test_several_variables_have_a_column_and_an_array_each() -> None:
    fitted = classifier(BOTH).fit(TEXTS, CODED)
    found, sure = fitted.predict(TEXTS), fitted.predict_proba(TEXTS)
    assert found.shape == CODED.shape
    assert (found == CODED).mean() > 0.8
    assert [one.tolist() for one in fitted.classes_] == [list(TONES), list(SIDES)]
    assert [one.shape for one in sure] == [(60, 2), (60, 2)]
    assert np.allclose(sure[0].sum(axis=1), 1)
    assert fitted.score(TEXTS, CODED) == (found == CODED).all(axis=1).mean()
    assert Reader.calls == len(TEXTS)
    with pytest.warns(match="positions among the sorted labels"):  # scikit-learn makes numbers of them
        each = cross_val_predict(classifier(BOTH), TEXTS, CODED, cv=2, method="predict_proba")
    assert [one.shape for one in each] == [(60, 2), (60, 2)]
    assert f1_score(CODED[:, 1], np.array(SIDES)[each[1].argmax(axis=1)], average="macro") > 0.8


@pytest.mark.system
def test_columns_of_a_table_are_found_by_name_and_may_have_gaps() -> None:
    table = pd.DataFrame(CODED, columns=["tone", "side"])[["side", "tone"]]
    table.loc[5, "side"] = None
    fitted = classifier(BOTH).fit(TEXTS, table)
    assert fitted.predict(TEXTS).tolist() == classifier(BOTH).fit(TEXTS, CODED).predict(TEXTS).tolist()
    right = (fitted.predict(TEXTS) == CODED).all(axis=1)
    assert fitted.score(TEXTS, table) == np.delete(right, 5).mean(), "a text that is partly known does not count"
    apply = pd.DataFrame(APPLY, columns=TOPICS).astype("Int64")
    apply.loc[3, "war"] = pd.NA
    for given in (apply, csr_matrix(APPLY), APPLY.tolist(), APPLY == 1, APPLY.astype(float)):
        assert (classifier(TOPIC_TASK).fit(TEXTS, given).predict(TEXTS) == APPLY).mean() > 0.8


def test_variables_of_numbers_and_of_words_stay_what_they_are() -> None:
    tasks = {"tone": BOTH["tone"], "stars": Task("How many?", ["1", "2"])}
    gold = np.array([[tone, 1 + place % 2] for place, tone in enumerate(CODED[:, 0])], dtype=object)

    def answers(question: str) -> str:
        row = int(re.findall(r"Text (\d+)", question)[-1])
        return f"<tone>{CODED[row, 0]}</tone><stars>{gold[row, 1]}</stars>"

    found = classifier(tasks, answers).fit(TEXTS, gold).predict(TEXTS)
    assert found.tolist() == gold.tolist()


@pytest.mark.parametrize(
    ("task", "gold", "error", "says"),
    [
        (TOPIC_TASK, APPLY[:, :2], InputError, r"shape \(60, 2\): give a column for each of law, trade, war"),
        (TOPIC_TASK, np.where(APPLY == 1, 2, 0), InputError, r"row \d+: 2 is neither 1"),
        (BOTH, CODED[:, 0], InputError, "a column for each of tone, side"),
        (BOTH, np.array([["cold", ""]] * 60), GoldError, "side: y has no labels"),
        (BOTH, np.array([["cold", "up"]] * 60), LabelError, "side: .*'up'"),
        ({"tone": "Which tone?", "side": BOTH["side"]}, CODED, ConfigError, "'tone' needs at least two labels"),
        ({"the tone": BOTH["tone"], "side": BOTH["side"]}, CODED, ConfigError, "not a name for a variable"),
        ("Which topics?", APPLY, InputError, "y has the shape"),
    ],
)
def test_what_does_not_fit_is_said(task: Any, gold: Any, error: type[Exception], says: str) -> None:
    model = classifier(task, optimiser="lr")
    with pytest.raises(error, match=says):
        model.fit(TEXTS, gold)
    assert Reader.calls == 0, "before any call"
