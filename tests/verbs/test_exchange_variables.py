"""Scales, trees, numbers and codebooks go to Label Studio and come back."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import pcs_annotator as pcs
from pcs_annotator.runs.book import Book
from pcs_annotator.runs.opened import Run
from pcs_annotator.tables.label_studio import Control, labelling_interface, read_answers
from pcs_annotator.verbs.exchange import export_rows, import_answers
from tests.builders import the
from tests.simulated import write_csv
from tests.stub.behaviour import pick

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
