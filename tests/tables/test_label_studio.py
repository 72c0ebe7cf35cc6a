"""Examples are written by hand from Label Studio's documentation; with `label-studio-sdk`, its converter reads ours."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator import Outcome
from pcs_annotator.base.errors import TableError
from pcs_annotator.core.events import Queue
from pcs_annotator.tables.label_studio import (
    HOTKEYS,
    Control,
    RowToAnswer,
    StudioAnswer,
    labelling_interface,
    read_answers,
    tasks_page,
)

HOSTILE = ('"quoted", <b>&amp;</b>', "007", "$text", "naïve\n\ttab \u202e右", "  spaces  ", "' OR 1=1 --")
TEXTS = st.text(st.characters(codec="utf-8"), min_size=1)


def outcome(id: str = "a", label: str | None = "good", confidence: float | None = 0.9) -> Outcome:
    scores = {"good": 0.7, "bad": 0.3}
    return Outcome(id=id, label=label, scores=scores, confidence=confidence, decision="review")


def row(id: str = "a", text: str = "Fine.", **columns: object) -> RowToAnswer:
    return RowToAnswer(text=text, outcome=outcome(id), columns=columns)


def annotated(task: Mapping[str, Any], *annotations: Mapping[str, Any], number: int = 1) -> dict[str, Any]:
    """Return a task as Label Studio exports it: with its own number, and predictions as numbers only."""
    return {
        "id": number,
        "annotations": list(annotations),
        "file_upload": "0a1b2c3d-tasks.json",
        "drafts": [{"id": 3, "result": [choice("bad")], "user": "eve@example.org"}],
        "predictions": [12],
        "data": task["data"],
        "meta": {},
        "created_at": "2026-03-09T21:52:49.513742Z",
        "updated_at": "2026-03-09T22:16:08.746926Z",
        "inner_id": number,
        "total_annotations": len(annotations),
        "project": 83,
    }


def choice(*labels: object, name: str = "label") -> dict[str, Any]:
    about = {"id": "Dx_aB91ISN", "origin": "manual", "to_name": "text", "from_name": name}
    return {**about, "type": "choices", "value": {"choices": list(labels)}}


def annotation(label: str | None = "bad", **more: Any) -> dict[str, Any]:
    return {
        "id": 1001,
        "completed_by": 10,
        "result": [] if label is None else [choice(label)],
        "was_cancelled": label is None,
        "ground_truth": False,
        "created_at": "2026-03-09T22:16:08.728353Z",
        "updated_at": "2026-03-09T23:16:08.728378+01:00",
        "lead_time": 4.288,
        "task": 1,
        **more,
    }


def exported(folder: Path, *tasks: object) -> Path:
    path = folder / "project-83.json"
    path.write_text(json.dumps(tasks), encoding="utf-8")
    return path


def test_a_task_has_the_text_what_the_run_says_and_the_users_columns() -> None:
    assert row(source="Blog", year=2024).task("pcs 1") == {
        "data": {
            "text": "Fine.",
            "pcs_id": "a",
            "pcs_decision": "review",
            "pcs_queue": "chosen",
            "pcs_label": "good",
            "pcs_confidence": 0.9,
            "source": "Blog",
            "year": 2024,
        },
        "predictions": [
            {
                "model_version": "pcs 1",
                "score": 0.9,
                "result": [
                    {"from_name": "label", "to_name": "text", "type": "choices", "value": {"choices": ["good"]}}
                ],
            }
        ],
    }


def test_without_a_confidence_the_score_orders_tasks_and_without_a_label_there_is_no_prediction() -> None:
    [predicted] = replace(row(), outcome=outcome(confidence=None)).task("v")["predictions"]
    assert predicted["score"] == 0.7
    unlabelled = RowToAnswer(text="Fine.", outcome=outcome(label=None, confidence=None))
    assert unlabelled.task("v")["predictions"] == []
    shown = {queue: bool(replace(row(), queue=queue).task("v")["predictions"]) for queue in get_args(Queue)}
    assert [queue for queue, predicted in shown.items() if not predicted] == ["stream", "random", "audit"]
    assert "pcs_label" not in replace(row(), queue="audit").task("v")["data"]


def test_columns_with_names_that_are_needed_get_other_names() -> None:
    data = row(text="Fine.", pcs_id=1, label="gold?", data=2, input_label=3).task("v")["data"]
    kept = {"input_pcs_id": 1, "input_label_2": "gold?", "input_data": 2, "input_label": 3}
    assert data.items() >= {"text": "Fine.", "pcs_id": "a", **kept}.items()
    assert not {"data", "label"} & data.keys()


def test_cells_that_json_cannot_hold_are_written_as_text_or_left_out() -> None:
    page = tasks_page([row(when=Path("2024-01-31"), gap=None, share=float("nan"), yes=True)], "v")
    assert page.isascii()
    data = json.loads(page)[0]["data"]
    assert data.items() >= {"when": "2024-01-31", "yes": True}.items()
    assert not {"gap", "share"} & data.keys()


def test_annotations_come_back_with_who_when_and_how_long(tmp_path: Path) -> None:
    by_mail = annotation("good", completed_by={"id": 4, "email": "ada@example.org"}, lead_time=None, updated_at=None)
    path = exported(tmp_path, annotated(row().task("v"), annotation(), by_mail))
    second, first = read_answers(path)  # in the order in which they were given
    assert first == StudioAnswer(
        where="project-83.json, task 1, annotation 1001",
        id="a",
        text="Fine.",
        label="bad",
        reviewer="label-studio:10",
        at="2026-03-09T22:16:08.728378+00:00",
        seconds=4.288,
        proposed="good",
        confidence=0.9,
    )
    assert (second.label, second.reviewer, second.seconds) == ("good", "ada@example.org", None)
    assert second.at == "2026-03-09T22:16:08.728353+00:00"


def test_skipped_tasks_come_back_and_drafts_do_not(tmp_path: Path) -> None:
    skipped = annotation("good", was_cancelled=True)
    tasks = [annotated(row("a").task("v"), skipped), annotated(row("b").task("v"), number=2)]
    (only,) = read_answers(exported(tmp_path, *tasks))
    assert (only.id, only.label) == ("a", None)
    submitted_without_a_choice = annotation("good", result=[])
    (only,) = read_answers(exported(tmp_path, annotated(row("a").task("v"), submitted_without_a_choice)))
    assert only.label is None


def test_choices_of_other_questions_and_ways_to_nested_choices_are_understood(tmp_path: Path) -> None:
    several = annotation(result=[choice("x", name="topic"), choice(["bad"]), {"type": "textarea", "value": {}}])
    other = annotation(result=[choice("good", name="sentiment")])
    found = read_answers(exported(tmp_path, annotated(row().task("v"), several, other)))
    assert [one.label for one in found] == ["bad", "good"]


def test_json_min_is_read_too(tmp_path: Path) -> None:
    data = row(source="Blog").task("v")["data"]
    about = {"id": 1, "annotation_id": 7, "created_at": "2026-03-09T22:16:08Z", "updated_at": None, "lead_time": 2}
    plain = {**data, **about, "label": "bad", "annotator": 10}
    whole = {**data, **about, "label": {"choices": ["good"]}, "annotator": "ada@example.org"}
    nothing = {**data, **about, "annotator": "{}"}
    found = read_answers(exported(tmp_path, plain, whole, nothing))
    assert [(one.id, one.label, one.reviewer, one.seconds) for one in found] == [
        ("a", "bad", "label-studio:10", 2.0),
        ("a", "good", "ada@example.org", 2.0),
    ]
    assert found[0].at == "2026-03-09T22:16:08+00:00"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[", r"project-83\.json.*not valid JSON"),
        ("\ufeff{}", r"project-83\.json has no list of tasks or records: export"),
        ("[" * 100_000, r"project-83\.json.*not valid JSON"),
        ("[3]", r"number 1 in the list is not what Label Studio writes"),
        ('[{"id": 5, "data": {"image": "x.jpg"}, "annotations": []}]', r"task 5 has no pcs_id.*export the project"),
        ('[{"id": 5, "data": [], "annotations": []}]', r"task 5 is not what Label Studio writes"),
        ('[{"id": 5, "image": "x.jpg", "label": "bad"}]', r"task 5 has no pcs_id"),
        ('[{"data": {"pcs_id": 7, "text": "x"}}]', r"task 1 has no pcs_id"),
        (
            '[{"data": {"pcs_id": "7", "text": "x"}, "annotations": {}}]',
            r"task 1 is not what Label Studio writes \(a dict instead of a list\): export",
        ),
        ('[{"data": {"pcs_id": "7", "text": "x"}, "annotations": [true]}]', r"task 1 is not what Label Studio writes"),
    ],
)
def test_files_of_another_shape_are_refused_with_the_place_and_a_remedy(
    tmp_path: Path, content: str, message: str
) -> None:
    path = tmp_path / "project-83.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(TableError, match=message):
        read_answers(path)


def test_a_file_that_is_missing_not_text_or_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TableError, match=r"none\.json cannot be read \(No such file"):
        read_answers(tmp_path / "none.json")
    path = tmp_path / "picture.json"
    path.write_bytes(b"\xff\xd8\xff")
    with pytest.raises(TableError, match=r"picture\.json is not valid JSON"):
        read_answers(path)
    monkeypatch.setattr("pcs_annotator.tables.label_studio.MOST_BYTES", 2)
    with pytest.raises(TableError, match=r"picture\.json has .* GB.*split it"):
        read_answers(path)


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ([choice("good", "bad")], r"task 1, annotation 1001 has the labels \['good', 'bad'\]"),
        ([choice(3)], r"has the labels \[3\]"),
        ([choice("a", name="x"), choice("b", name="y")], r"several questions \('x', 'y'\)"),
        ([{"type": "choices", "value": None}], r"task 1 is not what Label Studio writes"),
        (["bad"], r"task 1 is not what Label Studio writes"),
        ({}, r"a dict instead of a list"),
    ],
)
def test_answers_that_are_not_one_label_are_refused(tmp_path: Path, results: object, message: str) -> None:
    path = exported(tmp_path, annotated(row().task("v"), annotation(result=results)))
    with pytest.raises(TableError, match=message):
        read_answers(path)


def test_strange_times_durations_and_people_are_left_open(tmp_path: Path) -> None:
    strange = annotation(updated_at="soon", created_at=7, lead_time=-1, completed_by=None)
    other = annotation(updated_at="0001-01-01T00:00:00+14:00", lead_time=10**400, completed_by={"id": 3})
    naive = annotation(updated_at="2026-03-09 22:16:08", lead_time=True, completed_by="\ud800x")
    hidden = annotation(lead_time=None, completed_by="ada\x1b[2J\u202e\n lee")
    blank = annotation(lead_time=None, completed_by={"email": "\x07", "id": 8})
    found = read_answers(exported(tmp_path, annotated(row().task("v"), strange, other, naive, hidden, blank)))
    assert {(one.reviewer, one.at, one.seconds) for one in found} == {
        ("label-studio:unknown", None, None),
        ("label-studio:3", "2026-03-09T22:16:08.728353+00:00", None),
        ("?x", "2026-03-09T22:16:08+00:00", None),
        ("ada [2J lee", "2026-03-09T22:16:08.728378+00:00", None),
        ("label-studio:8", "2026-03-09T22:16:08.728378+00:00", None),
    }


@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS), unique_by=lambda one: one[0], max_size=5))
def test_ids_texts_labels_and_their_order_survive_the_round_trip(rows: list[tuple[str, str, str]]) -> None:
    tasks = [row(name, text).task("v") for name, text, _ in rows]
    answered = [annotated(task, annotation(rows[at][2]), number=at) for at, task in enumerate(tasks)]
    with TemporaryDirectory() as folder:
        found = read_answers(exported(Path(folder), *answered))
    assert [(one.id, one.text, one.label) for one in found] == rows


@given(st.lists(TEXTS.filter(str.strip), min_size=2, max_size=40, unique_by=str.casefold), TEXTS)
def test_the_interface_names_every_label_as_it_is(labels: list[str], instruction: str) -> None:
    allowed = [label for label in labels if label.isprintable()]
    if len(allowed) < 2 or any(character in "".join(labels) for character in "\ufffe\uffff"):
        return
    xml = labelling_interface([Control("label", "one", allowed, {allowed[0]: instruction}, instruction)])
    choices = list(ElementTree.fromstring(xml).iter("Choice"))
    assert [one.get("alias") or one.get("value") for one in choices] == allowed
    assert [one.get("hotkey") for one in choices][: len(HOTKEYS)] == list(HOTKEYS[: len(allowed)])


def test_nothing_in_the_interface_refers_to_a_value_of_the_task() -> None:
    xml = labelling_interface(
        [Control("label", "one", ["$pcs_id", "no <&\"' $"], {"$pcs_id": "see $pcs_label"}, "Is $text over $5?")]
    )
    root = ElementTree.fromstring(xml)
    shown = [tag.get(name) or "" for tag in root.iter() for name in ("value", "hint")]
    assert [value for value in shown if re.search(r"\$[\w[\].{}]", value, re.ASCII)] == ["$text"]
    assert "Is $\u2060text over $\u20605?" in shown
    assert [one.get("alias") for one in root.iter("Choice")] == ["$pcs_id", None]


def test_a_label_that_xml_cannot_hold_is_refused_and_a_number_below_zero_is_an_answer() -> None:
    for value in ({"number": -3.5}, -3.5):
        assert Control("depth", "number", ["-10", "0"]).chosen(value) == ["-3.5"]
    with pytest.raises(TableError, match=r"label 'b\\uffffd' has a character that XML cannot hold: rename"):
        labelling_interface([Control(labels=["good", "b\uffffd"])])


@pytest.mark.parametrize("kind", ["JSON", "JSON_MIN"])
def test_the_real_converter_reads_and_writes_what_we_do(tmp_path: Path, kind: str) -> None:
    converter = pytest.importorskip("label_studio_sdk.converter", reason="label-studio-sdk is not installed")
    labels = [*HOSTILE, "x" * 90_000]
    rows = [row(f"{name}-{at}", f"{name}{name}") for at, name in enumerate(labels)]
    tasks = json.loads(tasks_page(rows, "pcs 1"))
    answered = [annotated(tasks[at], annotation(label), number=at) for at, label in enumerate(labels)]
    source = exported(tmp_path, *answered)
    made = converter.Converter(
        labelling_interface([Control(labels=labels, instruction="Which?")]), str(tmp_path), download_resources=False
    )
    assert list(made._schema["label"]["labels"]) == labels
    getattr(made, f"convert_to_{kind.lower()}")(str(source), str(tmp_path / kind), is_dir=False)
    found = read_answers(tmp_path / kind / "result.json")
    assert [(one.id, one.text, one.label, one.reviewer) for one in found] == [
        (given.outcome.id, given.text, label, "label-studio:10") for given, label in zip(rows, labels, strict=True)
    ]


def test_the_real_interface_accepts_our_predictions() -> None:
    interface = pytest.importorskip("label_studio_sdk.label_interface", reason="label-studio-sdk is not installed")
    labels = ["good", *HOSTILE]
    checker = interface.LabelInterface(labelling_interface([Control(labels=labels, instruction="Which?")]))
    for label in labels:
        labelled = Outcome(id="007", label=label, scores={label: 1.0}, confidence=0.9, decision="review")
        task = RowToAnswer(text="Fine.", outcome=labelled).task("pcs 1")
        assert checker.validate_task({"data": task["data"]})
        assert checker.validate_prediction(task["predictions"][0])
    assert not checker.validate_prediction({"result": [choice("unheard of")]})
