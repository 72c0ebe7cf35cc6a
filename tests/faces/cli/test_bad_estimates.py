"""What gives no figure, because it would mislead: a message with a remedy, and exit code 2."""

from pathlib import Path

import pytest

from pcs_annotator.faces.cli.main import main
from tests.command_line import Pcs
from tests.simulated import copy_run, write_csv
from tests.studies.estimating.made import make_run, rows_with_groups, run_with_groups, truth


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_with_groups(tmp_path_factory)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("bare"), gold_rows=0, rows=100)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--probability", "zero"], "row 4, column 'zero': '0' is not a probability above 0 and up to 1: every gold"),
        (["--probability", "above"], "row 4, column 'above': '1.5' is not a probability above 0 and up to 1"),
        (["--by", "rare", "--of", "good"], "no group of 'rare' has 10 gold rows: draw more with pcs gold"),
        (["--formula", "good ~ nope"], "names 'nope', which is neither a column nor a label; there are id, text, gold"),
        (["--formula", "good ~ same"], "same of the formula is the same in all rows: leave it out"),
        (["--formula", "good ~ followers + twice"], "the columns of the formula are collinear"),
        (["--formula", "good ~ tells"], "some column tells the outcome perfectly (separation): leave that column out"),
        (["--formula", "good ~ followers", "--cluster", "ward"], "are from 7 groups of 'ward', and errors that rows"),
    ],
)
def test_questions_that_gold_rows_cannot_answer(made: Path, pcs: Pcs, arguments: list[str], why: str) -> None:
    assert why in pcs.refused("estimate", str(made), *arguments)


def test_no_gold_gold_of_one_label_and_gold_chosen_by_hand(
    bare: Path, tmp_path: Path, pcs: Pcs, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "has 0 gold rows, too few to learn from: draw 30 or more with pcs gold" in pcs.refused("estimate", str(bare))
    rows = rows_with_groups()[:100]
    good = [{"id": row["id"], "gold": "good"} for row in rows if truth(row) == "good"]
    for name, given, why in (
        ("one", good, f"all {len(good)} gold rows are 'good', so that nothing is known about other labels: draw more"),
        (
            "chosen",
            [{"id": row["id"], "gold": truth(row)} for row in rows[:50]],
            "there are 0 gold rows drawn at random (50 more were not drawn at random and cannot be used), and an",
        ),
    ):
        folder = copy_run(bare, tmp_path / name)
        file = write_csv(tmp_path / f"{name}.csv", given)
        assert main(["fit", str(folder), "--gold", str(file)]) == 0
        capsys.readouterr()
        assert why in pcs.refused("estimate", str(folder))


def test_one_coder_cannot_be_replaced(made: Path, pcs: Pcs) -> None:
    assert "labels of fewer than two coders: name their columns" in pcs.refused("evaluate", str(made), "--alt-test")
