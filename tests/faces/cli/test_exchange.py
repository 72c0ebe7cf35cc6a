from __future__ import annotations

import json
from pathlib import Path

import pytest

from pcs_annotator.faces.cli.main import main
from tests.simulated import copy_run, simulated_run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exchange")
    simulated_run(folder, rows=30, gold_rows=12)
    return folder / "run"


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return copy_run(made, tmp_path / "run")


def answer(path: Path) -> Path:
    """Answer all tasks of a file as people in Label Studio do, one of them by skipping it."""
    tasks = json.loads(path.read_text(encoding="utf-8"))
    for number, task in enumerate(tasks):
        chosen = {"from_name": "label", "to_name": "text", "type": "choices", "value": {"choices": ["good"]}}
        given = {"completed_by": 7, "result": [chosen], "was_cancelled": number == 0, "lead_time": 3.0}
        task["annotations"] = [{**given, "updated_at": "2026-03-09T22:16:08Z"}]
    path = path.with_name("answers.json")
    path.write_text(json.dumps(tasks), encoding="utf-8")
    return path


def test_rows_go_to_label_studio_and_answers_come_back(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "tasks.json"
    assert main(["exchange", "export", str(folder), "label-studio", "-o", str(out), "--decision", "all"]) == 0
    shown = capsys.readouterr().out
    assert f"30 rows written to {out}" in shown
    assert f"paste {tmp_path / 'tasks.xml'}" in shown
    assert '<Choice value="good" hotkey="1" />' in (tmp_path / "tasks.xml").read_text(encoding="utf-8")
    assert main(["exchange", "import", str(folder), "label-studio", str(answer(out))]) == 0
    shown = capsys.readouterr().out
    assert "30 new verdicts by label-studio:7 (30); rows skipped: 1" in shown
    assert f"pcs fit {folder} learns from them" in shown
    assert main(["exchange", "import", str(folder), "label-studio", str(tmp_path / "answers.json")]) == 0
    assert "no new answers in" in (shown := capsys.readouterr().out)
    assert f"30 answers in {tmp_path / 'answers.json'} had been read before" in shown


def test_json_says_the_same(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "records.json"
    options = ["--queue", "random", "--rows", "4", "--json"]
    assert main(["exchange", "export", str(folder), "label-studio", "-o", str(out), *options]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {"rows": 4, "file": str(out), "settings": str(tmp_path / "records.xml")}
    assert main(["exchange", "import", str(folder), "label-studio", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"verdicts": 0, "skipped": 0, "known": 0, "reviewers": {}}


def test_what_the_user_can_fix_is_said_in_a_sentence(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.json"
    other.write_text('[{"id": 5, "data": {"image": "x.jpg"}, "annotations": []}]', encoding="utf-8")
    assert main(["exchange", "import", str(folder), "label-studio", str(other)]) == 2
    assert "other.json, task 5 has no pcs_id" in capsys.readouterr().err
    both = ["--queue", "random", "--decision", "review"]
    assert main(["exchange", "export", str(folder), "label-studio", "-o", str(tmp_path / "x.json"), *both]) == 2
    assert "leave out one of --queue and --decision" in capsys.readouterr().err
