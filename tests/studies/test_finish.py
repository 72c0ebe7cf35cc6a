from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from pcs_annotator.base.errors import ConfigError, GoldError
from pcs_annotator.faces.cli.main import pcs
from pcs_annotator.runs.gold import FromPeople
from pcs_annotator.runs.review.session import Review
from pcs_annotator.studies.finish import finish
from pcs_annotator.verbs.fit import fit_run
from tests.simulated import copy_run, move_run, read_csv, truth_of, write_csv


@pytest.fixture
def folder(promising_run: Path, tmp_path: Path) -> Path:
    return move_run(promising_run, tmp_path / "run")


def test_people_label_the_rest_and_the_whole_table_keeps_the_promise(folder: Path) -> None:
    first = finish(folder, 0.03)
    assert first.out is None
    assert (first.rows, first.gold_rows) == (260, 150)
    assert 0 < first.left < 110  # of the rows without gold
    waiting = read_csv(folder / "to_label.csv")
    assert len(waiting) == first.left
    with Review.open(folder) as review:
        shown = review.next_row("Ann", "doubtful")
    assert shown is not None
    assert shown.id == waiting[0]["id"]
    assert finish(folder, 0.03) == first  # asked again, nothing changes
    filled = [{"id": row["id"], "gold": truth_of(int(row["id"][1:]))} for row in waiting]
    fit_run(folder, None, FromPeople(gold=write_csv(folder / "filled.csv", filled)))
    last = finish(folder, 0.03)
    assert last.left == 0
    assert last.out is not None
    table = read_csv(last.out)
    wrong = sum(row["final_label"] != truth_of(int(row["id"][1:])) for row in table)
    assert wrong <= 7
    assert {row["labelled_by"] for row in table} == {"machine", "person"}
    again = finish(folder, 0.03, again=True)  # uses fewer errors, and more gold
    assert again.gold_rows == 150


def test_a_stricter_promise_takes_more_rows(folder: Path) -> None:
    assert finish(folder, 0.03).by_people > finish(folder, 0.2).by_people


def test_what_cannot_be_promised_is_said_with_the_remedy(small_run: Path, tmp_path: Path) -> None:
    folder = copy_run(small_run, tmp_path / "small")
    with pytest.raises(GoldError, match=r"20 gold rows were drawn at random, and such a promise needs \d+ at least"):
        finish(folder, 0.01)
    with pytest.raises(ConfigError, match="shares between 0 and 1"):
        finish(folder, 1.5)


def test_the_command(folder: Path) -> None:
    shown = CliRunner().invoke(pcs, ["finish", str(folder), "--max-error", ".03"])
    assert shown.exit_code == 0, shown.output
    assert "final labels are wrong" in shown.output
    found = json.loads(CliRunner().invoke(pcs, ["finish", str(folder), "--max-error", ".03", "--json"]).output)
    assert found["left"] > 0
    assert found["hours"] == pytest.approx(found["left"] / 360)
