"""The tour with the real model, on a few rows, because the whole takes half a minute."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from pcs_annotator.faces.cli.demo import print_tour
from pcs_annotator.faces.cli.main import main
from pcs_annotator.faces.demo import tour as touring
from pcs_annotator.faces.demo.tour import STYLES, run_tour
from pcs_annotator.pipeline import resolve_config
from pcs_annotator.pipeline.models import missing_weights
from pcs_annotator.pipeline.resolve_config import flags_only

pytestmark = pytest.mark.skipif(
    bool(missing_weights(STYLES)), reason="the weights are not on this machine: pcs models pull embedded:smollm2"
)


ROWS = 10  # fewer give no figures


def test_the_tour_labels_every_row_shows_a_text_and_its_answers_and_the_verb_reuses_the_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One test, not three: the model takes many seconds, and each process of a parallel run would ask it again."""
    # Learning with auto takes seconds each time, and the tour does not depend on it.
    monkeypatch.setattr(resolve_config, "flags_only", lambda flags: flags_only(replace(flags, optimiser="lr")))
    tour = run_tour(tmp_path, progress=False, limit=ROWS)
    assert tour.unlabelled == 0
    assert tour.votes.annotators == STYLES
    right = [outcome.label == gold for outcome, gold in zip(tour.outcomes, tour.dataset.gold, strict=True)]
    assert len(right) == ROWS
    assert sum(right) > len(right) / 2

    print_tour(tour, Console(width=100, highlight=False))
    text = capsys.readouterr().out
    for words in (tour.outcomes[0].label or "", "labels in reverse order", "PCS:", "pcs run your.csv", "report.html"):
        assert words in text

    monkeypatch.setattr(touring, "run_tour", lambda out, progress: run_tour(out, progress=progress, limit=ROWS))
    assert main(["demo", "-o", str(tmp_path), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["calls"], shown["rows"]) == (0, ROWS)
    assert Path(shown["files"]["report"]).exists()
    assert main(["demo", "-o", str(tmp_path)]) == 0
    assert f"{ROWS} rows" in " ".join(capsys.readouterr().out.split())
