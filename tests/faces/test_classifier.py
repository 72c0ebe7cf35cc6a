import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from pcs_annotator import CollectSettings, PCSClassifier, PcsWarning, Task, UserError
from pcs_annotator.base.errors import ConfigError, GoldError, InputError, LabelError
from tests.stub import Behaviour, stub_process

TASK = Task("What is it about?", ["sport", "politics"])
TEXTS = [f"Match {row}: a goal, what a goal." if row % 2 else f"Vote {row}: a bill, what a bill." for row in range(20)]
GOLD = ["sport" if row % 2 else "politics" for row in range(20)]


class Reader:
    """Tells a goal from a bill, and counts its calls."""

    __name__ = "reader"

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, text: str) -> str:
        self.calls += 1
        if "nothing at all" in text:
            return "I cannot say."
        return "<label>sport</label>" if "goal" in text else "<label>politics</label>"


def dice(text: str) -> str:
    """Answer without having read the text."""
    return "<label>sport</label>" if len(text) % 3 else "<label>politics</label>"


def classifier(*annotators: object, task: Task | str = TASK, **settings: Any) -> PCSClassifier:
    return PCSClassifier(
        task, annotators or (Reader(), dice), **{"relations": ("original",), "optimiser": "uniform", **settings}
    )


def test_the_annotator_that_knows_gets_the_weight_and_decides() -> None:
    fitted = classifier(optimiser="lr").fit(TEXTS, GOLD)
    assert fitted.weights_.by_annotator["reader"] > fitted.weights_.by_annotator["dice"]
    assert fitted.score(TEXTS, GOLD) == 1.0
    assert fitted.predict(["A goal!", "A bill!"]).tolist() == ["sport", "politics"]
    assert fitted.classes_.tolist() == ["politics", "sport"]
    assert fitted.model_.calibrator is not None
    assert not fitted.calibrated_  # 20 rows are too few to call it that
    probabilities = fitted.predict_proba(["A goal!", "A bill!"])
    assert probabilities.sum(axis=1) == pytest.approx(1)
    assert probabilities[0, 1] > 0.8
    assert probabilities[1, 1] < 0.2


def test_label_gives_outcomes_whose_confidence_is_the_probability_of_their_label() -> None:
    fitted = classifier(Reader()).fit(TEXTS, GOLD)
    first, second = fitted.label(["A goal!", "A bill!"])
    assert (first.id, first.label, second.label) == ("0", "sport", "politics")
    assert first.confidence == pytest.approx(fitted.predict_proba(["A goal!"])[0, 1])
    assert first.decision is None


def test_predict_is_the_most_probable_class_and_the_label_even_if_another_has_the_higher_score() -> None:
    gold = ["politics" if row % 3 else label for row, label in enumerate(GOLD)]
    fitted = classifier(dice).fit(TEXTS, gold)
    texts = [*TEXTS, *(f"Text {row}" for row in range(40))]
    outcomes, chances = fitted.label(texts), fitted.predict_proba(texts)
    predicted = fitted.predict(texts).tolist()
    assert predicted == fitted.classes_[chances.argmax(axis=1)].tolist() == [one.label for one in outcomes]
    assert [one.confidence for one in outcomes] == pytest.approx(chances.max(axis=1))
    highest = [max(one.scores, key=one.scores.__getitem__) for one in outcomes]
    assert predicted != highest


def test_with_little_gold_probabilities_are_raw_scores_and_calibrated_is_false() -> None:
    fitted = classifier(Reader()).fit(TEXTS[:4], GOLD[:4])
    assert not fitted.calibrated_
    assert fitted.model_.calibrator is None
    assert fitted.predict_proba(["A goal!"]).tolist() == [[0.0, 1.0]]
    assert fitted.label(["A goal!"])[0].confidence is None


def test_a_promised_error_decides_which_labels_are_accepted() -> None:
    texts = [f"{text} Again, {turn}." for turn in range(3) for text in TEXTS]
    promising = classifier(Reader(), max_error=0.2).fit(texts, 3 * GOLD)
    assert promising.certificate_ is not None
    assert promising.certificate_.holds
    assert promising.certificate_.gold_rows == len(texts)
    assert {outcome.decision for outcome in promising.label(TEXTS)} == {"accept"}
    assert promising.label(["nothing at all"])[0].decision == "review"


