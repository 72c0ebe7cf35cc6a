import json
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import pcs_annotator
from pcs_annotator.base.errors import ConfigError, GoldError
from pcs_annotator.core.events import Queue
from pcs_annotator.faces.cli.main import pcs
from pcs_annotator.reviewing.session import Review
from pcs_annotator.reviewing.values import Given, ReviewOptions
from pcs_annotator.runs.gold_labels import FromPeople
from pcs_annotator.studies.estimating.gold_plan import GoldGoal, plan_gold
from pcs_annotator.studies.finishing import Terms, finish
from pcs_annotator.verbs.fit import fit_run
from tests.builders import the
from tests.runs.test_kinds import STEPS, one_step_off, texts
from tests.simulated import copy_run, move_run, read_csv, truth_of, write_csv


@pytest.fixture
def folder(promising_run: Path, tmp_path: Path) -> Path:
    return move_run(promising_run, tmp_path / "run")


def label_by_hand(folder: Path) -> None:
    filled = [{"id": row["id"], "gold": truth_of(int(row["id"][1:]))} for row in read_csv(folder / "to_label.csv")]
    fit_run(folder, None, FromPeople(gold=write_csv(folder / "filled.csv", filled)))


def scale_run(folder: Path) -> Path:
    """A run whose models are off by one step of a scale in a quarter of the texts."""
    data, models = texts(folder / "data.csv", STEPS), [one_step_off(number, 25) for number in range(3)]
    quick: Any = {"optimiser": "lr", "relations": ["original"], "text": False, "max_error": 0.1}
    pcs_annotator.run(data, folder / "run", models=models, labels=STEPS, kind="scale", **quick)
    return folder / "run"


def wrong_in(path: Path) -> int:
    return sum(row["final_label"] != truth_of(int(row["id"][1:])) for row in read_csv(path))


def test_people_label_the_rest_and_the_whole_table_keeps_the_promise(folder: Path) -> None:
    first = finish(folder, 0.03)
    assert first.out is None
    assert (first.rows, first.gold_rows) == (260, 150)
    assert 0 < first.left < 110  # of the rows without gold
    waiting = read_csv(folder / "to_label.csv")
    assert len(waiting) == first.left
    assert finish(folder, 0.03) == first  # asked again, nothing changes
    label_by_hand(folder)
    last = finish(folder, 0.03)
    assert last.left == 0
    assert wrong_in(the(last.out)) <= 7
    written = [row["labelled_by"] for row in read_csv(the(last.out))]
    assert {*written} == {"machine", "person"}
    assert written.count("person") == last.labelled == 150 + first.left
    again = finish(folder, 0.03, Terms(again=True))  # uses fewer errors, and more gold
    assert again.gold_rows == 150


def test_a_stricter_promise_takes_more_rows(folder: Path) -> None:
    assert finish(folder, 0.03).left > finish(folder, 0.2).left


@pytest.mark.system
def test_on_a_scale_one_step_off_counts_as_right_if_the_promise_says_so(tmp_path: Path) -> None:
    made = scale_run(tmp_path)
    strict = finish(made, 0.05)
    fit_run(made, {"promise": "off-by-more-than-one"}, say=lambda line: None)
    loose = finish(made, 0.05)
    assert (strict.error, loose.error) == ("wrong", "near")
    assert strict.left > loose.left == 0  # no answer is more than one step off
    assert "off by more than one step" in CliRunner().invoke(pcs, ["finish", str(made), "--max-error", ".05"]).output


def test_what_cannot_be_promised_is_said_with_the_remedy(small_run: Path, tmp_path: Path) -> None:
    folder = copy_run(small_run, tmp_path / "small")
    with pytest.raises(GoldError, match=r"20 gold rows were drawn at random, and this promise needs at least \d+"):
        finish(folder, 0.01)
    with pytest.raises(ConfigError, match="shares between 0 and 1"):
        finish(folder, 1.5)


def test_hours_follow_the_pace_of_the_review(folder: Path) -> None:
    with Review.open(folder) as review:
        for seconds in (30.0, 50.0, 9000.0, None):
            shown = the(review.next_row("Ann", "random"))
            review.submit(
                Given(
                    id=shown.id,
                    label="good",
                    reviewer="Ann",
                    queue="random",
                    lease=shown.lease,
                    version=shown.version,
                    seconds=seconds,
                )
            )
    assert finish(folder, 0.1).seconds == 40.0


def judge_next(review: Review, queue: Queue) -> str | None:
    shown = review.next_row("Ann", queue)
    if shown is None:
        return None
    said = truth_of(int(shown.id[1:]))
    review.submit(Given(id=shown.id, label=said, reviewer="Ann", queue=queue, lease=shown.lease, version=shown.version))
    return shown.id


def read_plan(folder: Path) -> dict[str, Any]:
    plan: dict[str, Any] = json.loads((folder / "finish.json").read_text())
    return plan


