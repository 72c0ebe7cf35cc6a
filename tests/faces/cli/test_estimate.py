import json
from pathlib import Path

import pytest

from pcs_annotator import estimate
from pcs_annotator.base.errors import ConfigError
from pcs_annotator.faces.cli.main import main
from tests.simulated import copy_run
from tests.studies.estimating.made import run_with_groups


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_run(run_with_groups(tmp_path_factory), tmp_path_factory.mktemp("estimate") / "run")


def test_shares_are_printed_written_and_returned_alike(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["estimate", str(made), "--of", "good", "-o", str(tmp_path / "e.html")]) == 0
    printed = capsys.readouterr().out
    assert "95\u00a0% interval  naive  gold rows" in printed
    assert max(map(len, printed.splitlines())) <= 80 + len(str(tmp_path))
    assert main(["estimate", str(made), "--of", "good", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    (line,) = estimate(made, of=["good"]).lines
    assert values["estimates"][0]["corrected"]["value"] == line.corrected.value
    assert f"good {100 * line.corrected.value:.1f} " in " ".join(printed.split())
    assert values["sentences"][0].startswith(f"{100 * line.corrected.value:.1f} % of the 160 texts are good")
    assert '<h1><bdi dir="auto">Share of good</bdi></h1>' in (tmp_path / "e.html").read_text(encoding="utf-8")


def test_wrong_questions_have_exit_code_2(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["estimate", str(made), "--values", "good"]) == 2
    assert "--values good: must be LABEL=NUMBER" in capsys.readouterr().err
    assert main(["estimate", str(made), "--values", "good=1", "--values", "bad=0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "mean"
    assert main(["estimate", str(made), "--formula", "good ~ nope"]) == 2
    assert "neither a column nor a label" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="there is no setting 'groups'"):
        estimate(made, groups="party")


def test_gold_rows_are_foretold_and_drawn(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gold", str(made), "--width", ".05", "--difference", ".3", "--by", "party"]) == 0
    printed = capsys.readouterr().out
    assert "Gold rows for each goal" in printed
    assert all(goal in printed for goal in ("promise", "share", "difference", "regression", "finish"))
    assert main(["gold", str(made), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["gold_rows"] == 80
    assert main(["gold", str(made), "--n", "20", "--draw", "confidence"]) == 0
    assert "wrote 20 rows to" in capsys.readouterr().out
    assert main(["gold", str(made), "--n", "20", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 20
    assert main(["gold", str(made), "--n", "2000"]) == 2
    assert "texts have no gold label yet, and 2,000 are wanted" in capsys.readouterr().err


def test_other_choices_are_tried(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["estimate", str(made), "--robust", "--of", "good", "-o", str(tmp_path / "r.html")]) == 0
    assert "of 1 conclusion is the same under all 16 choices" in " ".join(capsys.readouterr().out.split())
    assert main(["estimate", str(made), "--robust", "--of", "good", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["quantities"][0]["name"] == "good"
