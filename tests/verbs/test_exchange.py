"""Rows go to Label Studio and come back as verdicts."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pcs_annotator import PcsError
from pcs_annotator.base.errors import ConfigError, LabelError, TableError
from pcs_annotator.core.events import Draw, Undo, Verdict
from pcs_annotator.reviewing.session import Review
from pcs_annotator.runs.draw_registry import append_events, read_events, review_events
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.settings import AskSettings, Config, DataSettings, RelationSettings, TaskSettings
from pcs_annotator.tables.write import OutputPolicy
from pcs_annotator.verbs.exchange import Imported, export_rows, import_answers
from tests.builders import the
from tests.simulated import MODELS, QUICK, RELATIONS, copy_run, read_csv, run, simulated_models, truth_of

HOSTILE = ('"quoted", <b>&amp;</b>', "007", "$text", "naïve \u202e右", "' OR 1=1 --", "=cmd()", "x" * 300)
ROWS, GOLD = 40, 12
Task = dict[str, Any]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose IDs, texts and columns are hard to get through other tools unchanged."""
    folder = tmp_path_factory.mktemp("exchange")
    with (folder / "data.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["key", "text", "gold", "label", "year"])
        for at in range(ROWS):
            name = HOSTILE[at] if at < len(HOSTILE) else f"t{at}"
            text = f"Case {at} looks {truth_of(at)}. {name} {'long ' * 18_000 if at == 20 else ''}"
            writer.writerow([name, text, truth_of(at) if at >= ROWS - GOLD else "", "theirs", 2000 + at])
    config = Config(
        data=DataSettings(id_column="key", gold_column="gold"),
        task=TaskSettings(labels=("good", "bad")),
        ask=AskSettings(models=MODELS),
        relations=RelationSettings(use=RELATIONS),
        learn=QUICK,
    )
    with simulated_models():
        run(RunRequest(data=folder / "data.csv", folder=folder / "run", config=config))
    return folder / "run"


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return copy_run(made, tmp_path / "run")


def written(folder: Path, **choice: Any) -> list[Task]:
    out = folder.parent / "tasks.json"
    export_rows(folder, out, **(choice or {"decision": "all"}), policy=OutputPolicy(replace=True))
    found: list[Task] = json.loads(out.read_text(encoding="ascii"))
    return found


def values_of(task: Task) -> dict[str, Any]:
    """Return what a task says about its row."""
    found: dict[str, Any] = task["data"]
    return found


def answered(task: Task, label: str | None, person: object = 10, at: str | None = "2026-03-09T22:16:08Z") -> Task:
    """Return the task as Label Studio exports it, with one more answer."""
    chosen = {"from_name": "label", "to_name": "text", "type": "choices", "value": {"choices": [label]}}
    given = {"completed_by": person, "was_cancelled": label is None, "updated_at": at, "lead_time": 4.5}
    given["result"] = [] if label is None else [chosen]
    return {"id": 1, **task, "annotations": [*task.get("annotations", ()), given]}


def imported(folder: Path, tasks: Sequence[object]) -> Imported:
    file = folder.parent / "answers.json"
    file.write_text(json.dumps(tasks), encoding="utf-8")
    return import_answers(folder, file)


def verdicts(folder: Path) -> list[Verdict]:
    return [one for one in read_events(folder / "draws.jsonl") if isinstance(one, Verdict)]


def test_ids_labels_and_order_survive_the_round_trip(folder: Path) -> None:
    tasks, rows = written(folder), read_csv(folder.parent / "run" / "labels.csv")
    assert [values_of(one)["pcs_id"] for one in tasks] == [row["key"] for row in rows]
    assert [values_of(one)["text"] for one in tasks] == [row["text"] for row in rows]
    labels = [("good", "bad", None)[at % 3] for at in range(ROWS)]
    found = imported(folder, [answered(task, label) for task, label in zip(tasks, labels, strict=True)])
    assert (found.verdicts, found.skipped, found.known) == (ROWS, labels.count(None), 0)
    assert [(one.id, one.label) for one in verdicts(folder)] == list(
        zip((row["key"] for row in rows), labels, strict=True)
    )
    assert [one.number for one in verdicts(folder)] == list(range(1, ROWS + 1))


def test_a_verdict_says_who_when_how_long_and_what_they_saw(folder: Path) -> None:
    task = written(folder)[1]
    imported(folder, [answered(task, "GOOD", {"id": 3, "email": "ada@example.org"})])
    (found,) = verdicts(folder)
    assert (found.reviewer, found.at, found.seconds) == ("ada@example.org", "2026-03-09T22:16:08+00:00", 4.5)
    assert (found.id, found.label, found.queue) == ("007", "good", "chosen")
    with Review.open(folder) as review:
        shown = review.show("007", "bob")
    assert (found.proposed, found.confidence) == (the(shown.outcome).label, the(shown.outcome).confidence)
    assert the(shown.reviewed).label == "good"


def test_the_users_columns_go_along_but_gold_does_not(folder: Path) -> None:
    last = values_of(written(folder)[-1])
    assert last["year"] == str(2000 + ROWS - 1)
    assert last["input_label"] == "theirs"
    assert "gold" not in last


def test_importing_a_file_twice_adds_nothing_twice(folder: Path) -> None:
    tasks = [answered(answered(task, "good", 1), "bad", 2) for task in written(folder)[:5]]
    assert imported(folder, tasks) == Imported(10, 0, 0, {"label-studio:1": 5, "label-studio:2": 5})
    before = (folder / "draws.jsonl").read_bytes()
    assert imported(folder, tasks) == Imported(0, 0, 10, {})
    assert (folder / "draws.jsonl").read_bytes() == before
    assert Run.open(folder).review().conflict.sum() == 5


def test_a_changed_answer_counts_and_an_older_file_does_not_bring_the_old_one_back(folder: Path) -> None:
    task = written(folder)[0]
    old = answered(task, "good", at="2026-03-01T00:00:00Z")
    new = answered(task, "bad", at="2026-03-02T00:00:00Z")
    same = answered(task, "bad", at="2026-03-03T00:00:00Z")  # saved again without a change
    assert [imported(folder, [one]).verdicts for one in (old, new, old, same, new)] == [1, 1, 0, 0, 0]
    assert [one.label for one in verdicts(folder)] == ["good", "bad"]


def test_an_answer_that_was_taken_back_stays_so_until_it_is_given_again(folder: Path) -> None:
    task = written(folder)[0]
    imported(folder, [answered(task, "good")])
    taken_back = Undo(number=2, verdicts=(1,), reviewer="lead", at="2026-03-10T00:00:00+00:00")
    append_events(folder / "draws.jsonl", [taken_back])
    assert imported(folder, [answered(task, "good")]).verdicts == 0
    again = answered(task, "good", at="2026-03-11T00:00:00Z")
    assert imported(folder, [again]).verdicts == 1
    assert verdicts(folder)[-1].number == 3


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        (
            {"pcs_id": "unheard of"},
            TableError,
            r"the run has no row 'unheard of': .*another project.*nothing was imported",
        ),
        ({"text": "Other."}, TableError, r"row '\$text' has another text in the run.*nothing was imported"),
        ({"answer": "ugly"}, LabelError, r"'ugly' is not one of the labels 'good', 'bad'.*nothing was imported"),
    ],
)
def test_one_answer_that_does_not_fit_keeps_all_out(
    folder: Path, change: Mapping[str, str], kind: type[PcsError], message: str
) -> None:
    good, bad = (written(folder)[at] for at in (0, 2))
    bad["data"].update((name, value) for name, value in change.items() if name in bad["data"])
    with pytest.raises(kind, match=rf"answers\.json, task .*{message}"):
        imported(folder, [answered(good, "good"), answered(bad, change.get("answer", "good"))])
    assert review_events(folder / "draws.jsonl") == []


