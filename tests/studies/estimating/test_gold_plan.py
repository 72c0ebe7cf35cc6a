import re
from pathlib import Path

import numpy as np
import pytest

from pcs_annotator.base.errors import ConfigError, GoldError
from pcs_annotator.core.events import Picked
from pcs_annotator.estimating.sampling import Foretold
from pcs_annotator.faces.cli.main import main
from pcs_annotator.runs.draw_registry import events_of
from pcs_annotator.runs.gold_labels import FromPeople
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.studies.estimating.answering import estimate_run
from pcs_annotator.studies.estimating.answers import EstimateQuestion
from pcs_annotator.studies.estimating.gold_plan import (
    Drawing,
    GoldGoal,
    assumed_pilot,
    draw_gold,
    plan_gold,
    rows_for_goals,
)
from pcs_annotator.studies.finishing import finish
from pcs_annotator.verbs.fit import fit_run
from tests.builders import the
from tests.simulated import copy_run, read_csv, write_csv
from tests.studies.estimating.made import keep_a_sample, make_run, rows_with_groups, truth

pytestmark = pytest.mark.system


def label(folder: Path, leave_empty: int = 0) -> None:
    """Fill in what was drawn, as a person would, and learn from it."""
    rows = read_csv(folder / "to_label.csv")
    filled = [{**row, "gold": "" if place < leave_empty else truth(row)} for place, row in enumerate(rows)]
    fit_run(folder, people=FromPeople(gold=write_csv(folder / "filled.csv", filled)), say=lambda _: None)


def test_every_goal_has_its_rows_and_better_draws_need_fewer(made: Path) -> None:
    found = plan_gold(made, GoldGoal(width=0.03, difference=0.15, by="party", max_error=0.1))
    assert [*found.needed] == ["promise", "share", "difference", "regression", "finish"]
    share = found.needed["share"]
    assert share["gold only"] > share["simple"] > share["confidence"] > 0  # type: ignore[operator]
    assert found.needed["difference"]["simple"] > found.needed["regression"]["simple"] >= 30  # type: ignore[operator]
    assert found.needed["finish"]["simple"] <= 200 + found.more < 600  # type: ignore[operator]
    assert found.gold_rows == 200
    assert found.assumed is None
    narrower = plan_gold(made, GoldGoal(goal="share", width=0.02))
    assert [*narrower.needed] == ["share"]
    assert narrower.needed["share"]["simple"] > share["simple"]  # type: ignore[operator]
    assert narrower.more is None
    assert "difference" not in plan_gold(made, GoldGoal(max_error=0.1)).needed  # between which groups?


def test_a_stricter_goal_takes_more_rows(made: Path) -> None:
    strict, loose = (plan_gold(made, GoldGoal(goal="finish", max_error=error)) for error in (0.02, 0.2))
    assert strict.more > loose.more  # type: ignore[operator]
    assert plan_gold(made, GoldGoal(goal="promise", max_error=0.2)).needed["promise"]["simple"] is not None


def test_a_promise_that_holds_needs_no_more_rows(tmp_path: Path) -> None:
    folder = make_run(tmp_path, gold_rows=200, rows=400)
    certificate = the(fit_run(folder, {"max_error": 0.2}, say=lambda _: None).learned.model.certificate)
    plan = plan_gold(folder, GoldGoal(goal="promise", max_error=0.2))
    assert certificate.found
    assert plan.needed["promise"]["simple"] == plan.gold_rows == 200


def test_the_forecast_of_a_finished_table_is_what_finish_says(made: Path, tmp_path: Path) -> None:
    folder = copy_run(made, tmp_path / "run")
    plan = plan_gold(folder, GoldGoal(goal="finish", max_error=0.1))
    assert plan.more <= plan.now == finish(folder, 0.1).left  # type: ignore[operator]