def test_the_rows_are_a_queue_of_the_review_and_its_end_gives_the_certificate(folder: Path) -> None:
    first = finish(folder, 0.03)
    waiting = [row["id"] for row in read_csv(folder / "to_label.csv")]
    with Review.open(folder, ReviewOptions(refit_every=0)) as review:
        planned = len(read_plan(folder)["by_people"])
        known = planned - first.left  # gold rows among them
        assert review.progress("Ann").queues["finish"] == (known, first.left)
        assert review.progress("Ann").goal == "at most 3 % of all labels are wrong"
        shown = [judge_next(review, "finish") for _ in range(first.left)]
        assert shown == waiting
        assert review.progress("Ann").queues["finish"] == (planned, 0)
        assert review.next_row("Ann", "finish") is None
        assert "pcs finish says that at most 3 % of all labels are wrong" in review.why_empty("Ann", "finish")
        assert {one.queue for one in review.state.given_by["Ann"].values()} == {"finish"}
    last = finish(folder, 0.03)
    assert wrong_in(the(last.out)) <= 7
    proof = json.loads(the(last.certificate).read_text())
    assert proof["goal"] == "at most 3 % of all labels are wrong"
    assert proof["blake2b"] == blake2b(the(last.out).read_bytes()).hexdigest()
    assert (proof["gold_rows"], proof["labelled"], proof["errors"]) == (150, last.labelled, last.errors)
    said = CliRunner().invoke(pcs, ["finish", str(folder), "--max-error", ".03"]).output
    assert the(last.certificate).name in "".join(said.split())  # a long path may be broken anywhere


def test_other_rows_are_not_of_the_queue(folder: Path) -> None:
    with Review.open(folder, ReviewOptions(refit_every=0)) as review:
        assert review.next_row("Ann", "finish") is None
        assert review.progress("Ann").queues["finish"] == (0, 0)
        assert review.why_empty("Ann", "finish") == "Start with pcs finish."
    first = finish(folder, 0.03)
    with Review.open(folder, ReviewOptions(refit_every=0)) as review:
        assert review.progress("Ann").queues["finish"].left == first.left
        assert judge_next(review, "finish") is not None
        assert review.progress("Ann").queues["finish"].left == first.left - 1
        other = next(name for name in review.rows.ids[150:] if name not in read_plan(folder)["by_people"])
        shown = review.show(other, "Ann", "finish")
        given = Given(id=other, label="good", reviewer="Ann", queue="finish", lease=shown.lease, version=shown.version)
        assert review.submit(given).queue == "chosen"
    assert finish(folder, 0.03).left == first.left - 1


def test_a_distance_needs_labels_that_have_an_order(folder: Path) -> None:
    with pytest.raises(ConfigError, match="--error distance: these labels have no order"):
        finish(folder, 0.05, Terms(error="distance"))


def test_the_command(folder: Path) -> None:
    asked = ["finish", str(folder), "--max-error", ".03"]
    shown = CliRunner().invoke(pcs, asked)
    assert shown.exit_code == 0, shown.output
    assert "more rows, and at most 3 % of all labels are wrong, with 90 % certainty" in " ".join(shown.output.split())
    assert "150 rows of 260 (58 %) have a person's label" in " ".join(shown.output.split())
    found = json.loads(CliRunner().invoke(pcs, [*asked, "--json"]).output)
    assert found["left"] > 0
    assert found["hours"] == pytest.approx(found["left"] / 360)
    slow = json.loads(CliRunner().invoke(pcs, [*asked, "--seconds-per-row", "36", "--json"]).output)
    assert slow["hours"] == pytest.approx(found["left"] / 100)


@pytest.mark.system
def test_on_a_scale_the_mean_distance_may_be_promised_and_takes_fewer_rows(tmp_path: Path) -> None:
    made = scale_run(tmp_path)
    strict, mean = finish(made, 0.05), finish(made, 0.05, Terms(error="distance"))
    assert mean.goal == "labels are off by at most 5 % of the scale on average"
    assert mean.left < strict.left
    asked = ["finish", str(made), "--max-error", ".05", "--error", "distance"]
    assert "off by at most 5 % of the scale" in CliRunner().invoke(pcs, asked).output


def test_labels_that_were_filled_in_to_the_table_are_read_by_the_next_call(folder: Path) -> None:
    first = finish(folder, 0.03)
    filled = [{**row, "gold": truth_of(int(row["id"][1:]))} for row in read_csv(folder / "to_label.csv")]
    write_csv(
        folder / "to_label.csv", [{**row, "gold": row["gold"] if place < 5 else ""} for place, row in enumerate(filled)]
    )
    second = finish(folder, 0.03)
    assert second.left == first.left - 5
    assert len(read_csv(folder / "to_label.csv")) == second.left
    write_csv(folder / "to_label.csv", filled[5:])
    last = finish(folder, 0.03)
    assert wrong_in(the(last.out)) <= 7
    assert not [*folder.glob("to_label.*.csv")]


def test_gold_foretells_how_many_more_rows_people_label_and_finish_and_its_queue_say_the_same(folder: Path) -> None:
    planned = plan_gold(folder, GoldGoal(goal="finish", max_error=0.03))
    found = finish(folder, 0.03)
    assert found.left > 0
    assert planned.now == found.left == len(read_csv(folder / "to_label.csv"))
    with Review.open(folder, ReviewOptions(refit_every=0)) as review:
        assert review.progress("Ann").queues["finish"].left == found.left