def test_rows_are_chosen_by_decision_and_those_with_gold_or_a_verdict_are_left_out(folder: Path) -> None:
    decided = {row["key"]: row["pcs_decision"] for row in read_csv(folder / "labels.csv")[: ROWS - GOLD]}
    for decision in {*decided.values()}:
        tasks = written(folder, decision=decision)
        assert [one["data"]["pcs_id"] for one in tasks] == [name for name in decided if decided[name] == decision]
    first, *others = written(folder, decision="review", count=3)
    imported(folder, [answered(first, "good")])
    assert written(folder, decision="review")[: len(others)] == others


def test_rows_drawn_from_a_queue_are_noted_and_their_verdicts_count_for_it(folder: Path) -> None:
    tasks = written(folder, queue="random", count=6)
    draws = [one for one in read_events(folder / "draws.jsonl") if isinstance(one, Draw)]
    assert [one.id for one in draws] == [values_of(task)["pcs_id"] for task in tasks]
    assert {one.queue for one in draws} == {"random"}
    assert [one.probability for one in draws] == pytest.approx([1 / (ROWS - GOLD - at) for at in range(6)])
    chosen = next(one for one in written(folder) if values_of(one)["pcs_id"] not in {draw.id for draw in draws})
    chosen["data"]["pcs_queue"] = "random"  # says so, but was not drawn
    imported(folder, [answered(task, "good") for task in [*tasks[1:], chosen]])
    assert [one.queue for one in verdicts(folder)] == ["random"] * 5 + ["chosen"]
    assert all(one.blind for one in verdicts(folder)[:5])
    again = written(folder, queue="random", count=2)
    assert values_of(again[0])["pcs_id"] == values_of(tasks[0])["pcs_id"]
    assert values_of(again[1])["pcs_id"] not in {one.id for one in draws}


