"""Runs with models that are right with a given probability: real run folders, made in process and free of charge."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from pcs_annotator.asking.models.provider import providers
from pcs_annotator.asking.models.scripted import ScriptedModel
from pcs_annotator.core.chat import ChatModel, Request
from pcs_annotator.files.config import AskSettings, Config, LearnSettings, RelationSettings, TaskSettings
from pcs_annotator.pipeline.run import RunRequest, run
from pcs_annotator.pipeline.run_folder import RunResult
from tests.stub.behaviour import pick

MODELS = ("simulated:large@85", "simulated:middle@75", "simulated:small@65")
RELATIONS = ("original", "frame")
QUICK = LearnSettings(optimiser="lr", folds=3, resamples=5, max_error=0.1)
TRUTH = re.compile(r"looks (good|bad)")


class SimulatedProvider:
    """Opens `simulated:NAME@PERCENT`: right on that percentage of texts, the same ones every time."""

    def open(self, model: str, environment: Mapping[str, str]) -> ChatModel:
        _, _, percent = model.partition("@")

        def answer(request: Request) -> str:
            asked = request.messages[-1].content
            found = TRUTH.search(asked)
            truth = found.group(1) if found else "bad"
            right = pick(100, model, asked) < int(percent)
            label = truth if right else {"good": "bad", "bad": "good"}[truth]
            return label if request.constraint is not None else f"<label>{label}</label>"

        return ScriptedModel(answer, name=f"simulated:{model}")


@contextmanager
def simulated_models() -> Iterator[None]:
    """Register `simulated:…` within the block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(providers._factories, "simulated", SimulatedProvider)
        yield


def truth_of(row: int) -> str:
    """Return the true label of a text."""
    return "good" if pick(2, "truth", str(row)) else "bad"


def write_texts(path: Path, rows: Sequence[int], gold_rows: int = 0, truths: Sequence[str] = ()) -> Path:
    """Write texts with these numbers; the first `gold_rows` have gold."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text", "gold"])
        for place, row in enumerate(rows):
            truth = truths[place] if truths else truth_of(row)
            writer.writerow([f"t{row}", f"Case {row} looks {truth}.", truth if place < gold_rows else ""])
    return path


def simulated_run(folder: Path, *, rows: int = 240, gold_rows: int = 150, learn: LearnSettings = QUICK) -> RunResult:
    """Label simulated texts; the run folder is `folder / "run"`."""
    config = Config(
        task=TaskSettings(labels=("good", "bad")),
        ask=AskSettings(models=MODELS),
        relations=RelationSettings(use=RELATIONS),
        learn=learn,
    )
    data = write_texts(folder / "data.csv", range(rows), gold_rows)
    with simulated_models():
        return run(RunRequest(data=data, folder=folder / "run", config=config))


def read_csv(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_csv(path: Path, rows: Sequence[Mapping[str, str]]) -> Path:
    """Write rows as a table; all have the columns of the first."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path
