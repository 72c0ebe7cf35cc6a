import json
from pathlib import Path

import pytest

from pcs_annotator.faces.cli.main import main
from tests.command_line import Pcs
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


def test_rows_go_to_label_studio_and_answers_come_back(folder: Path, tmp_path: Path, pcs: Pcs) -> None:
    out = tmp_path / "tasks.json"
    shown = pcs.out("exchange", "export", folder, "label-studio", "-o", out, "--decision", "all")
    assert f"30 rows written to {out}" in shown
    assert f"paste {tmp_path / 'tasks.xml'}" in shown
    assert '<Choice value="good" hotkey="1" />' in (tmp_path / "tasks.xml").read_text(encoding="utf-8")
    shown = pcs.out("exchange", "import", folder, "label-studio", str(answer(out)))
    assert "30 new verdicts by label-studio:7 (30); rows skipped: 1" in shown
    assert f"pcs fit {folder} learns from them" in shown
    assert "no new answers in" in (
        shown := pcs.out("exchange", "import", folder, "label-studio", tmp_path / "answers.json")
    )
    assert f"30 answers in {tmp_path / 'answers.json'} had been read before" in shown


def test_json_says_the_same(folder: Path, tmp_path: Path, pcs: Pcs, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "records.json"
    options = ["--queue", "random", "--rows", "4", "--json"]
    assert main(["exchange", "export", str(folder), "label-studio", "-o", str(out), *options]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {"rows": 4, "file": str(out), "settings": str(tmp_path / "records.xml")}
    assert pcs.json("exchange", "import", folder, "label-studio", out) == {
        "verdicts": 0,
        "skipped": 0,
        "known": 0,
        "reviewers": {},
    }


def test_what_the_user_can_fix_is_said_in_a_sentence(folder: Path, tmp_path: Path, pcs: Pcs) -> None:
    other = tmp_path / "other.json"
    other.write_text('[{"id": 5, "data": {"image": "x.jpg"}, "annotations": []}]', encoding="utf-8")
    assert "other.json, task 5 has no pcs_id" in pcs.refused("exchange", "import", folder, "label-studio", other)
    both = ["--queue", "random", "--decision", "review"]
    assert "leave out one of --queue and --decision" in pcs.refused(
        "exchange", "export", folder, "label-studio", "-o", tmp_path / "x.json", *both
    )