@pytest.mark.parametrize("max_error", [5, 0])
def test_an_impossible_max_error_is_refused(max_error: float) -> None:
    with pytest.raises(ConfigError, match=f"max_error is {max_error}"):
        classifier(Reader(), max_error=max_error).fit(TEXTS, GOLD)


def test_without_votes_predict_falls_back_on_the_most_common_gold_label() -> None:
    fitted = classifier(Reader()).fit(TEXTS[:5], GOLD[:5])
    unreadable = ["A goal!", "nothing at all"]
    with pytest.warns(PcsWarning, match=r"1 of 2 texts, .*row 2: .*politics"):
        assert fitted.predict(unreadable).tolist() == ["sport", "politics"]
    assert fitted.predict_proba(unreadable)[1].tolist() == fitted.shares_.tolist() == [0.6, 0.4]
    outcome = fitted.label(unreadable)[1]
    assert (outcome.label, outcome.decision) == (None, "review")


@pytest.mark.parametrize(
    "wrap",
    [
        tuple,
        np.array,
        pd.Series,
        pl.Series,
        pa.array,
        iter,
        lambda texts: pd.DataFrame({"text": texts}, index=range(7, 7 + len(texts))),
        lambda texts: pl.DataFrame({"text": texts}),
        lambda texts: pa.table({"text": texts}),
        lambda texts: np.array(texts).reshape(-1, 1),
    ],
)
def test_texts_may_come_in_any_column(wrap: Callable[[list[str]], object]) -> None:
    fitted = classifier(Reader()).fit(wrap(TEXTS), wrap(GOLD))
    assert fitted.predict(wrap(TEXTS)).tolist() == GOLD


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["a", 3.5], "X, row 2: 3.5 .*float"),
        (["a", None], "X, row 2: None .*NoneType"),
        ([b"a"], "X, row 1: b'a' .*bytes"),
        ([], "X is empty"),
        ("a text", "X .*single str"),
        ({"text": ["a"]}, "X .*single dict"),
        (7, "X .*single int"),
        (np.array([["a", "b"]]), r"X .*shape \(1, 2\)"),
        (pd.DataFrame({"text": ["a"], "year": [1]}), "X is a DataFrame with the columns text, year: give one of them"),
        (Path("texts.csv"), "X is a single PosixPath"),
    ],
)
def test_what_is_not_texts_is_refused_with_its_row_and_type(given: object, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        classifier(Reader()).fit(given, ["sport", "politics"])
    assert isinstance(caught.value, ValueError)
    with pytest.raises(InputError, match=message):
        classifier(Reader()).fit(TEXTS, GOLD).predict(given)


def test_labels_that_are_probably_missing_values_must_be_named() -> None:
    with pytest.raises(LabelError, match=r"y, row 2: 'nan' may mean .*, or give Task\(instruction, labels=\[…\]\)"):
        PCSClassifier("Is it sport?", ["scripted:hash"]).fit(["a", "b", "c"], ["sport", "nan", "other"])


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        (["sport", "politcs"], "y, row 2: 'politcs' .*'politics', 'sport'"),
        (["sport"], "2 texts and y 1 label"),
        (["sport", ("politics",)], "y, row 2: .* tuple"),
        (["sport", 0.5], "y, row 2: 0.5 .*float"),
        ([0, 7], "y, row 1: '0' "),
        ([0, 0], "every label of the task occurs"),
        ([True, False], "y, row 1: 'True' "),
        (None, "requires y to be passed"),
        (["", None], "y has no label"),
    ],
)
def test_unusable_gold_is_refused_before_any_call(gold: object, message: str) -> None:
    reader = Reader()
    with pytest.raises(UserError, match=message):
        classifier(reader, optimiser="lr").fit(["a", "b"], gold)
    assert reader.calls == 0


def test_rows_without_gold_are_not_asked_about_and_do_not_count_in_the_score() -> None:
    reader = Reader()
    partly: list[object] = [*GOLD[:12], "", None, float("nan"), pd.NA, *[""] * 4]
    fitted = classifier(reader, optimiser="lr").fit(TEXTS, partly)
    assert reader.calls == 12
    assert fitted.model_.to_dict() == classifier(Reader(), optimiser="lr").fit(TEXTS[:12], GOLD[:12]).model_.to_dict()
    assert fitted.score(TEXTS, partly) == 1.0
    assert fitted.score(TEXTS[:3], ["sport", "sport", ""], sample_weight=[3, 1, 9]) == 0.25
    with pytest.raises(GoldError, match="y has no label"):
        fitted.score(TEXTS, [""] * 20)


