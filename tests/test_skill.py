"""The skill file for assistants: every command in it runs, and what it says about the output is there."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from pcs_annotator.faces.cli.ending import ExitCode
from pcs_annotator.faces.cli.main import main
from tests.simulated import simulated_models, truth_of, write_csv

SKILL = (Path(__file__).resolve().parents[1] / "examples" / "skill" / "SKILL.md").read_text(encoding="utf-8")


def test_the_header_says_when_to_use_it() -> None:
    header = SKILL.split("---\n")[1]
    assert re.fullmatch(r"name: [a-z-]+\ndescription: .{50,1000}\n", header)


def test_the_exit_codes_are_ours() -> None:
    assert {int(code) for code in re.findall(r"\| exit code (\d)", SKILL)} <= {int(code) for code in ExitCode}


@pytest.mark.system
def test_every_command_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"id": f"t{row}", "text": f"Case {row} looks {truth_of(row)}."} for row in range(60)]
    write_csv(Path("data.csv"), [{**row, "gold": truth_of(at) if at < 40 else ""} for at, row in enumerate(rows)])
    write_csv(Path("new.csv"), [{"text": f"Case {row} looks {truth_of(row)}."} for row in range(60, 70)])
    toml = re.search(r"```toml\n(.*?)```", SKILL, re.DOTALL)
    assert toml is not None
    models = 'models = ["simulated:large_1@85"]\n[relations]\nuse = ["original", "order"]\n'
    settings, asked = re.subn(r"models = .*\n", models, toml[1])
    assert asked == 1
    Path("pcs.toml").write_text(f"{settings}[learn]\nresamples = 10\nfolds = 3\n", encoding="utf-8")
    commands = re.findall(r"^ *\$ pcs (.*)$", SKILL, re.MULTILINE)
    assert len(commands) == 7
    answers: dict[str, Any] = {}
    with simulated_models():
        for command in commands:
            words = shlex.split(command)
            assert main(words) == 0, command
            out = capsys.readouterr().out
            if "--json" in words:
                answers[words[0]] = json.loads(out)
    assert {"calls", "usd", "models"} <= answers["plan"].keys()
    for command in ("run", "fit"):
        assert {"decisions", "certificate", "cross_validation", "look_at", "unanswered"} <= answers[command].keys()
        assert {"why_not", "audit", "rows_needed"} <= answers[command]["certificate"].keys()
    assert all("state" in job for job in answers["status"]["jobs"])
    assert {"decisions", "rows_without_label"} <= answers["label"].keys()
    assert Path("runs/data/to_label.csv").exists()