def test_verdicts_on_rows_drawn_at_random_can_support_a_promise_and_others_cannot(folder: Path) -> None:
    drawn = written(folder, queue="random", count=5)
    chosen = written(folder, decision="review")[:5]
    ids = {one["data"]["pcs_id"] for one in drawn}
    imported(folder, [answered(task, "good") for task in drawn])
    imported(folder, [answered(task, "bad") for task in chosen if task["data"]["pcs_id"] not in ids])
    recorded = Run.open(folder)
    gold, names = recorded.gold, [item.id for item in recorded.dataset.items]
    given = {name: row for row, name in enumerate(names) if gold.labels[row] and row < ROWS - GOLD}
    assert {name for name, row in given.items() if gold.random_sample[row]} == ids
    assert {gold.labels[given[name]] for name in ids} == {"good"}
    assert given.keys() == ids | {one["data"]["pcs_id"] for one in chosen}


def test_queues_of_one_sequence_count_for_each_other(folder: Path) -> None:
    everything = written(folder, queue="learn", count=ROWS)
    assert len(everything) == ROWS - GOLD
    for task in everything:
        task["data"]["pcs_queue"] = "random"
    imported(folder, [answered(task, "good") for task in everything])
    assert {one.queue for one in verdicts(folder)} == {"random"}
    with pytest.raises(TableError, match=r"has no rows left in the queue 'learn'"):
        written(folder, queue="learn")


def test_nothing_is_imported_or_drawn_while_somebody_reviews(folder: Path) -> None:
    tasks = written(folder)
    with Review.open(folder):
        with pytest.raises(ConfigError, match="is being reviewed already, by"):
            imported(folder, [answered(tasks[0], "good")])
        with pytest.raises(ConfigError, match="is being reviewed already, by"):
            written(folder, queue="random")


def test_files_in_the_way_are_kept(folder: Path) -> None:
    out = folder.parent / "tasks.json"
    export_rows(folder, out, decision="all")
    with pytest.raises(TableError, match=r"tasks\.json exists"):
        export_rows(folder, out, decision="all")
    out.unlink()
    with pytest.raises(TableError, match=r"tasks\.xml exists"):
        export_rows(folder, out, decision="all")
    export_rows(folder, out, decision="all", policy=OutputPolicy(replace=True))
    assert len(list(folder.parent.glob("tasks-*.xml"))) == 1


def test_a_folder_that_is_no_run_and_a_file_that_is_no_json_are_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match="is not a run folder"):
        export_rows(folder.parent, folder.parent / "tasks.json")
    with pytest.raises(ConfigError, match="is not a run folder"):
        import_answers(folder.parent, folder / "labels.csv")
    with pytest.raises(TableError, match=r"use \.json instead of \.csv"):
        export_rows(folder, folder.parent / "tasks.csv")
    with pytest.raises(TableError, match=r"labels\.csv is not valid JSON"):
        import_answers(folder, folder / "labels.csv")