def test_an_optimiser_that_needs_no_gold_learns_without_any() -> None:
    fitted = classifier(Reader(), dice).fit(TEXTS, [""] * 20)
    assert fitted.weights_.by_annotator == {"reader": 0.5, "dice": 0.5}
    assert not fitted.calibrated_


def test_an_optimiser_object_is_used_and_auto_combines() -> None:
    from pcs_annotator.judging.optimisers.regression import LinearRegression

    own = classifier(Reader(), optimiser=LinearRegression()).fit(TEXTS, GOLD)
    assert own.model_.calibrator is not None
    assert classifier(Reader(), optimiser="auto").fit(TEXTS, GOLD).weights_.evidence is not None


def test_an_instruction_alone_takes_its_labels_from_gold() -> None:
    fitted = classifier(Reader(), task="What is it about?").fit(TEXTS, GOLD)
    assert fitted.task_ == Task("What is it about?", ["politics", "sport"])
    assert fitted.predict(TEXTS).tolist() == GOLD
    with pytest.raises(LabelError, match="two labels"):
        classifier(Reader(), task="What?").fit(TEXTS, ["sport"] * 20)
    with pytest.raises(LabelError, match=r"y .*numbers.*labels="):
        classifier(Reader(), task="What?").fit(TEXTS, [0, 1] * 10)
    with pytest.raises(LabelError, match=r"y is empty.*labels="):
        classifier(Reader(), task="What?").fit(TEXTS, [""] * 20)


def test_numbers_that_are_names_of_labels_stay_numbers() -> None:
    stars = Task("How many stars?", ["3", "1", "2"])
    fitted = classifier("scripted:hash", task=stars).fit(TEXTS[:6], [1, 2, 3, 1.0, float("nan"), 3])
    assert fitted.classes_.tolist() == [1, 2, 3]
    assert set(fitted.predict(TEXTS).tolist()) <= {1, 2, 3}
    with pytest.raises(LabelError, match=r"numbers in y .*'1', '2'"):
        fitted.fit(TEXTS[:3], [1, 2, 1])
    truth = classifier("scripted:hash", task="Is it?").fit(TEXTS[:2], [True, False])
    assert truth.classes_.tolist() == [False, True]


def test_cross_validated_probabilities_are_in_the_order_of_the_sorted_labels() -> None:
    with pytest.warns(PcsWarning, match="0 is 'politics', 1 is 'sport'"):
        found = cross_val_predict(classifier(Reader()), TEXTS, GOLD, cv=2, method="predict_proba")
    assert (found[:, 1] > 0.5).tolist() == [label == "sport" for label in GOLD]


def test_cross_validation_asks_about_each_text_once() -> None:
    with stub_process(Behaviour()) as stub:
        asking = classifier(f"{stub.url}#a", f"{stub.url}#b")
        assert len(cross_val_score(asking, TEXTS, GOLD, cv=3)) == 3
        assert cross_val_predict(asking, [*TEXTS, *TEXTS], [*GOLD, *GOLD], cv=4).shape == (40,)
        assert stub.stats().requests == 2 * len(TEXTS)


def test_a_grid_searched_by_two_processes_asks_about_each_text_once() -> None:
    with stub_process(Behaviour(latency_s=0.02)) as stub:
        grid = {"optimiser": ["uniform", "majority"], "relations": [("original",), ("original", "frame")]}
        search = GridSearchCV(classifier(f"{stub.url}#a"), grid, cv=2, n_jobs=2).fit(TEXTS, GOLD)
        assert stub.stats().asked_again == stub.stats().answered_twice == 0
    assert len(search.cv_results_["params"]) == 4
    assert search.predict(TEXTS).shape == (20,)


