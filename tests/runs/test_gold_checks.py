"""Gold that does not support a promise, and ways to look until one appears."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from pcs_annotator import PcsWarning, Votes
from pcs_annotator.base.errors import GoldError
from pcs_annotator.core.weights import Weights
from pcs_annotator.judging.promise.certificate import Certificate
from pcs_annotator.judging.score import score
from pcs_annotator.runs.certificate_text import promised
from pcs_annotator.runs.gold_checks import rank_sum
from pcs_annotator.runs.learn import KnownRows, check_drift, learn
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.settings import Config, GoldSample, LearnSettings
from pcs_annotator.showing.findings import what_to_look_at
from pcs_annotator.studies.estimating.answering import estimate_run
from pcs_annotator.studies.estimating.answers import EstimateQuestion
from pcs_annotator.verbs.fit import fit_run
from tests.builders import simulated_votes, the
from tests.simulated import (
    label,
    move_run,
    read_csv,
    run,
    simulated_config,
    simulated_models,
    simulated_run,
    write_texts,
)

PROMISING = LearnSettings(optimiser="lr", folds=2, resamples=5, max_error=0.1)


def sure_rows(votes: Votes) -> list[bool]:
    """Return of each row whether all answers agree."""
    codes = votes.codes.reshape(len(votes), -1)
    return [bool(row) for row in (codes == codes[:, :1]).all(axis=1)]


def test_gold_of_easy_rows_only_is_noticed() -> None:
    votes, gold = simulated_votes([0.9, 0.85, 0.8], items=600, relations=2)
    easy = [truth if sure else None for truth, sure in zip(gold, sure_rows(votes), strict=True)]
    with pytest.warns(PcsWarning, match="the gold rows differ from the others") as caught:
        learned = learn(votes, easy, PROMISING)
    assert the(learned.drift).found
    assert "label a random sample of those rows" in str(caught[0].message)


def test_gold_drawn_by_confidence_is_noticed() -> None:
    votes, gold = simulated_votes([0.9, 0.85, 0.8], items=800, relations=2)
    first = learn(votes, gold, PROMISING).model.judged(votes).scores.max(axis=1)
    chance = np.random.default_rng(1).random(len(votes)) < first**8
    some = [truth if drawn else None for truth, drawn in zip(gold, chance, strict=True)]
    with pytest.warns(PcsWarning, match="the gold rows differ from the others"):
        learn(votes, some, PROMISING)


def test_rows_that_a_person_chose_are_no_part_of_the_test() -> None:
    votes, gold = simulated_votes([0.9, 0.85, 0.8], items=400, relations=2)
    easy = np.array(sure_rows(votes))
    learned = learn(votes, gold, PROMISING, KnownRows(random_sample=~easy))
    assert the(learned.model.certificate).gold_rows == int((~easy).sum())


def test_a_promise_says_that_gold_of_the_data_is_taken_for_a_random_sample() -> None:
    votes, gold = simulated_votes([0.95, 0.9, 0.9], items=400)
    found = the(learn(votes, gold, PROMISING).model.certificate)
    assert found.holds
    assert promised(found).headline.endswith("if the 400 gold rows in the data were drawn at random")


def test_gold_that_models_gave_is_noticed() -> None:
    votes, _ = simulated_votes([0.8, 0.75, 0.7], items=400)
    said = votes.labels
    by_models = [said[code] for code in score(votes, Weights.uniform(votes)).argmax(axis=1).tolist()]
    with pytest.warns(PcsWarning, match=r"gold agrees with the label of \d+ of \d+ rows on which the models differ"):
        learn(votes, by_models, PROMISING)


def test_gold_rows_that_the_user_chose_support_no_promise_and_figures_say_so(folder: Path) -> None:
    assert certificate_with(folder, 0.1).holds
    result = fit_run(folder, {"max_error": 0.1, "gold_sample": "chosen"})
    certificate = the(result.learned.model.certificate)
    assert not certificate.holds
    assert "no gold row was drawn at random" in certificate.why_not
    assert "figures describe these rows, not the table" in str([*what_to_look_at(result)])
    with pytest.raises(GoldError, match="there are 0 gold rows drawn at random"):
        estimate_run(folder, EstimateQuestion())
    assert the(fit_run(folder, {"gold_sample": "random"}).learned.model.certificate).assumed_rows == 150


def test_a_person_at_a_terminal_is_asked_once_how_gold_rows_were_chosen(tmp_path: Path) -> None:
    asked = list[int]()

    def answer(rows: int) -> GoldSample:
        asked.append(rows)
        return "chosen"

    data = write_texts(tmp_path / "data.csv", range(60), 40)
    request = RunRequest(data=data, folder=tmp_path / "run", config=simulated_config(PROMISING), ask_gold_sample=answer)
    with simulated_models():
        for _ in range(2):
            assert the(run(request).learned.model.certificate).gold_rows == 0
    assert asked == [40]


@pytest.fixture
def folder(promising_run: Path, tmp_path: Path) -> Iterator[Path]:
    with simulated_models():
        yield move_run(promising_run, tmp_path / "run")


def certificate_with(folder: Path, max_error: float) -> Certificate:
    return the(fit_run(folder, {"max_error": max_error}, say=lambda line: None).learned.model.certificate)


def test_trying_limits_until_one_is_promised_uses_the_certainty_up(tmp_path: Path) -> None:
    simulated_run(tmp_path, rows=200, gold_rows=150, models=("simulated:large@85",))  # looks once, at 10 %
    folder = tmp_path / "run"
    refused, stricter, looser = (certificate_with(folder, limit) for limit in (0.05, 0.04, 0.12))
    assert not refused.holds
    assert not stricter.holds
    assert looser.holds
    # each test has a part of what those before have left of the 10 % in which promises may fail: also the run's own,
    # whose promise is not for all rows
    assert [refused.spent, stricter.spent] == pytest.approx([0.05, 0.05 + refused.level])
    assert looser.spent == pytest.approx(stricter.spent + stricter.level)
    assert min(refused.level, stricter.level, looser.level) > 0
    assert looser.spent + looser.level < 0.1
    assert certificate_with(folder, 0.05).level == refused.level  # the same test again is the same look


def test_a_limit_that_was_promised_does_not_make_others_harder(folder: Path) -> None:
    loose = certificate_with(folder, 0.2)
    assert loose.holds
    assert certificate_with(folder, 0.25).spent == loose.spent == 0


def test_texts_of_gold_rows_that_come_again_are_labelled_as_before_and_are_no_alarm(
    folder: Path, tmp_path: Path
) -> None:
    again = write_texts(tmp_path / "again.csv", range(150))
    label(RunRequest(data=again, folder=folder, config=Config()), tmp_path / "out.csv")
    before = {row["id"]: row["pcs_label"] for row in read_csv(folder / "labels.csv")}
    after = {row["id"]: row["pcs_label"] for row in read_csv(tmp_path / "out.csv")}
    assert after == {name: before[name] for name in after}


def test_the_texts_that_were_learned_from_do_not_differ_from_themselves() -> None:
    votes, gold = simulated_votes([0.9, 0.85], items=300)
    model = learn(votes, gold, replace(PROMISING, max_error=None)).model
    assert not the(check_drift(model, votes, [f"text {row}" for row in range(300)])).found


def test_p_values_are_those_of_scipy_with_many_ties() -> None:
    rng = np.random.default_rng(1)
    for steps in (2, 3, 8, 1000):
        some, others = rng.integers(0, steps, 30) / 7, rng.integers(0, steps, 45) / 7 + rng.choice([0, 0.1])
        assert rank_sum(some, others) == pytest.approx(mannwhitneyu(some, others, method="asymptotic").pvalue)


def test_nothing_is_found_where_there_is_nothing_to_compare() -> None:
    assert rank_sum(np.zeros(0), np.ones(3)) == 1
    assert rank_sum(np.ones(4), np.ones(3)) == 1
