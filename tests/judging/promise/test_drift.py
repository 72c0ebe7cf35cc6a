import json
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from scipy.stats import chi2_contingency

from pcs_annotator import ABSTAINED, NOT_ASKED, Votes, Weights, score
from pcs_annotator.base.errors import MismatchError
from pcs_annotator.base.plain import from_plain, to_plain
from pcs_annotator.core.arrays import Array
from pcs_annotator.judging.promise.drift import (
    SCRIPTS,
    Drift,
    Profile,
    drift,
    drift_by_group,
    drift_together,
    homogeneity,
    profile,
    profiles,
    script_of,
)
from pcs_annotator.judging.score import choose
from pcs_annotator.judging.text_model import fit_text_model
from tests.builders import the
from tests.judging.strategies import any_votes

RELATIONS = ["original", "voice", "double-negation", "synonym"]


def sample(rng: np.random.Generator, items: int, fake: float, skill: tuple[float, ...] = (0.9, 0.85, 0.8)) -> Votes:
    """Votes of three models whose errors mostly carry over from one variant of a text to the next."""
    truth = (rng.random(items) >= fake)[:, np.newaxis, np.newaxis]
    right = (rng.random((items, 3)) < skill)[:, :, np.newaxis] ^ (rng.random((items, 3, 4)) < 0.05)
    codes = np.where(rng.random(right.shape) < 0.02, ABSTAINED, np.where(right, truth, ~truth))
    names = [str(row) for row in range(items)]
    models = ["ollama:qwen", "llama", "gpt"]
    return Votes(
        codes=codes.astype(np.int8), ids=names, annotators=models, relations=RELATIONS, labels=["Fake", "Real"]
    )


def profiled(votes: Votes) -> Profile:
    scores = score(votes, Weights.uniform(votes))
    return profile(votes, scores, choose(scores, votes.labels))


def compared(before: Votes, now: Votes) -> Drift:
    return drift(profiled(before), profiled(now))


@pytest.mark.system
def test_samples_of_the_same_texts_rarely_raise_an_alarm() -> None:
    rng = np.random.default_rng(0)
    sizes = rng.choice([50, 100, 200, 500], size=(200, 2)).tolist()
    alarms = [compared(sample(rng, old, 0.3), sample(rng, new, 0.3)).found for old, new in sizes]
    assert sum(alarms) <= 2


def test_p_values_are_valid_when_nothing_changed() -> None:
    rng = np.random.default_rng(1)
    p_values = [compared(sample(rng, 200, 0.4), sample(rng, 200, 0.4)).p_value for _ in range(150)]
    assert np.mean(np.array(p_values) < 0.05) <= 0.08  # correlated cells make Holm conservative


def test_the_sentence_names_the_model_that_changed_most() -> None:
    rng = np.random.default_rng(3)
    before, now = sample(rng, 400, 0.4), sample(rng, 400, 0.4)
    codes = now.codes.copy()
    codes[:, 0, 0][rng.random((400, 1)) < 0.5] = 0
    found = compared(before, replace(now, codes=codes))
    share = [round(100 * float((one[:, 0, 0] == 0).mean())) for one in (codes, before.codes)]
    assert found.found
    assert found.sentence == (
        f"qwen says Fake in {share[0]} % of its answers about new texts, {share[1]} % of those about "
        "the calibration set"
    )


def test_scores_that_fall_are_found_even_where_every_cell_keeps_its_shares() -> None:
    rng = np.random.default_rng(5)
    before, now = sample(rng, 500, 0.5), sample(rng, 500, 0.5)
    torn = np.stack([rng.permuted(now.codes[:, a, r, 0]) for a in range(3) for r in range(4)], axis=1)
    found = compared(before, replace(now, codes=torn.reshape(500, 3, 4, 1)))
    assert found.found
    assert found.sentence.startswith("the highest score is at most 0.5")


def test_a_change_too_small_to_matter_is_no_alarm_however_certain() -> None:
    counts = np.array([[[[50_000, 50_000, 0]]], [[[53_000, 47_000, 0]]]])
    highest = np.zeros(101, dtype=np.intp)
    highest[80] = 100_000
    old, new = (
        Profile(
            annotators=["a"],
            relations=["original"],
            labels=["x", "y"],
            items=100_000,
            cells=one,
            chosen=one[0, 0, 0, :2],
            highest=highest,
            scripts=np.zeros(13, dtype=np.intp),
            familiar=np.zeros(101, dtype=np.intp),
        )
        for one in counts[:, :, np.newaxis]
    )
    result = drift(old, new)
    assert result.p_value < 1e-9
    assert not result.found


