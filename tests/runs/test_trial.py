"""A trial of both ways to ask about the variables of a codebook: what is asked, what is chosen, and what is kept."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from pcs_annotator.core.chat import ChatModel, Request
from pcs_annotator.faces.cli.main import main
from pcs_annotator.models.provider import providers
from pcs_annotator.models.scripted import ScriptedModel
from pcs_annotator.runs.trial import compared, loses
from tests.stub.behaviour import pick

pytestmark = pytest.mark.system

VARIABLES = {
    "topic": ("economy", "health", "sport"),
    "tone": ("warm", "cold"),
    "frames": ("conflict", "morality"),
}
CONFIG = """
[ask]
models = ["twoway:{model}"]

[relations]
use = ["original", "order"]

[learn]
optimiser = "majority"
text = false

[variables.topic]
labels = ["economy", "health", "sport"]

[variables.tone]
labels = ["warm", "cold"]

[variables.frames]
kind = "many"
labels = ["conflict", "morality"]
"""


def truth(row: int, name: str) -> str:
    return VARIABLES[name][pick(len(VARIABLES[name]), name, str(row))]


class TwoWayProvider:
    """Opens `twoway:PERCENT`, which is right about `tone` on that percentage of texts if it is asked together."""

    def open(self, model: str, environment: object) -> ChatModel:
        def answer(request: Request) -> str:
            asked = "\n".join(message.content for message in request.messages)
            if "no answer" in asked:
                return ""
            row = int(re.findall(r"Text (\d+)", asked)[-1])
            names = [name for name in VARIABLES if f"<{name}>:" in asked]
            if not names:
                name = "topic" if "economy" in asked else "tone"
                return f"<label>{truth(row, name)}</label>"
            said = {name: truth(row, name) for name in names}
            if len(names) > 1 and pick(100, "tone", str(row), asked[:200]) >= int(model):
                said["tone"] = VARIABLES["tone"][1 - VARIABLES["tone"].index(said["tone"])]
            return "\n".join(f"<{name}>{label}</{name}>" for name, label in said.items())

        return ScriptedModel(answer, name=f"twoway:{model}")


@pytest.fixture(autouse=True)
def provider(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(providers._factories, "twoway", TwoWayProvider)
    monkeypatch.chdir(tmp_path)


def write(model: str, gold: int, rows: int = 60) -> None:
    Path("pcs.toml").write_text(CONFIG.format(model=model))
    lines = ["text,topic,tone"]
    for row in range(rows):
        known = f"{truth(row, 'topic').upper()},{truth(row, 'tone')}" if row >= rows - gold else ","
        lines.append(f"Text {row},{known}")
    Path("data.csv").write_text("\n".join(lines) + "\n")


def ran(capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, object]:
    assert main(["run", "data.csv", "--trial", "30", "--json", *more]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def calls() -> int:
    with sqlite3.connect("runs/data/ledger.db") as ledger:
        (count,) = ledger.execute("SELECT COUNT(*) FROM calls").fetchone()
    return int(count)


def kept() -> dict[str, object]:
    found: dict[str, object] = json.loads(Path("runs/data/codebook.json").read_text())
    return found


def together_in(part: str) -> bool:
    return bool(json.loads(Path("runs/data", part, "run.json").read_text())["config"]["ask"]["together"])


@pytest.mark.parametrize("gold", [60, 0])
def test_one_call_is_kept_if_no_variable_loses(gold: int, capsys: pytest.CaptureFixture[str]) -> None:
    write("100", gold)
    said = str(ran(capsys)["trial"])
    right = "; right 100 % together, 100 % separately" if gold else ""
    assert said.startswith(f"together: on 30 texts asked both ways ({150 if gold else 210} calls), no variable loses ")
    assert f"(topic: 100 % the same{right}); one call takes" in said
    found = json.loads(Path("runs/data/codebook.json").read_text())["trial"]["variables"]
    assert found["tone"] == ([1.0, 1.0, 1.0] if gold else [1.0])
    assert re.search(r"one call takes \d\d % of the tokens of 3$", said)
    # 60 texts in two orders in one call, and of the trial 30 with a call for each of three variables, in two orders
    # where there is no gold
    assert calls() == 120 + (120 if gold else 180)
    assert together_in("topic")
    assert together_in("frames/conflict")


@pytest.mark.parametrize("gold", [60, 0])
def test_a_variable_that_loses_is_named_and_all_are_asked_separately(
    gold: int, capsys: pytest.CaptureFixture[str]
) -> None:
    write("0" if not gold else "50", gold)
    said = str(ran(capsys)["trial"])
    assert said.startswith(
        f"separately: on 30 texts asked both ways ({150 if gold else 210} calls), one call is worse for tone: "
    )
    assert "topic" not in said
    if gold:
        (joint,) = re.findall(r"right (\d+) % together, 100 % separately", said)
        assert 25 <= int(joint) <= 75
    else:
        assert said.endswith("tone: 0 % the same")
    assert not together_in("tone")
    # 60 texts in two orders for each of three variables, and of the trial 30 in one call
    assert calls() == 360 + 30


def test_the_choice_stays_with_the_folder_until_models_or_variables_change(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write("50", 60)
    first, before = ran(capsys)["trial"], calls()
    with monkeypatch.context() as patched:
        patched.setattr("pcs_annotator.verbs.codebook.try_both", None)  # must not be called
        assert ran(capsys)["trial"] == first
    assert calls() == before
    assert main(["run", "data.csv", "--replace", "--trial", "30", "--model", "twoway:100", "-q"]) == 0
    assert "together" in str(kept()["trial"])
    assert together_in("tone")


def test_a_trial_that_could_not_be_finished_is_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    write("100", 0)
    assert main(["run", "data.csv", "--trial", "30", "--max-calls", "20", "-q"]) != 0
    assert "trial" not in kept()
    ran(capsys)
    assert "trial" in kept()


def test_nothing_is_tried_where_there_is_no_choice(capsys: pytest.CaptureFixture[str]) -> None:
    write("50", 0)
    assert ran(capsys, "--separately")["trial"] is None
    assert calls() == 360
    config = Path("pcs.toml").read_text()
    Path("pcs.toml").write_text(config.partition("[variables.tone]")[0])
    assert ran(capsys, "-o", "runs/one")["trial"] is None


def test_the_choice_is_shown_in_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    write("50", 60)
    assert main(["run", "data.csv", "--trial", "30"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"asked +separately: on 30 texts asked both ways \(150 calls\)", said)
    assert len(said.strip().splitlines()) <= 15


def test_a_plan_shows_the_price_of_both_ways_and_of_the_trial(capsys: pytest.CaptureFixture[str]) -> None:
    write("50", 0)

    def planned(*more: str) -> dict[str, int]:
        assert main(["plan", "data.csv", "--json", *more]) == 0
        found = json.loads(capsys.readouterr().out)
        others = {option: one["calls"] for option, one in found["alternatives"].items()}
        return {"": found["calls"], **others}

    assert planned() == {"": 120, "--separately": 360, "--trial 30": 300}
    assert planned("--trial", "10") == {"": 180, "--separately": 360, "without --trial": 120}
    assert planned("--separately") == {"": 360, "without --separately": 120}


def against(error: float, *, gold: bool) -> float:
    """The share of trials that choose to ask separately if one call has this share of other answers, not 20 %."""
    rng = np.random.default_rng(3)
    times = 0
    for _ in range(300):
        right = rng.integers(0, 3, (30, 3))
        errors = (error, 0.2) if gold else (error, 0.2, 0.2)
        ways = [np.where(rng.random((30, 3)) < wrong, (right[:, :1] + 1) % 3, right[:, :1]) for wrong in errors]
        truth_or_not = right[:, 0] if gold else np.full(30, -1)
        times += loses(compared(np.stack(ways, axis=2).astype(np.int16), truth_or_not)[1])
    return times / 300


@pytest.mark.parametrize(("gold", "noticed"), [(True, 0.95), (False, 0.5)])
def test_chance_alone_seldom_speaks_against_one_call_and_large_losses_do(gold: bool, noticed: float) -> None:
    assert against(0.2, gold=gold) <= 0.05
    assert against(0.5, gold=gold) >= noticed
