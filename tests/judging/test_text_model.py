"""A model of the texts: what it learns, that gold rows never vouch for themselves, and how it joins the votes."""

import json
from dataclasses import replace

import numpy as np
import pytest

from pcs_annotator.base.errors import MismatchError
from pcs_annotator.base.plain import from_plain
from pcs_annotator.core import ngrams
from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.ngrams import COLUMNS, count_ngrams
from pcs_annotator.judging.early_stop import exact_stop, learn_frugal, simulate
from pcs_annotator.judging.fit_model import Learning, fit_model
from pcs_annotator.judging.heldout import Splits
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.reasons import TEXT_OR_ERRORS
from pcs_annotator.judging.text_model import (
    LEAST_GOLD,
    LEAST_SAID,
    PRIOR_ROWS,
    WORDS_SHOWN,
    TextModel,
    _fit,
    fit_text_model,
)
from tests.builders import the
from tests.judging.strategies import asked_in
from tests.judging.written import LABELS, WORDS, known, voted, written


def learned(texts: list[str], gold: Codes) -> TextModel:
    model = the(fit_text_model(texts, gold, LABELS))
    return model


def test_it_labels_new_texts_and_names_the_words_that_tell() -> None:
    texts, gold = written(300)
    model = learned(texts[:200], gold[:200])
    said = model.read(texts[200:], LABELS)
    assert ((said.argmax(axis=1) == gold[200:]).mean()) > 0.85
    assert np.exp(said).sum(axis=1) == pytest.approx(1.0, abs=1e-3)
    assert set(model.words["sport"]) <= set(WORDS["sport"])
    assert set(model.words["money"]) <= set(WORDS["money"])
    assert len(model.words["money"]) >= 5
    assert np.array_equal(model.read(texts[200:], LABELS[::-1]), said[:, ::-1])


def test_a_gold_row_and_its_copies_get_what_a_model_without_it_says() -> None:
    texts, gold = written(80, telling=0.5)
    model = learned(texts, gold)
    turned = gold.copy()
    turned[7] = 1 - turned[7]
    other = learned(texts, turned)
    before, after = (one.read([texts[7], f"  {texts[7].upper()}"], LABELS) for one in (model, other))
    assert np.array_equal(before[0], before[1])
    # its own label changes nothing but how common the labels and how strong the ridge are
    assert abs(before[0] - after[0]).max() < 0.25


def test_left_out_predictions_are_those_of_a_fit_without_the_row() -> None:
    texts, gold = written(60)
    model = learned(texts, gold)
    rest = [row for row in range(60) if row != 3]
    alone = learned([texts[row] for row in rest], gold[rest])
    assert model.read([texts[3]], LABELS)[0] == pytest.approx(alone.read([texts[3]], LABELS)[0], abs=0.3)


@pytest.mark.parametrize(
    ("rows", "one_label"), [(LEAST_GOLD - 1, False), (LEAST_GOLD, True)], ids=["too few", "a single label"]
)
def test_too_little_gold_gives_no_model(rows: int, one_label: bool) -> None:
    texts, gold = written(rows)
    assert fit_text_model(texts, gold * (not one_label), LABELS) is None


def test_it_reads_the_same_after_it_was_stored() -> None:
    texts, gold = written(120)
    model = learned(texts[:60], gold[:60])
    stored = json.dumps(model.to_dict())
    again = TextModel.from_dict(json.loads(stored))
    assert np.array_equal(again.read(texts, LABELS), model.read(texts, LABELS))
    assert again.words == {label: list(words) for label, words in model.words.items()}
    assert len(stored) < 1_000_000
    assert repr(model).startswith("<TextModel: 2 labels, ")


def test_empty_texts_other_scripts_and_lone_surrogates_can_be_read() -> None:
    texts, gold = written(60)
    odd = ["", "   ", "ニュースです", "\ud800 broken", "ñandú 🦩"]
    model = learned([*odd, *texts], np.concatenate([np.zeros(len(odd), dtype=np.int8), gold]))
    said = model.read([*odd, "unseen 漢字"], LABELS)
    assert np.isfinite(said).all()
    assert np.array_equal(model.read([""], LABELS), model.read(["  "], LABELS))
    assert model.read([], LABELS).shape == (0, 2)
    for alone in ("x", "🦩", "?!"):  # shorter than the longest n-grams, and nothing comes after it
        assert np.isfinite(model.read([alone], LABELS)).all()