@pytest.mark.parametrize("goal", [["--goal", "finish", "--max-error", ".01"], ["--goal", "promise"], []])
def test_the_next_command_draws_no_more_rows_than_are_left(
    tmp_path: Path, goal: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_run(tmp_path, gold_rows=60, rows=100)
    assert main(["gold", str(folder), *goal]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "60 rows have gold. Numbers are totals, with the gold rows at hand; 40 more rows can be drawn." in shown
    following = re.search(r"next pcs (gold .* --n \d+)", shown)
    assert following is None or main(following[1].split()) == 0


def test_without_gold_the_worst_is_assumed(bare: Path) -> None:
    found = plan_gold(bare, GoldGoal(width=0.1))
    assert found.assumed == 0.8
    assert found.needed["share"] == {"gold only": int(1.3 * 83)}  # 96.04 of infinitely many rows are 83 of 600
    good, bad = (plan_gold(bare, GoldGoal(goal="finish", accuracy=right)) for right in (0.95, 0.6))
    assert good.more < bad.more <= 600  # type: ignore[operator]
    assert plan_gold(bare, GoldGoal(goal="promise", accuracy=0.5, max_error=0.01)).needed == {
        "promise": {"simple": None}
    }


def test_a_pilot_of_fewer_than_twenty_rows_is_not_counted_on(tmp_path: Path) -> None:
    assert plan_gold(make_run(tmp_path, gold_rows=15, rows=150), GoldGoal(goal="share")).assumed == 0.8


@pytest.mark.parametrize("accuracy", [0.5, 0.999])
def test_useless_and_perfect_machines_have_forecasts(accuracy: float) -> None:
    pilot = assumed_pilot(2000, 2, accuracy)
    expected = np.stack([pilot.confidence, 1 - pilot.confidence], axis=1)
    foretold = Foretold(expected, np.array([1.0, 0.0]))
    found, in_all = rows_for_goals(pilot, foretold, GoldGoal(), ("a", "b"), None)
    if accuracy == 0.5:
        assert found["promise"]["simple"] is None
        assert the(in_all) > 1200
    else:
        assert found["promise"]["simple"] is not None
        assert the(in_all) < 200
    assert all(rows is not None and rows >= 30 for rows in found["share"].values())


def test_a_table_too_small_for_a_slope_says_so() -> None:
    pilot = assumed_pilot(60, 2, 0.8)
    found, _ = rows_for_goals(
        pilot, Foretold(pilot.expected, np.array([1.0, 0.0])), GoldGoal(goal="regression"), ("a", "b"), None
    )
    assert found == {"regression": {"gold only": 60}}


@pytest.mark.parametrize("drawing", ["simple", "stratified", "confidence"])
def test_drawn_rows_come_back_as_gold_with_their_probabilities(made: Path, tmp_path: Path, drawing: Drawing) -> None:
    folder = copy_run(made, tmp_path / "run")
    before = estimate_run(folder, EstimateQuestion()).lines[0]
    assert draw_gold(folder, 60, drawing) == (60, folder / "to_label.csv")
    label(folder, leave_empty=10)
    found = estimate_run(folder, EstimateQuestion()).lines[0]
    assert found.gold_rows == 250
    assert found.corrected.interval is not None
    true = sum(truth(row) == "good" for row in rows_with_groups()) / 600
    assert found.corrected.interval.low - 0.03 < true < found.corrected.interval.high + 0.03
    assert found.corrected.interval.high - found.corrected.interval.low < 1.05 * (
        the(before.corrected.interval).high - the(before.corrected.interval).low
    )


def test_rows_of_a_large_table_are_drawn_from_its_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_a_sample(monkeypatch, 110)
    folder = make_run(tmp_path, gold_rows=50, rows=250)
    draw_gold(folder, 40, "stratified")
    drawn = [event.probability for event in events_of(RunFolder(folder), Picked) if event.probability]
    # 60 rows without gold are in the sample, and 200 in the table
    assert sum(1 / chance for chance in drawn) == pytest.approx(200)
    label(folder)
    found = estimate_run(folder, EstimateQuestion(of=["good"])).lines[0]
    assert found.gold_rows == 90
    true = sum(truth(row) == "good" for row in rows_with_groups()[:250]) / 250
    assert found.corrected.value == pytest.approx(true, abs=0.1)
    assert plan_gold(folder, GoldGoal(goal="share", width=0.05)).needed["share"]["gold only"] is None  # of 110 rows


def test_a_first_sample_may_be_stratified_by_a_column(bare: Path, tmp_path: Path) -> None:
    folder = copy_run(bare, tmp_path / "run")
    draw_gold(folder, 90, "stratified", by="party")
    party = {row["id"]: row["party"] for row in rows_with_groups()}
    drawn = [party[row["id"]] for row in read_csv(folder / "to_label.csv")]
    assert min(drawn.count(name) for name in "abc") >= 29
    label(folder)
    assert estimate_run(folder, EstimateQuestion(by="party", of=["good"])).lines[0].gold_rows >= 29


def test_no_row_is_drawn_twice(made: Path, tmp_path: Path) -> None:
    folder = copy_run(made, tmp_path / "run")
    draw_gold(folder, 50, "simple")
    first = {row["id"] for row in read_csv(folder / "to_label.csv")}
    label(folder)
    draw_gold(folder, 50, "simple")
    second = {row["id"] for row in read_csv(folder / "to_label.csv")}
    assert not first & second
    assert not second & {row["id"] for row in rows_with_groups()[:200]}


def test_drawn_rows_whose_text_has_gold_count_without_being_labelled_again(made: Path, tmp_path: Path) -> None:
    folder = copy_run(made, tmp_path / "run")
    rows = rows_with_groups()
    chosen = [{"id": row["id"], "gold": truth(row)} for row in rows[200:300]]  # by a person, not at random
    fit_run(folder, people=FromPeople(gold=write_csv(tmp_path / "mine.csv", chosen)))
    drawn = draw_gold(folder, 200, "simple")
    to_label = read_csv(drawn[1])
    again = {row["id"] for row in to_label} & {row["id"] for row in chosen}
    noted = {event.id for event in events_of(RunFolder(folder), Picked) if event.chosen == "at random"}
    assert not again
    assert drawn[0] == len(to_label) == 200
    known = noted & {row["id"] for row in chosen}
    assert len(noted) == 200 + len(known)
    assert known
    label(folder)
    assert estimate_run(folder, EstimateQuestion()).lines[0].gold_rows == 400 + len(known)


def test_a_text_that_was_drawn_in_several_rows_is_labelled_once(tmp_path: Path) -> None:
    folder = make_run(tmp_path, gold_rows=50, rows=150, twice=True)
    drawn = draw_gold(folder, 100, "simple")
    assert drawn[0] == len(read_csv(drawn[1])) == 100
    label(folder)
    assert estimate_run(folder, EstimateQuestion()).lines[0].gold_rows == 300


def test_what_cannot_be_drawn_says_why(made: Path, bare: Path) -> None:
    with pytest.raises(GoldError, match="400 texts have no gold label yet, and 500 are wanted: ask for fewer"):
        draw_gold(made, 500, "simple")
    with pytest.raises(GoldError, match="there is no calibrated confidence to draw by: draw a simple sample first"):
        draw_gold(bare, 50, "confidence")
    with pytest.raises(ConfigError, match="there is no column 'nope'"):
        draw_gold(made, 50, "stratified", by="nope")
    with pytest.raises(ConfigError, match="use it with --draw stratified"):
        draw_gold(made, 50, "simple", by="party")


@pytest.mark.parametrize(
    ("wish", "why"),
    [
        (GoldGoal(of="nice"), "'nice' is no label"),
        (GoldGoal(goal="difference"), "name their column with --by"),
        (GoldGoal(difference=0.1, by="nope"), "there is no column 'nope'"),
        (GoldGoal(difference=0.1, by="party", power=0.3), "the power is 0.3, must be at least .5 and below 1"),
    ],
)
def test_what_cannot_be_planned_says_why(made: Path, wish: GoldGoal, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        plan_gold(made, wish)
