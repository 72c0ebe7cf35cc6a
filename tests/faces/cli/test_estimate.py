from pathlib import Path

import pytest

from pcs_annotator import estimate
from pcs_annotator.base.errors import ConfigError
from tests.command_line import Pcs
from tests.simulated import copy_run
from tests.studies.estimating.made import run_with_groups


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_run(run_with_groups(tmp_path_factory), tmp_path_factory.mktemp("estimate") / "run")


def test_shares_are_printed_written_and_returned_alike(
    made: Path, tmp_path: Path, pcs: Pcs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    printed = pcs.out("estimate", made, "--of", "good", "-o", tmp_path / "e.html")
    assert "95\u00a0% interval  naive  gold rows" in printed
    assert max(map(len, printed.splitlines())) <= 80 + len(str(tmp_path))
    values = pcs.json("estimate", made, "--of", "good")
    (line,) = estimate(made, of=["good"]).lines
    assert values["estimates"][0]["corrected"]["value"] == line.corrected.value
    assert f"good {100 * line.corrected.value:.1f} " in " ".join(printed.split())
    assert values["sentences"][0].startswith(f"{100 * line.corrected.value:.1f} % of the 160 texts are good")
    title = f"{100 * line.corrected.value:.1f} % of the texts are good"
    assert f'<h1><bdi dir="auto">{title}</bdi></h1>' in (tmp_path / "e.html").read_text(encoding="utf-8")


def test_wrong_questions_have_exit_code_2(made: Path, pcs: Pcs) -> None:
    assert "--values good: must be LABEL=NUMBER" in pcs.refused("estimate", made, "--values", "good")
    assert pcs.json("estimate", made, "--values", "good=1", "--values", "bad=0")["kind"] == "mean"
    assert "neither a column nor a label" in pcs.refused("estimate", made, "--formula", "good ~ nope")
    with pytest.raises(ConfigError, match="there is no setting 'groups'"):
        estimate(made, groups="party")


def test_gold_rows_are_foretold_and_drawn(made: Path, pcs: Pcs) -> None:
    printed = pcs.out("gold", made, "--width", ".05", "--difference", ".3", "--by", "party")
    assert "Gold rows for each goal" in printed
    assert all(goal in printed for goal in ("promise", "share", "difference", "regression", "finish"))
    assert pcs.json("gold", made)["gold_rows"] == 80
    assert "wrote 20 rows to" in pcs.out("gold", made, "--n", "20", "--draw", "confidence")
    assert pcs.json("gold", made, "--n", "20")["rows"] == 20
    assert "texts have no gold label yet, and 2,000 are wanted" in pcs.refused("gold", made, "--n", "2000")


def test_other_choices_are_tried(made: Path, tmp_path: Path, pcs: Pcs) -> None:
    assert "of 1 conclusion is the same under all 16 choices" in pcs(
        "estimate", made, "--robust", "--of", "good", "-o", tmp_path / "r.html"
    )
    assert pcs.json("estimate", made, "--robust", "--of", "good")["quantities"][0]["name"] == "good"


def test_enough_gold_rows_need_no_table(pcs: Pcs, made: Path) -> None:
    assert pcs.out("gold", made, "--goal", "share", "--width", ".3") == "You have 80 gold rows; 30 are enough.\n"