def test_words_without_repetition_are_not_shown() -> None:
    texts = [f"{row}{'a' if row % 2 else 'b'}x" for row in range(60)]
    model = learned(texts, np.arange(60, dtype=np.int8) % 2)
    assert model.words == {"sport": (), "money": ()}


def test_ngrams_do_not_cross_texts_and_many_texts_are_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, _ = written(50)
    whole = count_ngrams(texts)
    monkeypatch.setattr(ngrams, "CHARACTERS", 64)
    assert abs(count_ngrams(texts) - whole).nnz == 0
    assert abs(count_ngrams(texts[:1]) - whole[:1]).nnz == 0
    assert whole.shape == (50, COLUMNS)
    padded = len(ngrams.normalised(texts[0])) + 2
    assert whole[0].sum() == sum(padded - order + 1 for order in ngrams.ORDERS)


def test_more_gold_than_needed_is_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pcs_annotator.judging.text_model.MOST_GOLD", 100)
    texts, gold = written(150)
    assert len(learned(texts, gold).held_out) == 100


def test_with_the_texts_labels_are_better_and_confidence_is_honest() -> None:
    texts, gold = written(1200)
    votes, some = voted(texts, gold), known(gold, 200)
    alone, both = (fit_model(votes, some, Learning(optimiser="lr", text=text)).model for text in (False, True))
    assert both.text is not None
    assert the(both.calibrator).reading > 0.1
    assert np.array_equal(alone.judged(votes).scores, both.judged(votes).scores)  # PCS is of the votes alone
    new = votes.take(np.arange(200, 1200))
    judged = [one.judged(new) for one in (alone, both)]
    right = [(one.best == gold[200:]).mean() for one in judged]
    assert right[1] > right[0] + 0.05
    sure = the(judged[1].probabilities)
    assert abs(sure.max(axis=1).mean() - right[1]) < 0.04


def test_texts_that_add_nothing_are_left_out() -> None:
    texts, gold = written(300, telling=0.5)
    model = fit_model(voted(texts, gold), known(gold, 150), Learning(optimiser="lr", text=True)).model
    assert the(model.calibrator).reading < 0.1
    assert (model.text is None) == (the(model.calibrator).reading == 0)


@pytest.mark.parametrize("calibration", ["softmax", "none"])
def test_a_calibration_joins_the_texts_and_without_one_they_are_not_read(calibration: str) -> None:
    texts, gold = written(200)
    how = Learning(optimiser="lr", text=True, splits=Splits(calibration=calibration))
    model = fit_model(voted(texts, gold), known(gold, 120), how).model
    assert (model.text is not None) == (calibration == "softmax")


def test_a_model_that_reads_texts_needs_them_and_is_stored_with_what_it_reads() -> None:
    texts, gold = written(200)
    votes = voted(texts, gold)
    model = fit_model(votes, known(gold, 120), Learning(optimiser="lr", text=True)).model
    stored = from_plain(Model, json.loads(json.dumps(model.to_dict())))
    first, again = (one.judged(votes).probabilities for one in (model, stored))
    assert again == pytest.approx(the(first))
    with pytest.raises(MismatchError, match="give the texts"):
        model.judged(replace(votes, texts=None))


def test_a_label_that_no_model_gave_is_explained_by_the_text() -> None:
    texts, gold = written(400, telling=1.0)
    votes = voted(texts, gold, right=0.6, models=1)
    model = fit_model(votes, known(gold, 200), Learning(optimiser="lr", text=True)).model
    outvoted = [one.reason for one in model.judge(votes) if "known errors" in one.reason]
    assert outvoted
    assert {one.partition(", ")[2].rpartition(" ")[0] for one in outvoted} == {TEXT_OR_ERRORS}