def test_cells_left_out_for_easy_texts_raise_no_alarm() -> None:
    rng = np.random.default_rng(6)
    before, now = sample(rng, 400, 0.5), sample(rng, 400, 0.5)
    codes = now.codes.copy()
    easy = (codes[:, 0] == codes[:, 0, :1]).all(axis=(1, 2))
    codes[easy, 1:] = NOT_ASKED  # the rest are the hard texts: other shares, other scores
    assert not compared(before, replace(now, codes=codes)).found


def test_order_and_absence_of_axes_do_not_matter() -> None:
    rng = np.random.default_rng(8)
    before, now = sample(rng, 300, 0.3), sample(rng, 300, 0.6)
    turned = replace(
        now.select(annotators=["gpt", "llama", "ollama:qwen"], relations=RELATIONS[::-1]), labels=["Real", "Fake"]
    )
    turned = replace(turned, codes=np.where(turned.codes < 0, turned.codes, 1 - turned.codes))
    assert compared(before, turned) == compared(before, now)
    assert compared(before, now.select(annotators=["gpt"])).found


def test_too_few_texts_are_not_compared() -> None:
    rng = np.random.default_rng(9)
    result = compared(sample(rng, 200, 0.1), sample(rng, 19, 0.9))
    assert result[:2] == (1.0, False)
    assert result.sentence == "19 texts are too few to compare: 20 are needed on both sides"
    assert not compared(sample(rng, 0, 0.5), sample(rng, 0, 0.5)).found


def test_other_labels_are_refused() -> None:
    votes = sample(np.random.default_rng(10), 30, 0.5)
    with pytest.raises(MismatchError, match=r"Fake, Real.*Fake, True"):
        compared(votes, replace(votes, labels=["Fake", "True"]))


@given(any_votes())
def test_a_profile_survives_json_and_never_drifts_from_itself(votes: Votes) -> None:
    one = profiled(votes)
    back = from_plain(Profile, json.loads(json.dumps(to_plain(one))))
    assert to_plain(back) == to_plain(one)
    assert drift(one, back).p_value == 1
    assert one.cells.sum() == (votes.codes != NOT_ASKED).sum()
    assert one.chosen.sum() == one.highest.sum() == (~votes.silent).sum()


def graded(votes: Votes, sure: float, models: Sequence[str], seed: int) -> Votes:
    """The same answers of some models, given with about that probability."""
    rng = np.random.default_rng(seed)
    own = rng.beta(10 * sure, 10 * (1 - sure), size=votes.codes.shape)[..., np.newaxis]
    grades = np.where(votes.codes[..., np.newaxis] == np.arange(2), own, 1 - own)
    hard = (votes.codes < 0) | ~np.isin(votes.annotators, models)[:, np.newaxis, np.newaxis]
    return replace(votes, grades=np.where(hard[..., np.newaxis], np.nan, grades))


def chi_square(table: Array) -> float:
    tests = (chi2_contingency(table, correction=False, lambda_=power) for power in ("pearson", "log-likelihood"))
    return max(float(test.pvalue) for test in tests)


def test_homogeneity_is_the_larger_p_value_of_two_tests() -> None:
    table = np.array([[40, 60, 30], [70, 50, 90]])
    assert homogeneity(table[0], table[1]) == pytest.approx(chi_square(table))


@pytest.mark.system
def test_few_new_texts_against_many_raise_no_more_alarms_than_they_should() -> None:
    rng = np.random.default_rng(16)
    old, new = (rng.multinomial(rows, [0.8, 0.1, 0.1], size=20_000) for rows in (2000, 60))
    found = [homogeneity(*pair) < 0.001 for pair in zip(old, new, strict=True)]
    assert np.mean(found) <= 0.0015


def by_group(**fake: tuple[int, float]) -> dict[str, Profile]:
    """Profiles of groups: how many texts each has, and the share of them that is fake."""
    parts = {name: sample(np.random.default_rng(len(name)), *about) for name, about in fake.items()}
    votes = Votes.joined([replace(one, ids=[f"{name}{row}" for row in one.ids]) for name, one in parts.items()])
    votes = replace(votes, groups=[name for name, one in parts.items() for _ in one.ids])
    scores = score(votes, Weights.uniform(votes))
    return profiles(votes, scores, choose(scores, votes.labels), ["", *fake, "unseen"])


def groups_of(found: dict[str, Profile]) -> dict[str, Profile]:
    return {name: one for name, one in found.items() if name}