def test_concurrent_fits_share_the_ledger_and_ask_each_question_once() -> None:
    with stub_process(Behaviour(latency_s=0.2)) as stub:
        asking = classifier(f"{stub.url}#a")
        threads = [threading.Thread(target=clone(asking).fit, args=(TEXTS, GOLD)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert stub.stats().requests == len(TEXTS)


def test_a_pipeline_may_clean_the_texts_first() -> None:
    cleaning = FunctionTransformer(lambda texts: [text.replace("g0al", "goal") for text in texts])
    pipeline = make_pipeline(cleaning, classifier(Reader())).fit(TEXTS, GOLD)
    assert pipeline.predict(["A g0al!"]).tolist() == ["sport"]
    assert pipeline.score(TEXTS, GOLD) == 1.0


def test_scikit_learn_may_calibrate_it() -> None:
    calibrated = CalibratedClassifierCV(classifier(Reader()), cv=2).fit(TEXTS, GOLD)
    assert calibrated.predict(["A goal!", "A bill!"]).tolist() == ["sport", "politics"]


def variants_seen(relations: tuple[str, ...], **settings: Any) -> dict[tuple[str, str], str | None]:
    seen: dict[tuple[str, str], str | None] = {}
    telling = CollectSettings(
        environment={}, on_variant=lambda item, variant: seen.update({(variant.relation, item.text): variant.text})
    )
    texts = ["The keeper stopped the ball.", "The minister signed the bill."]
    asking = classifier("scripted:hash", relations=relations, settings=telling, **settings)
    assert asking.fit(texts, ["sport", "politics"]).weights_.relations == relations
    return seen


def test_a_rewriter_takes_the_place_of_the_rules() -> None:
    with stub_process(Behaviour()) as stub:
        seen = variants_seen(("original", "paraphrase"), rewriter=f"{stub.url}#rewriter")
        assert stub.stats().requests >= 2
    assert len(seen) == 4


@pytest.mark.asyncio
async def test_it_works_inside_a_running_event_loop() -> None:
    served = classifier(Reader()).fit(TEXTS, GOLD).predict(["A goal!"]).tolist()
    assert served == ["sport"]


def test_a_pickle_holds_no_key_and_predicts_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-secret-key"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with stub_process(Behaviour(key=key)) as stub:
        monkeypatch.setenv("OPENAI_BASE_URL", stub.url)
        fitted = classifier("openai:a").fit(TEXTS, GOLD)
        given = {"OPENAI_API_KEY": key, "OPENAI_BASE_URL": stub.url}
        settings = CollectSettings(environment=given, in_flight=3)
        fitted.set_params(settings=settings)
        stored = pickle.dumps(fitted)
        assert key.encode() not in stored
        restored = pickle.loads(stored)
        assert restored.settings.in_flight == 3
        assert restored.predict(["New."]).tolist() == fitted.predict(["New."]).tolist()
    assert fitted.settings is settings


def test_settings_apply_where_the_arguments_have_their_defaults() -> None:
    reader = Reader()
    settings = CollectSettings(environment={}, draws=2)
    classifier(reader, settings=settings).fit(TEXTS, GOLD)
    assert reader.calls == 40
    classifier(reader, settings=settings, draws=3).fit(TEXTS, GOLD)
    assert reader.calls == 60


def test_a_clone_has_the_same_arguments_and_has_learned_nothing() -> None:
    fitted = classifier(Reader()).fit(TEXTS, GOLD)
    copy = clone(fitted)
    assert copy.get_params().keys() == fitted.get_params().keys()
    with pytest.raises(NotFittedError):
        copy.predict(TEXTS)
    with pytest.raises(NotFittedError):
        copy.label(TEXTS)
    with pytest.raises(NotFittedError):
        copy.predict_proba(TEXTS)


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("annotators", "scripted:hash", "annotators .*'scripted:hash': give a list"),
        ("annotators", dice, "annotators .*dice.*: give a list"),
        ("relations", "original", "relations .*'original': give a list"),
        ("relations", ["nonsense"], "nonsense"),
        ("optimiser", "nonsense", "nonsense"),
        ("task", 7, "task is a int"),
    ],
)
def test_an_unusable_argument_is_named_when_fitting(argument: str, value: object, message: str) -> None:
    stored = classifier(Reader()).set_params(**{argument: value})
    with pytest.raises(UserError, match=message):
        stored.fit(TEXTS, GOLD)


def test_without_relations_the_questions_suit_the_models(tmp_path: Path) -> None:
    texts, gold = [f"Text number {row} is nice." for row in range(12)], ["good", "bad"] * 6
    with stub_process(Behaviour()) as stub:
        settings = CollectSettings(environment={}, answers="graded")
        classifier = PCSClassifier("Is it?", [f"{stub.url}#m"], ledger=tmp_path / "l.db", settings=settings)
        classifier.fit(texts, gold)
        assert classifier.weights_.relations == ("original", "order")
        assert clone(classifier).relations is None
        assert stub.stats().requests == 24
        assert len(classifier.predict(texts[:3])) == 3
        assert stub.stats().requests == 24
