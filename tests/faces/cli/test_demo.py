"""The tour, on a few rows, because the whole takes a minute with the real model."""

from collections.abc import Mapping
from importlib.resources import as_file, files
from math import log
from pathlib import Path

import pytest
from rich.console import Console

from pcs_annotator.core.chat import ChatModel, Reply, Request, TokenPosition
from pcs_annotator.faces.cli import demo
from pcs_annotator.faces.cli.demo import LABELS, STYLES, run_tour, tour_shown
from pcs_annotator.models.provider import providers
from pcs_annotator.models.scripted import ScriptedModel
from pcs_annotator.runs import resolve_config
from pcs_annotator.runs.resolve_config import settings_of
from pcs_annotator.showing import to_terminal
from pcs_annotator.verbs.models import missing_weights
from tests.command_line import Pcs
from tests.simulated import read_csv
from tests.stub.behaviour import pick

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(
        bool(missing_weights(STYLES)), reason="the weights are not on this machine: pcs models pull embedded:smollm2"
    ),
]


ROWS = 12  # fewer give no figures


class ScriptedProvider:
    """Opens `embedded:…` in the real model's place: graded answers, most of them right."""

    def open(self, model: str, environment: Mapping[str, str]) -> ChatModel:
        return ScriptedModel(graded_answer, name=f"embedded:{model}", can_grade=True)


def graded_answer(request: Request) -> Reply:
    with as_file(files("pcs_annotator.faces.demo") / "news.csv") as data:
        topics = {row["text"]: row["topic"] for row in read_csv(data)}
    asked = request.messages[-1].content
    topic = next(topic for text, topic in topics.items() if text in asked) or "world"
    sure = 0.4 + pick(50, asked) / 100
    tokens = tuple((label, log(sure if label == topic else (1 - sure) / 3)) for label in LABELS)
    return Reply(text=topic, logprobs=(TokenPosition(topic, tokens),))


@pytest.fixture(params=["scripted", pytest.param("real", marks=pytest.mark.slow)])
def model(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real model takes half a minute; that its answers are right and graded is tested where it is defined."""
    if request.param == "scripted":
        monkeypatch.setitem(providers._factories, "embedded", ScriptedProvider)


@pytest.mark.usefixtures("model")
def test_the_tour_labels_every_row_shows_a_text_and_its_answers_and_the_verb_reuses_the_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pcs: Pcs, capsys: pytest.CaptureFixture[str]
) -> None:
    """One test, not three: each process of a parallel run would ask the model again."""
    # Learning with auto takes seconds each time, and the tour does not depend on it.
    monkeypatch.setattr(resolve_config, "settings_of", lambda given: settings_of({**given, "optimiser": "lr"}))
    tour = run_tour(tmp_path, progress=False, limit=ROWS)
    assert tour.unlabelled == 0
    assert tour.votes.annotators == STYLES
    right = [outcome.label == gold for outcome, gold in zip(tour.outcomes, tour.dataset.gold, strict=True) if gold]
    assert len(right) == ROWS - ROWS // 4
    assert sum(right) > len(right) / 2

    to_terminal.show(*tour_shown(tour), console=Console(width=100, highlight=False))
    text = capsys.readouterr().out
    for words in (
        tour.outcomes[0].label or "",
        "labels in reverse order",
        "PCS:",
        "pcs run your.csv",
        "pcs fit",
        "report.html",
    ):
        assert words in text

    monkeypatch.setattr(demo, "run_tour", lambda out, progress: run_tour(out, progress=progress, limit=ROWS))
    shown = pcs.json("demo", "-o", tmp_path)
    assert (shown["calls"], shown["rows"]) == (0, ROWS)
    assert Path(shown["files"]["report"]).exists()
    assert f"{ROWS} rows" in pcs("demo", "-o", tmp_path)
