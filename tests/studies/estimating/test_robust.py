from pathlib import Path

import pytest

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.result_table import Figure
from pcs_annotator.core.weights import Interval
from pcs_annotator.studies.estimating import robust as module
from pcs_annotator.studies.estimating.answering import answer, estimate_run
from pcs_annotator.studies.estimating.answers import EstimateQuestion
from pcs_annotator.studies.estimating.robust import (
    Robust,
    Specification,
    robust,
    robust_page,
    robust_sentences,
    robust_table,
)
from tests.simulated import MODELS
from tests.studies.estimating.made import keep_a_sample, make_run, run_with_groups


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_with_groups(tmp_path_factory)


def test_the_run_s_own_choice_gives_the_run_s_own_estimate(made: Path, tmp_path: Path) -> None:
    question = EstimateQuestion(by="party", of=["good"])
    found = robust(made, question)
    assert [one.name for one in found] == ["good · b − a", "good · c − a", "good · c − b"]
    ours = estimate_run(made, question).differences
    assert [one.made.corrected.value for one in found] == pytest.approx([line.corrected.value for line in ours])
    choices = [one.choice for one in found[0].specifications]
    assert choices[0] == "all models · all relations · lr"
    assert len(set(choices)) == len(choices) == (1 + len(MODELS)) * 2 * 2
    assert "small@65 · original · uniform" in choices
    (tmp_path / "r.html").write_text(robust_page(found), encoding="utf-8")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "all models · all relations · lr (this run)" in page
    assert "percentage points" in page
    assert page.count('class="dot ring"') == len(choices) * len(found)
    assert found[0].shown(-0.318) == "−31.8"
    assert len(robust_table(found[0]).rows) == len(choices)


def test_no_more_choices_than_the_limit(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CHOICES", 2)
    (found,) = robust(made, EstimateQuestion(of=["good"]))
    assert len(found.specifications) == 2
    assert found.reference == 0.5


def test_choices_under_which_nothing_can_be_estimated_are_counted(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pcs_annotator.base.errors import UndefinedMetric

    answered = answer
    calls: list[int] = []

    def sometimes(*given: object) -> object:
        calls.append(1)
        if len(calls) == 2:
            raise UndefinedMetric("separation")
        return answered(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "answer", sometimes)
    monkeypatch.setattr(module, "MOST_CHOICES", 3)
    (found, *_) = robust(made, EstimateQuestion(formula="good ~ party"))
    assert (len(found.specifications), found.left_out) == (2, 1)
    assert "Under 1 more choice it could not be estimated." in robust_sentences(found)


def specification(low: float, high: float, naive: float) -> Specification:
    figure = Figure((low + high) / 2, Interval(low, high))
    return Specification(("one", "original", "lr"), figure, Figure(naive, Interval(naive - 0.1, naive + 0.1)))


def test_flips_are_counted_against_the_run_s_corrected_estimate() -> None:
    made = specification(0.1, 0.3, -0.5)
    others = [made, specification(-0.1, 0.4, 0.05), specification(-0.4, -0.1, 0.5), specification(0.05, 0.2, 0.2)]
    found = Robust(name="x", reference=0.0, made=made, specifications=others)
    assert found.flips("corrected") == (0.25, 0.5)
    assert found.flips("naive") == (0.25, 0.5)
    assert found.to_dict()["flips"]["naive"] == {"sign": 0.25, "conclusion": 0.5}


def test_large_tables_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_a_sample(monkeypatch, 50)
    folder = make_run(tmp_path, gold_rows=40, rows=80)
    with pytest.raises(ConfigError, match="is the run of a large table: use a run of a random sample of it"):
        robust(folder, EstimateQuestion())
