"""The tour with the real model; a few rows of it, for the whole takes half a minute."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from pcs_annotator.faces.cli import demo
from pcs_annotator.faces.cli.main import main
from pcs_annotator.faces.demo.tour import STYLES, print_tour, run_tour
from pcs_annotator.pipeline.models import missing_weights
from pcs_annotator.pipeline.run import RunResult

pytestmark = pytest.mark.skipif(
    bool(missing_weights(STYLES)), reason="the weights are not on this machine: pcs models pull embedded:smollm2"
)


@pytest.fixture(scope="module")
def tour(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    return run_tour(tmp_path_factory.mktemp("tour"), progress=False, limit=12)


def test_the_small_model_labels_every_row(tour: RunResult) -> None:
    assert tour.unlabelled == 0
    assert tour.votes.annotators == STYLES
    right = [outcome.label == gold for outcome, gold in zip(tour.outcomes, tour.dataset.gold, strict=True)]
    assert sum(right) > len(right) / 2


def test_the_tour_shows_a_text_with_its_rewrites_and_what_to_type_next(
    tour: RunResult, capsys: pytest.CaptureFixture[str]
) -> None:
    print_tour(tour, Console(width=100, highlight=False))
    text = capsys.readouterr().out
    for words in ("One text, as the models saw it", "double-negation", "PCS:", "pcs run your.csv", "report.html"):
        assert words in text


def test_the_whole_verb_runs_on_what_the_ledger_holds(
    tour: RunResult, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tour.folder.path
    monkeypatch.setattr(demo, "run_tour", lambda out, progress: run_tour(out, progress=progress, limit=12))
    assert main(["demo", "-o", str(folder), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["calls"], shown["rows"]) == (0, 12)
    assert Path(shown["files"]["report"]).exists()
    assert main(["demo", "-o", str(folder)]) == 0
    assert "What it gained" in capsys.readouterr().out
