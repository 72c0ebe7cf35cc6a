from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pcs_annotator.judging.spending.frugal import Spending
from pcs_annotator.pipeline.report.page import render
from tests.pipeline.report.reading import section
from tests.pipeline.report.results import Made, made_run


def test_the_share_of_questions_is_shown_per_model_and_per_relation(tmp_path: Path) -> None:
    result = made_run(tmp_path)
    spending = Spending(0.42, {"model-0": 0.9, "model-1": 0.25}, {"original": 1.0, "voice": 0.375})
    text = section(render(replace(result, learned=replace(result.learned, spending=spending))), "saved")
    assert "42 % of all questions" in text
    assert "model-0 90 % model-1 25 %" in text
    assert "original 100 % voice 38 %" in text


def test_a_run_measures_the_share_of_questions(tmp_path: Path) -> None:
    spending = made_run(tmp_path).learned.spending
    assert spending is not None
    assert 0 < spending.questions <= 1
    assert spending.by_annotator.keys() == {"model-0", "model-1"}


@pytest.mark.parametrize("made", [Made(gold=False), Made(rows=5)])
def test_without_a_confidence_the_savings_are_unknown(made: Made, tmp_path: Path) -> None:
    assert "at least 10 gold rows" in section(render(made_run(tmp_path, made)), "saved")
