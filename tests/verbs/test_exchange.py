"""Rows go to Label Studio and come back as verdicts."""

import csv
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import pcs_annotator as pcs
from pcs_annotator import PcsError
from pcs_annotator.base.errors import ConfigError, LabelError, TableError
from pcs_annotator.core.events import Draw, Undo, Verdict
from pcs_annotator.reviewing.session import Review
from pcs_annotator.runs.book import Book
from pcs_annotator.runs.draw_registry import append_events, read_events, review_events
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.settings import AskSettings, Config, DataSettings, RelationSettings, TaskSettings
from pcs_annotator.tables.label_studio import Control, labelling_interface, read_answers
from pcs_annotator.tables.write import OutputPolicy
from pcs_annotator.verbs.exchange import Imported, export_rows, import_answers
from tests.builders import the
from tests.simulated import MODELS, QUICK, RELATIONS, copy_run, read_csv, run, simulated_models, truth_of, write_csv
from tests.stub.behaviour import pick

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


BOOK = """
[variables.topic]
labels = ["economy", "health"]
[variables.frames]
kind = "many"
labels = ["conflict", "morality"]
[variables.tone]
kind = "scale"
labels = ["1", "2", "3"]
[variables.age]
kind = "number"
labels = ["0..100"]
[variables.place]
kind = "tree"
labels = ["north/city", "north/land", "south/city"]
"""


def coder(question: str) -> str:
    """Answer all variables of a text, or the one that is asked alone."""
    row = re.findall(r"Text (\d+)", question)[-1]
    if "a number from" in question:
        return f"<label>{20 + pick(50, row)}</label>"
    tags = {
        "topic": ("economy", "health")[pick(2, row, "topic")],
        "frames": ("conflict", "conflict; morality", "none")[pick(3, row, "frames")],
        "tone": str(1 + pick(3, row, "tone")),
        "place": ("north/city", "north/land", "south/city")[pick(3, row, "place")],
    }
    return "\n".join(f"<{name}>{value}</{name}>" for name, value in tags.items())


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("studio")
    (folder / "pcs.toml").write_text(BOOK)
    rows = [{"id": f"t{row}", "text": f"Text {row} says something."} for row in range(12)]
    how: Any = {"models": [coder], "relations": ["original"], "text": False}
    pcs.run(write_csv(folder / "data.csv", rows), folder / "book", config=folder / "pcs.toml", **how)
    return folder / "book"


def test_all_variables_of_a_codebook_are_in_one_project(book: Path, tmp_path: Path) -> None:
    written = export_rows(book, tmp_path / "tasks.json", decision="all")
    assert written.rows == 12
    project = ElementTree.parse(written.settings).getroot()
    assert [tag.get("name") for tag in project if tag.tag in ("Choices", "Rating", "Taxonomy", "Number")] == [
        *("topic", "frames", "tone", "age", "place")
    ]
    assert project.find("Choices[@name='frames']").get("choice") == "multiple"  # type: ignore[union-attr]
    tree = the(project.find("Taxonomy"))
    assert [(one.get("value"), [below.get("value") for below in one]) for one in tree] == [
        ("north", ["city", "land"]),
        ("south", ["city"]),
    ]
    task = json.loads((tmp_path / "tasks.json").read_text())[3]
    given = {one["from_name"]: one["value"] for one in task["predictions"][0]["result"]}
    said = dict(re.findall(r"<(\w+)>(.*)</", coder("Text 3")))
    assert given["topic"] == {"choices": [said["topic"]]}
    assert given["tone"] == {"rating": int(said["tone"])}
    assert given["place"] == {"taxonomy": [said["place"].split("/")]}
    assert given["age"] == {"number": float(20 + pick(50, "3"))}
    (tmp_path / "back.json").write_text(json.dumps([{**task, "annotations": [{"completed_by": 1, "result": []}]}]))
    [answer] = read_answers(tmp_path / "back.json", Control("topic", labels=("economy", "health"), part="topic"))
    assert (answer.label, answer.proposed) == (None, said["topic"])


def test_answers_about_all_variables_come_back_as_verdicts(book: Path, tmp_path: Path) -> None:
    export_rows(book, tmp_path / "tasks.json", queue="random", count=2)
    task = json.loads((tmp_path / "tasks.json").read_text())[0]
    given = {
        "topic": ("choices", ["health"]),
        "frames": ("choices", ["morality"]),
        "tone": ("rating", 2),
        "age": ("number", 44),
        "place": ("taxonomy", [["south", "city"]]),
    }
    result = [{"from_name": name, "type": kind, "value": {kind: value}} for name, (kind, value) in given.items()]
    answered = {**task, "id": 1, "annotations": [{"completed_by": 7, "result": result}]}
    (tmp_path / "answers.json").write_text(json.dumps([answered]))
    found = import_answers(book, tmp_path / "answers.json")
    assert (found.verdicts, found.skipped) == (6, 0)
    assert import_answers(book, tmp_path / "answers.json").known == 6
    opened = Book.open(book)
    last = {part: [*Run.of(place).review().latest.values()][-1] for part, place in opened.parts.items()}
    assert {part: one.label for part, one in last.items()} == {
        **{"topic": "health", "frames=conflict": "no", "frames=morality": "yes"},
        **{"tone": "2", "age": "44", "place": "south/city"},
    }
    assert last["topic"].queue == "random"
    assert last["topic"].blind


def test_short_exports_have_values_without_their_type(tmp_path: Path) -> None:
    row = {"pcs_id": "t1", "text": "x", "annotator": 3, "tone": 2, "age": 7.5, "place": [["a", "b"]], "frames": "c"}
    (tmp_path / "short.json").write_text(json.dumps([row]))
    labels = {"tone": ("scale", ("1", "2")), "age": ("number", ("7", "7.5")), "place": ("tree", ("a/b", "c/d"))}
    for (name, (kind, known)), label in zip(labels.items(), ("2", "7.5", "a/b"), strict=True):
        [answer] = read_answers(tmp_path / "short.json", Control(name, kind, known, part=name))
        assert answer.label == label
    [answer] = read_answers(tmp_path / "short.json", Control("frames", "many", ("c", "d"), part="frames=c"))
    assert answer.label == "yes"


def test_a_scale_of_words_is_chosen_and_one_of_stars_rated() -> None:
    assert "<Choices" in labelling_interface([Control(kind="scale", labels=("low", "high"))])
    assert 'maxRating="3"' in labelling_interface([Control(kind="scale", labels=("1", "2", "3"))])
    assert 'min="0" max="1" />' in labelling_interface([Control(kind="number", labels=("0", "0.5", "1"))])
