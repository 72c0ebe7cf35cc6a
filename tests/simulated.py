"""Runs with models that are right with a given probability: real run folders, made in process and free of charge."""

import csv
import re
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from math import log
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest

from pcs_annotator import RunResult
from pcs_annotator.core.chat import ChatModel, Reply, Request, TokenPosition
from pcs_annotator.models.provider import providers
from pcs_annotator.models.scripted import DEFINE, ScriptedModel, defined
from pcs_annotator.reviewing.session import Review
from pcs_annotator.reviewing.values import Given, ReviewOptions
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.settings import AskSettings, Config, LearnSettings, RelationSettings, TaskSettings
from pcs_annotator.tables.files import read_json, write_json
from pcs_annotator.verbs import label as labelling
from pcs_annotator.verbs import run as running
from tests.made_once import made_once
from tests.stub.behaviour import pick

MODELS = ("simulated:large@85", "simulated:middle@75", "simulated:small@65")
RELATIONS = ("original", "frame")
# the texts of simulated runs say their label, which a model of the texts would read off
QUICK = LearnSettings(optimiser="lr", text=False, folds=3, resamples=5, max_error=0.1)
TRUTH = re.compile(r"looks (good|bad)")


def run(request: RunRequest) -> RunResult:
    """Run, and return the result of the only variable."""
    return running.run(request).only


def label(*arguments: Any) -> labelling.Labelled:
    """Label new texts, and return the labels of the only variable."""
    return labelling.label(*arguments).only


class SimulatedProvider:
    """Opens `simulated:NAME@PERCENT`: right on that percentage of texts, the same ones every time.

    Models that grade their answers are more or less sure of them, mostly more of those that are right.
    """

    def __init__(self, graded: Collection[str] = ()) -> None:
        self.graded = graded

    def open(self, model: str, environment: Mapping[str, str]) -> ChatModel:
        _, _, percent = model.partition("@")

        def answer(request: Request) -> str | Reply:
            asked = request.messages[-1].content
            if DEFINE in asked:
                return defined(asked)
            found = TRUTH.search(asked)
            truth = found.group(1) if found else "bad"
            right = pick(100, model, asked) < int(percent)
            label = truth if right else {"good": "bad", "bad": "good"}[truth]
            if request.logprobs:
                sure = (55 + pick(40 if right else 20, model, asked, "sure")) / 100
                tokens = tuple((name, log(sure if name == label else 1 - sure)) for name in ("good", "bad"))
                return Reply(text=label, logprobs=(TokenPosition(label, tokens),))
            return label if request.constraint is not None else f"<label>{label}</label>"

        name = f"simulated:{model}"
        return ScriptedModel(answer, name=name, can_grade=name in self.graded)


@contextmanager
def simulated_models(graded: Collection[str] = ()) -> Iterator[None]:
    """Register `simulated:…` within the block; some models may grade their answers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(providers._factories, "simulated", lambda: SimulatedProvider(graded))
        yield


def truth_of(row: int) -> str:
    """Return the true label of a text."""
    return "good" if pick(2, "truth", str(row)) else "bad"


def write_texts(
    path: Path, rows: Sequence[int], gold_rows: int = 0, truths: Sequence[str] = (), coders: Sequence[str] = ()
) -> Path:
    """Write texts with these numbers; the first `gold_rows` have gold, of coders who differ on the first if named."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text", *([f"gold_{name}" for name in coders] or ["gold"])])
        for place, row in enumerate(rows):
            truth = truths[place] if truths else truth_of(row)
            given = [truth if place < gold_rows else ""] * max(len(coders), 1)
            if coders and place == 0:
                given[-1] = {"good": "bad", "bad": "good"}[truth]
            writer.writerow([f"t{row}", f"Case {row} looks {truth}.", *given])
    return path


def simulated_run(
    folder: Path,
    *,
    rows: int = 240,
    gold_rows: int = 150,
    learn: LearnSettings = QUICK,
    graded: Collection[str] = (),
    models: Sequence[str] = MODELS,
    coders: Sequence[str] = (),
) -> RunResult:
    """Label simulated texts; the run folder is `folder / "run"`."""
    data = write_texts(folder / "data.csv", range(rows), gold_rows, coders=coders)
    with simulated_models(graded):
        return run(RunRequest(data=data, folder=folder / "run", config=simulated_config(learn, models)))


def simulated_once(factory: pytest.TempPathFactory, rows: int, gold_rows: int) -> Path:
    """Return the folder of such a run that is made once for all tests, which copy it or only read it."""
    make = partial(simulated_run, rows=rows, gold_rows=gold_rows)
    return made_once(factory, f"simulated-{rows}-{gold_rows}", make) / "run"


def simulated_config(learn: LearnSettings = QUICK, models: Sequence[str] = MODELS) -> Config:
    """Return the settings of a simulated run."""
    return Config(
        task=TaskSettings(labels=("good", "bad")),
        ask=AskSettings(models=tuple(models)),
        relations=RelationSettings(use=RELATIONS),
        learn=learn,
    )


def few_resamples(folder: Path) -> Path:
    """Write a `pcs.toml` for runs whose intervals nobody reads."""
    path = folder / "pcs.toml"
    path.write_text("[learn]\nresamples = 5\n", encoding="utf-8")
    return path


def copy_run(made: Path, to: Path) -> Path:
    """Copy a run folder as if nobody had tested its gold labels yet."""
    shutil.copytree(made, to)
    (to / "levels.json").unlink(missing_ok=True)
    for path in (to / "variables").rglob("*.json"):
        if (values := read_json(path)).pop("tested", None):
            write_json(path, values)
    return to


def move_run(made: Path, to: Path) -> Path:
    """Copy a run folder as if it had been moved, with its tests of gold labels."""
    shutil.copytree(made, to)
    levels = {**read_json(to / "levels.json")}
    moved = {"run": token_hex(8), "place": str(to.resolve())}
    write_json(to / "levels.json", {part: {**levels[part], **moved} for part in levels if part != "schema"})
    return to


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


def audited(folder: Path, right: Callable[[int], bool], rows: int = 60) -> None:
    """Give verdicts on accepted rows in a review: some say that the label is right, the others name another one."""
    with Review.open(folder, ReviewOptions(refit_every=0, blind=False)) as review:
        for place in range(rows):
            shown = review.next_row("Ann", "audit")
            assert shown is not None
            assert shown.outcome is not None
            found = shown.outcome.label
            label = found if right(place) else next(one for one in review.labels if one != found)
            lease, version = shown.lease, shown.version
            review.submit(Given(id=shown.id, label=label, reviewer="Ann", queue="audit", lease=lease, version=version))