@pytest.mark.parametrize("optimiser", ["lr", "auto"])
def test_asking_starts_from_the_text_and_ends_with_the_label_of_asking_everything(optimiser: str) -> None:
    texts, gold = written(250)
    votes, some = voted(texts, gold, models=3), known(gold, 150)
    how = Learning(optimiser=optimiser, text=True)
    frugal = learn_frugal(votes, some, how)
    whole = fit_model(votes, some, how).model
    assert frugal.model.text is not None
    stopped = simulate(votes, exact_stop(votes, whole))
    assert np.array_equal(whole.judged(stopped).best, whole.judged(votes).best)
    without = simulate(votes, exact_stop(votes, fit_model(votes, some, replace(how, text=False)).model))
    assert asked_in(stopped).sum() < asked_in(without).sum()
    said = the(frugal.strategy.text_priors([texts[200]]))[0]
    one = np.full(votes.codes.shape[1:], -3, dtype=np.int8)
    assert 0 <= frugal.strategy.needed(one, said) <= one.size


def test_what_is_said_of_a_gold_text_does_not_depend_on_its_own_label_at_all() -> None:
    rng = np.random.default_rng(0)
    gold = rng.integers(3, size=20).astype(np.int16)
    vectors = rng.random((20, 6)) + np.eye(3, 6)[gold]
    found = []
    for label in range(3):
        gold[4] = label
        fitted = _fit(vectors @ vectors.T, gold, 3, 1.0, np.arange(20))
        others = np.bincount(np.delete(gold, 4), minlength=3)
        log_prior = np.log((others + PRIOR_ROWS) / (19 + 3 * PRIOR_ROWS))
        found.append((fitted.left_out[4] - log_prior) / fitted.steepness)
    assert np.allclose(found, found[0])


def test_words_of_a_text_speak_for_or_against_its_label() -> None:
    texts, gold = written(300)
    model = learned(texts[:200], gold[:200])
    sport, money = (LABELS.index(name) for name in ("sport", "money"))
    text = f"“{WORDS['sport'][0].upper()}”, unheardof {WORDS['money'][0]} \U0001f600 of {WORDS['sport'][0]}!"
    telling, against, nothing, empty = model.telling_words([text, text, "unheardof qqzzqq", ""], [sport, money, 0, 0])
    marked = [(text[word.start : word.end], word.contribution > 0) for word in telling]
    assert marked == [(WORDS["sport"][0].upper(), True), (WORDS["money"][0], False), (WORDS["sport"][0], True)]
    assert [word.contribution for word in against] == pytest.approx([-word.contribution for word in telling])
    assert nothing == empty == []
    assert model.telling_words(["a b", ""], [0, 1]) == [[], []]


def test_at_most_some_words_are_marked_and_none_where_texts_tell_nothing() -> None:
    texts, gold = written(300)
    everything = " ".join(word for words in WORDS.values() for word in words)
    telling = learned(texts, gold).telling_words([everything], [0])[0]
    assert len(telling) == WORDS_SHOWN
    assert all(abs(word.contribution) >= LEAST_SAID for word in telling)
    random, labels = written(200, telling=0.5)
    model = learned(random, labels)
    assert np.mean([len(words) for words in model.telling_words(random, labels.tolist())]) < 1


def test_what_is_said_of_a_passage_depends_on_no_label_in_its_text() -> None:
    rng = np.random.default_rng(1)
    gold, units = rng.integers(2, size=24).astype(np.int16), np.repeat(np.arange(8), 3)
    vectors = rng.random((24, 6)) + np.eye(2, 6)[gold]
    kept = units != 2
    said = []
    for labels in ((0, 0, 0), (1, 0, 1), (1, 1, 1)):
        gold[~kept] = labels
        fitted = _fit(vectors @ vectors.T, gold, 2, 1.0, units)
        others = np.bincount(gold[kept], minlength=2)
        log_prior = np.log((others + PRIOR_ROWS) / (21 + 2 * PRIOR_ROWS))
        said.append((fitted.left_out[~kept] - log_prior) / fitted.steepness)
    np.testing.assert_allclose(said[1:], [said[0]] * 2, atol=1e-9)
    # as a ridge regression of the others alone predicts it
    target = np.eye(2)[gold[kept]] - others / 21
    alike = vectors @ vectors.T
    duals = np.linalg.solve(alike[np.ix_(kept, kept)] + np.eye(21), target)
    np.testing.assert_allclose(said[0], alike[np.ix_(~kept, kept)] @ duals, atol=1e-9)
