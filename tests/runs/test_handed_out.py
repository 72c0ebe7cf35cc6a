"""Every way in which rows are handed out leads back to a registered draw, and so to a promise."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pcs_annotator.core.events import Picked, Queue
from pcs_annotator.judging.promise.certificate import Certificate
from pcs_annotator.reviewing.session import Review
from pcs_annotator.reviewing.values import Given, ReviewOptions
from pcs_annotator.runs.draw_registry import events_of
from pcs_annotator.runs.gold_labels import FromPeople
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.studies.estimating.gold_plan import draw_gold
from pcs_annotator.studies.finishing import finish
from pcs_annotator.verbs.exchange import export_rows, import_answers
from pcs_annotator.verbs.fit import fit_run
from tests.builders import the
from tests.simulated import QUICK, read_csv, run, simulated_config, simulated_models, simulated_run, truth_of, write_csv

ROWS, DRAWN = 260, 150
PROMISING = replace(QUICK, max_error=0.1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a run without gold."""
    simulated_run(tmp_path, rows=ROWS, gold_rows=0, learn=PROMISING)
    return tmp_path / "run"


def filled_in(folder: Path, file: Path, *, bare: bool = False) -> Path:
    rows = [{**row, "gold": truth_of(int(row["id"][1:]))} for row in read_csv(file)]
    return write_csv(
        folder / "filled.csv", [{name: row[name] for name in ("id", "gold")} for row in rows] if bare else rows
    )


def by_gold(folder: Path) -> None:
    draw_gold(folder, DRAWN, "simple")
    fit_run(folder, people=FromPeople(gold=filled_in(folder, folder / "to_label.csv")))


def by_gold_without_the_column_that_says_how(folder: Path) -> None:
    draw_gold(folder, DRAWN, "simple")
    fit_run(folder, people=FromPeople(gold=filled_in(folder, folder / "to_label.csv", bare=True)))


def by_to_label(folder: Path) -> None:
    fit_run(folder, people=FromPeople(to_label=DRAWN))
    fit_run(folder, people=FromPeople(gold=filled_in(folder, folder / "to_label.csv")))


def in_a_review(folder: Path) -> None:
    with Review.open(folder, ReviewOptions(refit_every=0)) as review:
        judge(review, "random", DRAWN)
    fit_run(folder)


def judge(review: Review, queue: Queue, rows: int) -> None:
    for _ in range(rows):
        shown = the(review.next_row("Ann", queue))
        label = truth_of(int(shown.id[1:]))
        review.submit(
            Given(id=shown.id, label=label, reviewer="Ann", queue=queue, lease=shown.lease, version=shown.version)
        )


def in_label_studio(folder: Path) -> None:
    exported = export_rows(folder, folder / "tasks.json", queue="random", count=DRAWN)
    tasks = json.loads(exported.file.read_text(encoding="utf-8"))
    for task in tasks:
        label = truth_of(int(task["data"]["pcs_id"][1:]))
        choice = {"type": "choices", "from_name": "label", "to_name": "text", "value": {"choices": [label]}}
        task["annotations"] = [{"result": [choice], "completed_by": 1}]
    answered = folder / "answers.json"
    answered.write_text(json.dumps(tasks), encoding="utf-8")
    import_answers(folder, answered)
    fit_run(folder)


def certificate_of(folder: Path) -> Certificate:
    return the(Run.open(folder).model_in_force().certificate)


WAYS: list[Callable[[Path], None]] = [
    by_gold,
    by_gold_without_the_column_that_says_how,
    by_to_label,
    in_a_review,
    in_label_studio,
]


@pytest.mark.parametrize("way", WAYS)
def test_rows_that_we_handed_out_at_random_support_a_promise(folder: Path, way: Callable[[Path], None]) -> None:
    way(folder)
    certificate = certificate_of(folder)
    assert certificate.gold_rows == DRAWN
    assert certificate.assumed_rows == 0
    assert certificate.holds, certificate.why_not
    found = finish(folder, 0.1)  # what was drawn supports a promise about the whole table, too
    assert found.gold_rows == DRAWN


def test_what_finish_hands_out_comes_back_as_gold_and_the_random_rows_stay_random(folder: Path) -> None:
    by_gold(folder)
    left = finish(folder, 0.02).left
    assert left
    fit_run(folder, people=FromPeople(gold=filled_in(folder, folder / "to_label.csv")))
    certificate = certificate_of(folder)
    assert DRAWN <= certificate.gold_rows < DRAWN + left  # those that the random order has reached meanwhile count too
    assert finish(folder, 0.02).out is not None


def test_all_simple_draws_are_one_sample(folder: Path) -> None:
    draw_gold(folder, 40, "simple")
    fit_run(folder, people=FromPeople(gold=filled_in(folder, folder / "to_label.csv")))
    with Review.open(folder, ReviewOptions(refit_every=0)) as review:
        judge(review, "random", 30)  # those with a label are passed over
    fit_run(folder, {"max_error": None}, FromPeople(to_label=60))
    fit_run(folder, people=FromPeople(gold=filled_in(folder, folder / "to_label.csv")))
    gold = Run.open(folder).gold
    assert gold.random_sample.sum() == sum(label is not None for label in gold.labels) == 130


def test_a_text_is_shown_once_and_counts_for_every_row_that_was_drawn(tmp_path: Path) -> None:
    common = f"Case 0 looks {truth_of(0)}."
    texts = [f"Case {row} looks {truth_of(row)}." if row % 3 == 0 else common for row in range(120)]
    data = write_csv(tmp_path / "data.csv", [{"id": f"t{row}", "text": text} for row, text in enumerate(texts)])
    folder = tmp_path / "run"
    with simulated_models():
        run(RunRequest(data=data, folder=folder, config=simulated_config(PROMISING)))
    draw_gold(folder, 20, "simple")
    shown = read_csv(folder / "to_label.csv")
    assert len(shown) == 20
    filled = [{**row, "gold": row["text"].split()[-1][:-1]} for row in shown]
    fit_run(folder, people=FromPeople(gold=write_csv(folder / "filled.csv", filled)))
    gold = Run.open(folder).gold
    drawn = [event for event in events_of(RunFolder(folder), Picked) if event.chosen == "at random"]
    labelled = sum(label is not None for label in gold.labels)
    assert 40 < labelled == gold.random_sample.sum() <= len(drawn)
    with Review.open(folder, ReviewOptions(refit_every=0)) as review:
        judge(review, "random", 10)
        assert common not in {review.rows.text(row) for row in review.state.verdicts}