def test_a_group_that_differs_is_named_and_the_others_do_not_differ() -> None:
    before = groups_of(by_group(de=(400, 0.3), eng=(400, 0.6), fr_=(400, 0.5)))
    now = groups_of(by_group(de=(150, 0.3), eng=(150, 0.95), fr_=(150, 0.5)))
    found = drift_by_group(before, now)
    assert found.found
    assert found.unlike == ("eng",)
    assert found.sentence.startswith("eng: ")
    assert found.p_value < 0.001
    values = json.loads(json.dumps(to_plain(found)))
    assert {name: one["found"] for name, one in values["groups"].items()} == {"de": False, "eng": True, "fr_": False}
    same = drift_by_group(before, groups_of(by_group(de=(150, 0.3), eng=(150, 0.6))))
    assert not same.found
    assert same.sentence == "new texts are answered like the calibration set"


def test_another_mixture_of_groups_is_no_difference_but_one_without_groups() -> None:
    before, now = by_group(de=(400, 0.1), eng=(400, 0.9)), by_group(de=(40, 0.1), eng=(400, 0.9))
    assert drift_by_group({"": before[""]}, now).found
    assert not drift_by_group(groups_of(before), now_ := groups_of(now)).found
    assert {*now_} == {"de", "eng"}


def test_what_only_all_groups_together_can_show_is_a_difference_of_each() -> None:
    before = groups_of(by_group(de=(2000, 0.3), eng=(2000, 0.3), fr_=(2000, 0.3)))
    now = groups_of(by_group(de=(60, 0.65), eng=(60, 0.65), fr_=(60, 0.65)))
    assert not any(drift_together({name: before[name]}, now, 1e-7).found for name in now)
    assert drift_together(before, now, 1e-7).found
    weaker = groups_of(by_group(de=(60, 0.52), eng=(60, 0.52), fr_=(60, 0.52)))
    assert drift_by_group(before, weaker).unlike == ("de", "eng", "fr_")
    assert not drift_by_group(before, {}).found


ENGLISH = re.split(" ", "the people say this government will not pay for schools because money is short today")
GERMAN = re.split(" ", "die Leute sagen diese Regierung wird nicht für Schulen zahlen weil das Geld knapp ist")
RUSSIAN = re.split(" ", "эти люди говорят правительство не будет платить за школы потому что денег мало")
CHINESE = list("这些人说政府不会为学校和道路付更多的钱因为缺")


def written(rng: np.random.Generator, votes: Votes, words: list[str], between: str = " ") -> Votes:
    return replace(votes, texts=[between.join(rng.choice(words, 12)) for _ in votes.ids])


@pytest.mark.parametrize(
    ("words", "between", "sentence"),
    [(RUSSIAN, " ", "the script is cyrillic"), (CHINESE, "", "the script is cjk"), (GERMAN, " ", "n-grams that gold")],
    ids=["Russian", "Chinese", "German"],
)
def test_texts_in_another_language_raise_an_alarm_though_they_are_answered_alike(
    words: list[str], between: str, sentence: str
) -> None:
    rng = np.random.default_rng(0)
    before = written(rng, sample(rng, 200, 0.3), ENGLISH)
    text = the(fit_text_model(list(before.texts or ()), np.arange(200) % 2, before.labels))
    old, alike, other = (
        profile(one, np.full((200, 2), 0.5), np.zeros(200, dtype=np.int8), text.familiar(one.texts or ()))
        for one in (before, written(rng, before, ENGLISH), written(rng, before, words, between))
    )
    assert not drift(old, alike).found
    found = drift(old, other)
    assert found.found
    assert sentence in found.sentence
    assert to_plain(from_plain(Profile, json.loads(json.dumps(to_plain(old))))) == to_plain(old)


def test_gold_texts_are_compared_with_other_gold_texts_as_new_ones_are() -> None:
    rng = np.random.default_rng(0)
    votes = [written(rng, sample(rng, 300, 0.3), ENGLISH) for _ in range(2)]
    gold, new = (list(one.texts or ()) for one in votes)
    text = the(fit_text_model(gold, np.arange(300) % 2, votes[0].labels))
    assert text.familiar(gold).mean() == pytest.approx(text.familiar(new).mean(), abs=0.02)
    assert text.familiar([" ".join(RUSSIAN), ""]).max() < 0.5


@pytest.mark.parametrize(
    ("text", "script"),
    [("Grüße", "LATIN"), ("plain", "LATIN"), ("你好 ok", "CJK"), ("…!", "NONE"), ("", "NONE"), ("ሰላም", "OTHER")],
)
def test_a_text_has_the_script_of_most_of_its_letters(text: str, script: str) -> None:
    assert SCRIPTS[script_of(text)] == script
